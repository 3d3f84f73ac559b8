#include "framework/store/sql/diagnosis.h"
#include "framework/store/sqlite/schema_check.h"
#include "framework/store/sqlite/sessions.h"

namespace millrace::engine::sqlite {
namespace {

// A file that is larger takes too long to read through for a look.
constexpr std::uint64_t kMostBytesChecked = 512ULL << 20;
constexpr Micros kLongestCheck = std::chrono::seconds(10);

class SqliteDiagnosis final : public StoreDiagnosis {
 public:
  explicit SqliteDiagnosis(File& file) : db_(file), schema_(OpenSchema(file)) {}

  Result<StoreFacts> Examine(const DiagnosisOptions& options) override;
  Result<WallTime> Now() override { return db_.Now(); }

 private:
  Result<std::uint64_t> Ask(const char* sql) {
    std::uint64_t number = 0;
    BOOST_OUTCOME_TRYV(db_.Query(sql, {}, [&](const sql::Row& row) { number = row.Number(1); }));
    return number;
  }
  Status ReadSize(StoreFacts& facts);
  void CheckIntegrity(StoreFacts& facts);

  Session db_;
  const std::unique_ptr<SchemaStore> schema_;
};

Status SqliteDiagnosis::ReadSize(StoreFacts& facts) {
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT sqlite_version()", {}, [&](const sql::Row& row) { facts.version = row.Text(1); }));
  BOOST_OUTCOME_TRY(page, Ask("SELECT page_size FROM pragma_page_size"));
  BOOST_OUTCOME_TRY(pages, Ask("SELECT page_count FROM pragma_page_count"));
  BOOST_OUTCOME_TRY(unused, Ask("SELECT freelist_count FROM pragma_freelist_count"));
  facts.tables.push_back({db_.path(), pages * page, unused * page});
  return {};
}

void SqliteDiagnosis::CheckIntegrity(StoreFacts& facts) {
  if (facts.tables.front().bytes > kMostBytesChecked) {
    facts.unknown.push_back(
        {"the file's integrity", "it is larger than 512 MB: run PRAGMA quick_check by hand"});
    return;
  }
  db_.SetDeadline(BootClock::now() + kLongestCheck);
  const Status checked =
      db_.Query("SELECT quick_check FROM pragma_quick_check(1)", {}, [&](const sql::Row& row) {
        if (row.Text(1) != "ok") facts.integrity = row.Text(1);
      });
  db_.SetDeadline(std::nullopt);
  if (!checked) facts.unknown.push_back({"the file's integrity", checked.error().message});
}

Result<StoreFacts> SqliteDiagnosis::Examine(const DiagnosisOptions& options) {
  StoreFacts facts;
  BOOST_OUTCOME_TRYV(ReadSize(facts));
  CheckIntegrity(facts);
  const auto tables = schema_->Tables();
  if (!tables) {
    facts.schema.push_back(
        {"the task tables", tables.error().message, "make them with `millrace schema apply`"});
    return facts;
  }
  if (auto pools = sql::SamplePools(db_, *tables)) {
    facts.pools = std::move(*pools);
  } else {
    facts.unknown.push_back({"the counters beside the pools", pools.error().message});
  }
  // The definitions are texts in the file; what is planned is a table of a transaction that is rolled back.
  if (!options.scratch) return facts;
  auto checked = schema_->Check();
  if (checked) {
    facts.schema = std::move(*checked);
  } else {
    facts.unknown.push_back({"the schema's form and the statements' plans", checked.error().message});
  }
  return facts;
}

}  // namespace

std::unique_ptr<StoreDiagnosis> OpenDiagnosis(File& file) { return std::make_unique<SqliteDiagnosis>(file); }

}  // namespace millrace::engine::sqlite

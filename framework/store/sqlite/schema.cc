#include <set>

#include "framework/store/sql/schema.h"
#include "framework/store/sqlite/ddl.h"
#include "framework/store/sqlite/schema_check.h"
#include "framework/store/sqlite/sessions.h"

namespace millrace::engine::sqlite {
namespace {

Result<bool> Exists(Session& db, const std::string& name) {
  auto rows = db.Select("SELECT 1 FROM sqlite_master WHERE name=?", name);
  const bool found = rows.Next();
  if (rows.error()) return Fail(*rows.error());
  return found;
}

Status MakeMissing(Session& db, const std::vector<SchemaObject>& objects) {
  for (const SchemaObject& object : objects) {
    BOOST_OUTCOME_TRY(found, Exists(db, object.name));
    if (found) continue;
    BOOST_OUTCOME_TRYV(db.Script(object.create));
  }
  return {};
}

// Rows that wait or run stand in the due index, held ones in another: see ddl.cc.
std::string StraysIn(const TableName& table, bool held) {
  return table + " INDEXED BY " + table + (held ? "_held" : "_due") + " WHERE urgency IS " +
         (held ? "" : "NOT ") + "NULL AND slice>=?";
}

class SqliteSchemaStore final : public sql::SqlSchemaStore {
 public:
  explicit SqliteSchemaStore(File& file) : SqlSchemaStore(db_), file_(file), db_(file) {}

  std::string Print(const SchemaSpec& spec) const override;
  // Makes the file too, where there is none.
  Status Apply(const SchemaSpec& spec) override;
  Result<std::uint32_t> Upgrade() override;
  // Invalid where somebody has changed the default of the column by hand.
  Status Resize(const TableName& table, std::uint32_t slices) override;
  Result<std::vector<SchemaFinding>> Check() override;

 private:
  Status ReadBeyond(std::vector<TableInfo>& tables) override;
  Result<std::vector<std::uint64_t>> Strays(const TableName& table, std::uint32_t slices,
                                            std::size_t limit) override;
  Status RewriteTable(const TableName& table, const std::string& text);

  File& file_;
  Session db_;
};

std::string SqliteSchemaStore::Print(const SchemaSpec& spec) const {
  std::string text = "BEGIN IMMEDIATE;\n";
  const auto print = [&](const std::vector<SchemaObject>& objects) {
    for (const SchemaObject& object : objects) text += object.create + ";\n";
  };
  print(ShardObjects());
  text += SchemaRow(std::nullopt, 0) + ";\n";
  for (const TableName& table : TableNames(spec)) {
    print(TaskTableObjects(table, spec.slices));
    text += SchemaRow(table, spec.slices) + ";\n";
  }
  return text + "COMMIT;\n";
}

Status SqliteSchemaStore::Apply(const SchemaSpec& spec) {
  BOOST_OUTCOME_TRYV(CheckSpec(spec));
  Session maker(file_, true);
  BOOST_OUTCOME_TRYV(maker.Open());
  BOOST_OUTCOME_TRYV(maker.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRYV(CheckApply(spec));
    BOOST_OUTCOME_TRYV(MakeMissing(maker, ShardObjects()));
    BOOST_OUTCOME_TRYV(maker.Script(SchemaRow(std::nullopt, 0)));
    for (const TableName& table : TableNames(spec)) {
      BOOST_OUTCOME_TRYV(MakeMissing(maker, TaskTableObjects(table, spec.slices)));
      BOOST_OUTCOME_TRYV(maker.Script(SchemaRow(table, spec.slices)));
    }
    return true;
  }));
  return {};
}

Result<std::uint32_t> SqliteSchemaStore::Upgrade() {
  BOOST_OUTCOME_TRY(schema, ReadSchema(db_));
  if (schema.version > kSchemaVersion) return Fail(CheckVersion(schema.version, db_.path()).error());
  if (schema.version == kSchemaVersion) return schema.version;
  BOOST_OUTCOME_TRYV(db_.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRYV(MakeMissing(db_, ShardObjects()));
    for (const TableInfo& info : schema.tables) {
      BOOST_OUTCOME_TRYV(MakeMissing(db_, TaskTableObjects(info.table, info.slices)));
    }
    BOOST_OUTCOME_TRYV(db_.Run("UPDATE millrace_schema SET version=?", kSchemaVersion));
    return true;
  }));
  return schema.version;
}

Status SqliteSchemaStore::ReadBeyond(std::vector<TableInfo>& tables) {
  for (TableInfo& info : tables) {
    std::set<std::uint32_t> found;
    for (const bool held : {false, true}) {
      const std::string sql = "SELECT slice FROM " + StraysIn(info.table, held) + " ORDER BY slice LIMIT 1";
      for (std::uint32_t from = info.slices;;) {
        auto rows = db_.Select(sql, from);
        if (!rows.Next()) {
          if (rows.error()) return Fail(*rows.error());
          break;
        }
        found.insert(rows.Number(0));
        from = rows.Number(0) + 1;
      }
    }
    info.beyond.assign(found.begin(), found.end());
  }
  return {};
}

Result<std::vector<std::uint64_t>> SqliteSchemaStore::Strays(const TableName& table, std::uint32_t slices,
                                                             std::size_t limit) {
  std::vector<std::uint64_t> ids;
  for (const bool held : {false, true}) {
    auto rows = db_.Select("SELECT id FROM " + StraysIn(table, held) + " AND state<>2 LIMIT ?", slices,
                           static_cast<std::uint64_t>(limit - ids.size()));
    while (rows.Next()) ids.push_back(rows.Id(0));
    if (rows.error()) return Fail(*rows.error());
  }
  return ids;
}

// SQLite has no statement that changes a default. Its documentation gives this way for what does not touch
// the rows: the text of the table is changed, and the schema's version raised, so that every connection reads
// it anew.
Status SqliteSchemaStore::RewriteTable(const TableName& table, const std::string& text) {
  std::int64_t version = 0;
  {
    auto rows = db_.Select("PRAGMA schema_version");
    if (rows.Next()) version = rows.Integer(0);
    if (rows.error()) return Fail(*rows.error());
  }
  BOOST_OUTCOME_TRYV(db_.Script("PRAGMA writable_schema=ON"));
  auto changed = db_.Run("UPDATE sqlite_master SET sql=? WHERE type='table' AND name=?", text, table);
  Status raised =
      db_.Script("PRAGMA schema_version=" + std::to_string(version + 1) + "; PRAGMA writable_schema=OFF");
  if (!changed) return Fail(changed.error());
  return raised;
}

Status SqliteSchemaStore::Resize(const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(CheckSlices(slices));
  BOOST_OUTCOME_TRYV(db_.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRY(present, SlicesOf(table));
    if (present == slices) return true;
    std::string text;
    {
      auto rows = db_.Select("SELECT sql FROM sqlite_master WHERE type='table' AND name=?", table);
      if (rows.Next()) text = rows.Text(0);
      if (rows.error()) return Fail(*rows.error());
    }
    const std::string drawn = SliceDefault(present);
    const std::size_t at = text.find(drawn);
    if (at == std::string::npos) {
      return Fail(ErrorCode::Invalid, "the table " + table + " draws its slices otherwise than " + drawn +
                                          ": see `millrace schema check`");
    }
    text.replace(at, drawn.size(), SliceDefault(slices));
    BOOST_OUTCOME_TRYV(RewriteTable(table, text));
    BOOST_OUTCOME_TRYV(SetNumber(table, slices));
    return true;
  }));
  return {};
}

Result<std::vector<SchemaFinding>> SqliteSchemaStore::Check() {
  BOOST_OUTCOME_TRY(tables, Current());
  return CheckSchema(db_, tables);
}

}  // namespace

std::unique_ptr<SchemaStore> OpenSchema(File& file) { return std::make_unique<SqliteSchemaStore>(file); }

}  // namespace millrace::engine::sqlite

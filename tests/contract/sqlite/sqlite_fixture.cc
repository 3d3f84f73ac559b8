#include "tests/contract/sqlite/sqlite_fixture.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>

#include "framework/store/sqlite/store.h"

namespace millrace::engine {
namespace {

class SqliteClient final : public SqlClient {
 public:
  explicit SqliteClient(const std::string& path) {
    EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
    sqlite3_busy_timeout(db_, 5'000);
  }
  ~SqliteClient() override { sqlite3_close(db_); }

  Result<SqlResult> Run(const std::string& sql) override {
    SqlResult result;
    const auto take = [](void* into, int count, char** values, char** names) {
      auto& out = *static_cast<SqlResult*>(into);
      auto& row = out.rows.emplace_back();
      out.columns.assign(names, names + count);
      for (int i = 0; i < count; ++i)
        row.push_back(values[i] ? std::optional<std::string>(values[i]) : std::nullopt);
      return 0;
    };
    const int before = sqlite3_total_changes(db_);
    if (sqlite3_exec(db_, sql.c_str(), take, &result, nullptr) != SQLITE_OK) {
      return Fail(ErrorCode::Invalid, sqlite3_errmsg(db_));
    }
    result.affected = static_cast<std::uint64_t>(sqlite3_total_changes(db_) - before);
    return result;
  }

 private:
  sqlite3* db_ = nullptr;
};

std::string MakeFolder() {
  std::string form = (std::filesystem::temp_directory_path() / "millrace_XXXXXX").string();
  return mkdtemp(form.data()) == nullptr ? std::string() : form;
}

class SqliteFixture final : public SqlFixture {
 public:
  explicit SqliteFixture(const SchemaSpec& spec) : folder_(MakeFolder()), path_(folder_ + "/shard.db") {
    auto store = sqlite::OpenStore({.kind = StoreUrl::Kind::Sqlite, .path = path_}, {});
    if (!store) return;
    store_ = std::move(*store);
    const Status applied = store_->OpenSchema()->Apply(spec);
    EXPECT_TRUE(applied) << applied.error().message;
  }
  ~SqliteFixture() override { std::filesystem::remove_all(folder_); }

  Store& store() override { return *store_; }
  std::unique_ptr<SqlClient> NewClient() override { return std::make_unique<SqliteClient>(path_); }

 protected:
  std::string LastId() const override { return "last_insert_rowid()"; }

 private:
  const std::string folder_;
  const std::string path_;
  std::unique_ptr<Store> store_;
};

}  // namespace

std::unique_ptr<SqlFixture> MakeSqliteFixture(const SchemaSpec& spec) {
  return std::make_unique<SqliteFixture>(spec);
}

}  // namespace millrace::engine

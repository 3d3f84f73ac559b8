// The contract suite on a private MariaDB, or on the server that MILLRACE_TEST_MYSQL_URL names.
#include "framework/store/mysql/store.h"
#include "tests/contract/suite/producer_contract.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"

namespace millrace::engine {
namespace {

class MysqlClient final : public SqlClient {
 public:
  explicit MysqlClient(const TestDatabase& database)
      : connection_(database.url(), database.password_file()) {}
  Result<SqlResult> Run(const std::string& sql) override { return connection_.Run(sql); }

 private:
  SqlConnection connection_;
};

class MysqlFixture final : public SqlFixture {
 public:
  explicit MysqlFixture(const SchemaSpec& spec) {
    StoreOptions options;
    options.password_file = database_.password_file();
    auto opened = mysql::OpenStore(database_.url(), options);
    EXPECT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    const Status applied = store_->OpenSchema()->Apply(spec);
    EXPECT_TRUE(applied) << applied.error().message;
  }

  Store& store() override { return *store_; }
  bool late_commits() const override { return true; }
  bool brings_tasks() const override { return true; }
  std::unique_ptr<SqlClient> NewClient() override { return std::make_unique<MysqlClient>(database_); }

 protected:
  std::string LastId() const override { return "LAST_INSERT_ID()"; }

 private:
  TestDatabase database_;
  std::unique_ptr<Store> store_;
};

std::unique_ptr<SqlFixture> MakeSqlFixture(const SchemaSpec& spec) {
  return std::make_unique<MysqlFixture>(spec);
}
std::unique_ptr<StoreFixture> MakeFixture(const SchemaSpec& spec) { return MakeSqlFixture(spec); }

INSTANTIATE_TEST_SUITE_P(Mysql, StoreContract, testing::Values(StoreKind{"mysql", MakeFixture}));
INSTANTIATE_TEST_SUITE_P(Mysql, TransactionContract, testing::Values(SqlStoreKind{"mysql", MakeSqlFixture}));
INSTANTIATE_TEST_SUITE_P(Mysql, SqlStoreContract, testing::Values(SqlStoreKind{"mysql", MakeSqlFixture}));
INSTANTIATE_TEST_SUITE_P(Mysql, ScannedContract, testing::Values(SqlStoreKind{"mysql", MakeSqlFixture}));
INSTANTIATE_TEST_SUITE_P(Mysql, QueryPagesContract, testing::Values(SqlStoreKind{"mysql", MakeSqlFixture}));
INSTANTIATE_TEST_SUITE_P(Mysql, UpgradeContract, testing::Values(SqlStoreKind{"mysql", MakeSqlFixture}));
INSTANTIATE_TEST_SUITE_P(Mysql, LiveUpgradeContract, testing::Values(SqlStoreKind{"mysql", MakeSqlFixture}));
INSTANTIATE_TEST_SUITE_P(Mysql, ProducerContract, testing::Values(SqlStoreKind{"mysql", MakeSqlFixture}));

}  // namespace
}  // namespace millrace::engine

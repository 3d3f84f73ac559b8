#include "tests/contract/sqlite/sqlite_fixture.h"
#include "tests/contract/suite/producer_contract.h"

namespace millrace::engine {

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContract, testing::Values(StoreKind{"sqlite", MakeSqliteFixture}));
INSTANTIATE_TEST_SUITE_P(Sqlite, SqlStoreContract,
                         testing::Values(SqlStoreKind{"sqlite", MakeSqliteFixture}));
INSTANTIATE_TEST_SUITE_P(Sqlite, ScannedContract, testing::Values(SqlStoreKind{"sqlite", MakeSqliteFixture}));
INSTANTIATE_TEST_SUITE_P(Sqlite, QueryPagesContract,
                         testing::Values(SqlStoreKind{"sqlite", MakeSqliteFixture}));
INSTANTIATE_TEST_SUITE_P(Sqlite, UpgradeContract, testing::Values(SqlStoreKind{"sqlite", MakeSqliteFixture}));
INSTANTIATE_TEST_SUITE_P(Sqlite, LiveUpgradeContract,
                         testing::Values(SqlStoreKind{"sqlite", MakeSqliteFixture}));
INSTANTIATE_TEST_SUITE_P(Sqlite, TransactionContract,
                         testing::Values(SqlStoreKind{"sqlite", MakeSqliteFixture}));
INSTANTIATE_TEST_SUITE_P(Sqlite, ProducerContract,
                         testing::Values(SqlStoreKind{"sqlite", MakeSqliteFixture}));

}  // namespace millrace::engine

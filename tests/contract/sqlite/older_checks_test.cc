// Files whose checks are of an older version hold rows that today's would refuse.
#include "tests/contract/sqlite/sqlite_fixture.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using testing::Test;

class OlderChecks : public Test, public StoreTest {
 protected:
  void SetUp() override {
    made_ = MakeSqliteFixture({.tables = 1, .slices = 4});
    Begin(*made_);
    client_ = made_->NewClient();
    ASSERT_TRUE(client_->Run("PRAGMA ignore_check_constraints=ON"));
  }
  void Insert(const std::string& slice, const std::string& failures, const std::string& run_at) {
    const auto done =
        client_->Run("INSERT INTO tasks (handler,params,slice,failures,run_at) VALUES ('a','{}'," + slice +
                     "," + failures + ",'" + run_at + "')");
    ASSERT_TRUE(done) << done.error().message;
  }
  // As the mill does: each group from its head on.
  std::vector<std::uint64_t> Found() {
    std::vector<std::uint64_t> ids;
    for (const DueGroup& group : Due().groups) {
      const auto rows = tasks().Scan({.group = group, .after = HeadOf(group)});
      EXPECT_TRUE(rows) << rows.error().message;
      WallTime last{};
      for (const ScanRow& row : *rows) {
        EXPECT_GE(row.run_at, last) << "a place in the order";
        last = row.run_at;
        ids.push_back(row.id);
      }
    }
    return ids;
  }

  std::unique_ptr<SqlFixture> made_;
  std::unique_ptr<SqlClient> client_;
};

TEST_F(OlderChecks, ADayOrAnHourThatThereIsNotHidesNoRow) {
  for (const char* run_at : {"2026-02-28 23:00:00.000000", "2026-02-30 10:00:00.000000",
                             "2026-03-01 09:00:00.000000", "2026-03-02 09:00:00.000000"})
    Insert("1", "0", run_at);
  Insert("2", "0", "2026-02-30 10:00:00.000000");
  Insert("2", "0", "2026-03-01 09:00:00.000000");
  Insert("3", "0", "2026-02-20 24:30:00.000000");
  Insert("3", "0", "2026-02-21 00:10:00.000000");
  EXPECT_EQ(Found(), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(OlderChecks, ADayThatThereIsNotIsDueWhenTheNextBegins) {
  Insert("1", "0", "2199-02-30 10:00:00.000000");
  const DueMap map = Due();
  ASSERT_EQ(map.groups.size(), 1U);
  const WallTime march = std::chrono::sys_days(std::chrono::year(2199) / 3 / 1);
  EXPECT_EQ(map.groups[0].first_run_at, march);
  EXPECT_TRUE(Found().empty());
}

// 3.7 compares with whole numbers and equals none: a walk that reads it as 3 does not come past it.
TEST_F(OlderChecks, GroupsThatNoScanCouldAskForAreNotInTheMap) {
  Insert("2.5", "0", "2026-01-01 00:00:00.000000");
  Insert("1", "1.5", "2026-01-01 00:00:00.000000");
  Insert("1", "3", "2026-01-01 00:00:00.000000");
  Insert("3", "0", "2026-01-01 00:00:00.000000");
  EXPECT_EQ(Due().groups.size(), 2U);
  EXPECT_EQ(Found(), (std::vector<std::uint64_t>{3, 4}));
}

TEST_F(OlderChecks, ACheckOfTheSchemaTakesThemAndNamesARowThatNobodyFinds) {
  ASSERT_TRUE(client_->Run("PRAGMA writable_schema=ON"));
  const auto older = client_->Run(
      "UPDATE sqlite_master SET sql=replace(replace(sql,' AND typeof(slice) = ''integer''',''),' AND "
      "typeof(failures) = ''integer''','') WHERE name='tasks'");
  ASSERT_TRUE(older) << older.error().message;
  ASSERT_TRUE(client_->Run("PRAGMA writable_schema=RESET"));
  auto findings = store().OpenSchema()->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  for (const SchemaFinding& finding : *findings) ADD_FAILURE() << finding.what << ": " << finding.problem;
  Insert("2.5", "0", "2026-01-01 00:00:00.000000");
  findings = store().OpenSchema()->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_EQ((*findings)[0].what, "task tasks/1");
}

}  // namespace
}  // namespace millrace::engine

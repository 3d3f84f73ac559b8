#include "framework/store/mysql/group_plan.h"

#include "framework/store/mysql/due_text.h"
#include "tests/integration/store/store_faults.h"

namespace millrace::engine {
namespace {

class GroupPlanTest : public StoreFaults {
 protected:
  GroupPlanTest()
      : endpoint_{database_.url(), {.password_file = database_.password_file()}},
        session_(endpoint_, std::chrono::seconds(10)) {}

  bool Jumps(const TableSlices& scope = {.table = "tasks"}, bool with_later = false) {
    bool jumps = false;
    const Status done = session_.Query(
        mysql::kExplainInRows + mysql::DueText(scope, with_later),
        [&](const mysql::Row& row) { jumps = row.Named("Extra").find("group") != std::string::npos; });
    EXPECT_TRUE(done) << done.error().message;
    return jumps;
  }

  const mysql::Endpoint endpoint_;
  mysql::Session session_;
};

TEST_F(GroupPlanTest, ASlowMapOfATableThatWasFilledWhileOpenIsMended) {
  Add(1);
  for (int i = 0; i < 30; ++i) Add(1000);
  mysql::GroupPlan plan;
  plan.Mend(session_, "tasks", std::chrono::seconds(1));
  EXPECT_TRUE(Jumps());
}

TEST_F(GroupPlanTest, SeveralRangesAndHandlersAreStillJumpedOver) {
  for (int i = 0; i < 30; ++i) Add(1000);
  const Status analysed = session_.Query("ANALYZE TABLE tasks", [](const mysql::Row&) {});
  ASSERT_TRUE(analysed) << analysed.error().message;
  EXPECT_TRUE(
      Jumps({.table = "tasks", .all = false, .slices = {1, 3}, .handlers = {{"award", "noop", "zz"}}}));
  EXPECT_TRUE(Jumps({.table = "tasks", .all = true, .handlers = {{"noop"}}}));
  EXPECT_TRUE(Jumps({.table = "tasks"}, true)) << "whether something is due later, too";
}

}  // namespace
}  // namespace millrace::engine

#include "tests/contract/suite/store_contract.h"

namespace millrace {
namespace {

TEST_P(StoreContract, ClaimReturnsWholeTasksAndRaisesTheAttempt) {
  const auto id = Add({.handler = "award.points",
                       .params = R"({"payment_id":1})",
                       .slice = 3,
                       .priority = 2,
                       .biz_key = "pay-1",
                       .batch = "november"});
  const Task task = ClaimOne(id);
  EXPECT_EQ(task.key, (TaskKey{"tasks", id}));
  EXPECT_EQ(task.slice, 3U);
  EXPECT_EQ(task.state, TaskState::Running);
  EXPECT_EQ(task.handler, "award.points");
  EXPECT_EQ(task.params, R"({"payment_id":1})");
  EXPECT_EQ(task.priority, 2U);
  EXPECT_EQ(task.biz_key, "pay-1");
  EXPECT_EQ(task.batch, "november");
  EXPECT_EQ(task.attempt, 1U);
  EXPECT_EQ(task.failures, 0U);
  EXPECT_EQ(task.claimed_by, "w.1");
  EXPECT_TRUE(task.claimed_at.has_value());
}

}  // namespace
}  // namespace millrace

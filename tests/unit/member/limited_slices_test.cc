#include "coordinator/member/assignment.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

class LimitedSlicesTest : public testing::Test {
 protected:
  std::vector<TableSlices> Left(std::vector<TableSlices> assigned) {
    const auto all = std::make_shared<const SlicesByShard>(SlicesByShard{{"main", std::move(assigned)}});
    return WithinLimits(all, limits_)->at("main");
  }

  WorkerLimits limits_;
};

TEST_F(LimitedSlicesTest, KeepTheTypesThatBothName) {
  limits_.handlers = {{"a", "b"}};
  const TableSlices all{"tasks", true, {}};
  const TableSlices group{"tasks", false, {1}, std::vector<std::string>{"b", "c"}};
  const auto left = Left({all, group});
  ASSERT_EQ(left.size(), 2u);
  EXPECT_THAT(left[0].handlers, Optional(ElementsAre("a", "b")));
  EXPECT_THAT(left[1].handlers, Optional(ElementsAre("b")));
}

TEST_F(LimitedSlicesTest, ATableOfWhichNothingIsLeftGoes) {
  const TableSlices group{"tasks", false, {1}, std::vector<std::string>{"c"}};
  limits_.handlers = {{"a"}};
  EXPECT_THAT(Left({group}), IsEmpty());
  limits_.handlers = {};
  limits_.load_balance = {{2, 3}};
  EXPECT_THAT(Left({group}), IsEmpty());
}

TEST_F(LimitedSlicesTest, KeepTheNumbersThatBothName) {
  limits_.load_balance = {{1, 2, 9}};
  const auto left = Left({{"tasks", false, {0, 1, 9}}});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_THAT(left[0].slices, ElementsAre(1u, 9u));
  EXPECT_FALSE(left[0].handlers);
}

TEST_F(LimitedSlicesTest, KeepTheTablesThatAreAllowed) {
  limits_.tables = {{"main/tasks_001", "tasks_002"}};
  const auto left = Left({{"tasks_000", true, {}}, {"tasks_001", true, {}}, {"tasks_002", true, {}}});
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].table, "tasks_001");
  limits_.shards = {{"other"}};
  EXPECT_THAT(Left({{"tasks_002", true, {}}}), IsEmpty());
}

TEST_F(LimitedSlicesTest, WithoutLimitsTheAssignmentIsLeftAsItIs) {
  const auto all = std::make_shared<const SlicesByShard>();
  EXPECT_EQ(WithinLimits(all, limits_), all);
}

}  // namespace
}  // namespace millrace::engine

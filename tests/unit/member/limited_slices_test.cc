#include "coordinator/member/limited_slices.h"

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
    return WithinLimits(all, worker_)->at("main");
  }

  WorkerDocument worker_;
};

TEST_F(LimitedSlicesTest, KeepTheTypesThatBothName) {
  worker_.handlers = {{"a", "b"}};
  const TableSlices all{"tasks", true, {}};
  const TableSlices group{"tasks", false, {1}, std::vector<std::string>{"b", "c"}};
  const auto left = Left({all, group});
  ASSERT_EQ(left.size(), 2u);
  EXPECT_THAT(left[0].handlers, Optional(ElementsAre("a", "b")));
  EXPECT_THAT(left[1].handlers, Optional(ElementsAre("b")));
}

TEST_F(LimitedSlicesTest, ATableOfWhichNothingIsLeftGoes) {
  const TableSlices group{"tasks", false, {1}, std::vector<std::string>{"c"}};
  worker_.handlers = {{"a"}};
  EXPECT_THAT(Left({group}), IsEmpty());
  worker_.handlers = {};
  worker_.load_balance = {{2, 3}};
  EXPECT_THAT(Left({group}), IsEmpty());
}

TEST_F(LimitedSlicesTest, KeepTheNumbersThatBothName) {
  worker_.load_balance = {{1, 2, 9}};
  const auto left = Left({{"tasks", false, {0, 1, 9}}});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_THAT(left[0].slices, ElementsAre(1u, 9u));
  EXPECT_FALSE(left[0].handlers);
}

TEST_F(LimitedSlicesTest, KeepTheTablesThatAreAllowed) {
  worker_.tables = {{"main/tasks_001", "tasks_002"}};
  const auto left = Left({{"tasks_000", true, {}}, {"tasks_001", true, {}}, {"tasks_002", true, {}}});
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].table, "tasks_001");
  worker_.shards = {{"other"}};
  EXPECT_THAT(Left({{"tasks_002", true, {}}}), IsEmpty());
}

TEST_F(LimitedSlicesTest, WithoutLimitsTheAssignmentIsLeftAsItIs) {
  const auto all = std::make_shared<const SlicesByShard>();
  EXPECT_EQ(WithinLimits(all, worker_), all);
}

}  // namespace
}  // namespace millrace::engine

#include "coordinator/coordination/limited_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/coordination/local/local_slice_source.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

TEST(LimitedSlicesTest, KeepTheTypesThatBothName) {
  const TableSlices all{"tasks", true, {}};
  const TableSlices group{"tasks", false, {1}, std::vector<std::string>{"b", "c"}};
  const auto limited = LimitedTo({all, group}, {"a", "b"});
  ASSERT_EQ(limited.size(), 2u);
  EXPECT_THAT(limited[0].handlers, Optional(ElementsAre("a", "b")));
  EXPECT_THAT(limited[1].handlers, Optional(ElementsAre("b")));
}

TEST(LimitedSlicesTest, AListWithoutAnyTypeGoes) {
  const TableSlices group{"tasks", false, {1}, std::vector<std::string>{"c"}};
  EXPECT_THAT(LimitedTo({group}, {"a"}), IsEmpty());
}

TEST(LimitedSlicesTest, ASourceWithoutALimitIsLeftAsItIs) {
  auto all = LocalSliceSource::Make({{"main", {{"tasks", 4}}}}, {});
  EXPECT_EQ(LimitedSliceSource(*all, {}).Slices("main"), all->Slices("main"));
  EXPECT_THAT(LimitedSliceSource(*all, {"b", "a"}).Slices("main")[0].handlers,
              Optional(ElementsAre("a", "b")));
}

}  // namespace
}  // namespace millrace

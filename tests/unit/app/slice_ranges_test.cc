#include "coordinator/app/slice_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SliceRangesTest, NumbersThatFollowOneAnotherAreARange) {
  EXPECT_THAT(SliceRanges({"main/tasks/0", "main/tasks/1", "main/tasks/10", "main/tasks/2"}),
              ElementsAre("main/tasks/0-2,10"));
  EXPECT_THAT(SliceRanges({}), IsEmpty());
}

TEST(SliceRangesTest, EachTableAndGroupStandsByItself) {
  EXPECT_THAT(SliceRanges({"a/t/1", "a/t/1@mail", "a/t/2@mail", "a/u/1", "b/t/1"}),
              ElementsAre("a/t/1", "a/t/1-2@mail", "a/u/1", "b/t/1"));
}

TEST(SliceRangesTest, WhatIsNoSliceIsShownAsItIs) {
  EXPECT_THAT(SliceRanges({"rubbish", "a/t/1"}), ElementsAre("a/t/1", "rubbish"));
}

}  // namespace
}  // namespace millrace::engine

#include "framework/policy/load_balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(LoadBalanceTest, ReadsNumbersAndRangesInAnyOrder) {
  EXPECT_THAT(*ParseLoadBalance("40, 0-3 ,2"), ElementsAre(0, 1, 2, 3, 40));
  EXPECT_THAT(*ParseLoadBalance("7"), ElementsAre(7));
  EXPECT_EQ(ParseLoadBalance("0-16383")->size(), 16384u);
}

TEST(LoadBalanceTest, RefusesAnythingElseAndSaysWhatToWrite) {
  for (const char* text :
       {"", ",", "1,", "3-1", "-1", "1-", "a", "16384", "0-99999999999", "1 2", "0x1", "1--2"}) {
    const auto numbers = ParseLoadBalance(text);
    ASSERT_FALSE(numbers) << text;
    EXPECT_EQ(numbers.error().code, ErrorCode::Invalid);
    EXPECT_THAT(numbers.error().message, HasSubstr("0-31,40"));
  }
}

TEST(LoadBalanceTest, WritesTheShortestTextThatReadsBack) {
  EXPECT_EQ(FormatLoadBalance({0, 1, 2, 3, 40}), "0-3,40");
  EXPECT_EQ(FormatLoadBalance({}), "");
  EXPECT_EQ(FormatLoadBalance(*ParseLoadBalance("5,3,4,9")), "3-5,9");
}

}  // namespace
}  // namespace millrace::engine

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

// It would be 3 GB, and take a minute, if each range stood for itself.
TEST(LoadBalanceTest, RangesThatAreNamedAgainAndAgainCostNothing) {
  std::string text = "0-16383";
  for (int i = 0; i < 50'000; ++i) text += ",0-16383,5-16000";
  const auto numbers = ParseLoadBalance(text);
  ASSERT_TRUE(numbers);
  EXPECT_EQ(numbers->size(), 16384u);
  EXPECT_LE(numbers->capacity(), 32768u);
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

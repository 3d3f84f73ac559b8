#include "framework/base/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace::engine {
namespace {

const std::vector<std::string> kHandlers = {"award_points", "exec", "http_call", "noop", "send_mail"};

TEST(SuggestTest, CountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("jitter", "jittre"), 1U);
}

TEST(SuggestTest, FindsTheNearestName) {
  EXPECT_EQ(Nearest("award_point", kHandlers), "award_points");
  EXPECT_EQ(Nearest("nop", kHandlers), "noop");
  EXPECT_EQ(Nearest("sendmail", kHandlers), "send_mail");
}

TEST(SuggestTest, SaysNothingWhereNoNameIsNear) {
  EXPECT_EQ(Nearest("resize_image", kHandlers), "");
  EXPECT_EQ(Nearest("", kHandlers), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'a'), kHandlers), "");
  EXPECT_EQ(Nearest("noop", {}), "");
}

TEST(SuggestTest, WritesTheQuestion) {
  EXPECT_EQ(DidYouMean("exce", kHandlers), " (did you mean 'exec'?)");
  EXPECT_EQ(DidYouMean("unlike_any", kHandlers), "");
}

}  // namespace
}  // namespace millrace::engine

#include "coordinator/app/cli/text.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

TEST(ElapsedTextTest, IsAsExactAsPeopleReadIt) {
  using namespace std::chrono_literals;
  EXPECT_EQ(ElapsedText(850ms), "850 ms");
  EXPECT_EQ(ElapsedText(6200ms), "6.2 s");
  EXPECT_EQ(ElapsedText(250s), "4 min 10 s");
  EXPECT_EQ(ElapsedText(2h + 5min), "2 h 5 min");
}

TEST(NearestOfTest, NamesTheNearestOrElseWhatThereIs) {
  const std::vector<std::string> known{"east", "north", "west"};
  EXPECT_EQ(NearestOf("esat", known, "; there are "), " (did you mean 'east'?)");
  EXPECT_EQ(NearestOf("antarctica", known, "; there are "), "; there are east, north, west");
  EXPECT_EQ(NearestOf("antarctica", known, "; there are ", 2), "; there are east, north …");
  EXPECT_EQ(NearestOf("east", {}, "; there are "), "");
}

TEST(WrappedTest, BreaksAtBlanksAndLeavesLongWordsWhole) {
  EXPECT_EQ(Wrapped("one two three", 8), "one two\n  three");
  EXPECT_EQ(Wrapped("one two three", 0), "one two three");
  EXPECT_EQ(Wrapped("Zoë Günther", 11), "Zoë Günther");
  EXPECT_EQ(Wrapped("a millrace-task-list b", 6), "a\n  millrace-task-list\n  b");
  EXPECT_EQ(Wrapped("", 8), "");
}

TEST(WrappedTest, TheFirstLineMayStandBehindATitle) {
  EXPECT_EQ(Wrapped("one two three", 12, 5, 5), "one two\n     three");
  EXPECT_EQ(Wrapped("one two", 6, 5, 1), "one\n two");
}

TEST(FitTest, CutsByColumnsAndEscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Fit("Zoë and Günther", 7), "Zoë an…");
  EXPECT_EQ(Fit("a\x1b[2J", 20), "a\\x1b[2J");
  EXPECT_EQ(Fit("abc", 0), "");
}

}  // namespace
}  // namespace millrace::engine

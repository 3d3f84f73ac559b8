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

TEST(FitTest, CutsByColumnsAndEscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Fit("Zoë and Günther", 7), "Zoë an…");
  EXPECT_EQ(Fit("a\x1b[2J", 20), "a\\x1b[2J");
  EXPECT_EQ(Fit("abc", 0), "");
}

}  // namespace
}  // namespace millrace::engine

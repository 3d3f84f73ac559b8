#include "coordinator/coordination/config_change.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

std::string At(int version) { return "2026-11-20T18:00:0" + std::to_string(version) + "Z"; }

// A history as it grows: each text is in force until the next.
class ConfigChangeTest : public testing::Test {
 protected:
  void Set(const std::string& text, std::optional<std::int32_t> restores = {}) {
    history_.push_back({++version_, At(version_), "ann", text, restores});
  }
  // As `config rollback` does without a version; the text that is then in force, or nothing.
  std::string RollBack() {
    const ConfigChange* before = ChangeBefore(history_, version_, history_.back().text);
    if (before == nullptr) return "nothing";
    Set(before->text, before->version);
    return history_.back().text;
  }

  std::vector<ConfigChange> history_;
  std::int32_t version_ = 0;
};

TEST_F(ConfigChangeTest, ASecondRollbackGoesFurtherBackAndNotForwardAgain) {
  for (const char* text : {"first", "good", "bad"}) Set(text);
  EXPECT_EQ(RollBack(), "good");
  EXPECT_EQ(RollBack(), "first");
  EXPECT_EQ(RollBack(), "nothing");
}

TEST_F(ConfigChangeTest, AfterARollbackAndAChangeItGoesBackToWhatTheRollbackRestored) {
  for (const char* text : {"first", "good", "bad"}) Set(text);
  EXPECT_EQ(RollBack(), "good");
  Set("better");
  EXPECT_EQ(RollBack(), "good");
  EXPECT_EQ(RollBack(), "first");
}

TEST_F(ConfigChangeTest, AVersionWithTheSameTextIsNoneToGoBackTo) {
  for (const char* text : {"good", "bad", "bad"}) Set(text);
  EXPECT_EQ(RollBack(), "good");
}

TEST_F(ConfigChangeTest, WhereTheNodeWasMadeAnewTheLastTextThatIsNotedComesBack) {
  for (const char* text : {"first", "good"}) Set(text);
  EXPECT_EQ(ChangeBefore(history_, 0, "{}")->text, "good");
  EXPECT_EQ(ChangeBefore(history_, 1, "{}")->text, "good");  // a number that was there before
  EXPECT_EQ(ChangeBefore(history_, std::nullopt, "{}")->text, "good");
}

// The numbers of the node that was there before stand beside the new ones, and greater ones are no later
// ones.
TEST_F(ConfigChangeTest, ChangesOfANodeThatWasMadeAnewAreInTheOrderOfTheirTimes) {
  history_ = {{0, At(0), "ann", "{}"},
              {1, At(8), "ann", "bad"},
              {2, At(2), "ann", "first"},
              {3, At(7), "ann", "good"}};
  EXPECT_EQ(ChangeBefore(history_, 1, "bad")->text, "good");
  history_[2] = {2, At(9), "ann", "good", 3};
  EXPECT_EQ(ChangeBefore(history_, 2, "good")->text, "{}") << "further back, and not forward again";
  history_[2].restores.reset();
  EXPECT_EQ(ChangeBefore(history_, 2, "good")->text, "bad") << "it was set by itself";
}

TEST_F(ConfigChangeTest, WhatStoodJustBeforeIsWhatTheLastChangeTookAway) {
  const auto before = [&](std::optional<std::int32_t> version, const std::string& text) {
    const ConfigChange* found = ChangeJustBefore(history_, version, text);
    return found == nullptr ? "nothing" : found->text;
  };
  Set("first");
  EXPECT_EQ(before(1, "first"), "nothing");
  for (const char* text : {"good", "bad"}) Set(text);
  EXPECT_EQ(before(3, "bad"), "good");
  EXPECT_EQ(RollBack(), "good");
  EXPECT_EQ(before(4, "good"), "bad") << "whatever a second rollback would go back to";
  EXPECT_EQ(RollBack(), "first");
  EXPECT_EQ(before(5, "first"), "good");
  EXPECT_EQ(before(0, "{}"), "first") << "the node was made anew";
  EXPECT_EQ(before(std::nullopt, "{}"), "first");
}

TEST_F(ConfigChangeTest, WhatAPersonPutIntoTheHistoryIsNoChange) {
  EXPECT_FALSE(ReadChange("notes", R"({"document":"{}"})"));
  EXPECT_FALSE(ReadChange("0000000007", "by hand"));
  EXPECT_FALSE(ReadChange("0000000007", R"({"document":{}})"));
  const auto change = ReadChange("0000000007", R"({"document":"{}","by":"ann","restores":3})");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->version, 7);
  EXPECT_EQ(change->restores, 3);
}

TEST_F(ConfigChangeTest, TheLastFiftyStayAndWhatIsNoChangeIsLeftAlone) {
  std::vector<std::string> noted{"0"};
  for (int i = 1; i <= 51; ++i) noted.push_back(HistoryName(i));
  noted.push_back("notes");
  const auto writes = NoteChange("engine", {52, At(1), "ann", "{}"}, noted);
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0].path, "/history/engine/" + HistoryName(52));
  EXPECT_EQ(writes[1].path, "/history/engine/" + HistoryName(1));
}

TEST_F(ConfigChangeTest, OfTwoCountingsTheFormerOneGoesFirst) {
  std::vector<std::string> noted{HistoryName(0), HistoryName(1)};
  for (int i = 11; i <= 60; ++i) noted.push_back(HistoryName(i));
  const auto writes = NoteChange("engine", {2, At(1), "ann", "{}"}, noted);
  ASSERT_EQ(writes.size(), 3u);
  EXPECT_EQ(writes[0].path, "/history/engine/" + HistoryName(2));
  EXPECT_EQ(writes[1].path, "/history/engine/" + HistoryName(11));
  EXPECT_EQ(writes[2].path, "/history/engine/" + HistoryName(12));
}

}  // namespace
}  // namespace millrace::engine

#include "coordinator/app/cli/text_table.h"

#include <gtest/gtest.h>

#include "coordinator/app/cli/text.h"

namespace millrace::engine {
namespace {

TEST(TextTableTest, AlignsTextLeftAndNumbersRight) {
  const TextTable table{{{"task"}, {"attempts", true}, {"about"}},
                        {{"a/b/1", "7", "x"}, {"a/b/100", "12", ""}}};
  EXPECT_EQ(table.Text(0),
            "task     attempts  about\n"
            "a/b/1           7  x\n"
            "a/b/100        12");
}

TEST(TextTableTest, CountsLettersAndNotBytes) {
  const TextTable table{{{"name"}, {"n"}}, {{"Zoë", "1"}, {"Günther", "2"}, {"日本", "3"}}};
  EXPECT_EQ(table.Text(0),
            "name     n\n"
            "Zoë      1\n"
            "Günther  2\n"
            "日本       3");
}

TEST(TextTableTest, CutsTheLastColumnToTheWidth) {
  const TextTable table{{{"id"}, {"about"}}, {{"1", "a text that is longer than there is room"}}};
  EXPECT_EQ(table.Text(20),
            "id  about\n"
            "1   a text that is …");
  EXPECT_EQ(table.Text(3),
            "id  about\n"
            "1   a text that…");  // some of it always shows
}

TEST(TextTableTest, ANarrowTerminalLosesLesserColumnsBeforeTheLastIsCut) {
  const TextTable table{
      {{"task"}, {"handler", false, 1}, {"attempts", true, 3}, {"when", false, 2}, {"about"}},
      {{"main/tasks/1", "award_points", "7", "5 min ago", std::string(60, 'x')}}};
  const auto first = [&](std::size_t width) {
    const std::string text = table.Text(width);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first(0), "task          handler       attempts  when       about");
  EXPECT_EQ(first(69), "task          handler       attempts  when       about");
  EXPECT_EQ(first(68), "task          handler       when       about");
  EXPECT_EQ(first(58), "task          handler       about");
  EXPECT_EQ(first(40), "task          about");
  EXPECT_EQ(first(10), "task          about");
  for (const std::size_t width : {40, 58, 68, 100}) {
    const std::string text = table.Text(width);
    EXPECT_LE(DisplayWidth(text.substr(text.find('\n') + 1)), width);
  }
}

TEST(TextTableTest, ShowsControlCharactersAsText) {
  const TextTable table{{{"about"}}, {{"two\nlines\x1b[2J"}}};
  EXPECT_EQ(table.Text(0), "about\ntwo\\nlines\\x1b[2J");
}

TEST(TextTableTest, AValueThatIsCutIsEscapedOnce) {
  const TextTable table{{{"key"}, {"about"}},
                        {{R"(a\b)",
                          "\xE2\x80\xAE"
                          "abc"
                          R"(\)"}}};
  EXPECT_EQ(table.Text(0), "key   about\na\\\\b  \\u{202e}abc\\\\");
}

TEST(FieldTextTest, JsonStaysJsonThatCanBeCopied) {
  EXPECT_EQ(FieldText({{"params", "{\n\"a\":\"x\\ny\xC2\x9B\"}", true}}), R"(params  { "a":"x\ny\u009b"})");
}

TEST(FieldTextTest, LineBreaksAreShownAsLines) {
  EXPECT_EQ(FieldText({{"task", "1"}, {"last error", "first\r\n  second\x1b[2J\nthird\n"}}),
            "task        1\n"
            "last error  first\n"
            "              second\\x1b[2J\n"
            "            third");
}

TEST(FieldTextTest, AlignsValuesAndLeavesOutEmptyOnes) {
  EXPECT_EQ(FieldText({{"task", "a/b/1"}, {"key", ""}, {"last error", "why"}}),
            "task        a/b/1\n"
            "last error  why");
}

}  // namespace
}  // namespace millrace::engine

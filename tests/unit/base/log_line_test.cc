#include "framework/base/log_line.h"

#include <gtest/gtest.h>

#include "any_text.h"
#include "framework/base/time_text.h"
#include "framework/base/utf8.h"

namespace millrace::engine {
namespace {

const WallTime kAt = ParseTime("2026-11-20T18:00:00.123999Z").value();

TEST(LogLineTest, BeginsWithTheTimeInUtcAndTheLevel) {
  EXPECT_EQ(LogLine(kAt, LogLevel::Info, "worker registered", {{"store", "sqlite:a.db"}, {"shards", 2}}),
            "2026-11-20T18:00:00.123Z I worker registered store=sqlite:a.db shards=2");
  EXPECT_EQ(LogLine(kAt, LogLevel::Warning, "late", {}), "2026-11-20T18:00:00.123Z W late");
  EXPECT_EQ(LogLine(kAt, LogLevel::Error, "gone", {}), "2026-11-20T18:00:00.123Z E gone");
}

TEST(LogLineTest, AsJsonItIsOneObjectWhateverTheValuesHold) {
  EXPECT_EQ(JsonLogLine(kAt, LogLevel::Info, "worker registered", {{"store", "sqlite:a.db"}, {"shards", 2}}),
            R"({"time":"2026-11-20T18:00:00.123Z","level":"info","message":"worker registered",)"
            R"("store":"sqlite:a.db","shards":"2"})");
  EXPECT_EQ(JsonLogLine(kAt, LogLevel::Error, "a\n\"b\"", {{"time", "c:\\d"}, {"why", "\xFF\x1b\xC2\x9B"}}),
            R"({"time":"2026-11-20T18:00:00.123Z","level":"error","message":"a\u000a\"b\"",)"
            R"("field_time":"c:\\d","why":"\\xff\u001b\u009b"})");
}

TEST(LogLineTest, TheTimeIsAlwaysOfOneWidth) {
  EXPECT_EQ(LogLine(ParseTime("2026-01-02T03:04:05Z").value(), LogLevel::Info, "e", {}),
            "2026-01-02T03:04:05.000Z I e");
  EXPECT_EQ(LogLine(WallTime(Micros(-1)), LogLevel::Info, "e", {}), "1969-12-31T23:59:59.999Z I e");
}

TEST(LogLineTest, IsOneLineWhateverTheValuesHold) {
  EXPECT_EQ(LogLine(kAt, LogLevel::Info, "a\nb", {{"why", "two\nlines\x1b[0m"}}),
            "2026-11-20T18:00:00.123Z I a\\nb why=two\\nlines\\x1b[0m");
}

TEST(LogLineTest, ABackslashBeforeAQuoteEndsNoValue) {
  EXPECT_EQ(LogLine(kAt, LogLevel::Info, "e", {{"why", R"(a\" task=1)"}, {"end", R"(x\)"}, {"s", R"(a b\)"}}),
            R"(2026-11-20T18:00:00.123Z I e why="a\\\" task=1" end=x\\ s="a b\\")");
}

// The value that begins at `at`, as a reader finds its end; `at` goes behind it.
std::string Field(const std::string& line, std::size_t& at) {
  const std::size_t begin = at;
  const bool quoted = line[at] == '"';
  if (quoted) ++at;
  while (at < line.size() && line[at] != (quoted ? '"' : ' ')) at += line[at] == '\\' ? 2 : 1;
  if (quoted) ++at;
  return line.substr(begin, at - begin);
}

TEST(LogLineTest, NoValueIsReadAsAnotherField) {
  EXPECT_TRUE(rc::check([] {
    const std::string value = *AnyText();
    const std::string line = LogLine(kAt, LogLevel::Info, "e", {{"value", value}, {"next", "n"}});
    RC_ASSERT(HoldsNothingUnsafe(line));
    RC_ASSERT(IsUtf8(line));
    std::size_t at = line.find("value=") + 6;
    Field(line, at);
    RC_ASSERT(line.substr(at) == " next=n");
  }));
}

TEST(LogLineTest, NothingInAnEventIsReadAsAField) {
  EXPECT_EQ(LogLine(kAt, LogLevel::Info, "x=1 level=ERROR", {{"task", "t"}}),
            R"(2026-11-20T18:00:00.123Z I "x=1 level=ERROR" task=t)");
  EXPECT_TRUE(rc::check([] {
    const std::string event = *AnyText();
    const std::string line = LogLine(kAt, LogLevel::Info, event, {{"next", "n"}});
    std::size_t at = line.find(" I ") + 3;
    if (line[at] == '"') {
      Field(line, at);
    } else {
      at = line.rfind(' ', line.find('='));
    }
    RC_ASSERT(line.substr(at) == " next=n");
  }));
}

TEST(LogLineTest, QuotesValuesThatWouldReadAsFields) {
  EXPECT_EQ(LogLine(kAt, LogLevel::Info, "e", {{"a", ""}, {"b", "x y"}, {"c", "k=v"}, {"d", "\"q\""}}),
            R"(2026-11-20T18:00:00.123Z I e a="" b="x y" c="k=v" d="\"q\"")");
}

}  // namespace
}  // namespace millrace::engine

#include "coordinator/app/input/json_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

TEST(JsonRowTest, NumbersStayEmptyIsNullTheRestAreTexts) {
  const std::vector<JsonColumn> columns{
      {"a", NameToJson("a")}, {"b", NameToJson("b\"\xFF")}, {"c", NameToJson("c")}, {"d", NameToJson("d")}};
  const std::vector<std::optional<std::string>> cells{"2.99", "", "2005-05-25", std::nullopt};
  EXPECT_EQ(*RowToJson(columns, cells), R"({"a":2.99,"b\"�":null,"c":"2005-05-25","d":null})");
}

// The short ways for what most cells and lines are.
TEST(JsonRowTest, EveryCellIsWhatTheParserReadsOfIt) {
  for (const char* cell :
       {"0", "-0", "7", "-12", "123456789012345678", "1234567890123456789", "00", "-", "plain", "it's",
        "q\"uote", "back\\slash", "tab\t", "\x7F", "ü", "1 000", "1.5", "true"}) {
    const auto json = CellToJson(cell);
    ASSERT_TRUE(json) << cell;
    const auto value = nlohmann::json::parse(*json);
    EXPECT_EQ(value.is_string() ? value.get<std::string>() : value.dump(),
              cell[0] == '-' && cell[1] == '0' ? "0" : cell);
    EXPECT_EQ(value.is_number(), IsFaithfulNumber(cell)) << cell;
  }
}

TEST(JsonRowTest, ABareLineIsTakenAsItIsHoweverItsMembersAreSpelt) {
  const NewTask defaults{.handler = "noop"};
  for (const char* line :
       {R"({"a":1})", "{}", R"({"a":"params"})", R"({"a":"\u00e4"})", R"({"a":{"params":7}})"}) {
    const auto task = LineToTask(line, defaults, "");
    ASSERT_TRUE(task) << line;
    EXPECT_EQ(task->params, line);
  }
  EXPECT_EQ(LineToTask(R"({"p\u0061rams":{"a":1},"key":"k"})", defaults, "")->biz_key, "k");
  for (const char* line : {"{", "{} {}", "\xEF\xBB\xBF{}", "nope", ""})
    EXPECT_FALSE(LineToTask(line, defaults, ""));
}

TEST(JsonRowTest, OnlyNumbersThatReadBackAsTheyAreStayNumbers) {
  for (const char* text : {"0", "-1", "1.50", "1e3", "-0.5E-7", "18446744073709551615"}) {
    EXPECT_TRUE(IsFaithfulNumber(text)) << text;
  }
  for (const char* text : {"", "007", "+1", ".5", "1.", "1e", "0x1", "1 ", "NaN", "1e999", "1e-999", " 1",
                           "-", "1-1", "18446744073709551616", "0.12345678901234567890"}) {
    EXPECT_FALSE(IsFaithfulNumber(text)) << text;
  }
  EXPECT_FALSE(IsFaithfulNumber({"1\0002", 3}));
}

TEST(JsonRowTest, TextThatIsNotUtf8IsRefused) {
  EXPECT_THAT(CellToJson("caf\xE9").error().message, HasSubstr("not UTF-8"));
}

TEST(JsonRowTest, ALineIsTheBareParamsOrSaysMore) {
  NewTask defaults;
  defaults.handler = "noop";
  EXPECT_EQ(LineToTask(R"({"a":1.10})", defaults, "")->params, R"({"a":1.10})");
  const auto task = LineToTask(
      R"({"params":{"a":1},"key":"k","at":"2026-11-20T18:00:00Z","priority":0,"batch":"b"})", defaults, "");
  ASSERT_TRUE(task);
  EXPECT_EQ(task->params, R"({"a":1})");
  EXPECT_EQ(task->biz_key, "k");
  EXPECT_EQ(task->priority, 0u);
  EXPECT_EQ(task->batch, "b");
  EXPECT_TRUE(task->run_at);
}

TEST(JsonRowTest, ABadLineSaysWhatIsWrong) {
  const auto why = [](const char* line) { return LineToTask(line, {}, "").error().message; };
  EXPECT_THAT(why("{"), HasSubstr("not JSON"));
  EXPECT_THAT(why(R"({"params":{},"at":"yesterday"})"), HasSubstr("'yesterday' is not a time"));
  EXPECT_THAT(why(R"({"params":{},"priority":10})"), HasSubstr("from 0 (most urgent) to 9"));
  EXPECT_THAT(why(R"({"params":{},"prio":1})"), HasSubstr("unknown member 'prio'"));
}

TEST(JsonRowTest, AKeyColumnIsAMemberOfTheParams) {
  EXPECT_EQ(LineToTask(R"({"id":7})", {}, "id")->biz_key, "7");
  EXPECT_THAT(LineToTask(R"({"id":null})", {}, "id").error().message, HasSubstr("no 'id'"));
}

TEST(JsonRowTest, DepthAByteOrderMarkAndWhatFollowsANulAreRefused) {
  const auto nested = [](std::size_t levels) {
    return "{\"a\":" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
  };
  EXPECT_TRUE(CheckParams(nested(100)).has_value());
  EXPECT_TRUE(CheckParams("{\"a\":\"" + std::string(200, '[') + "\\\"[\"}").has_value());
  for (const std::string& text :
       {nested(101), nested(30'000), std::string("\xEF\xBB\xBF{}"), std::string("{}\0x", 4)}) {
    ASSERT_FALSE(CheckParams(text).has_value());
    EXPECT_EQ(CheckParams(text).error().code, ErrorCode::Invalid);
  }
}

TEST(JsonRowTest, ParamsAreAnObject) {
  for (const auto& [text, what] :
       {std::pair("[]", "this is a list"), std::pair("7", "a number"), std::pair("-1.5", "a number"),
        std::pair("\"x\"", "a text"), std::pair("null", "null"), std::pair(" true", "true or false")}) {
    ASSERT_FALSE(CheckParams(text)) << text;
    EXPECT_THAT(CheckParams(text).error().message, HasSubstr(what));
    ASSERT_FALSE(LineToTask(text, {}, "")) << text;
    EXPECT_THAT(LineToTask("{\"params\":" + std::string(text) + "}", {}, "").error().message,
                HasSubstr("'params' must be a JSON object"));
  }
  EXPECT_TRUE(CheckParams(" {\"a\":[1,null,\"x\"]} "));
}

// One reader of JSON takes the first of them, another the last.
TEST(JsonRowTest, TwoMembersOfOneNameAreRefusedAtAnyDepth) {
  for (const char* text : {R"({"a":1,"a":2})", R"({"b":[{"a":1,"c":{},"a":1}]})", R"({"a":1,"\u0061":2})",
                           R"({"params":{"a":1,"a":2}})", R"({"params":{},"key":"k","key":"l"})"}) {
    ASSERT_FALSE(LineToTask(text, {}, "")) << text;
    EXPECT_THAT(LineToTask(text, {}, "").error().message, HasSubstr("twice in one object"));
  }
  EXPECT_TRUE(CheckParams(R"({"a":{"a":1},"b":{"a":1},"c":[{"a":1},{"a":1}]})"));
}

TEST(JsonRowTest, ATextColumnHoldsTextsWhateverTheyLookLike) {
  const std::vector<JsonColumn> columns{{"zip", NameToJson("zip"), CellType::Text}, {"n", NameToJson("n")}};
  const auto row = [&](const char* zip) {
    const std::vector<std::optional<std::string>> cells{zip, "5"};
    return *RowToJson(columns, cells);
  };
  EXPECT_EQ(row("12345"), R"({"zip":"12345","n":5})");
  EXPECT_EQ(row("01234"), R"({"zip":"01234","n":5})");
  EXPECT_EQ(row(""), R"({"zip":null,"n":5})");
}

}  // namespace
}  // namespace millrace::engine

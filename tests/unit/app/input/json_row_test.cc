#include "coordinator/app/input/json_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

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
  EXPECT_THAT(why(R"({"a": x})"), HasSubstr("this is not JSON: at column 7: ")) << "it is one line of many";
  EXPECT_THAT(CheckParams("{\n\"a\": x}").error().message, HasSubstr("at line 2, column 6: "));
  EXPECT_THAT(why(R"({"params":{},"at":"yesterday"})"), HasSubstr("'yesterday' is not a time"));
  EXPECT_THAT(why(R"({"params":{},"priority":10})"), HasSubstr("from 0 (most urgent) to 9"));
  EXPECT_THAT(why(R"({"params":{},"prio":1})"), HasSubstr("unknown member 'prio'"));
  EXPECT_THAT(why(R"({"params":{},"in":"5m","at":"2026-11-20T18:00:00Z"})"),
              HasSubstr("give either 'at' or 'in'"));
  EXPECT_THAT(why(R"({"params":{},"expires_in":"5m","expires_at":"2026-11-20T18:00:00Z"})"),
              HasSubstr("give either 'expires_at' or 'expires_in'"));
}

TEST(JsonRowTest, AKeyColumnIsAMemberOfTheParams) {
  EXPECT_EQ(LineToTask(R"({"id":7})", {}, "id")->biz_key, "7");
  EXPECT_THAT(LineToTask(R"({"id":null})", {}, "id").error().message, HasSubstr("no 'id'"));
}

// As numbers they would be the same one, and one of two tasks there already.
TEST(JsonRowTest, AWholeNumberBeyond64BitsIsRefused) {
  for (const char* text : {R"({"id":123456789012345678901})", R"({"id":-9223372036854775809})",
                           R"({"params":{"id":[18446744073709551616]}})"}) {
    EXPECT_THAT(CheckParams(text).error().message, HasSubstr("is beyond 64 bits: write it in quotes"))
        << text;
    EXPECT_FALSE(LineToTask(text, {}, "id")) << text;
  }
  EXPECT_EQ(LineToTask(R"({"id":18446744073709551615})", {}, "id")->biz_key, "18446744073709551615");
  EXPECT_EQ(LineToTask(R"({"id":"123456789012345678901"})", {}, "id")->biz_key, "123456789012345678901");
  for (const char* text : {R"({"id":-9223372036854775808})", R"({"x":1e300,"y":12345678901234567890123.5})"})
    EXPECT_TRUE(CheckParams(text)) << text;
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

// Where the id of a row is missing it would be added again with each submit.
TEST(JsonRowTest, AnEmptyKeyOrBatchIsRefused) {
  for (const char* text : {R"({"params":{},"key":""})", R"({"params":{},"batch":""})"}) {
    ASSERT_FALSE(LineToTask(text, {}, "")) << text;
    EXPECT_THAT(LineToTask(text, {}, "").error().message, HasSubstr("is empty: leave it out"));
  }
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

}  // namespace
}  // namespace millrace::engine

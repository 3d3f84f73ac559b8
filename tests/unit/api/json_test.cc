#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/json.h>

namespace millrace {
namespace {

using testing::HasSubstr;

std::string Problem(std::string_view text) {
  try {
    Json::Parse(text);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(JsonTest, WritesWhatItRead) {
  for (const char* text : {"null", "true", "-0.5", "9223372036854775807", "\"a\\\"\\\\b\"", "[]", "{}",
                           R"({"a":[1,2.5,"x",null,{"b":false}],"c":""})", R"("Zoë 😀")"}) {
    EXPECT_EQ(Json::Parse(text).Dump(), text);
  }
}

TEST(JsonTest, ReadsEscapesAndSurrogatePairs) {
  EXPECT_EQ(Json::Parse(R"("\u00e9\n\t\/\ud83d\ude00")").AsText(), "é\n\t/😀");
  EXPECT_EQ(Json::Parse(R"("\u0000")").AsText(), std::string(1, '\0'));
}

TEST(JsonTest, KeepsIntegersExact) {
  EXPECT_EQ(Json::Parse("-9223372036854775808").AsInteger(), INT64_MIN);
  EXPECT_FALSE(Json::Parse("9223372036854775808").IsInteger());
  EXPECT_EQ(Json::Parse("12").AsNumber(), 12.0);
  EXPECT_THROW(Json::Parse("1.0").AsInteger(), BadInput);
}

TEST(JsonTest, RefusesWhatIsNoJson) {
  for (const char* text : {"",    " ",        "tru",         "01",          "1.",         "-",    "+1",
                           ".5",  "1e",       "{a:1}",       "{\"a\" 1}",   "{\"a\":1,}", "[1,]", "[1",
                           "\"a", "\"\\x\"",  "\"\\ud800\"", "\"\\udc00\"", "\"\\u12\"",  "1 2",  "nul",
                           "NaN", "\"a\nb\"", "1e999",       "'a'",         "// x\n1"}) {
    EXPECT_THAT(Problem(text), HasSubstr("not valid JSON at line ")) << text;
  }
}

TEST(JsonTest, NamesThePlace) { EXPECT_THAT(Problem("{\n  \"a\": ?\n}"), HasSubstr("line 2, column 8")); }

TEST(JsonTest, BoundsItsDepth) {
  EXPECT_THAT(Problem(std::string(100'000, '[')), HasSubstr("nested too deeply"));
  EXPECT_EQ(Problem(std::string(60, '[') + std::string(60, ']')), "");
}

TEST(JsonTest, AMemberThatNobodyReadsIsRefused) {
  const Json options = Json::Parse(R"({"url":"x","hedaers":{}})");
  options.AllowOnly({"url", "hedaers"});
  try {
    options.AllowOnly({"url", "headers"});
    ADD_FAILURE() << "it was allowed";
  } catch (const BadInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("'hedaers' is none of its options, which are url, headers"));
  }
}

TEST(JsonTest, AccessSaysWhichMemberIsWrong) {
  const Json json = Json::Parse(R"({"amount":"5","customer":null,"n":3,"n":4})");
  EXPECT_THAT([&] { static_cast<void>(json.Number("amount")); },
              testing::ThrowsMessage<BadInput>("'amount' must be a number, is a text"));
  EXPECT_THAT([&] { static_cast<void>(json.Text("customer")); },
              testing::ThrowsMessage<BadInput>("'customer' is missing"));
  EXPECT_EQ(json.Text("customer", "nobody"), "nobody");
  EXPECT_THROW(static_cast<void>(json.Integer("amount", 1)), BadInput);
  EXPECT_EQ(json.Integer("n"), 4);
}

}  // namespace
}  // namespace millrace

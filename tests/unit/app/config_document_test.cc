#include "coordinator/app/config/config_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ConfigKey Key(const char* text) { return *ConfigKey::Read(text); }

TEST(ConfigDocumentTest, AValueIsSetWithinItsPartAndTakenOutAgain) {
  const auto with = WithValue(R"({"noop":{"concurrency":4}})", Key("handlers.noop.timeout"), "5m");
  ASSERT_TRUE(with);
  EXPECT_EQ(AsJson(*with), AsJson(R"({"noop":{"concurrency":4,"timeout":"5m"}})"));
  EXPECT_EQ(AsJson(*WithoutValue(*with, Key("handlers.noop.timeout"))),
            AsJson(R"({"noop":{"concurrency":4}})"));
  EXPECT_EQ(AsJson(*WithoutValue(*with, Key("handlers.noop"))), AsJson("{}"));
  EXPECT_EQ(*WithoutValue(*with, Key("handlers")), "{}");
}

TEST(ConfigDocumentTest, WhatIsNotSetIsNotTakenOut) {
  const auto none = WithoutValue(R"({"noop":{}})", Key("handlers.noop.timeout"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::NotFound);
  EXPECT_THAT(none.error().message, HasSubstr("handlers.noop.timeout is not set"));
  EXPECT_FALSE(WithValue("{\"noop\":1}", Key("handlers.noop.timeout"), "5m"));
  EXPECT_FALSE(WithoutValue("[1]", Key("handlers.noop")));
}

TEST(ConfigDocumentTest, AKeyOfDigitsIsAKeyAndNoPlaceInAList) {
  const auto set = WithValue("{}", Key("handlers.pay.options.limits.3"), "50");
  ASSERT_TRUE(set);
  EXPECT_EQ(AsJson(*set), AsJson(R"({"pay":{"options":{"limits":{"3":50}}}})"));
  EXPECT_EQ(AsJson(*WithoutValue(*set, Key("handlers.pay.options.limits.3"))),
            AsJson(R"({"pay":{"options":{"limits":{}}}})"));
  EXPECT_EQ(AsJson(*WithValue(R"({"pay":{"options":null}})", Key("handlers.pay.options.4000000000"), "1")),
            AsJson(R"({"pay":{"options":{"4000000000":1}}})"));
  const auto list =
      WithValue(R"({"pay":{"retry":{"delays":["1m"]}}})", Key("handlers.pay.retry.delays.0"), "2m");
  ASSERT_FALSE(list) << "a list is one value";
  EXPECT_EQ(list.error().code, ErrorCode::Invalid);
  EXPECT_THAT(list.error().message, HasSubstr("lies under a value that is no object"));
}

TEST(ConfigDocumentTest, AValueWithAKeyTwiceIsRefused) {
  const auto twice = WithValue("{}", Key("handlers.noop"), R"({"retry":{"jitter":0.1,"jitter":0.2}})");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::Invalid);
  EXPECT_THAT(twice.error().message, HasSubstr("handlers.noop.retry.jitter: "));
  EXPECT_TRUE(WithValue("{}", Key("handlers.noop.timeout"), "5m")) << "a text needs no quotes";
  EXPECT_TRUE(WithValue("{}", Key("handlers.noop.concurrency"), "4"));
}

TEST(ConfigDocumentTest, ChangesAreTheValuesThatDifferByTheirKeys) {
  const auto changes = Changes("handlers", R"({"a":{"timeout":"1m","queue":3},"b":{}})",
                               R"({"a":{"queue":4, "keep":"7d"},"b":{},"x.y":{"retry":{"delays":["1m"]}}})");
  EXPECT_THAT(changes,
              ElementsAre(KeyChange{"handlers.a.keep", "", "\"7d\""}, KeyChange{"handlers.a.queue", "3", "4"},
                          KeyChange{"handlers.a.timeout", "\"1m\"", ""},
                          KeyChange{"handlers[\"x.y\"].retry.delays", "", "[\"1m\"]"}));
  EXPECT_EQ(ToText(changes),
            "+ handlers.a.keep  \"7d\"\n~ handlers.a.queue  3 → 4\n- handlers.a.timeout  \"1m\"\n"
            "+ handlers[\"x.y\"].retry.delays  [\"1m\"]");
  EXPECT_EQ(ToJson(changes)[1].dump(), R"({"key":"handlers.a.queue","before":3,"after":4})");
}

TEST(ConfigDocumentTest, WhoEditsATextSeesItsCommentsAndItsLayout) {
  const std::string own = "{ // often\n  \"poll\":   \"1s\" }\n";
  EXPECT_TRUE(HasComments(own));
  EXPECT_EQ(TextToEdit(own), own);
  EXPECT_EQ(TextToEdit("{/* often */}"), "{/* often */}\n");
  EXPECT_FALSE(HasComments(R"({"url":"http://h/*"})"));
  EXPECT_FALSE(HasComments("rubbish // with one")) << "its text is no document";
  EXPECT_EQ(TextToEdit(R"({"poll":"1s"})"), "{\n  \"poll\": \"1s\"\n}\n");
}

TEST(ConfigDocumentTest, LayoutAndCommentsAreNoChange) {
  EXPECT_THAT(Changes("engine", "{\"poll\":\"1s\"}", "{ // often\n\"poll\" : \"1s\" }"), IsEmpty());
  EXPECT_THAT(Changes("engine", "{}", ""), testing::SizeIs(1)) << "no object is no empty one";
}

}  // namespace
}  // namespace millrace::engine

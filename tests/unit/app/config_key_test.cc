#include "coordinator/app/config/config_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Keys(const std::string& text,
                              const ordered_json& document = ordered_json::object()) {
  const auto key = ConfigKey::Read(text);
  return key ? key->Keys(document) : std::vector<std::string>{key.error().message};
}

TEST(ConfigKeyTest, APartAloneIsMeantWhole) {
  const auto key = ConfigKey::Read("shards");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->part(), "shards");
  EXPECT_TRUE(key->whole());
  EXPECT_THAT(key->Keys(ordered_json::object()), IsEmpty());
}

TEST(ConfigKeyTest, WhereAWholePartIsWantedAKeyIsRefused) {
  EXPECT_EQ(ConfigKey::ReadPart("engine").value(), "engine");
  EXPECT_THAT(ConfigKey::ReadPart("engine.poll").error().message, HasSubstr("give the whole part, engine"));
}

TEST(ConfigKeyTest, DotsStandBetweenKeys) {
  EXPECT_THAT(Keys("engine.poll"), ElementsAre("poll"));
  EXPECT_THAT(Keys("handlers.noop.retry.jitter"), ElementsAre("noop", "retry", "jitter"));
}

TEST(ConfigKeyTest, ATypeWithDotsEndsWhereAHandlersKeysBegin) {
  EXPECT_THAT(Keys("handlers.mail.monthly.retry.jitter"), ElementsAre("mail.monthly", "retry", "jitter"));
  EXPECT_THAT(Keys("handlers.a.b.c.options.d.timeout"), ElementsAre("a.b.c", "options", "d", "timeout"));
}

TEST(ConfigKeyTest, ATypeThatTheDocumentHasGoesFirst) {
  const ordered_json document{{"a", {}}, {"a.b", {}}, {"a.retry", {}}};
  EXPECT_THAT(Keys("handlers.a.b", document), ElementsAre("a.b"));
  EXPECT_THAT(Keys("handlers.a.retry.timeout", document), ElementsAre("a.retry", "timeout"));
  EXPECT_THAT(Keys("handlers.a.retry.jitter", document), ElementsAre("a", "retry", "jitter"));
  EXPECT_THAT(Keys("handlers.a.c.timeout", document), ElementsAre("a.c", "timeout"));
}

TEST(ConfigKeyTest, AKeyMayStandInBrackets) {
  EXPECT_THAT(Keys("handlers[\"a.b\"].timeout"), ElementsAre("a.b", "timeout"));
  EXPECT_THAT(Keys("handlers[a.b].timeout"), ElementsAre("a.b", "timeout"));
  EXPECT_THAT(Keys("handlers.mail[options][a.b]"), ElementsAre("mail", "options", "a.b"));
}

TEST(ConfigKeyTest, AMisspeltKeyStaysAKeySoThatTheCheckCanNameTheRightOne) {
  EXPECT_THAT(Keys("handlers.noop.concurency"), ElementsAre("noop", "concurency"));
}

TEST(ConfigKeyTest, WhatIsNoKeyIsRefusedWithAnExample) {
  EXPECT_THAT(ConfigKey::Read("handler.noop").error().message,
              HasSubstr("there is no part 'handler' (did you mean 'handlers'?)"));
  for (const char* text : {"engine.", "engine..poll", "handlers[].x", "handlers[a.b", "handlers[a]b"}) {
    const auto key = ConfigKey::Read(text);
    ASSERT_FALSE(key) << text;
    EXPECT_THAT(key.error().message, HasSubstr("handlers[\"a.b\"].timeout")) << text;
  }
}

}  // namespace
}  // namespace millrace::engine

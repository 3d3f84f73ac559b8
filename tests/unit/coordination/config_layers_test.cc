#include "coordinator/coordination/config_layers.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(ConfigLayersTest, TheFileGoesOverTheClusterKeyByKey) {
  ConfigLayers layers(R"({"handlers":{"noop":{"concurrency":2}}})", "conf.json");
  EXPECT_TRUE(
      layers.SetPart("handlers", R"({"noop":{"concurrency":9,"timeout":"3s"},"other":{"concurrency":5}})"));
  EXPECT_EQ(layers.Effective()->HandlerFor("noop").concurrency, 2u);
  EXPECT_EQ(layers.Effective()->HandlerFor("noop").timeout, std::chrono::seconds(3));
  EXPECT_EQ(layers.Effective()->HandlerFor("other").concurrency, 5u);
  const auto values = layers.Values();
  EXPECT_EQ(values.at("handlers.noop.concurrency").source, "conf.json");
  EXPECT_EQ(values.at("handlers.noop.timeout").source, "config/handlers");
  EXPECT_EQ(values.at("handlers.noop.timeout").json, "\"3s\"");
  EXPECT_EQ(values.at("handlers.other.keep").source, "default");
  EXPECT_EQ(values.at("handlers.other.keep").json, "\"7d\"");
  EXPECT_EQ(values.at("engine.poll").source, "default");
}

TEST(ConfigLayersTest, WhatHandlersBringLiesUnderTheConfigurationKeyByKey) {
  ConfigLayers layers(R"({"handlers":{"mail":{"timeout":"7s"}}})", "conf.json");
  layers.SetPart("handlers", R"({"letters":{"uses":"mail","retry":{"delays":["9s"]}}})");
  CodeDefaults code{
      .concurrency = 2, .timeout = std::chrono::seconds(5), .delays = {std::chrono::seconds(1)}};
  const auto values = layers.Values({{"mail", {"post 1.0", code}}, {"other", {"o 2", code}}});
  EXPECT_EQ(values.at("handlers.mail.timeout").source, "conf.json");
  EXPECT_EQ(values.at("handlers.mail.concurrency").source, "code of plugin post 1.0");
  EXPECT_EQ(values.at("handlers.mail.concurrency").json, "2");
  EXPECT_EQ(values.at("handlers.mail.keep").source, "default");
  EXPECT_EQ(values.at("handlers.letters.timeout").json, "\"5s\"");
  EXPECT_EQ(values.at("handlers.letters.retry.delays").source, "config/handlers");
  EXPECT_EQ(values.at("handlers.other.retry.delays").json, "[\"1s\"]");
  EXPECT_FALSE(values.contains("handlers.other.keep"));
  code.next_retry = true;
  const auto asked = layers.Values({{"mail", {"post 1.0", code}}});
  EXPECT_EQ(asked.at("handlers.mail.retry.delays").source,
            "code of plugin post 1.0, which NextRetry may change");
  EXPECT_EQ(asked.at("handlers.letters.retry.delays").source, "config/handlers") << "it is not asked";
}

TEST(ConfigLayersTest, ATypeWithoutAnEntryHasTheDefaultsAndWhatItsHandlerBrings) {
  ConfigLayers layers;
  EXPECT_FALSE(layers.Values().contains("handlers.noop.timeout"));
  const auto values = layers.Values({{"noop", {"noop 1.0", {.concurrency = 7}}}}, "noop");
  EXPECT_EQ(values.at("handlers.noop.concurrency").source, "code of plugin noop 1.0");
  EXPECT_EQ(values.at("handlers.noop.timeout").json, "\"1m\"");
  EXPECT_EQ(values.at("handlers.noop.timeout").source, "default");
}

TEST(ConfigLayersTest, ABadPartChangesNothingAndIsRemembered) {
  ConfigLayers layers;
  layers.SetPart("engine", R"({"poll":"50ms"})");
  EXPECT_TRUE(layers.SetPart("engine", "{\"poll\":\"60ms\",\n\"bogus\":1}"));
  EXPECT_EQ(layers.Effective()->engine.poll, milliseconds(50));
  EXPECT_THAT(layers.Refusals().at("engine"), HasSubstr("config/engine:2: engine.bogus"));
  EXPECT_FALSE(layers.SetPart("engine", "{\"poll\":\"60ms\",\n\"bogus\":1}"));
  layers.SetPart("engine", "");
  EXPECT_TRUE(layers.Refusals().empty());
  EXPECT_EQ(layers.Effective()->engine.poll, EngineConfig{}.poll);
}

// Together they are longer than a configuration may be.
TEST(ConfigLayersTest, APartThatWasRefusedForAnothersSakeComesIntoForceOnceThatChanges) {
  ConfigLayers layers;
  layers.SetPart("handlers", R"({"job":{"options":{"text":")" + std::string(700'000, 'x') + R"("}}})");
  ASSERT_TRUE(layers.Refusals().empty());
  std::string shards = "{";
  for (int i = 0; i < 100; ++i) {
    shards += (i == 0 ? "\"s" : ",\"s") + std::to_string(i) +
              R"(":{"url":"mysql://u@h:3306/d","password_file":"/)" + std::string(4000, 'y') + "\"}";
  }
  layers.SetPart("shards", shards + "}");
  EXPECT_THAT(layers.Refusals().at("shards"), HasSubstr("larger than 1 MiB"));
  EXPECT_TRUE(layers.Effective()->shards.empty());
  layers.SetPart("engine", R"({"poll":"50ms"})");  // goes its own way
  EXPECT_EQ(layers.Effective()->engine.poll, milliseconds(50));
  EXPECT_EQ(layers.Refusals().size(), 1u);
  layers.SetPart("handlers", "{}");
  EXPECT_TRUE(layers.Refusals().empty());
  EXPECT_EQ(layers.Effective()->shards.size(), 100u);
}

// Laid out line by line, with its indents, it would be longer than a configuration may be.
TEST(ConfigLayersTest, APartWhoseTextIsShortIsNotRefusedForTheLayoutOfTheWhole) {
  constexpr int kDeep = 24;
  ConfigLayers layers;
  std::string list = std::string(kDeep, '[') + "0";
  for (int i = 0; i < 20'000; ++i) list += ",0";
  list += std::string(kDeep, ']');
  layers.SetPart("handlers", R"({"job":{"options":{"list":)" + list + "}}}");
  EXPECT_TRUE(layers.Refusals().empty());
}

constexpr const char* kTwoShards =
    R"({"east":{"url":"mysql://u@e:3306/d"},"main":{"url":"mysql://u@m:3306/d","slices":32}})";
const OwnStore kOwn{"mysql://u@own:3306/d", "--store"};

TEST(ConfigLayersTest, WhatTheClusterNamesAreTheShardsWhateverAProcessWasStartedWith) {
  ConfigLayers by_flag("", "", kOwn);
  ConfigLayers by_file(R"({"shards":{"main":{"url":"mysql://u@file:3306/d"}},"engine":{"poll":"60ms"}})",
                       "conf.json");
  for (ConfigLayers* layers : {&by_flag, &by_file}) {
    layers->SetPart("shards", kTwoShards);
    EXPECT_EQ(layers->Effective()->shards.size(), 2u);
    EXPECT_EQ(layers->Effective()->shards.at("main").url, "mysql://u@m:3306/d");
    EXPECT_EQ(layers->Values().at("shards.main.url").source, "config/shards");
  }
  EXPECT_EQ(by_file.Effective()->engine.poll, milliseconds(60));
  EXPECT_THAT(by_flag.Ignored(), HasSubstr("--store mysql://u@own:3306/d is ignored"));
  EXPECT_THAT(by_file.Ignored(), HasSubstr("shards in conf.json is ignored"));
  ConfigLayers one_of_them("", "", {"mysql://u@m:3306/d", "--store"});
  one_of_them.SetPart("shards", kTwoShards);
  EXPECT_EQ(one_of_them.Ignored(), "");
}

TEST(ConfigLayersTest, WhereTheClusterNamesNoShardTheOwnStoreIsTheOneAndGoesBeforeTheFile) {
  ConfigLayers layers(
      R"({"shards":{"main":{"url":"mysql://u@file:3306/d"},"b":{"url":"mysql://u@b:3306/d"}}})", "conf.json",
      kOwn);
  for (const char* none : {"", "{}"}) {
    layers.SetPart("shards", none);
    ASSERT_EQ(layers.Effective()->shards.size(), 1u);
    EXPECT_EQ(layers.Effective()->shards.at("main").url, kOwn.url);
    EXPECT_EQ(layers.Values().at("shards.main.url").source, "--store");
    EXPECT_EQ(layers.Ignored(), "");
  }
  layers.SetPart("shards", kTwoShards);
  layers.SetPart("shards", "{}");
  EXPECT_EQ(layers.Effective()->shards.at("main").url, kOwn.url);
}

TEST(ConfigLayersTest, ShardsThatCannotBeReadLeaveTheLastGoodOnesOrNone) {
  ConfigLayers fresh("", "", kOwn);  // it has never read what the cluster's shards are
  fresh.SetPart("shards", "rubbish");
  EXPECT_TRUE(fresh.Effective()->shards.empty());
  EXPECT_TRUE(fresh.Refusals().contains("shards"));
  ConfigLayers alone("", "", kOwn);
  alone.SetPart("shards", "{}");
  alone.SetPart("shards", "rubbish");
  EXPECT_EQ(alone.Effective()->shards.at("main").url, kOwn.url);
}

TEST(ConfigLayersTest, ASqliteFileIsNoShardOfACluster) {
  ConfigLayers layers;
  layers.SetPart("shards", kTwoShards);
  layers.SetPart("shards", R"({"main":{"url":"sqlite:/tmp/a.db"}})");
  EXPECT_EQ(layers.Effective()->shards.size(), 2u);
  EXPECT_THAT(layers.Refusals().at("shards"),
              HasSubstr("config/shards: shards.main.url: a cluster's shard is on a server"));
  EXPECT_FALSE(ValidateConfigPart("shards", R"({"main":{"url":"sqlite:/tmp/a.db"}})"));
}

TEST(ConfigLayersTest, ADocumentThatClosesEarlyIsRefused) {
  EXPECT_FALSE(ValidateConfigPart("engine", R"({"poll":"50ms"},"handlers":{})"));
  EXPECT_FALSE(ValidateConfigPart("engine", "not json"));
  EXPECT_TRUE(ValidateConfigPart("engine", "{} // nothing yet"));
}

}  // namespace
}  // namespace millrace::engine

#include "coordinator/coordination/config_layers.h"

#include <gmock/gmock.h>

namespace millrace {
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

TEST(ConfigLayersTest, ADocumentThatClosesEarlyIsRefused) {
  EXPECT_FALSE(ValidateConfigPart("engine", R"({"poll":"50ms"},"handlers":{})"));
  EXPECT_FALSE(ValidateConfigPart("engine", "not json"));
  EXPECT_TRUE(ValidateConfigPart("engine", "{} // nothing yet"));
}

}  // namespace
}  // namespace millrace

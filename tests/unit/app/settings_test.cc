#include "coordinator/app/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

std::string Nothing(const char*) { return ""; }

TEST(SettingsTest, AFlagGoesBeforeTheEnvironmentAndThatBeforeTheDefault) {
  const Environment environment = [](const char* name) {
    return std::string_view(name) == "MILLRACE_STORE" ? std::string("sqlite:env.db") : std::string();
  };
  CommonFlags flags;
  EXPECT_EQ(ResolveSettings(flags, Nothing, kDefaultStore)->shards.at("main").url, kDefaultStore);
  EXPECT_EQ(ResolveSettings(flags, environment, kDefaultStore)->shards.at("main").url, "sqlite:env.db");
  flags.store = "sqlite:flag.db";
  EXPECT_EQ(ResolveSettings(flags, environment, kDefaultStore)->shards.at("main").url, "sqlite:flag.db");
}

TEST(SettingsTest, WithoutAnyStoreItSaysWhatToType) {
  EXPECT_THAT(ResolveSettings({}, Nothing, "").error().message, HasSubstr("--store mysql://"));
}

TEST(SettingsTest, AClusterNeedsNoStoreForItsConfigurationNamesThem) {
  CommonFlags flags;
  flags.zk = "zk1:2181/jobs";
  const auto settings = ResolveSettings(flags, Nothing, kDefaultStore);
  ASSERT_TRUE(settings && settings->cluster);
  EXPECT_EQ(settings->cluster->servers, "zk1:2181/jobs");
  EXPECT_EQ(settings->cluster->name, "default");
  EXPECT_TRUE(settings->shards.empty());
  flags.store = "mysql://u@h/d";
  EXPECT_EQ(ResolveSettings(flags, Nothing, kDefaultStore)->shards.size(), 1u);
}

TEST(SettingsTest, AClustersNameAloneIsRefused) {
  CommonFlags flags;
  flags.cluster = "night";
  EXPECT_THAT(ResolveSettings(flags, Nothing, kDefaultStore).error().message, HasSubstr("--zk"));
  EXPECT_THAT(ResolveCluster({}, Nothing).error().message, HasSubstr("MILLRACE_ZK"));
}

TEST(SettingsTest, AWrongSchemeIsRefused) {
  CommonFlags flags;
  flags.store = "postgres://x";
  EXPECT_THAT(ResolveSettings(flags, Nothing, kDefaultStore).error().message,
              HasSubstr("--store: 'postgres'"));
}

}  // namespace
}  // namespace millrace::engine

#include "coordinator/app/command/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
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

// An edit between two reads would leave a text that is not what was parsed. A pipe gives its text once.
TEST(SettingsTest, TheConfigurationFileIsReadOnce) {
  const std::string text = R"({"engine":{"poll":"50ms"}})";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(ends[1]);
  CommonFlags flags;
  flags.config = "/dev/fd/" + std::to_string(ends[0]);
  const auto settings = ResolveSettings(flags, Nothing, kDefaultStore);
  close(ends[0]);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->config.engine.poll, std::chrono::milliseconds(50));
  EXPECT_EQ(settings->config_text, text);
}

class StateFolderTest : public ::testing::Test {
 protected:
  StateFolderTest() {
    char pattern[] = "/tmp/settings_XXXXXX";
    root_ = mkdtemp(pattern);
  }
  ~StateFolderTest() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(StateFolderTest, AStateFolderIsMadeForItsUserAlone) {
  const fs::path folder = root_ / "a" / "state";
  EXPECT_EQ(MakeStateFolder(folder).value(), folder.string());
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(MakeStateFolder(folder).value(), folder.string());
}

TEST_F(StateFolderTest, AStateFolderThatOthersCanWriteIsRefused) {
  const fs::path folder = root_ / "state";
  fs::create_directory(folder);
  for (const mode_t mode : {0777U, 0775U, 01777U}) {
    ::chmod(folder.c_str(), mode);
    EXPECT_THAT(MakeStateFolder(folder).error().message,
                AllOf(HasSubstr(folder.string()), HasSubstr("chmod go-w"), HasSubstr("--state-dir")));
  }
  ::chmod(folder.c_str(), 0755);
  ::chmod(root_.c_str(), 0777);
  EXPECT_THAT(MakeStateFolder(folder).error().message, HasSubstr("above the state folder"));
}

}  // namespace
}  // namespace millrace::engine

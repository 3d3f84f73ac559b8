// An author's way: Millrace installed under a prefix, a plugin built outside of its tree and tested there by
// its own test, then loaded and run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "framework/handler_kit/local_run.h"
#include "framework/store/sqlite/store.h"

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;

class PluginAuthorTest : public testing::Test {
 protected:
  PluginAuthorTest() {
    std::string pattern = testing::TempDir() + "millrace-author-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~PluginAuthorTest() override { fs::remove_all(root_); }

  // True if the command succeeds; its output goes to the test's.
  static bool Does(const std::string& command) { return std::system(command.c_str()) == 0; }

  std::string root_;
};

TEST_F(PluginAuthorTest, BuildsAndRunsAPluginOutsideOfTheTree) {
  const std::string sources = std::getenv("MILLRACE_SOURCE_DIR");
  const std::string built = std::getenv("MILLRACE_BINARY_DIR");
  for (const std::string component : {"development", "testing"}) {
    ASSERT_TRUE(
        Does("cmake --install " + built + " --component " + component + " --prefix " + root_ + "/prefix"));
  }
  ASSERT_TRUE(Does(
      "cmake -S " + sources + "/tests/integration/plugin_author/plugin -B " + root_ +
      "/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' -DCMAKE_PREFIX_PATH=" +
      root_ + "/prefix"));
  ASSERT_TRUE(Does("cmake --build " + root_ + "/build"));
  ASSERT_TRUE(Does("ctest --test-dir " + root_ + "/build --output-on-failure"));
  fs::permissions(root_ + "/build", fs::perms::owner_all);

  const auto plugins = PluginSet::Load(root_ + "/build", root_);
  ASSERT_TRUE(plugins.has_value()) << plugins.error().message;
  LocalRunOptions options;
  options.type = "greet";
  options.config.options = R"({"greeting":"good morning"})";
  options.params = {R"({"name":"Ann"})"};
  const std::string file = root_ + "/try.db";
  ASSERT_TRUE(Does("sqlite3 " + file + " \"CREATE TABLE guests (name TEXT, greeted INT)\""));
  StoreUrl url;
  url.path = file;
  const auto store = sqlite::OpenStore(url, {});
  ASSERT_TRUE(store.has_value()) << store.error().message;
  options.store = store->get();
  const auto report = RunLocally(**plugins, options, SystemClock());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->ends.at(0).said.text, "good morning, Ann");
}

TEST_F(PluginAuthorTest, AnInstalledProgramFindsTheShippedPlugins) {
  const std::string built = std::getenv("MILLRACE_BINARY_DIR");
  ASSERT_TRUE(Does("cmake --install " + built + " --prefix " + root_ + "/prefix >/dev/null"));
  EXPECT_TRUE(Does(root_ + "/prefix/bin/millrace handler list | grep award_points"));
}

}  // namespace
}  // namespace millrace::engine

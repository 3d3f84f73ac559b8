// A shipped handler, loaded from the build tree's plugins and opened with options.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "framework/plugin/plugin_set.h"
#include "tests/support/plugins/recording_context.h"

namespace millrace::engine {

class ShippedHandlerTest : public testing::Test {
 protected:
  ShippedHandlerTest() {
    std::string pattern = testing::TempDir() + "millrace-handler-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    auto loaded = PluginSet::Load(std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/plugins", folder_);
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
    if (loaded) plugins_ = *std::move(loaded);
  }
  ~ShippedHandlerTest() override { std::filesystem::remove_all(folder_); }

  Result<std::unique_ptr<HandlerInstance>> Open(const std::string& handler, const std::string& options,
                                                const Secrets& secrets = {}) {
    return plugins_->Open(handler, handler, options, secrets);
  }
  Outcome Run(const std::string& handler, const std::string& options, const std::string& params,
              const Secrets& secrets = {}) {
    const auto opened = Open(handler, options, secrets);
    EXPECT_TRUE(opened.has_value()) << (opened ? "" : opened.error().message);
    if (!opened) return {};
    const std::vector<Task> tasks = {SomeTask(handler, params)};
    return (*opened)->Run("main", PointersTo(tasks), context_).at(0);
  }

  std::string folder_;
  std::unique_ptr<PluginSet> plugins_;
  RecordingContext context_;
};

}  // namespace millrace::engine

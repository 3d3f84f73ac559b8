#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "framework/config/config.h"

namespace millrace::engine {
namespace {

TEST(ConfigSampleTest, TheShippedSampleIsValid) {
  const auto config =
      LoadConfigFile(std::string(std::getenv("MILLRACE_SOURCE_DIR")) + "/conf/samples/millrace.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->handlers.empty());
}

}  // namespace
}  // namespace millrace::engine

// The way of a program that adds tasks: Millrace installed under a prefix, the sample built outside of its
// tree, and its order and task found there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/run_process.h"

namespace millrace::engine::testing {
namespace {

using ::testing::HasSubstr;

class ProducerPackageTest : public ::testing::Test {
 protected:
  ProducerPackageTest() {
    std::string pattern = ::testing::TempDir() + "millrace-producer-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~ProducerPackageTest() override { std::filesystem::remove_all(root_); }

  ProcessResult Run(const std::string& command) const {
    return RunProcess("cd " + root_ + " && HOME=" + root_ + " " + command, 120);
  }
  void Must(const std::string& command) const {
    const ProcessResult result = Run(command);
    ASSERT_EQ(result.exit_code, 0) << command << "\n" << result.output;
  }

  const std::string sources_ = std::getenv("MILLRACE_SOURCE_DIR");
  const std::string built_ = std::getenv("MILLRACE_BINARY_DIR");
  std::string root_;
};

TEST_F(ProducerPackageTest, TheSampleIsBuiltOutsideOfTheTreeAndItsTasksRun) {
  for (const std::string component : {"development", "producer"})
    Must("cmake --install " + built_ + " --component " + component + " --prefix " + root_ + "/prefix");
  Must("cmake -S " + sources_ + "/conf/samples/producer -B " + root_ +
       "/build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=\"-Wall -Wextra -Werror\" -DCMAKE_PREFIX_PATH=" +
       root_ + "/prefix");
  Must("cmake --build " + root_ + "/build");
  const std::string millrace = built_ + "/millrace";
  EXPECT_EQ(Run("build/reminders sqlite:shop.db").exit_code, 1) << "there is no such file";
  Must(millrace + " schema apply --store sqlite:shop.db");

  EXPECT_THAT(Run("build/shop shop.db 17").output, HasSubstr("order 17 and task 1\n"));
  EXPECT_THAT(Run("build/shop shop.db 17").output, HasSubstr("UNIQUE constraint failed: orders.id"));
  EXPECT_THAT(Run("sqlite3 shop.db \"DELETE FROM orders\" && build/shop shop.db 17").output,
              HasSubstr("the task is there already: tasks/1"));
  EXPECT_EQ(Run("sqlite3 shop.db \"SELECT COUNT(*) FROM orders\"").output, "0\n")
      << "the order was not kept without its task";
  EXPECT_THAT(Run("build/reminders sqlite:shop.db").output, HasSubstr("1000 added, 0 there already"));
  EXPECT_THAT(Run("build/reminders sqlite:shop.db").output, HasSubstr("0 added, 1000 there already"));
  const ProcessResult done = Run(millrace + " run --store sqlite:shop.db --until-idle");
  EXPECT_THAT(done.output, HasSubstr("1 succeeded, 0 failed"));
  EXPECT_THAT(done.output, HasSubstr("1,000 tasks wait"));
}

}  // namespace
}  // namespace millrace::engine::testing

#include "framework/handler_kit/local_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

class LocalRunTest : public testing::Test {
 protected:
  LocalRunTest() {
    std::string pattern = testing::TempDir() + "millrace-kit-XXXXXX";
    state_ = ::mkdtemp(pattern.data());
    plugins_ =
        PluginSet::Load(std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/tests/plugins", state_).value();
  }
  ~LocalRunTest() override { std::filesystem::remove_all(state_); }

  Result<LocalReport> Run(const std::string& type, const std::string& params) {
    LocalRunOptions options;
    options.type = type;
    options.params = {params};
    return RunLocally(*plugins_, options, clock_);
  }

  std::string state_;
  SystemClock clock_;
  std::unique_ptr<PluginSet> plugins_;
};

TEST_F(LocalRunTest, RunsAHandlerWithoutAnyServer) {
  const auto report = Run("noop", "{}");
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->ends.at(0).said.kind, OutcomeKind::Done);
  EXPECT_EQ(report->ends.at(0).effect, LocalEffect::None);
}

TEST_F(LocalRunTest, ReportsProgressAndFailure) {
  const auto report = Run("resume", R"({"text":"step 2"})");
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->ends.at(0).said.kind, OutcomeKind::Retry);
  EXPECT_THAT(report->ends.at(0).progress, testing::ElementsAre("step 2"));
}

TEST_F(LocalRunTest, SqlWithoutAStoreSaysWhatToDo) {
  EXPECT_THAT(Run("sql", R"({"sql":["SELECT 1"]})")->ends.at(0).said.text, HasSubstr("--store"));
  EXPECT_THAT(Run("sql", R"({"sql":["COMMIT"]})")->ends.at(0).said.text, HasSubstr("COMMIT would end"));
}

TEST_F(LocalRunTest, BadParametersAreRefusedWithTheirPlace) {
  const auto report = Run("noop", "{\"a\":\n tru}");
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::Invalid);
  EXPECT_THAT(report.error().message, HasSubstr("line 2, column 2"));
}

TEST_F(LocalRunTest, MoreTasksThanTheHandlerTakesAreRefused) {
  LocalRunOptions options;
  options.type = "noop";
  options.params = {"{}", "{}"};
  const auto report = RunLocally(*plugins_, options, clock_);
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().message, HasSubstr("1 to 1"));
}

}  // namespace
}  // namespace millrace::engine

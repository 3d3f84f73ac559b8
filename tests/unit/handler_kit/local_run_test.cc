#include "framework/handler_kit/local_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "framework/testing/manual_clock.h"

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

// Overruns its time limit, and what a watchdog adds to it, in each call of more than `harmless` tasks.
class OverrunningHandler final : public HandlerInstance {
 public:
  OverrunningHandler(ManualClock& clock, std::size_t harmless) : clock_(clock), harmless_(harmless) {}
  std::uint32_t MaxBatch() const override { return 8; }
  std::vector<Outcome> Run(const std::string&, std::span<const Task* const> tasks, CallContext&) override {
    if (tasks.size() > harmless_) clock_.Advance(std::chrono::minutes(10));
    return std::vector<Outcome>(tasks.size());
  }

 private:
  ManualClock& clock_;
  const std::size_t harmless_;
};

LocalReport RunOverrunning(std::size_t tasks, std::size_t harmless) {
  ManualClock clock;
  LocalCall call;
  call.config.timeout = std::chrono::minutes(1);
  for (std::size_t id = 1; id <= tasks; ++id) {
    call.tasks.emplace_back();
    call.tasks.back().key.id = id;
    call.tasks.back().attempt = 1;
  }
  return RunTasks(std::make_shared<OverrunningHandler>(clock, harmless), call, clock);
}

TEST(LocalOverrunTest, ATaskThatIgnoresItsTimeLimitHasFailedWhateverItSaysAfterwards) {
  const LocalReport report = RunOverrunning(1, 0);
  EXPECT_EQ(report.ends[0].said.kind, OutcomeKind::Done);
  EXPECT_EQ(report.ends[0].end.to, Settlement::To::Waiting);
  EXPECT_TRUE(report.ends[0].end.failed_attempt);
  EXPECT_EQ(report.ends[0].end.error_class, "timeout");
  EXPECT_EQ(report.calls, 1u);
}

TEST(LocalOverrunTest, TheTasksOfACallThatIgnoresItsTimeLimitRunAgainEachAlone) {
  const LocalReport report = RunOverrunning(3, 1);
  EXPECT_EQ(report.calls, 4u);
  for (const LocalEnd& end : report.ends) EXPECT_EQ(end.end.to, Settlement::To::Succeeded);
}

}  // namespace
}  // namespace millrace::engine

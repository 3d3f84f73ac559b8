// What handlers bring in their code, and their own word on when a failed task is due again.
#include <gmock/gmock.h>
#include <millrace/handler.h>

#include "framework/plugin/abi.h"
#include "framework/plugin/handler_instance.h"
#include "framework/plugin/library.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Plain final : public Handler {
  millrace::Outcome Run(const millrace::Task&, Context&) override { return Done(); }
};

// Doubles the ladder; gives up where the class is `gone`, throws where it is `throw`.
class Deciding final : public Handler {
  millrace::Outcome Run(const millrace::Task&, Context&) override { return millrace::Retry("as asked"); }
  std::optional<Duration> NextRetry(const FailedAttempt& failed) override {
    if (failed.error_class == "gone") return std::nullopt;
    if (failed.error_class == "throw") throw std::runtime_error("as asked");
    if (failed.error_class == "negative") return Duration(-1);
    EXPECT_EQ(failed.task.Name(), "main/tasks/7");
    EXPECT_EQ(failed.why, "why");
    return failed.failure * failed.ladder_delay;
  }
};

const HandlerDefaults kSome{.timeout = 5s, .delays = {1s, 2min}, .max_failures = 3, .concurrency = 2};

Outcome Failed(const std::string& error_class = {}) {
  Outcome outcome;
  outcome.kind = OutcomeKind::Retry;
  outcome.text = "why";
  outcome.error_class = error_class;
  return outcome;
}

class NextRetryTest : public ::testing::Test {
 protected:
  NextRetryTest() { task_.key = {"tasks", 7}; }
  // In the middle of the jitter.
  Outcome Ask(Outcome outcome) { return AskNextRetry(*handler_, config_, "main", task_, outcome, 0.5); }

  const millrace_handler descriptor_ = Register<Deciding>("deciding", "");
  std::unique_ptr<HandlerInstance> handler_ = OpenHandler(descriptor_, "deciding", "{}", {}).value();
  HandlerConfig config_;
  Task task_;
};

TEST(CodeDefaultsTest, AreReadFromTheDescriptor) {
  const CodeDefaults code = ReadDefaults(Register<Plain>("plain", "", 1, kSome));
  EXPECT_EQ(code.timeout, Micros(5s));
  EXPECT_THAT(code.delays, ElementsAre(Micros(1s), Micros(2min)));
  EXPECT_EQ(code.max_failures, 3u);
  EXPECT_EQ(code.concurrency, 2u);
  EXPECT_FALSE(code.next_retry);
}

TEST(CodeDefaultsTest, OfAHandlerThatBringsNoneOrCannotKnowOfThemThereAreNone) {
  millrace_handler old = Register<Deciding>("deciding", "", 1, kSome);
  EXPECT_TRUE(ReadDefaults(old).next_retry);
  old.struct_size = static_cast<std::uint32_t>(kFirstSize<millrace_handler>);  // of before they were added
  for (const millrace_handler& handler : {old, Register<Plain>("plain", "")}) {
    const CodeDefaults code = ReadDefaults(handler);
    EXPECT_FALSE(code.timeout || code.max_failures || code.concurrency || code.next_retry);
    EXPECT_THAT(code.delays, IsEmpty());
  }
}

TEST(CodeDefaultsTest, APluginWhoseDefaultsAConfigurationCouldNotHaveIsRefused) {
  const auto problem = [](const HandlerDefaults& defaults) {
    const millrace_handler handler = Register<Plain>("plain", "", 1, defaults);
    const millrace_handler* const handlers[] = {&handler};
    const millrace_plugin plugin{
        MILLRACE_PLUGIN_MAGIC, MILLRACE_ABI_VERSION, sizeof plugin, "p", "1", handlers, 1};
    return DescriptorProblem(&plugin);
  };
  EXPECT_EQ(problem(kSome), "");
  EXPECT_THAT(problem({.timeout = 1us}), HasSubstr("\"1us\" is out of range: write a duration from 1ms"));
  EXPECT_THAT(problem({.concurrency = 1000}), HasSubstr("a whole number from 1 to 256"));
  EXPECT_THAT(problem({.delays = {-1s}}), HasSubstr("its handler 'plain' brings defaults"));
  EXPECT_THAT(problem({.delays = std::vector<Duration>(1001)}), HasSubstr("a ladder of 1001 delays"));
}

TEST_F(NextRetryTest, TheHandlersWordGoesBeforeTheLadderAndIsSpread) {
  task_.failures = 1;
  EXPECT_EQ(Ask(Failed()).delay, Micros(10min));
  config_.retry.jitter = 0.5;
  EXPECT_EQ(AskNextRetry(*handler_, config_, "main", task_, Failed(), 0).delay, Micros(5min));
  EXPECT_EQ(Ask(Failed("gone")).kind, OutcomeKind::Fail);
  EXPECT_EQ(Ask(Failed("gone")).text, "why");
  EXPECT_EQ(Ask(Failed("negative")).delay, Micros(0));
}

TEST_F(NextRetryTest, WhatItThrowsLeavesTheLadder) {
  const Outcome outcome = Ask(Failed("throw"));
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_FALSE(outcome.delay || outcome.at);
}

TEST_F(NextRetryTest, ItIsNotAskedWhereTheConfigurationHasALadder) {
  config_.given = {"retry", "retry.delays"};
  EXPECT_EQ(Ask(Failed("gone")).kind, OutcomeKind::Retry);
  config_.given = {"retry", "retry.max_failures", "timeout"};
  EXPECT_EQ(Ask(Failed("gone")).kind, OutcomeKind::Fail);
}

TEST_F(NextRetryTest, ItIsNotAskedOfOutcomesWithATimeOfTheirOwnNorOfTheLastFailure) {
  Outcome timed = Failed("gone");
  timed.delay = Micros(1s);
  EXPECT_EQ(Ask(timed).delay, Micros(1s));
  Outcome done;
  EXPECT_EQ(Ask(done).kind, OutcomeKind::Done);
  task_.failures = config_.retry.max_failures - 1;
  EXPECT_FALSE(Ask(Failed()).delay);
}

}  // namespace
}  // namespace millrace::engine

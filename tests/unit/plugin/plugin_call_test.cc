// What a plugin without our wrapper can do at the border, by a handler that stands in this process.
#include "framework/plugin/plugin_call.h"

#include <gmock/gmock.h>

#include <stdexcept>

#include "framework/plugin/abi.h"
#include "tests/support/plugins/recording_context.h"

namespace millrace::engine {
namespace {

void SayDoneAndThrow(void*, millrace_call* call, const millrace_host* host, const millrace_task*,
                     std::size_t) {
  millrace_outcome done{};
  done.struct_size = sizeof done;
  done.kind = MILLRACE_DONE;
  host->settle(call, 0, &done);
  throw std::runtime_error("");
}

TEST(PluginCallTest, AnExceptionWithoutAMessageIsAFailedAttemptAllTheSame) {
  RecordingContext context;
  const std::vector<Task> tasks = {SomeTask("pay", "{}")};
  const std::vector<const Task*> pointers = PointersTo(tasks);
  millrace_handler handler{};
  handler.run = &SayDoneAndThrow;
  const auto outcomes = PluginCall(pointers, context).Run(handler, nullptr, "main");
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].kind, OutcomeKind::Retry) << "its SQL must not be committed";
  EXPECT_EQ(outcomes[0].error_class, "exception");
  EXPECT_EQ(context.thrown, 1);
}

// As a plain handler does, which knows of one task alone.
void TellOfEach(void*, millrace_call* call, const millrace_host* host, const millrace_task*,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    host->begin_task(call, i);
    const std::string text = std::to_string(i);
    host->log(call, MILLRACE_LOG_INFO, ToText(text));
    host->save_progress(call, 0, ToText(text), nullptr);
  }
}

TEST(PluginCallTest, ProgressAndLinesAreThoseOfTheTaskThatWasBegun) {
  RecordingContext context;
  const std::vector<Task> tasks = {SomeTask("pay", "{}", 1), SomeTask("pay", "{}", 2)};
  const std::vector<const Task*> pointers = PointersTo(tasks);
  millrace_handler handler{};
  handler.run = &TellOfEach;
  PluginCall(pointers, context).Run(handler, nullptr, "main");
  EXPECT_THAT(context.saved, testing::ElementsAre(testing::Pair(0, "0"), testing::Pair(1, "1")));
  EXPECT_THAT(context.logged_of, testing::ElementsAre(0, 1));
}

void SayDone(millrace_call* call, const millrace_host* host, std::size_t index) {
  millrace_outcome done{};
  done.struct_size = sizeof done;
  done.kind = MILLRACE_DONE;
  host->settle(call, index, &done);
}

void SayTooLittle(void*, millrace_call* call, const millrace_host* host, const millrace_task*,
                  std::size_t count) {
  host->begin_task(call, MILLRACE_ALL_TASKS);
  for (std::size_t i = 0; i + 1 < count; ++i) SayDone(call, host, i);
}

void SayTooMuch(void*, millrace_call* call, const millrace_host* host, const millrace_task*,
                std::size_t count) {
  host->begin_task(call, MILLRACE_ALL_TASKS);
  for (std::size_t i = 0; i <= count; ++i) SayDone(call, host, i);
}

// Whose outcome is missing nobody can say: the call fails as a whole, and none of its SQL is committed.
TEST(PluginCallTest, ABatchWithTooFewOutcomesOrTooManyFailsAsAWhole) {
  for (const auto run : {&SayTooLittle, &SayTooMuch}) {
    RecordingContext context;
    const std::vector<Task> tasks = {SomeTask("pay", "{}", 1), SomeTask("pay", "{}", 2)};
    const std::vector<const Task*> pointers = PointersTo(tasks);
    millrace_handler handler{};
    handler.run = run;
    PluginCall(pointers, context).Run(handler, nullptr, "main");
    EXPECT_EQ(context.thrown, 1);
  }
}

}  // namespace
}  // namespace millrace::engine

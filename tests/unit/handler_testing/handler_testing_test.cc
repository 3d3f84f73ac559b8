#include <gmock/gmock.h>
#include <millrace/testing.h>

#include <thread>

namespace {

using namespace std::chrono_literals;
using millrace::Context;
using millrace::HandlerTest;
using millrace::Outcome;
using millrace::SqlAnswer;
using millrace::SqlEffect;
using millrace::SqlValue;
using millrace::Task;
using millrace::TaskEnd;
using millrace::TestedRun;
using millrace::TestTask;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kGuests =
    "CREATE TABLE guests (name TEXT PRIMARY KEY, greeted INT NOT NULL);"
    "INSERT INTO guests VALUES ('Ann', 0), ('Bob', 0)";

// {"name":"Ann", "then":"done"}: counts the guest, submits a task, and ends so.
class Greet final : public millrace::Handler {
  void Open(const millrace::Json& options, const millrace::Secrets& secrets) override {
    greeting_ = options.Text("greeting", "hello");
    token_ = secrets.Find("token").value_or("none");
  }
  Outcome Run(const Task& task, Context& context) override {
    const std::string name = task.Params().Text("name");
    const std::string then = task.Params().Text("then", "done");
    context.Info("greeting " + name);
    context.SaveProgress("at " + name);
    context.Execute("UPDATE guests SET greeted = greeted + 1 WHERE name = ?", {name});
    context.Submit({.handler = "noop", .key = name});
    if (then == "throw") throw std::runtime_error("as asked");
    if (then == "retry") return millrace::Retry("as asked").Class("asked");
    if (then == "snooze") return millrace::Snooze(5s);
    if (then == "skip") return millrace::Skip("not needed");
    return millrace::Done(greeting_ + ", " + name + ", " + token_ + ", " + std::to_string(task.Attempt()));
  }
  std::string greeting_;
  std::string token_;
};

// Sends one statement for all; a guest whose name is `bad` is refused by throwing.
class GreetAll final : public millrace::BatchHandler {
  std::vector<Outcome> Run(std::span<const Task> tasks, Context& context) override {
    for (const Task& task : tasks) {
      if (task.Params().Text("name") == "bad") throw std::runtime_error("who is that?");
    }
    for (const Task& task : tasks) {
      context.Execute("UPDATE guests SET greeted = greeted + 1 WHERE name = ?", {task.Params().Text("name")});
    }
    return std::vector<Outcome>(tasks.size(), millrace::Done());
  }
};

// Leaves out the outcome of a guest whose name is `lost`.
class GreetSome final : public millrace::BatchHandler {
  std::vector<Outcome> Run(std::span<const Task> tasks, Context& context) override {
    std::vector<Outcome> outcomes;
    for (const Task& task : tasks) {
      const std::string name = task.Params().Text("name");
      if (name == "lost") continue;
      context.Execute("UPDATE guests SET greeted = greeted + 1 WHERE name = ?", {name});
      outcomes.push_back(millrace::Done());
    }
    return outcomes;
  }
};

// Waits until it is to stop, and says so.
class Wait final : public millrace::Handler {
  Outcome Run(const Task& task, Context& context) override {
    while (!context.ShouldStop()) context.WaitFor(1ms);
    if (context.TimeLeft() < 1s) return millrace::Retry("the time is over").Class("timeout");
    return task.Params().Bool("finish", false) ? millrace::Done("in time") : millrace::Retry("stopped");
  }
};

std::string GreetedOf(HandlerTest& test, const std::string& name) {
  return test.Query("SELECT greeted FROM guests WHERE name = ?", {name}).rows.at(0).at(0).value();
}

TEST(HandlerTestTest, RunsATaskOnADatabaseInMemoryAndSaysWhatBecameOfIt) {
  HandlerTest test(millrace::Register<Greet>("greet", "Greets"));
  test.Configure(R"({"options":{"greeting":"hi"}})");
  test.SetSecret("token", "t0ken");
  test.UseSqlite(kGuests);
  const TestedRun run = test.RunTask({.params = R"({"name":"Ann"})", .attempt = 3});
  EXPECT_EQ(run.task().end, TaskEnd::Succeeded);
  EXPECT_EQ(run.task().outcome.kind, MILLRACE_DONE);
  EXPECT_EQ(run.task().text, "hi, Ann, t0ken, 3");
  EXPECT_EQ(run.task().sql, SqlEffect::Committed);
  EXPECT_EQ(run.task().progress, "at Ann");
  EXPECT_EQ(GreetedOf(test, "Ann"), "1");
  EXPECT_EQ(run.calls, 1u);
  ASSERT_THAT(run.statements, SizeIs(1));
  EXPECT_THAT(run.statements[0].values, ElementsAre(SqlValue("Ann")));
  EXPECT_EQ(run.statements[0].affected, 1u);
  ASSERT_THAT(run.log, SizeIs(1));
  EXPECT_EQ(run.log[0].message, "greeting Ann");
  ASSERT_THAT(run.submitted, SizeIs(1));
  EXPECT_EQ(run.submitted[0].key, "Ann");
}

TEST(HandlerTestTest, WhatIsNotDoneIsRolledBackAsInAWorker) {
  HandlerTest test(millrace::Register<Greet>("greet", "Greets"));
  test.UseSqlite(kGuests);
  const auto run = [&](const std::string& then) {
    TestedRun made = test.Run(R"({"name":"Ann","then":")" + then + "\"}");
    EXPECT_EQ(made.task().sql, SqlEffect::RolledBack) << then;
    EXPECT_THAT(made.submitted, IsEmpty()) << then;
    EXPECT_EQ(GreetedOf(test, "Ann"), "0") << then;
    return made.task();
  };
  const auto retried = run("retry");
  EXPECT_EQ(retried.end, TaskEnd::Waiting);
  EXPECT_TRUE(retried.failed_attempt);
  EXPECT_EQ(retried.delay, 1min);
  EXPECT_EQ(retried.error_class, "asked");
  EXPECT_EQ(run("throw").error_class, "exception");
  EXPECT_FALSE(run("snooze").failed_attempt);
  EXPECT_EQ(run("snooze").delay, 5s);
  EXPECT_EQ(run("skip").end, TaskEnd::Cancelled);
  EXPECT_EQ(test.Run("[]").task().end, TaskEnd::Failed) << "bad parameters";
}

TEST(HandlerTestTest, TheLadderAndTheDefaultsHoldAsInAWorker) {
  const auto retry = [](HandlerTest& test, std::uint32_t failures) {
    test.UseFake([](auto, auto) { return SqlAnswer{.affected = 1}; });
    return test.RunTask({.params = R"({"name":"Ann","then":"retry"})", .failures = failures}).task();
  };
  HandlerTest built_in(millrace::Register<Greet>("greet", ""));
  EXPECT_EQ(retry(built_in, 1).delay, 5min);
  EXPECT_EQ(retry(built_in, 3).end, TaskEnd::Failed);
  HandlerTest brings(millrace::Register<Greet>("greet", "", 1, {.delays = {7s}, .max_failures = 9}));
  EXPECT_EQ(retry(brings, 3).delay, 7s);
  brings.Configure(R"({"retry":{"delays":["8s"]},"on_exception":"fail"})");
  EXPECT_EQ(retry(brings, 3).delay, 8s);
  EXPECT_EQ(brings.Run(R"({"name":"Ann","then":"throw"})").task().end, TaskEnd::Failed);
}

TEST(HandlerTestTest, ABatchThatFailsAsAWholeIsRunAgainInPartsAndOneFailsAlone) {
  HandlerTest test(millrace::Register<GreetAll>("greet_all", "", 10));
  test.UseSqlite(kGuests);
  const TestedRun run = test.RunTasks(
      {{.params = R"({"name":"Ann"})"}, {.params = R"({"name":"bad"})"}, {.params = R"({"name":"Bob"})"}});
  EXPECT_TRUE(run.tasks[0].Committed());
  EXPECT_TRUE(run.tasks[2].Committed());
  EXPECT_EQ(run.tasks[1].text, "who is that?");
  EXPECT_TRUE(run.tasks[1].failed_attempt);
  EXPECT_EQ(run.calls, 4u);
  EXPECT_EQ(GreetedOf(test, "Ann") + GreetedOf(test, "Bob"), "11");
}

// Neither is a neighbour's outcome taken for its own, nor its neighbours' SQL committed and sent again.
TEST(HandlerTestTest, ABatchThatLeavesAnOutcomeOutIsRunApartUntilItStandsAlone) {
  HandlerTest test(millrace::Register<GreetSome>("greet_some", "", 10));
  test.UseSqlite(kGuests);
  const TestedRun run = test.RunTasks(
      {{.params = R"({"name":"lost"})"}, {.params = R"({"name":"Ann"})"}, {.params = R"({"name":"Bob"})"}});
  EXPECT_TRUE(run.tasks[0].failed_attempt);
  EXPECT_TRUE(run.tasks[1].Committed());
  EXPECT_TRUE(run.tasks[2].Committed());
  EXPECT_EQ(GreetedOf(test, "Ann") + GreetedOf(test, "Bob"), "11");
}

TEST(HandlerTestTest, SeveralTasksOfAPlainHandlerKeepOrLoseTheirOwnSql) {
  HandlerTest test(millrace::Register<Greet>("greet", "", 10));
  test.UseSqlite(kGuests);
  const TestedRun run =
      test.RunTasks({{.params = R"({"name":"Ann","then":"retry"})"}, {.params = R"({"name":"Bob"})"}});
  EXPECT_EQ(run.calls, 1u);
  EXPECT_EQ(run.tasks[0].sql, SqlEffect::RolledBack);
  EXPECT_EQ(run.tasks[1].sql, SqlEffect::Committed);
  EXPECT_EQ(run.tasks[0].progress, "at Ann");
  EXPECT_EQ(run.tasks[1].progress, "at Bob");
  EXPECT_EQ(GreetedOf(test, "Ann"), "0");
  EXPECT_EQ(GreetedOf(test, "Bob"), "1");
  ASSERT_THAT(run.submitted, SizeIs(1));
  EXPECT_EQ(run.submitted[0].key, "Bob");
}

TEST(HandlerTestTest, AFakeGivesRowsAndFaults) {
  HandlerTest test(millrace::Register<Greet>("greet", ""));
  int deadlocks = 1;
  test.UseFake([&](std::string_view sql, std::span<const SqlValue> values) {
    EXPECT_THAT(std::string(sql), HasSubstr("UPDATE guests"));
    EXPECT_EQ(values[0], SqlValue("Ann"));
    return SqlAnswer{.affected = 1,
                     .fault = deadlocks-- > 0 ? SqlAnswer::Fault::Deadlock : SqlAnswer::Fault::None};
  });
  const TestedRun run = test.Run(R"({"name":"Ann"})");
  EXPECT_EQ(run.calls, 2u) << "a deadlock runs it again, uncounted";
  EXPECT_TRUE(run.task().Committed());
  EXPECT_THAT(run.submitted, SizeIs(1));
  EXPECT_THAT(test.Run(R"({"name":"Ann"})").submitted, IsEmpty()) << "its key is taken";
  const auto with = [&](SqlAnswer::Fault fault) {
    test.UseFake([fault](auto, auto) { return SqlAnswer{.fault = fault}; });
    return test.Run(R"({"name":"Ann"})").task();
  };
  EXPECT_EQ(with(SqlAnswer::Fault::Refused).error_class, "exception");
  EXPECT_EQ(with(SqlAnswer::Fault::Refused).sql, SqlEffect::RolledBack);
  EXPECT_EQ(with(SqlAnswer::Fault::Deadlock).failed_attempt, false) << "it is given back";
  EXPECT_TRUE(with(SqlAnswer::Fault::ConnectionLost).failed_attempt);
  EXPECT_EQ(with(SqlAnswer::Fault::Ended).sql, SqlEffect::InDoubt);
  EXPECT_EQ(with(SqlAnswer::Fault::Ended).end, TaskEnd::Failed);
}

TEST(HandlerTestTest, SqlIsRefusedAsInAWorkerAndWhereThereIsNone) {
  HandlerTest test(millrace::Register<Greet>("greet", ""));
  EXPECT_THAT(test.Run(R"({"name":"Ann"})").task().text, HasSubstr("call UseSqlite or UseFake"));
  class Commits final : public millrace::Handler {
    Outcome Run(const Task&, Context& context) override {
      context.Execute("COMMIT");
      return millrace::Done();
    }
  };
  HandlerTest commits(millrace::Register<Commits>("commits", ""));
  commits.UseFake([](auto, auto) -> SqlAnswer { throw std::logic_error("it got there"); });
  EXPECT_THAT(commits.Run().task().text, HasSubstr("COMMIT would end or change the task's transaction"));
}

TEST(HandlerTestTest, AStopIsReadByItsReason) {
  HandlerTest test(millrace::Register<Wait>("wait", ""));
  test.Stop(HandlerTest::StopReason::Cancelled);
  EXPECT_EQ(test.Run().task().end, TaskEnd::Cancelled);
  EXPECT_EQ(test.Run(R"({"finish":true})").task().end, TaskEnd::Succeeded);
  test.Stop(HandlerTest::StopReason::WorkerEnds);
  const auto given_back = test.Run().task();
  EXPECT_EQ(given_back.end, TaskEnd::Waiting);
  EXPECT_FALSE(given_back.failed_attempt);
  test.Stop(HandlerTest::StopReason::None);
  test.Configure(R"({"timeout":"5ms"})");
  const auto late = test.Run().task();
  EXPECT_EQ(late.error_class, "timeout");
  EXPECT_TRUE(late.failed_attempt);
}

TEST(HandlerTestTest, AStopReachesARunThatIsUnderWay) {
  class Started final : public millrace::Handler {
    Outcome Run(const Task&, Context& context) override {
      context.Execute("UPDATE t SET started = 1");
      while (!context.ShouldStop()) context.WaitFor(1ms);
      return millrace::Retry("stopped");
    }
  };
  HandlerTest test(millrace::Register<Started>("started", ""));
  std::thread other;
  test.UseFake([&](auto, auto) {
    other = std::thread([&] { test.Stop(HandlerTest::StopReason::Cancelled); });
    return SqlAnswer{};
  });
  EXPECT_EQ(test.Run().task().end, TaskEnd::Cancelled);
  other.join();
}

TEST(HandlerTestTest, RefusalsAreThrown) {
  class Refuses final : public millrace::Handler {
    void Open(const millrace::Json& options, const millrace::Secrets&) override { options.Text("server"); }
    Outcome Run(const Task&, Context&) override { return millrace::Done(); }
  };
  HandlerTest test(millrace::Register<Refuses>("refuses", ""));
  EXPECT_THAT([&] { test.Open(); },
              ::testing::ThrowsMessage<millrace::EngineError>(HasSubstr("'server' is missing")));
  EXPECT_THAT([&] { test.Configure(R"({"timout":"1s"})"); },
              ::testing::ThrowsMessage<millrace::EngineError>(HasSubstr("did you mean 'timeout'?")));
  test.Configure(R"({"options":{"server":"mail"}})");
  EXPECT_NO_THROW(test.Open());
  EXPECT_THAT([] { HandlerTest("nobody"); },
              ::testing::ThrowsMessage<millrace::EngineError>(HasSubstr("it has greet, greet_all")));
  EXPECT_EQ(HandlerTest("greet").Run(R"({"name":"Ann","then":"skip"})").task().end, TaskEnd::Waiting);
}

}  // namespace

MILLRACE_PLUGIN("greet", "1.0", millrace::Register<Greet>("greet", "Greets"),
                millrace::Register<GreetAll>("greet_all", "Greets all", 10))

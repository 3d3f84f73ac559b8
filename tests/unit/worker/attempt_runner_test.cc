#include "framework/worker/attempt_runner.h"

#include <gmock/gmock.h>

#include "framework/testing/manual_clock.h"
#include "no_host.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// Fails at each statement, and never comes to a commit.
class FailingTransaction final : public TaskTransaction {
 public:
  Result<SqlResult> Execute(std::string_view, std::span<const SqlValue>) override {
    state_ = failure;
    return Fail(ErrorCode::Unavailable, "read-only for now");
  }
  Result<SubmitReport> Submit(const TableName&, std::span<const NewTask>) override { return SubmitReport{}; }
  TransactionState state() const override { return state_; }
  CommitReport Commit(const std::string&, std::span<const Settlement>) override { return {}; }
  Status Mark() override { return {}; }
  Status Undo() override { return {}; }
  void Rollback() override { state_ = TransactionState::Idle; }

  TransactionState failure = TransactionState::Lost;

 private:
  TransactionState state_ = TransactionState::Idle;
};

// Sends one statement; `then` is what happens to the shard meanwhile.
class Asking final : public HandlerInstance {
 public:
  explicit Asking(std::function<void()> then) : then_(std::move(then)) {}
  std::uint32_t MaxBatch() const override { return 1; }
  std::vector<Outcome> Run(const std::string&, std::span<const Task* const>, CallContext& context) override {
    ++runs;
    EXPECT_FALSE(context.Execute("UPDATE t SET n = 1", {}));
    then_();
    return std::vector<Outcome>(1);
  }
  int runs = 0;

 private:
  const std::function<void()> then_;
};

class AttemptTest : public testing::Test, public CallWatch {
 protected:
  class Host final : public NoHost {
   public:
    void Ended(AttemptResult result) override { landed.push_back(result.settlement); }
    std::vector<Settlement> landed;
  };

  void Begin(const std::vector<AttemptPtr>&, BootTime, BootTime) override {}
  bool Finish(BootTime) override { return true; }
  void EndsTransaction() override {}

  // What becomes of the one task; `then` happens under each of its runs.
  Settlement Run(std::function<void()> then) {
    handler_ = std::make_shared<Asking>(std::move(then));
    const auto host = std::make_shared<Host>();
    Task task;
    task.handler = "ask";
    const LaneSetup setup{{}, handler_, 1};
    AttemptRunner runner(clock_, *this);
    const CallPart part{{std::make_shared<Attempt>(host, "main", task, lease_, false)}};
    EXPECT_TRUE(runner.Run(setup, part, transaction_).empty());
    EXPECT_EQ(host->landed.size(), 1u);
    return host->landed.at(0);
  }

  ManualClock clock_;
  FailingTransaction transaction_;
  std::shared_ptr<Asking> handler_;
  const std::shared_ptr<Lease> lease_ = std::make_shared<Lease>("w1.a", seconds(10), clock_.Now());
};

TEST_F(AttemptTest, WhileTheShardTakesNoWritesAnAttemptIsGivenBack) {
  const Settlement settlement = Run([this] { clock_.Advance(seconds(4)); });  // and no beat succeeds
  EXPECT_EQ(settlement.to, Settlement::To::Waiting);
  EXPECT_FALSE(settlement.failed_attempt);
  EXPECT_THAT(settlement.text, HasSubstr("read-only for now"));
  EXPECT_EQ(handler_->runs, 1);
}

TEST_F(AttemptTest, AnAttemptIsRunAgainOnceTheShardIsBack) {
  int runs = 0;
  Run([&] {
    clock_.Advance(seconds(1));
    if (++runs < 3) lease_->Renewed(clock_.Now());
    if (runs == 3) clock_.Advance(seconds(4));
  });
  EXPECT_EQ(handler_->runs, 3);
}

// The shard answers all the while, so it is this task's SQL that loses what it was sent over. Where no
// connection could be had, its SQL was not even sent.
TEST_F(AttemptTest, OnlySqlThatWasSentAndLosesItsConnectionTimeAndAgainIsAFailedAttempt) {
  const auto answering = [this] {
    clock_.Advance(seconds(1));
    lease_->Renewed(clock_.Now());
  };
  transaction_.failure = TransactionState::NoConnection;
  const Settlement unsent = Run(answering);
  EXPECT_EQ(unsent.to, Settlement::To::Waiting);
  EXPECT_FALSE(unsent.failed_attempt);
  EXPECT_EQ(handler_->runs, 1);
  transaction_.failure = TransactionState::Lost;
  const Settlement settlement = Run(answering);
  EXPECT_TRUE(settlement.failed_attempt);
  EXPECT_EQ(handler_->runs, 3);
}

class WorkingTransaction final : public TaskTransaction {
 public:
  Result<SqlResult> Execute(std::string_view, std::span<const SqlValue>) override {
    state_ = TransactionState::Open;
    return SqlResult{};
  }
  Result<SubmitReport> Submit(const TableName&, std::span<const NewTask>) override { return SubmitReport{}; }
  TransactionState state() const override { return state_; }
  CommitReport Commit(const std::string&, std::span<const Settlement>) override {
    ++commits;
    state_ = TransactionState::Idle;
    return {};
  }
  Status Mark() override { return {}; }
  Status Undo() override { return {}; }
  void Rollback() override {
    ++rollbacks;
    state_ = TransactionState::Idle;
  }
  int commits = 0;
  int rollbacks = 0;

 private:
  TransactionState state_ = TransactionState::Idle;
};

// Sends SQL or none, hears on its way that its permit is gone, and says `outcome`.
class Stopped final : public HandlerInstance {
 public:
  std::uint32_t MaxBatch() const override { return 1; }
  std::vector<Outcome> Run(const std::string&, std::span<const Task* const>, CallContext& context) override {
    if (sends_sql) {
      EXPECT_TRUE(context.Execute("UPDATE t SET n = 1", {}));
    }
    EXPECT_FALSE(context.ShouldStop());
    attempt->stop_by.store(1);
    EXPECT_TRUE(context.ShouldStop());
    return {outcome};
  }
  AttemptPtr attempt;
  bool sends_sql = true;
  Outcome outcome;
};

TEST_F(AttemptTest, WhatHasLostItsPermitGoesBackUncountedAndItsSqlIsRolledBack) {
  Task task;
  task.handler = "ask";
  const auto run = [&](bool sql, const Outcome& outcome, WorkingTransaction& transaction) {
    const auto host = std::make_shared<Host>();
    const auto handler = std::make_shared<Stopped>();
    handler->sends_sql = sql;
    handler->outcome = outcome;
    handler->attempt = std::make_shared<Attempt>(host, "main", task, lease_, false);
    AttemptRunner runner(clock_, *this);
    EXPECT_TRUE(runner.Run({{}, handler, 1}, {{handler->attempt}}, transaction).empty());
    return host->landed.at(0);
  };
  WorkingTransaction transaction;
  const Settlement done = run(true, Outcome{}, transaction);
  EXPECT_EQ(done.to, Settlement::To::Waiting);
  EXPECT_FALSE(done.failed_attempt);
  EXPECT_EQ(transaction.commits, 0);
  EXPECT_EQ(transaction.rollbacks, 1);
  const Settlement failed = run(false, FailedOnce("stopped", "stopped"), transaction);
  EXPECT_EQ(failed.to, Settlement::To::Waiting);
  EXPECT_FALSE(failed.failed_attempt);
  EXPECT_EQ(run(false, Outcome{}, transaction).to, Settlement::To::Succeeded) << "what is done is done";
}

// A batch that fails as a whole, after a while.
class FailingTogether final : public HandlerInstance {
 public:
  explicit FailingTogether(std::function<void()> takes) : takes_(std::move(takes)) {}
  std::uint32_t MaxBatch() const override { return 8; }
  std::vector<Outcome> Run(const std::string&, std::span<const Task* const> tasks,
                           CallContext& context) override {
    context.BeginTogether();
    takes_();
    context.Throw();
    return std::vector<Outcome>(tasks.size(), FailedOnce("exception", "poison"));
  }

 private:
  const std::function<void()> takes_;
};

TEST_F(AttemptTest, HalvesOfABatchHaveWhatIsLeftOfItsTimeLimit) {
  const auto began = clock_.Now();
  const auto run = [&](const CallPart& part, Micros takes) {
    LaneSetup setup{{}, std::make_shared<FailingTogether>([&, takes] { clock_.Advance(takes); }), 1};
    setup.config.timeout = seconds(10);
    WorkingTransaction transaction;
    return AttemptRunner(clock_, *this).Run(setup, part, transaction);
  };
  CallPart whole;
  for (std::uint64_t id = 1; id <= 8; ++id) {
    Task task;
    task.key.id = id;
    task.handler = "batch";
    whole.attempts.push_back(
        std::make_shared<Attempt>(std::make_shared<NoHost>(), "main", task, lease_, false));
  }
  for (const CallPart& half : run(whole, seconds(3))) {
    EXPECT_EQ(half.attempts.size(), 4u);
    EXPECT_EQ(half.deadline, began + seconds(10));
  }
  const CallPart half{{whole.attempts.begin(), whole.attempts.begin() + 4}, began + seconds(10)};
  const auto quarters = run(half, seconds(2));
  ASSERT_EQ(quarters.size(), 2u);
  EXPECT_EQ(quarters.back().deadline, began + seconds(10));
  // At its end less of the whole's time is left than it has taken.
  const auto singles = run(half, seconds(3));
  ASSERT_EQ(singles.size(), 4u);
  for (const CallPart& single : singles) EXPECT_FALSE(single.deadline) << "alone it has a limit of its own";
}

TEST_F(AttemptTest, OnlyWhatIsNamedNowhereElseLeavesNoRowAndOnlyWhereItsTypeKeepsNone) {
  class Done final : public HandlerInstance {
   public:
    std::uint32_t MaxBatch() const override { return 1; }
    std::vector<Outcome> Run(const std::string&, std::span<const Task* const>, CallContext&) override {
      return std::vector<Outcome>(1);
    }
  };
  const auto kept = [&](const HandlerConfig& config, const Task& task) {
    const auto host = std::make_shared<Host>();
    const CallPart part{{std::make_shared<Attempt>(host, "main", task, lease_, false)}};
    WorkingTransaction transaction;
    AttemptRunner(clock_, *this).Run({config, std::make_shared<Done>(), 1}, part, transaction);
    EXPECT_EQ(host->landed.at(0).to, Settlement::To::Succeeded);
    return host->landed.at(0).kept;
  };
  Task task;
  task.attempt = 1;
  HandlerConfig config;
  EXPECT_TRUE(kept(config, task));
  config.keep = Micros(0);
  EXPECT_FALSE(kept(config, task));
  Task again = task;
  again.attempt = 2;
  EXPECT_TRUE(kept(config, again)) << "its first attempt may stand in millrace_attempts";
  Task keyed = task;
  keyed.biz_key = "k1";
  EXPECT_TRUE(kept(config, keyed));
  config.export_to = "/var/spool";
  EXPECT_TRUE(kept(config, task)) << "it is handed out first";
}

TEST_F(AttemptTest, ALineIsThatOfTheTaskThatItIsTold) {
  class Telling final : public HandlerInstance {
   public:
    std::uint32_t MaxBatch() const override { return 2; }
    std::vector<Outcome> Run(const std::string&, std::span<const Task* const> tasks,
                             CallContext& context) override {
      for (std::size_t i = 0; i < tasks.size(); ++i) context.Log(i, LogLevel::Info, "here");
      return std::vector<Outcome>(tasks.size());
    }
  };
  class Listening final : public NoHost {
   public:
    void Log(const Attempt& attempt, LogLevel, std::string_view) override {
      told.push_back(attempt.task.key.id);
    }
    std::vector<std::uint64_t> told;
  };
  const auto host = std::make_shared<Listening>();
  CallPart part;
  for (const std::uint64_t id : {7, 8}) {
    Task task;
    task.key.id = id;
    part.attempts.push_back(std::make_shared<Attempt>(host, "main", task, lease_, false));
  }
  AttemptRunner(clock_, *this).Run({{}, std::make_shared<Telling>(), 1}, part, transaction_);
  EXPECT_THAT(host->told, testing::ElementsAre(7, 8));
}

}  // namespace
}  // namespace millrace::engine

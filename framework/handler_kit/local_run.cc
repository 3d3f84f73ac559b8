#include "framework/handler_kit/local_run.h"

#include <millrace/json.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "framework/mill/attempt.h"
#include "framework/task/retry_ladder.h"
#include "framework/worker/attempt_runner.h"

namespace millrace::engine {
namespace {

constexpr const char* kShard = "local";

// A shard that is always there, and notes what becomes of its attempts.
class LocalHost final : public AttemptHost {
 public:
  LocalHost(const LocalCall& call, const LocalTransaction& transaction, LocalReport& report)
      : call_(call), transaction_(transaction), report_(report), ended_(call.tasks.size()) {}

  bool StopAsked() const override {
    return call_.stop != nullptr && call_.stop->reason() == LocalStop::Reason::WorkerEnds;
  }
  StartDecision StartDecisionOf(const Attempt&) const override { return StartDecision::Start; }
  bool Over() const override { return false; }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros) override { return nullptr; }
  void SaveProgress(Attempt& attempt, std::string progress) override {
    Of(attempt).progress.push_back(std::move(progress));
  }
  void Log(const Attempt&, LogLevel level, std::string_view message) override {
    report_.log.push_back({level, std::string(message)});
  }
  void RoomAgain() override {}
  void Park(AttemptPtr) override {}
  void Ended(AttemptResult result) override {
    LocalEffect effect = transaction_.has_sent() ? LocalEffect::RolledBack : LocalEffect::None;
    if (result.verify || result.settlement.error_class == kEscapedClass) effect = LocalEffect::InDoubt;
    End(*result.attempt, result.settlement, effect);
  }
  void Settled(Attempt& attempt, const Settlement& settlement) override {
    const bool kept = call_.commit && settlement.to == Settlement::To::Succeeded;
    End(attempt, settlement, kept ? LocalEffect::Committed : LocalEffect::RolledBack);
  }
  void Drop(Attempt&) override {}

  LocalEnd& Of(const Attempt& attempt) { return report_.ends.at(attempt.task.key.id - 1); }
  bool HasEnded(const Attempt& attempt) const { return ended_.at(attempt.task.key.id - 1); }

 private:
  void End(const Attempt& attempt, const Settlement& settlement, LocalEffect effect) {
    Of(attempt).end = settlement;
    Of(attempt).effect = effect;
    ended_.at(attempt.task.key.id - 1) = true;
  }

  const LocalCall& call_;
  const LocalTransaction& transaction_;
  LocalReport& report_;
  std::vector<bool> ended_;
};

// Notes what the handler says.
class NotedHandler final : public HandlerInstance {
 public:
  NotedHandler(std::shared_ptr<HandlerInstance> handler, LocalReport& report)
      : handler_(std::move(handler)), report_(report) {}
  std::uint32_t MaxBatch() const override { return handler_->MaxBatch(); }
  const CodeDefaults& Defaults() const override { return handler_->Defaults(); }
  Outcome NextRetry(const std::string& shard, const Task& task, Outcome failed, std::uint32_t failure,
                    Micros ladder_delay) override {
    return handler_->NextRetry(shard, task, std::move(failed), failure, ladder_delay);
  }
  std::vector<Outcome> Run(const std::string& shard, std::span<const Task* const> tasks,
                           CallContext& context) override {
    ++report_.calls;
    std::vector<Outcome> said = handler_->Run(shard, tasks, context);
    for (std::size_t i = 0; i < tasks.size(); ++i) report_.ends.at(tasks[i]->key.id - 1).said = said[i];
    return said;
  }

 private:
  const std::shared_ptr<HandlerInstance> handler_;
  LocalReport& report_;
};

Result<std::vector<Task>> MakeTasks(const LocalRunOptions& options, const Clock& clock) {
  std::vector<Task> tasks;
  for (const std::string& params : options.params) {
    if (params.size() > kMaxParams) return Fail(ErrorCode::Invalid, "the parameters are longer than 64 KiB");
    try {
      Json::Parse(params);
    } catch (const BadInput& error) {
      return Fail(ErrorCode::Invalid, std::string("the parameters are ") + Shorten(error.what()));
    }
    Task task;
    task.key = {options.table, tasks.size() + 1};
    task.state = TaskState::Running;
    task.handler = options.type;
    task.params = params;
    task.attempt = options.attempt;
    task.progress = options.progress;
    task.run_at = task.created_at = clock.WallNow();
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Status CheckCount(const HandlerInstance& handler, const LocalRunOptions& options) {
  if (!options.params.empty() && options.params.size() <= handler.MaxBatch()) return {};
  return Fail(ErrorCode::Invalid, "the handler takes 1 to " + std::to_string(handler.MaxBatch()) +
                                      " tasks a call, not " + std::to_string(options.params.size()));
}

}  // namespace

void LocalStop::Set(Reason reason) {
  MutexLock lock(mutex_);
  reason_ = reason;
  for (const AttemptPtr& attempt : attempts_) attempt->cancel.store(reason == Reason::Cancelled);
}

LocalStop::Reason LocalStop::reason() const {
  MutexLock lock(mutex_);
  return reason_;
}

void LocalStop::Follow(std::vector<AttemptPtr> attempts) {
  MutexLock lock(mutex_);
  attempts_ = std::move(attempts);
  for (const AttemptPtr& attempt : attempts_) attempt->cancel.store(reason_ == Reason::Cancelled);
}

// What a lane's thread and its watchdog do, on the one thread.
class LocalRunner final : public CallWatch {
 public:
  LocalRunner(const std::shared_ptr<HandlerInstance>& handler, const LocalCall& call, const Clock& clock)
      : call_(call),
        clock_(clock),
        transaction_(call.transaction, call.without, call.commit),
        runner_(clock, *this),
        setup_{call.config, std::make_shared<NotedHandler>(handler, report_), 1} {
    setup_.config.retry.jitter = 0;
  }

  LocalReport Run() {
    const BootTime began = clock_.Now();
    report_.ends.resize(call_.tasks.size());
    host_ = std::make_shared<LocalHost>(call_, transaction_, report_);
    Prepare();
    while (!waiting_.empty()) {
      const CallPart part = std::move(waiting_.front());
      waiting_.pop_front();
      std::vector<CallPart> again = runner_.Run(setup_, part, transaction_);
      for (auto next = again.rbegin(); next != again.rend(); ++next) waiting_.push_front(std::move(*next));
      if (again.empty()) EndOverdue(part);
    }
    if (call_.stop != nullptr) call_.stop->Follow({});
    report_.took = clock_.Now() - began;
    report_.statements = transaction_.statements();
    report_.submitted = transaction_.submitted();
    return std::move(report_);
  }

 private:
  void Prepare() {
    // It has a beat for as long as anybody looks.
    const auto lease = std::make_shared<Lease>("local", std::chrono::hours(1), clock_.Now());
    lease->Renewed(clock_.Now() + std::chrono::hours(24 * 365));
    std::vector<AttemptPtr> attempts;
    for (const Task& task : call_.tasks) {
      attempts.push_back(std::make_shared<Attempt>(host_, kShard, task, lease, false));
      if (waiting_.empty() || waiting_.back().attempts.size() == setup_.MostInCall()) waiting_.emplace_back();
      waiting_.back().attempts.push_back(attempts.back());
    }
    if (call_.stop != nullptr) call_.stop->Follow(std::move(attempts));
  }

  void Begin(const std::vector<AttemptPtr>& attempts, BootTime, BootTime deadline) override {
    for (const AttemptPtr& attempt : attempts) attempt->started.store(true);
    transaction_.ForgetSent();
    given_up_at_ = deadline + GraceAfter(setup_.config.timeout);
  }
  bool Finish(BootTime) override { return clock_.Now() < given_up_at_; }
  void EndsTransaction() override {}

  // A watchdog had given it up long since.
  void EndOverdue(const CallPart& part) {
    for (auto attempt = part.attempts.rbegin(); attempt != part.attempts.rend(); ++attempt) {
      if (host_->HasEnded(**attempt)) continue;
      if (part.attempts.size() > 1) {
        waiting_.push_front({{*attempt}});
      } else {
        const Outcome outcome = Overran(setup_.config.timeout);
        host_->Ended({*attempt, Settle(setup_.config.retry, (*attempt)->task, outcome, 0.5)});
      }
    }
  }

  const LocalCall& call_;
  const Clock& clock_;
  LocalReport report_;
  LocalTransaction transaction_;
  AttemptRunner runner_;
  LaneSetup setup_;
  std::shared_ptr<LocalHost> host_;
  std::deque<CallPart> waiting_;
  BootTime given_up_at_{};
};

LocalReport RunTasks(const std::shared_ptr<HandlerInstance>& handler, const LocalCall& call,
                     const Clock& clock) {
  return LocalRunner(handler, call, clock).Run();
}

Result<LocalReport> RunLocally(const PluginSet& plugins, const LocalRunOptions& options, const Clock& clock) {
  BOOST_OUTCOME_TRY(tasks, MakeTasks(options, clock));
  BOOST_OUTCOME_TRY(handler, plugins.Open(options.config.ServedBy(options.type), options.type,
                                          options.config.options, options.secrets));
  BOOST_OUTCOME_TRYV(CheckCount(*handler, options));
  LocalCall call;
  call.tasks = std::move(tasks);
  call.config = Over(handler->Defaults(), options.config);
  std::unique_ptr<TaskTransaction> transaction;
  if (options.store != nullptr) transaction = options.store->OpenTransaction(call.config.timeout);
  call.transaction = transaction.get();
  call.without = "name one with --store";
  call.commit = options.commit;
  return RunTasks(std::move(handler), call, clock);
}

}  // namespace millrace::engine

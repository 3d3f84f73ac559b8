// One call of a handler from its start to its end: runs it, asks the policy what its outcomes and the state
// of its transaction mean together, and hands every attempt on to be settled, or commits it with its own
// transaction.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/random.h"
#include "framework/config/config.h"
#include "framework/mill/attempt.h"
#include "framework/plugin/call_transaction.h"
#include "framework/plugin/handler_instance.h"
#include "framework/task/transaction_policy.h"

namespace millrace::engine {

// What the calls of a lane go by: the configuration in force and the handler opened with it.
//
// Immutable once it is shared: a call keeps the one it began with, and with it the handler open.
struct LaneSetup {
  HandlerConfig config;  // over what the handler brings
  std::shared_ptr<HandlerInstance> handler;
  std::uint32_t threads = 0;  // of the lane

  // Tasks that one call may take.
  std::size_t MostInCall() const {
    const std::size_t most = std::max<std::size_t>(handler->MaxBatch(), 1);
    return config.batch == 0 ? most : std::min<std::size_t>(most, config.batch);
  }
};
using LaneSetupPtr = std::shared_ptr<const LaneSetup>;

// Called around each run of a handler's code, on the handler's thread.
class CallWatch {
 public:
  virtual ~CallWatch() = default;
  virtual void Begin(const std::vector<AttemptPtr>& attempts, BootTime now, BootTime deadline) = 0;
  // The handler has come back at `ended`. False when the watchdog has given the call up meanwhile: its
  // attempts have ended, or run again, and whatever it did must not be committed.
  virtual bool Finish(BootTime ended) = 0;
  // The transaction of these attempts is about to be committed or rolled back: nobody can end them any more.
  virtual void EndsTransaction() = 0;
  // Hands on what the handler saves of one of them. What comes from a call that was given up is dropped: the
  // task may run again, and save something newer.
  virtual void Save(Attempt& attempt, std::string progress) {
    attempt.host->SaveProgress(attempt, std::move(progress));
  }
};

// One call of a handler inside a worker: its stop token and deadline, and its tasks' own transaction.
//
// Used on the handler's thread alone, but for ShouldStop and TimeLeft.
class WorkerContext final : public CallContext {
 public:
  // `attempts` are of one shard, and not empty.
  WorkerContext(const Clock& clock, CallWatch& watch, std::span<const AttemptPtr> attempts,
                TaskTransaction& transaction, BootTime deadline);

  bool ShouldStop() const override;
  Micros TimeLeft() const override;
  void Log(std::size_t index, LogLevel level, std::string_view message) override;
  Status SaveProgress(std::size_t index, std::string_view progress) override;
  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override {
    return transaction_.Execute(sql, values);
  }
  Result<bool> Submit(const NewTask& task) override { return transaction_.Submit(task); }
  bool BeginTask(std::size_t index) override { return transaction_.BeginTask(index); }
  void EndTask(bool done) override { transaction_.EndTask(done); }
  void BeginTogether() override { transaction_.BeginTogether(); }
  void Throw() override { transaction_.Throw(); }

  const CallTransaction& transaction() const { return transaction_; }

 private:
  const Clock& clock_;
  CallWatch& watch_;
  const std::span<const AttemptPtr> attempts_;
  CallTransaction transaction_;
  const BootTime deadline_;
};

// A handler that ignores its stop token keeps its thread for so long before it is given up.
Micros GraceAfter(Micros timeout);

// Tasks of one shard that are run in one call.
struct CallPart {
  std::vector<AttemptPtr> attempts;
  // Of a part of a call that failed as a whole: the call's own time limit; otherwise it begins with the call.
  std::optional<BootTime> deadline = {};
};

// Thread-safe where it says so; one for each lane thread, used on that thread.
class AttemptRunner {
 public:
  AttemptRunner(const Clock& clock, CallWatch& watch)
      : clock_(clock), watch_(watch), random_(Random::FromSystem()) {}

  // Runs the handler on these attempts, at least one. What it returns has not ended, since it failed as a
  // whole and was rolled back: each part is to be run, those of one task alone with a time limit of their
  // own.
  std::vector<CallPart> Run(const LaneSetup& setup, const CallPart& part, TaskTransaction& transaction);

 private:
  // One call: who is in it and by what rules.
  struct Round {
    const LaneSetup& setup;
    const std::vector<AttemptPtr>& attempts;
    TaskTransaction& transaction;
    int run = 1;
    BootTime began{};
    BootTime deadline{};
  };
  Next RunOnce(const Round& round);
  Next Commit(const Round& round, CallEnd& end, const Decision& decision, const std::string& sql_error,
              std::vector<Outcome> outcomes);
  // Ends every task by the decision, or says how they are run again.
  Next Apply(const Round& round, const CallEnd& end, const Decision& decision, const std::string& why,
             std::vector<Outcome> outcomes);
  void Verify(const Round& round, const std::vector<Settlement>& sent, const std::string& why);
  bool MayRunAgain(const Round& round) const;
  bool ShardAnswers(const Attempt& attempt) const;
  Settlement SettlementOf(const Round& round, std::size_t index, const Outcome& outcome);

  const Clock& clock_;
  CallWatch& watch_;
  Random random_;
};

}  // namespace millrace::engine

// A handler opened for one task type, and the context it runs in: the host's side of <millrace/plugin.h>.
#pragma once

#include <millrace/plugin.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/log.h"
#include "framework/base/result.h"
#include "framework/config/config.h"
#include "framework/store/task_transaction.h"
#include "framework/task/task.h"

namespace millrace::engine {

// What a running handler may ask of its host. One object per call; used on the handler's thread, but for
// ShouldStop and TimeLeft, which are thread-safe.
class CallContext {
 public:
  virtual ~CallContext() = default;
  virtual bool ShouldStop() const = 0;
  virtual Micros TimeLeft() const = 0;
  // Of the task `index` of the call, as SaveProgress.
  virtual void Log(std::size_t index, LogLevel level, std::string_view message) = 0;
  virtual Status SaveProgress(std::size_t index, std::string_view progress) = 0;
  // Refuses transaction control and DDL (Invalid) before anything is sent.
  virtual Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) = 0;
  virtual Result<bool> Submit(const NewTask& task) = 0;  // false: its key is taken

  // Whose SQL it is, in a call of several tasks. From BeginTask to EndTask it is that of one task: it stays
  // where that is done, and is undone otherwise. False: their transaction can only be rolled back, so nothing
  // more is to be run; the tasks run again by themselves.
  virtual bool BeginTask(std::size_t index) = 0;
  virtual void EndTask(bool done) = 0;
  // It is sent for those that will be done, and for them alone.
  virtual void BeginTogether() = 0;
  // The call failed as a whole: its outcome is no single task's own.
  virtual void Throw() = 0;
};

// Thread-safe: runs on several threads at once.
class HandlerInstance {
 public:
  virtual ~HandlerInstance() = default;  // closes it; no call may be under way
  virtual std::uint32_t MaxBatch() const = 0;
  // Never throws. One outcome per task; where the handler gave none, or one of a kind that does not exist,
  // the outcome is Retry with class `bad_outcome`; of several the call has failed as a whole then. `shard`
  // completes the tasks' names; none of them is null.
  virtual std::vector<Outcome> Run(const std::string& shard, std::span<const Task* const> tasks,
                                   CallContext& context) = 0;
  // What it brings in its code.
  virtual const CodeDefaults& Defaults() const {
    static const CodeDefaults none;
    return none;
  }
  // The outcome of a failed attempt, the one with the number `failure`, with a delay by the handler's word,
  // or as Fail; as it was where the handler leaves it to the ladder. Never throws. For handlers alone whose
  // Defaults say that they are asked.
  virtual Outcome NextRetry(const std::string& shard, const Task& task, Outcome failed, std::uint32_t failure,
                            Micros ladder_delay) {
    (void)shard, (void)task, (void)failure, (void)ladder_delay;
    return failed;
  }
};

inline std::vector<const Task*> PointersTo(std::span<const Task> tasks) {
  std::vector<const Task*> pointers;
  for (const Task& task : tasks) pointers.push_back(&task);
  return pointers;
}

using Secrets = std::vector<std::pair<std::string, std::string>>;  // name, value

// What the descriptor brings, as it stands there: Validate says whether it is possible.
CodeDefaults ReadDefaults(const millrace_handler& descriptor);

// Invalid with what the handler said when it refused its options. `descriptor` must outlive the instance.
Result<std::unique_ptr<HandlerInstance>> OpenHandler(const millrace_handler& descriptor,
                                                     const std::string& type, const std::string& options,
                                                     const Secrets& secrets);

// The outcome with its handler's word on when the task is due again, where it has a say: an outcome's own
// time goes before, then the configuration's ladder, then the handler, then the ladder of its defaults or the
// built-in one. Calls foreign code. `unit` is random in [0, 1).
Outcome AskNextRetry(HandlerInstance& handler, const HandlerConfig& config, const std::string& shard,
                     const Task& task, Outcome outcome, double unit);

}  // namespace millrace::engine

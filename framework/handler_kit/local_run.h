// Runs a handler on given tasks here and now, by the code that a worker's threads run them by
// (worker/attempt_runner.h): no worker, no task row, and no watchdog, so that a handler that never returns is
// never given up. For `millrace handler run` and for authors' tests (<millrace/testing.h>).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/base/log.h"
#include "framework/base/mutex.h"
#include "framework/base/result.h"
#include "framework/handler_kit/local_transaction.h"
#include "framework/plugin/plugin_set.h"
#include "framework/store/store.h"
#include "framework/worker/attempt_runner.h"

namespace millrace::engine {

// Asks the handler to stop for another reason than its time limit. Thread-safe; for one RunTasks at a time.
class LocalStop {
 public:
  enum class Reason { None, Cancelled, WorkerEnds };
  void Set(Reason reason);
  Reason reason() const;

 private:
  friend class LocalRunner;
  void Follow(std::vector<AttemptPtr> attempts);

  mutable Mutex mutex_;
  Reason reason_ MILLRACE_GUARDED_BY(mutex_) = Reason::None;
  std::vector<AttemptPtr> attempts_ MILLRACE_GUARDED_BY(mutex_);
};

// Tasks as they would be claimed; their ids are 1, 2, …
struct LocalCall {
  std::vector<Task> tasks;
  HandlerConfig config;                    // over what the handler brings
  TaskTransaction* transaction = nullptr;  // where its SQL goes; null: it is refused
  std::string without;                     // and why then, for people: what they can do
  bool commit = false;                     // otherwise what it wrote is rolled back
  LocalStop* stop = nullptr;               // null: nobody asks
};

enum class LocalEffect {
  None,  // it wrote nothing
  Committed,
  RolledBack,
  InDoubt,  // parts of it may have taken effect: its transaction was ended behind the context's back
};

// What became of one task.
struct LocalEnd {
  Outcome said;    // by the handler, when it was last asked
  Settlement end;  // what a worker writes
  LocalEffect effect = LocalEffect::None;
  std::vector<std::string> progress;
};

struct LocalLogLine {
  LogLevel level = LogLevel::Info;
  std::string message;
};

struct LocalReport {
  std::vector<LocalEnd> ends;  // parallel to the tasks
  std::vector<LocalLogLine> log;
  std::vector<LocalStatement> statements;  // of all calls
  std::vector<LocalSubmission> submitted;
  std::size_t calls = 0;  // of the handler: more than one where the first failed as a whole
  Micros took{};
};

// Until each task has ended; at most so many in one call as a worker would give it. Delays are not spread.
LocalReport RunTasks(const std::shared_ptr<HandlerInstance>& handler, const LocalCall& call,
                     const Clock& clock);

struct LocalRunOptions {
  std::string type;  // the task type
  HandlerConfig config;
  Secrets secrets;
  std::vector<std::string> params = {"{}"};  // JSON, one task each; at most the handler's batch
  std::string progress;                      // what an earlier attempt saved
  std::uint32_t attempt = 1;
  Store* store = nullptr;           // where its SQL goes; null: SQL is refused
  TableName table = kDefaultTable;  // where it submits tasks
  bool commit = false;              // otherwise what it wrote is rolled back
};

// Opens a handler of the set for it. NotFound, Invalid: it can't be opened, or the parameters are no JSON or
// too many. A handler that fails is no error: see the ends.
Result<LocalReport> RunLocally(const PluginSet& plugins, const LocalRunOptions& options, const Clock& clock);

}  // namespace millrace::engine

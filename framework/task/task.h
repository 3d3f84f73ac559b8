// The words of the domain: tasks, their states, names and outcomes. Pure values, no I/O.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// The numbers are those of the `state` column.
enum class TaskState : std::int8_t {
  Waiting = 0,
  Succeeded = 1,  // finished pool
  Running = 2,
  Held = 3,       // not to be processed until released
  Cancelled = 4,  // finished pool: cancelled, or skipped by its handler or as a duplicate
  Failed = -1,    // failed pool: needs a person
};
const char* ToString(TaskState state);
Result<TaskState> ParseTaskState(std::string_view text);

// Each table of tasks has three: rows that wait, run or are held; the failed pool; the finished pool.
enum class TaskPool { Hot, Failed, Done };
constexpr TaskPool PoolOf(TaskState state) {
  if (state == TaskState::Failed) return TaskPool::Failed;
  const bool ended = state == TaskState::Succeeded || state == TaskState::Cancelled;
  return ended ? TaskPool::Done : TaskPool::Hot;
}

// A task within its shard.
struct TaskKey {
  TableName table = kDefaultTable;
  std::uint64_t id = 0;
  auto operator<=>(const TaskKey&) const = default;
};

// A task everywhere: shard/table/id.
struct TaskName {
  std::string shard;
  TaskKey key;
  auto operator<=>(const TaskName&) const = default;
};
std::string ToString(const TaskKey& key);  // table/id
std::string ToString(const TaskName& name);
// `shard/table/id`; a bare id, or table/id, takes what is missing from `home`.
Result<TaskName> ParseTaskName(std::string_view text, const TaskName& home);

// What a handler is given of a task, and what the commands show of it. One attempt's view; a plain value.
struct Task {
  TaskKey key;
  std::uint32_t slice = 0;
  TaskState state = TaskState::Waiting;
  std::string handler;
  std::uint32_t priority = 5;  // 0 most urgent … 9
  WallTime run_at;
  std::string params;          // JSON text, up to kMaxParams bytes
  std::string biz_key;         // empty: none
  std::string batch;           // empty: none
  std::uint32_t failures = 0;  // place on the retry ladder
  std::uint32_t attempt = 0;   // claims so far; (task, attempt) is the fencing token of a settle
  std::uint32_t crashes = 0;
  bool cancel = false;
  std::string claimed_by;  // incarnation; empty: nobody
  std::optional<WallTime> claimed_at;
  std::string last_error;
  std::string progress;  // what the handler saved last; the next attempt receives it
  WallTime created_at;
  std::optional<WallTime> expires_at = {};  // not to be started from then on; see `ExpiryOf`
};

// A task to be added. Absent members take the table's defaults.
struct NewTask {
  std::string handler;
  std::string params = "{}";
  std::string biz_key;
  std::string batch;
  std::optional<std::uint32_t> priority;
  std::optional<WallTime> run_at;
  std::optional<Micros> delay;  // instead of run_at: after the database's now
  bool held = false;
  std::optional<std::uint32_t> slice = {};  // see framework/task/slice_choice.h; none: the table draws one
  // Not to be started from then on; at most one of the two. No earlier than it is due.
  std::optional<WallTime> expires_at = {};
  std::optional<Micros> expires_in = {};  // after the database's now
};

inline constexpr std::size_t kMaxParams = 64 * 1024;
inline constexpr std::size_t kMaxHandlerName = 64;
inline constexpr std::size_t kMaxKey = 190;
inline constexpr std::size_t kMaxBatchName = 64;
inline constexpr std::size_t kMaxText = 4096;  // last_error, progress, result: longer ones are cut
inline constexpr std::uint32_t kMaxSlices = 16'384;
// A task with so many claims behind it is claimed no more: its attempt's number fences the settle, and must
// not run over. Nobody gets there by claims, but a producer may write any number.
inline constexpr std::uint32_t kLastAttempt = 4'000'000'000;
// What new tables take for attempt, failures and crashes: with room behind a last claim, for its adoption.
inline constexpr std::uint32_t kMaxCount = 4'100'000'000;
// A task behind so many crashes is run no more by itself.
inline constexpr std::uint32_t kQuarantineCrashes = 3;
inline constexpr std::size_t kMaxErrorClass = 64;
inline constexpr std::size_t kMaxBatchRows = 999;  // MariaDB changes plan at 1000 ids

// [a-z][a-z0-9_.]*, at most kMaxHandlerName bytes.
bool IsHandlerName(std::string_view name);
// Invalid with the reason for a wrong handler name, params that are too long or no object, a key too long, a
// batch name that is too long or ends with a space, a priority out of range. That an object is well formed
// the store's constraint or the caller checks.
Status Validate(const NewTask& task);

// The idempotency key that handlers pass to partners: the task's name, an @ and its created_at. The same on
// every attempt, new for an id that a lossy failover gives out again.
std::string IdempotencyKey(std::string_view shard, const Task& task);
// The name that stands in it.
constexpr std::string_view NameIn(std::string_view idempotency_key) {
  return idempotency_key.substr(0, idempotency_key.rfind('@'));
}

// What the texts take that it brings with it: params, last error, progress.
inline std::size_t TextBytes(const Task& task) {
  return task.params.size() + task.last_error.size() + task.progress.size();
}

// `text` cut to `limit` bytes without splitting a UTF-8 sequence.
std::string Shorten(std::string_view text, std::size_t limit = kMaxText);

// A handler's text as every database takes it (see EscapeBroken), cut likewise. For people it is escaped
// where it is shown.
std::string Storable(std::string_view text, std::size_t limit = kMaxText);

// Urgency, the order of due groups. The same formula stands in the tables as a generated column.
// 0 (most urgent) … 99: fresh before retried within a priority.
constexpr std::uint32_t Urgency(std::uint32_t priority, std::uint32_t failures) {
  return priority * 10 + std::min<std::uint32_t>(failures, 9);
}
constexpr std::uint32_t PriorityOf(std::uint32_t urgency) { return urgency / 10; }
// 9: nine or more.
constexpr std::uint32_t FailuresOf(std::uint32_t urgency) { return urgency % 10; }

inline constexpr std::uint32_t kLeastUrgent = Urgency(9, 9);

// What a handler says of an attempt, and what the engine makes of it.
enum class OutcomeKind {
  Done,      // text: the result, may be empty
  Retry,     // text: why. A failed attempt; `at` or `delay` override the ladder
  Fail,      // text: why. To the failed pool now
  Snooze,    // not a failure: again at `at` or after `delay`
  Skip,      // text: why. To the finished pool as skipped
  GiveBack,  // engine only: not run, or cut short by a stop; not a failure
  Cancel,    // engine only: it was cancelled. To the finished pool
  Hold,      // engine only: a failed attempt, after which it is held for a person to look at
};

struct Outcome {
  OutcomeKind kind = OutcomeKind::Done;
  std::string text;
  std::optional<WallTime> at;
  std::optional<Micros> delay;
  std::string error_class;  // short and stable, for grouping: `timeout`, `http_503`
};

// The write that ends one attempt, as the store carries it out.
struct Settlement {
  enum class To {
    Succeeded = static_cast<int>(TaskState::Succeeded),
    Cancelled = static_cast<int>(TaskState::Cancelled),
    Failed = static_cast<int>(TaskState::Failed),
    Waiting = static_cast<int>(TaskState::Waiting),
    Held = static_cast<int>(TaskState::Held),  // until somebody releases it
  };

  TaskKey key;
  std::uint32_t attempt = 0;
  To to = To::Succeeded;
  bool failed_attempt = false;  // failures+1, and a row in millrace_attempts
  // To::Waiting only: when it is due again. Exactly one of them, or neither: due at once, run_at unchanged.
  std::optional<WallTime> run_at;
  std::optional<Micros> delay;  // after the database's now
  std::string text;             // Succeeded: the result; otherwise the reason (kept as last_error)
  std::string error_class;
  // What the handler saved last, where it is not known to be written: it stays, whatever the outcome is.
  std::optional<std::string> progress;
  // The handler was called in this attempt, as far as anybody can tell: true where it is not known. A task
  // that never started gives its key back when it is cancelled.
  bool started = true;
  // Succeeded only: its row goes into the finished pool. Of one that does not, nothing is left but its
  // counters.
  bool kept = true;
  // Copied from the task, for counters and the key ledger.
  std::string handler;
  std::string biz_key;
  std::string batch;
};

constexpr TaskState StateAfter(Settlement::To to) { return static_cast<TaskState>(to); }
// Whether its row stays where it is: its attempt has ended, and it has not.
constexpr bool StaysHot(Settlement::To to) { return PoolOf(StateAfter(to)) == TaskPool::Hot; }
// Whether nothing is left of its row.
constexpr bool LeavesNoRow(const Settlement& end) { return end.to == Settlement::To::Succeeded && !end.kept; }

// What follows an attempt with this outcome.
struct OutcomeRule {
  Settlement::To to;    // where nothing else is said: see `Settle`
  bool failed_attempt;  // one more failure
  bool says_when;       // its handler may say when the task is due again
};
const OutcomeRule& RuleOf(OutcomeKind kind);

}  // namespace millrace::engine

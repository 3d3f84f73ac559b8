// What people and producers ask of a shard: add, find, list, change. Every answer is bounded; nothing counts
// a whole pool.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/batch_store.h"
#include "framework/task/task_action.h"

namespace millrace::engine {

struct SubmitReport {
  std::size_t added = 0;
  std::vector<std::uint64_t> ids;       // parallel to the input; 0: not added
  std::vector<std::string> duplicates;  // parallel to the input; table/id of the key's holder, or empty
  // Parallel to the input: the params of a duplicate's holder, where their text is another than the
  // duplicate's own. Empty: it is the same, or the holder is in no pool any more.
  std::vector<std::string> standing = {};
};

inline constexpr std::size_t kMaxSubmitRows = 100 * kMaxBatchRows;

struct AttemptRecord {
  std::uint32_t attempt = 0;
  WallTime at;
  std::string incarnation;
  std::string kind;  // failed, crashed, rescued
  std::string error_class;
  std::string message;
};

struct TaskRecord {
  Task task;
  std::string result;                   // succeeded tasks
  std::optional<WallTime> finished_at;  // ended tasks
  std::vector<AttemptRecord> attempts;  // newest last; Get alone fills it
};

struct TaskFilter {
  std::optional<TaskState> state;
  std::string handler;      // empty: any
  std::string batch;        // empty: any
  std::string key;          // empty: any
  std::string error_class;  // of the last error; empty: any. Failed pool alone
  std::optional<std::uint32_t> slice;
  std::optional<std::uint32_t> priority;
  std::optional<WallTime> since;       // ended since then; of those that have not, made since then
  std::optional<WallTime> until;       // the same, before then
  std::optional<WallTime> due_before;  // due, or once due, before then
  bool newest_first = false;           // of what has ended; see TaskPage
  bool without_finished = false;       // leaves the finished pool out
  bool operator==(const TaskFilter&) const = default;
};

// Pages run through one table's pools: waiting and running rows, then failed, then finished, each by id. A
// page is bounded in the rows that it looks at too: it may be short, or empty, and have a next one. With
// `newest_first` failed and finished rows come by the time of their end, the last one first: among the newest
// 10,000 rows of the pool, then among those before.
struct TaskPage {
  std::vector<TaskRecord> records;
  std::string next;  // give it back as `after`; empty: the end
};

struct TaskCount {
  std::map<TaskState, std::uint64_t> states;  // those that match
  bool more = false;                          // there may be more: the count ended before the pool did
  std::uint64_t Sum() const {
    std::uint64_t sum = 0;
    for (const auto& [state, count] : states) sum += count;
    return sum;
  }
};

// Where a task is, and why it did not succeed.
struct TaskOutcome {
  std::uint64_t id = 0;
  TaskState state = TaskState::Waiting;
  std::string why;  // of failed and cancelled ones
};

struct TaskTotals {
  std::string table;  // as it was counted, by whomever
  std::string handler;
  std::string batch;  // empty: those without a batch
  std::uint64_t succeeded = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;  // entered the failed pool
  std::uint64_t attempts_failed = 0;
};

// Some of the batches, for people: those that have not ended first, then the newest; then those without a
// row, by name.
struct BatchGlance {
  struct Seen {
    std::string name;
    std::optional<BatchState> state;     // nullopt: it has no row here
    std::optional<WallTime> created_at;  // likewise
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> batches;
  std::uint64_t all = 0;  // how many there are
  bool more = false;      // there may be more: the count ended at its bound
};

inline constexpr std::uint64_t kExactBacklog = 10'000;

struct PauseRecord {
  std::string what;  // a name as in framework/policy/pauses.h; whoever sets it checks it
  std::string actor;
  WallTime since;
  std::string reason = {};  // as it was given with the pause, while the audit's last rows have it
};

inline constexpr std::size_t kMaxPauseName = 190;
inline constexpr std::size_t kMaxReason = 500;  // bytes; longer ones are cut

// Who changes tasks, and as part of what. The audit gets a row for each task; with `act`, which says what
// chose them, one row for all tasks of a call, with that text and their ids. Where they were chosen by their
// `state`, one that has left it since is left alone.
struct Author {
  Author(const char* who) : name(who) {}                                                          // NOLINT
  Author(std::string who, std::string what = {}) : name(std::move(who)), act(std::move(what)) {}  // NOLINT
  std::string name;
  std::string act;
  std::optional<TaskState> state;
};

struct ChangedTask {
  std::uint64_t id = 0;
  TaskState before = TaskState::Waiting;
};

// What somebody did, by the audit.
struct ActRecord {
  WallTime at;
  std::string actor;
  std::string detail;
};

// Due tasks of a waiting task's slice and handler that come before it, by their priority.
struct AheadCount {
  std::map<std::uint32_t, std::uint64_t> of_priority;
  bool more = false;  // there may be more: the count of some urgency ended at its bound
  std::uint64_t Sum() const {
    std::uint64_t sum = 0;
    for (const auto& [priority, count] : of_priority) sum += count;
    return sum;
  }
};
inline constexpr std::uint64_t kAheadBound = 2000;  // of each urgency

// How many attempts of a task ended by a rescue, by the task's id.
using RescueCounts = std::map<std::uint64_t, std::size_t>;

class TaskOperations {
 public:
  virtual ~TaskOperations() = default;

  // All in one transaction, or none. At most kMaxSubmitRows tasks. A task whose key is taken (also within the
  // batch) is not added and is reported as a duplicate.
  virtual Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) = 0;

  virtual Result<TaskRecord> Get(const TaskKey& key) = 0;
  // Of at most kMaxBatchRows tasks, by their ids, those that are in a pool; in one view of the data.
  virtual Result<std::vector<TaskOutcome>> Outcomes(const TableName& table,
                                                    std::span<const std::uint64_t> ids) = 0;
  // Of at most kMaxBatchRows tasks; those without a rescue are left out.
  virtual Result<RescueCounts> Rescues(const TableName& table, std::span<const std::uint64_t> ids) = 0;
  // Who has the key: the task that the ledger names, and where that holds no more (its time has passed, or it
  // is lost) the first row of the table that waits with it. NotFound: nobody. Empty handler: any; Invalid,
  // with two of the tasks, where those of several have it. `by_ledger`: no waiting row is looked at.
  virtual Result<TaskKey> Find(const TableName& table, const std::string& handler, const std::string& key,
                               bool by_ledger = false) = 0;
  virtual Result<TaskPage> List(const TableName& table, const TaskFilter& filter, const std::string& after,
                                std::size_t limit) = 0;
  // How many of one pool match, by looks of bounded length until there are `limit` of them, the pool ends, or
  // `deadline` has passed.
  virtual Result<TaskCount> Count(const TableName& table, TaskPool pool, const TaskFilter& filter,
                                  std::uint64_t limit, BootTime deadline) = 0;
  // At most kMaxBatchRows ids; returns those that it changed, by id, which are those that StateAfter says
  // (see framework/task/task_action.h); what it changed and its rows of millrace_audit are one transaction.
  // Not for an edit.
  virtual Result<std::vector<ChangedTask>> Apply(TaskAction action, const TableName& table,
                                                 std::span<const std::uint64_t> ids,
                                                 const Author& author) = 0;
  // The same for an edit, which leaves those alone that are so already or would expire before they are due,
  // and of failed ones sets neither time. Invalid for one that Validate refuses, and for params that are no
  // JSON.
  virtual Result<std::vector<ChangedTask>> Edit(const TaskEdit& edit, const TableName& table,
                                                std::span<const std::uint64_t> ids, const Author& author) = 0;
  // Who did this to the task last, among the last acts of the audit (20,000 rows); nullopt: nobody of them.
  virtual Result<std::optional<ActRecord>> LastAct(TaskAction action, const TaskKey& key) = 0;
  // Of a waiting task. By the due index, at most kAheadBound rows of each urgency.
  virtual Result<AheadCount> Ahead(const Task& task) = 0;

  // The red button as a row of the shard, which every due map shows: it reaches workers that a coordinator
  // does not. False if it stood so already. Noted in millrace_audit. Invalid for an empty or overlong name.
  // `reason` is kept in the audit alone.
  virtual Result<bool> SetPause(const std::string& what, const std::string& actor, bool on,
                                const std::string& reason = {}) = 0;
  virtual Result<std::vector<PauseRecord>> Pauses() = 0;  // by name

  // Of every table, task type and batch: as many as there have been batches.
  virtual Result<std::vector<TaskTotals>> Totals() = 0;
  // Of every table and task type, in one answer that does not grow with the batches: what is of one of these
  // by itself, all else under none. At most kMaxBatchRows names.
  virtual Result<std::vector<TaskTotals>> TypeTotals(std::span<const std::string> batches = {}) = 0;
  // At most `limit` batches with a row here, and as many without.
  virtual Result<BatchGlance> GlanceAtBatches(std::size_t limit) = 0;
};

}  // namespace millrace::engine

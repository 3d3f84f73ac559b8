// What the mill asks of a shard: which groups have work, which rows are due, claim them, settle them.
// The statements and their guards are described in framework/store/README.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/result.h"
#include "framework/task/task.h"

namespace millrace::engine {

// The slices of one table that the caller owns; empty `slices` with `all` set means every slice. A table may
// stand several times, with different handlers.
struct TableSlices {
  TableName table;
  bool all = true;
  std::vector<std::uint32_t> slices = {};                 // sorted
  std::optional<std::vector<std::string>> handlers = {};  // sorted; nullopt: every task type
  bool operator==(const TableSlices&) const = default;

  // Whether the rows of this slice and handler are among them.
  bool Covers(std::uint32_t slice, const std::string& handler) const;
  bool CoversHandler(const std::string& handler) const;
  // The slices as few ranges, first and last; one over everything where `all`.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> Ranges() const;
};

// One due group: the waiting and running rows of a slice, handler and urgency. A running row still stands in
// the due order, so a group may be named whose only old rows are running.
struct DueGroup {
  TableName table;
  std::uint32_t slice = 0;
  std::string handler;
  std::uint32_t urgency = 0;
  WallTime first_run_at;  // the earliest of its rows; may be in the future
  // Where DueWanted asked for it: behind the first there are rows that are due in the future.
  bool later = false;
  // So many waiting rows of it are due, where new rows alone were asked for; 0: nobody knows.
  std::size_t rows = 0;
};

// The group alone: table, slice, handler, urgency.
using GroupKey = std::tuple<TableName, std::uint32_t, std::string, std::uint32_t>;
inline GroupKey GroupKeyOf(const DueGroup& group) {
  return {group.table, group.slice, group.handler, group.urgency};
}
inline DueGroup GroupOf(const GroupKey& key, WallTime first_run_at) {
  const auto& [table, slice, handler, urgency] = key;
  return {table, slice, handler, urgency, first_run_at};
}

// A waiting task as a scan has read it. Whoever changes a waiting row moves its `updated_at`: where a claim
// still finds this one, the row is what was read.
struct ScannedTask {
  Task task;
  WallTime updated_at;
};

// A row as a scan sees it: enough to decide on a claim or a rescue.
struct ScanRow {
  std::uint64_t id = 0;
  WallTime run_at;
  TaskState state = TaskState::Waiting;  // Waiting or Running
  std::uint32_t attempt = 0;
  std::uint32_t crashes = 0;
  std::string claimed_by;
  std::size_t bytes = 0;  // TextBytes of the task, where asked for
  WallTime created_at{};  // where asked for
  // Of a waiting row, where asked for. Without it the claim reads the row: a store may leave it out, and does
  // so where the texts are large.
  std::optional<ScannedTask> contents = {};
};

// By their groups; in no order.
using DueRows = std::map<GroupKey, std::vector<ScanRow>>;

struct DueMap {
  std::vector<DueGroup> groups;  // ordered by table, slice, handler, urgency
  WallTime now;                  // the database's clock when the map was read
  // What is paused by rows of the shard itself (names as in framework/policy/pauses.h): the red button for
  // workers that the coordinator does not reach.
  std::vector<std::string> pauses = {};
  // Of several tables those that could not be read, and why: nothing of theirs is in the map.
  std::map<TableName, std::string> refused = {};
  // By table: the greatest id. Of a map that begins parts, 0 for an empty table; of a part, that of the new
  // rows that were read, where there were any.
  std::map<TableName, std::uint64_t> greatest = {};
  std::vector<DueGroup> after = {};  // of a part: what was found of those that it asked for
  DueRows rows = {};  // those of DueWanted::rows that wait and are due; of other handlers' groups, too
};

inline constexpr std::size_t kMostNewRows = 20'000;

// What of a due map is wanted. Default: every group.
struct DueWanted {
  // Parts are to follow: `later` of each group and the greatest ids are told, too; of these tables they are
  // known to be no less than this, and may be told as less than they are.
  bool begins_parts = false;
  // A part: of these tables the waiting rows among those with a greater id, of which the first kMostNewRows
  // are looked at, by their groups; and of these groups each the first row that is due after its
  // `first_run_at`.
  std::map<TableName, std::uint64_t> newer = {};
  std::vector<DueGroup> after = {};
  // Of a map that neither begins parts nor is one: few rows of these tables, by id in any order, that are
  // wanted with all that a page brings of them. A store may leave them out.
  std::map<TableName, std::vector<std::uint64_t>> rows = {};
  bool IsPart() const { return !begins_parts && !newer.empty(); }
};

// A place in a group's due order (run_at, id). Default: before the first row.
struct ScanPosition {
  WallTime run_at{};
  std::uint64_t id = 0;
  auto operator<=>(const ScanPosition&) const = default;
};

// Right before the group's first row, as the map shows it.
inline ScanPosition HeadOf(const DueGroup& group) {
  if (group.first_run_at <= WallTime{}) return {};
  return {group.first_run_at - Micros(1), 0};
}

struct ScanRequest {
  DueGroup group;
  ScanPosition after;
  std::size_t limit = kMaxBatchRows;
  bool with_bytes = false;     // ScanRow::bytes is wanted: the store has to look at the texts for it
  bool with_contents = false;  // and so is ScanRow::contents, if the store brings them
  bool with_created = false;   // ScanRow::created_at is wanted
  bool running_only = false;   // of the next `limit` rows those that run, and nothing else
  // Not 0: it is read together with those of other slices, so many rows of them all (ScanEach).
  std::size_t joined = 0;
};

// Rows of one table with one attempt number seen; at most kMaxBatchRows ids.
struct ClaimRequest {
  TableName table;
  std::string incarnation;
  std::uint32_t attempt = 0;       // the number seen; the claim makes it one more
  std::vector<std::uint64_t> ids;  // any order; the store sorts
  // What a scan has read of them, in any order. Where one of them is missing a claim reads them all.
  std::vector<ScannedTask> contents = {};
};

// Running rows of one table, with one attempt number and one claimer.
struct RescueRequest {
  TableName table;
  std::string claimed_by;
  std::uint32_t attempt = 0;
  std::vector<std::uint64_t> ids;
};

inline constexpr char kUnclaimable[] = "unclaimable";

// What became of the key of a running task.
struct KeyVerdict {
  TaskKey task;
  bool mine = false;
  std::string holder;  // table/id of the task that has the key, where it is not this one
};

enum class SettleVerdict {
  Settled,
  Refused,  // the attempt is no longer this incarnation's: rescued, adopted or settled otherwise
  Broken,   // the database refuses this row's data; see `errors`
  Busy,     // not settled: somebody else's lock is on it, or the store went away half-way. Try again
};

struct SettleReport {
  std::vector<SettleVerdict> verdicts;  // one for each settlement, in order
  std::vector<std::string> errors;  // parallel; empty but for Broken, and for Busy where a table is at fault
};

struct TaskProgress {
  TaskKey key;
  std::uint32_t attempt = 0;
  std::string progress;
  bool operator==(const TaskProgress&) const = default;
};

// What TaskStore::ScanEach promises, of one group after another: `scan` reads a request as Scan does.
template <class Scan>
Result<std::vector<std::vector<ScanRow>>> ScanInTurn(std::span<const ScanRequest> requests, Scan scan) {
  std::vector<std::vector<ScanRow>> pages;
  std::size_t left = requests.empty() ? 0 : requests.front().joined;
  for (ScanRequest request : requests) {
    const std::size_t wanted = request.limit;
    if (request.joined > 0) request.limit = left;
    BOOST_OUTCOME_TRY(page, scan(request));
    if (request.joined > 0 && page.size() == left && left < wanted) break;  // a part of it, perhaps
    left -= std::min(left, page.size());
    pages.push_back(std::move(page));
    if (request.joined > 0 && left == 0) break;
  }
  return pages;
}

class TaskStore {
 public:
  virtual ~TaskStore() = default;

  virtual Result<DueMap> Due(std::span<const TableSlices> tables, const DueWanted& wanted) = 0;
  // All of them, or an error.
  Result<DueMap> Due(std::span<const TableSlices> tables) {
    auto map = Due(tables, DueWanted{});
    if (map && !map->refused.empty()) return Fail(ErrorCode::Conflict, map->refused.begin()->second);
    return map;
  }

  // The next rows of a group that are due by the database's clock, in (run_at, id) order behind `after`.
  virtual Result<std::vector<ScanRow>> Scan(const ScanRequest& request) = 0;

  // The same of several groups, in the order of the requests; all of them with contents and with the time of
  // their creation, or none. A store that is a trip away asks for them all at once.
  //
  // Joined requests are of one table, handler and urgency, in the order of their slices, and `joined` is one
  // number, no less than any limit. Then pages may be missing at the end, but never all, and a page may be
  // longer than its limit: all but the last have all rows of their group.
  virtual Result<std::vector<std::vector<ScanRow>>> ScanEach(std::span<const ScanRequest> requests) {
    return ScanInTurn(requests, [this](const ScanRequest& request) { return Scan(request); });
  }

  // The greatest id of each of these tables, 0 of an empty one: a row that is inserted later has a greater
  // one.
  virtual Result<std::vector<std::uint64_t>> GreatestIds(std::span<const TableName> tables) = 0;

  // Claims those rows that still wait, are due, and have the attempt seen, if the incarnation is not marked
  // dead; returns them whole, and as they are now: one that was edited after its contents were scanned is
  // read anew. Rows locked by others are left out, not waited for beyond the store's lock wait. Unknown: some
  // or all may be claimed; see Resolve. Cancelled: this incarnation is marked dead. Invalid: the database
  // refuses the claim of one of the rows, and none is claimed.
  virtual Result<std::vector<Task>> Claim(ClaimRequest request) = 0;

  // Moves rows that can't be claimed to the failed pool: those that still wait with the attempt seen and that
  // nobody has locked. `why` is their last error, kUnclaimable its class. Returns the ids of those moved.
  virtual Result<std::vector<std::uint64_t>> FailUnclaimed(const ClaimRequest& request,
                                                           const std::string& why) = 0;

  // After an Unknown claim: makes the lost statement harmless by a write to the rows it did not reach, and
  // adopts the rows it did (attempt+1 once more); returns those adopted. Repeat on Unavailable or Unknown.
  virtual Result<std::vector<Task>> Resolve(const ClaimRequest& request) = 0;

  // Takes over rows that run under this incarnation without its knowing: a claim whose reply was lost.
  // `request.attempt` is the number seen on the running row; it is raised.
  virtual Result<std::vector<Task>> Adopt(const ClaimRequest& request) = 0;

  // Sets rows of a claimer that is marked dead or missing waiting again, due at once, and notes each rescue
  // in millrace_attempts. Nothing happens to rows of live claimers, nor to one that the database refuses.
  // Returns the ids rescued; where an error has left none, that.
  virtual Result<std::vector<std::uint64_t>> Rescue(const RescueRequest& request) = 0;

  // Enters or confirms the keys of claimed tasks (those with a biz_key) in the ledger. `tasks` are of one
  // table and run under `incarnation`. A task that is no longer this incarnation's has no verdict, nor has
  // one whose key somebody has locked.
  virtual Result<std::vector<KeyVerdict>> ConfirmKeys(const std::string& incarnation,
                                                      std::span<const Task> tasks) = 0;

  // Ends attempts, in one transaction where it can; rows that break the batch or are refused are split out
  // and the others settle; so are rows that somebody has locked (Busy). Unknown: see StillRunning.
  // Unavailable, Conflict, Denied: nothing was settled, try again.
  virtual Result<SettleReport> Settle(const std::string& incarnation, std::span<const Settlement> batch) = 0;

  // After an Unknown settle, on a new connection: for each settlement, true if its attempt still runs under
  // this incarnation (so it must be settled again), false if it has ended.
  virtual Result<std::vector<bool>> StillRunning(const std::string& incarnation,
                                                 std::span<const Settlement> batch) = 0;

  // Of these running tasks, those whose `cancel` is set. Waits for nobody's lock.
  virtual Result<std::vector<TaskKey>> Cancelled(const std::string& incarnation,
                                                 std::span<const TaskKey> running) = 0;

  // Saves the progress of those that are still this attempt's; at most one entry for a task. Returns those
  // whose row somebody has locked: they are not saved, and to be tried again.
  virtual Result<std::vector<TaskKey>> SaveProgress(const std::string& incarnation,
                                                    std::span<const TaskProgress> progress) = 0;
};

}  // namespace millrace::engine

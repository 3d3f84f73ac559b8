// The rows of schedules in a shard. Each change is a conditional write over the row as it was read, so that
// any number may look at one schedule, and each of its firings happens once. framework/schedule/README.md
// says why the statements are these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "framework/base/result.h"
#include "framework/schedule/firing.h"
#include "framework/store/fan_out_store.h"
#include "framework/task/task.h"

namespace millrace::engine {

struct ScheduleRow {
  std::string name;
  ScheduleState state;
  std::uint64_t config = 0;     // the number of the document that was applied last; 0: of none
  std::optional<TaskKey> task;  // of the firing that was the last to fire
  std::uint64_t fired = 0;
  std::uint64_t lapsed = 0;
  std::string moved_to;  // the shard that it goes to: nobody fires it here any more; empty: none
  bool operator==(const ScheduleRow&) const = default;
};

struct ScheduleRows {
  WallTime now;                   // by the database's clock
  std::vector<ScheduleRow> rows;  // by name
};

// What a firing inserts beside the row that it moves on.
using ScheduledWork = std::variant<NewTask, FanOut>;

struct ScheduledFiring {
  WallTime time;  // the firing's, not later than now
  TableName table = kDefaultTable;
  ScheduledWork work;  // a task with its key; or a fan-out, of this firing and table
};

// Firings that never will be, for one reason.
struct Lapse {
  std::size_t firings = 0;
  std::string why;
};

// One step of a schedule, as Decide (framework/schedule/firing.h) says it.
struct ScheduleStep {
  ScheduleState to;
  std::optional<ScheduledFiring> firing;
  std::size_t lapsed = 0;
  std::vector<Lapse> told = {};  // for the audit: what lapsed in this step, or in steps before
  std::uint64_t config = 0;      // the number of the document that says so; 0: nobody counts
};

struct ScheduleStepped {
  bool moved = false;           // false: the row is not as it was seen, or not this document's to change
  std::optional<TaskKey> task;  // what was inserted, or holds the key; nullopt: a fan-out
  bool taken = false;           // the key was held already: nothing was inserted
};

// What the program writes into millrace_audit where firings lapse, as its action; the subject is the
// schedule, the detail `60: why`. Those that `overlap` leaves out are told once in a while.
inline constexpr char kScheduleLapsed[] = "schedule_lapsed";
inline constexpr char kScheduleRun[] = "schedule_run";
inline constexpr Micros kBetweenSkipsTold = std::chrono::minutes(1);

// One thread at a time; errors as in framework/store/store.h. NotFound: the shard's schema has no schedules
// yet.
class ScheduleStore {
 public:
  virtual ~ScheduleStore() = default;

  virtual Result<ScheduleRows> Rows() = 0;
  // Whether the task of the row's last firing is in a pool; one that is nowhere has ended. A fan-out is in
  // work until its last page; its tasks run on beyond that.
  virtual Result<LastTask> Last(const ScheduleRow& row) = 0;

  // True: there was none of the name, and now there is this one.
  virtual Result<bool> Make(const ScheduleRow& row) = 0;
  // In one transaction: the row, if it is as `seen`, and what fires with it. After Unknown the row is read
  // again.
  virtual Result<ScheduleStepped> Step(const ScheduleRow& seen, const ScheduleStep& step) = 0;
  // For the audit alone: what lapsed in steps before.
  virtual Status NoteLapsed(const std::string& name, const std::vector<Lapse>& told) = 0;
  // The row goes to another shard, or stays after all (`to` is empty). True: it was as `seen`.
  virtual Result<bool> Move(const ScheduleRow& seen, const std::string& to, std::uint64_t config) = 0;
  // True: it was as `seen`, and is gone.
  virtual Result<bool> Remove(const ScheduleRow& seen) = 0;

  // Inserts what the schedule would, beside its rhythm; what it inserts is the row's last from now on. Enters
  // it into the audit. The schedule need not have a row. Of a fan-out the id is 0: its tasks are yet to come.
  virtual Result<TaskKey> RunNow(const std::string& name, const ScheduledFiring& firing,
                                 const std::string& actor) = 0;
};

}  // namespace millrace::engine

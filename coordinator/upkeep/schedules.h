// The schedules whose rows stand in one shard: makes their rows, fires what is due, and moves rows that
// belong elsewhere. On a thread and with a connection of its own, so that nothing else that is done to the
// shard makes a firing late, and a shard that is away holds up its own alone. Any number of processes may do
// it at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/upkeep/schedule_firings.h"
#include "coordinator/upkeep/schedule_place.h"
#include "framework/base/mutex.h"
#include "framework/config/config.h"
#include "framework/store/store.h"
#include "framework/threads/signal.h"
#include "framework/threads/thread.h"

namespace millrace::engine {

// What a process does for schedules now.
struct ScheduleDuty {
  enum class Role {
    None,
    StandsIn,  // fires by rows that are there, since nobody may be leading: another may know a newer document
    Keeps,     // makes, moves and changes them, too
  };
  Role role = Role::None;
  bool removes = false;  // rows of schedules that the document does not have: it is everybody's
  // The document's number, which rises with each; 0: it has none, and goes over any other.
  std::uint64_t number = 0;
  std::shared_ptr<const Config> config = nullptr;
  std::vector<std::string> shards = {};  // all of the configuration, opened or not; sorted
};

// What the shards' schedules know of each other. Thread-safe.
class ScheduleBoard {
 public:
  void Keep(const std::string& shard, ScheduleReading reading) {
    MutexLock lock(mutex_);
    readings_[shard] = std::move(reading);
  }
  void Forget(const std::string& shard) {
    MutexLock lock(mutex_);
    readings_.erase(shard);
  }
  ScheduleReadings Readings() const {
    MutexLock lock(mutex_);
    return readings_;
  }

 private:
  mutable Mutex mutex_;
  ScheduleReadings readings_ MILLRACE_GUARDED_BY(mutex_);
};

// One thread.
class ShardSchedules {
 public:
  ShardSchedules(std::string shard, std::unique_ptr<SchemaStore> schema, std::unique_ptr<ScheduleStore> store,
                 std::unique_ptr<IncarnationStore> lives, ScheduleBoard& board)
      : shard_(std::move(shard)),
        firings_(shard_, std::move(schema)),
        store_(std::move(store)),
        lives_(std::move(lives)),
        board_(board) {}

  // Does what is to be done now; returns how long there is nothing to do, as far as it knows.
  Micros Look(const ScheduleDuty& duty, BootTime now);
  // What keeps schedules from firing as the document says, one sentence each, as of the last look.
  const std::vector<std::string>& troubles() const { return troubles_; }

 private:
  // Firings that `overlap` left out: the audit is told of them once a minute at most, since of a schedule
  // each second it would soon hold nothing else.
  struct Skips {
    std::size_t untold = 0;
    std::optional<BootTime> told = {};  // for the last time
  };
  // What stands here of a schedule, and since when: where it went away and came back, its number is another.
  struct Known {
    std::optional<std::uint64_t> row;  // its number
    BootTime since{};
    bool confirmed = false;
    std::optional<TaskKey> ended = {};  // the last task, where it was found to have ended
  };
  // A rule, as far as a row shows it.
  struct Mark {
    std::string rhythm;
    bool paused = false;
    bool operator==(const Mark&) const = default;
  };
  // Of a row here, where no number says whose rule is the newer one.
  struct Unnumbered {
    ScheduleState state = {};  // as it stands since
    BootTime since = {};       // or since its task was in work last
    // The rule of this process's that it stood by, or was written by it: from then on another is another
    // process's.
    std::optional<Mark> served = {};
    std::optional<BootTime> others_since = {};  // it stands by another's
  };

  void Follow(const ScheduleDuty& duty, BootTime now);
  std::string HomeOf(const ScheduleConfig& schedule, const ScheduleDuty& duty);
  void See(const std::string& name, const ScheduleConfig& schedule, const ScheduleDuty& duty,
           const ScheduleReadings& readings);
  Status Carry(const PlaceStep& step, const std::string& name, const ScheduleConfig& schedule,
               const ScheduleDuty& duty);
  Status Make(const std::string& name, const ScheduleConfig& schedule, const ScheduleDuty& duty);
  Status Take(const ScheduleRow& from, const ScheduleDuty& duty);
  Status Send(const ScheduleRow& row, const ScheduleConfig& schedule, const std::string& to,
              const ScheduleDuty& duty);
  Status Fire(ScheduleRow row, const ScheduleConfig& schedule, const ScheduleDuty& duty);
  // Of a row that stands as the document says: a stand-in that knows an older one must leave it alone.
  bool RaisesNumber(const ScheduleRow& row, const ScheduleDuty& duty);
  Skips Explain(const ScheduleRow& row, const LastTask& last, ScheduleStep& step) const;
  // The step was carried out.
  void NoteLapsed(const std::string& name, const ScheduleStep& step, const Skips& skips);
  Status TellSkips(const ScheduleRow& row);
  Result<LastTask> LastOf(const ScheduleRow& row, const ScheduleRule& rule);
  Result<LastTask> LastThatCounts(const ScheduleRow& row, const ScheduleRule& rule);
  // Where there is no number: another process, which has another rule, serves it.
  bool IsAnothers(const ScheduleRow& row, const ScheduleConfig& schedule, const ScheduleDuty& duty);
  // Nobody but this process is registered in the shard, as of ten seconds ago at most.
  bool IsAlone();
  // It has no next firing since its task is in work, or may be.
  bool WaitsForItsTask(const ScheduleRow& row);
  // `patience`: after it a row of a newer document is one of a document that is no more.
  bool MayChange(const ScheduleRow& row, const ScheduleDuty& duty, Micros patience) const;
  void Remove(const ScheduleDuty& duty);
  void LookAt(WallTime time);
  void Say(const std::string& what);
  void Tell();

  const std::string shard_;
  ScheduleFirings firings_;
  const std::unique_ptr<ScheduleStore> store_;
  const std::unique_ptr<IncarnationStore> lives_;
  ScheduleBoard& board_;
  std::map<std::string, Known> known_;
  std::map<std::string, Skips> skips_;  // by schedule; kept where the shard is away for a while
  std::map<std::string, Unnumbered> unnumbered_;
  std::optional<BootTime> lives_read_;
  bool alone_ = false;                   // by what was read then
  std::optional<BootTime> newer_since_;  // rows of a newer document than this process's
  std::vector<std::string> troubles_;
  std::set<std::string> told_;
  // Of the look at hand.
  ScheduleRows rows_;
  ScheduleReading reading_;
  BootTime now_{};
  std::vector<std::string> found_;
  std::optional<WallTime> look_at_;
  int raised_ = 0;
  bool again_ = false;  // at once, since something was changed; what fails is tried again a second later
};

// Thread-safe.
class SchedulesThread {
 public:
  SchedulesThread(std::string shard, std::shared_ptr<Store> store, std::function<ScheduleDuty()> duty,
                  ScheduleBoard& board)
      : shard_(std::move(shard)), store_(std::move(store)), duty_(std::move(duty)), board_(board) {}
  ~SchedulesThread() { Stop(); }

  Status Start();
  void Stop();
  // As ShardUpkeep::AskToStop.
  bool AskToStop();
  std::vector<std::string> Troubles() const;

 private:
  void Run();
  void Keep(std::vector<std::string> troubles);

  const std::string shard_;
  const std::shared_ptr<Store> store_;
  const std::function<ScheduleDuty()> duty_;
  ScheduleBoard& board_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{true};
  Signal wake_;
  mutable Mutex mutex_;
  std::vector<std::string> troubles_ MILLRACE_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace millrace::engine

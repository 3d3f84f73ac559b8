// The scan strand: finds due tasks of one shard and has them claimed for the run stage: due map → keyset
// pages → claims.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/mill/claim.h"
#include "framework/mill/lives.h"
#include "framework/mill/look_schedule.h"
#include "framework/mill/ring_looks.h"
#include "framework/policy/group_order.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// Where the scan of each due group stands, and when it goes back to the group's beginning. Pure.
//
// A group begins at its head as the due map shows it: before that there may be entries of settled rows, which
// an old snapshot keeps and a scan would wade through.
//
// Rows may appear behind a cursor: a transaction that commits late, a row whose run_at was changed, a task
// given back. So a group that has run empty starts again from its beginning, a group whose head moved to an
// earlier time does so at once, and one that never runs empty does so every rewind interval.
//
// Not thread-safe.
class ScanCursors {
 public:
  // Takes a new due map: forgets groups that it does not name and rewinds those that are to be.
  void Refresh(BootTime now, const std::vector<DueGroup>& groups, Micros rewind);

  // Where the next page of the group begins.
  ScanPosition At(const DueGroup& group) const;
  // Since when the oldest row that may still be claimed waits, as far as is known; and its last turn.
  GroupRank Rank(const DueGroup& group) const;
  // False once a page came back short, until the next Refresh.
  bool MayHaveMore(const DueGroup& group) const;
  // A page of so many rows was read up to `last`; `full`: it had as many as were asked for.
  void Advance(const DueGroup& group, const ScanPosition& last, std::size_t rows, bool full);
  // It was worked on in this turn.
  void Served(const DueGroup& group, std::uint64_t turn);
  std::size_t Size() const { return places_.size(); }

 private:
  using Key = std::tuple<TableName, std::uint32_t, std::string, std::uint32_t>;
  struct Place {
    ScanPosition after;
    WallTime head;  // first_run_at when it last started from the beginning
    BootTime rewound;
    std::size_t read = 0;  // rows since then
    bool empty = false;
    std::uint64_t served = 0;  // the last turn
  };

  static constexpr std::size_t kSmallGroup = 100;  // rows that may be read again in every round

  static Key KeyOf(const DueGroup& group) { return {group.table, group.slice, group.handler, group.urgency}; }

  std::map<Key, Place> places_;
};

// What the last look at the shard showed.
struct ScanView {
  bool reachable = false;
  std::string error;
  Micros map_cost{0};
  Micros poll{0};
  Micros lag{0};
  std::vector<std::string> unrunnable;
};

// Run is the strand; the rest is thread-safe.
class Scanner {
 public:
  struct Parts {
    const Clock& clock;
    const std::string& shard;
    Scope& scope;
    const Lives& lives;
    Attempts& attempts;
    Runner& runner;
    SoloGate& gate;
    const LiveEngine& engine;
    StrandPort& beat;         // woken where a claim was refused as one of a dead life
    bool watch_idle = false;  // also find out whether nothing at all is left to do
  };

  Scanner(Parts parts, ScanPort& port);

  // Until Stop.
  Step<> Run();
  void Stop();
  // Claims nothing more; only what it does not know yet of its claims is still resolved. A suspect that waits
  // keeps nobody out any more, even if the strand hangs in the shard.
  void StopClaiming();
  // Looks at the shard again at once: a task came back, or other slices are its own now.
  void LookAgain();
  // There may be something new: looks now, and for a moment again and again (mill/ring_looks.h), unless there
  // is more to do already than the run stage takes.
  void Ring();
  // Whether somebody listens who will ring: a shard in which nothing is due is then asked every two seconds.
  void SetAttended(bool attended);
  // Nothing runs and nothing is due that can run here, as of the last look. Meant for `watch_idle`.
  bool Idle() const { return idle_.load(); }
  // It has seen that it is to claim nothing more: what it had claimed is in the in-flight set.
  bool Quiet() const { return quiet_.load(); }
  // The shard says that something else is paused than it did before. True once for each change.
  bool TakePausesChanged() { return pauses_changed_.exchange(false); }
  ScanView View() const;
  // The newest due map, of own groups alone; null while there is none.
  std::shared_ptr<const DueMap> LatestMap() const;

 private:
  struct Candidates {
    std::map<std::pair<TableName, std::uint32_t>, std::vector<std::uint64_t>> by_attempt;  // table, attempt
    std::size_t wanted = 0;
    std::size_t room = 0;  // bytes that more of them may take
    std::size_t count = 0;
    std::size_t pages = 0;  // read for them

    bool Full() const;
    // One that is larger than all the room is taken by itself; after one that does not fit there is no room.
    bool Takes(std::size_t bytes);
  };
  struct TypeWork {
    std::string type;
    std::vector<const DueGroup*> groups;  // due
    std::vector<GroupRank> ranks;         // theirs
  };
  struct Look {
    std::shared_ptr<const DueMap> map;
    bool full = false;           // the map has no floor
    std::vector<TypeWork> work;  // points into the map
    BootTime until;              // when to look again
  };

  // One round of work; returns how long to wait for the next.
  Step<Micros> Round();
  // Whether somebody has rung, and it is time for the next look because of it.
  bool RingDue();
  // How long there is nothing to do, as far as is known.
  Micros UntilNext();
  Step<> TakeLook(EngineConfig engine);
  Step<Result<DueMap>> ReadMap(std::vector<TableSlices> slices, DueFloor floor);
  // Nothing is due or in hand, and somebody rings if that changes.
  bool MayRest(BootTime now) const;
  std::vector<TypeWork> WorkOf(const DueMap& map, ScanView& view);
  // Claims what the look shows, as far as the run stage has room.
  Step<> WorkOff(std::size_t most, std::shared_ptr<Lease> life);
  // Scans and claims for one type as far as its room goes; false: nothing more can be claimed now.
  Step<bool> Fill(TypeWork& work, std::size_t most, std::shared_ptr<Lease> life);
  // Finds rows for a type, in one turn; false on an error.
  Step<bool> Gather(TypeWork& work, Candidates& found);
  // Up to so many more, of this group; false on an error.
  Step<bool> GatherFrom(const DueGroup& group, std::size_t most, Candidates& found);
  bool MayClaim(const DueGroup& group) const;
  // One page of a group into `found`; false on an error.
  Step<bool> ScanInto(const DueGroup& group, std::size_t limit, Candidates& found);
  void Pick(const ScanRequest& request, const std::vector<ScanRow>& rows, std::size_t limit,
            Candidates& found);
  bool IsFree(const DueGroup& group, const ScanRow& row);
  Step<bool> NothingLeft(std::shared_ptr<const DueMap> map, bool was_empty);
  Step<bool> MayStillRun(const DueGroup& group);
  // True where it is well.
  bool Note(const Status& status);
  Micros AfterTrouble();

  const Parts parts_;
  ScanPort& port_;

  // The strand's own.
  Suspects suspects_;
  Claimer claimer_;
  ScanCursors cursors_;
  std::uint64_t turn_ = 0;  // of all types together
  Look look_;
  LookSchedule schedule_;
  Micros trouble_pause_{0};
  bool failed_ = false;  // an error in this round
  bool full_ = false;    // a lane had no room in this round
  RingLooks rings_;
  std::optional<BootTime> told_paused_;
  std::size_t mean_bytes_ = MemoryBudget::Of(0);  // of the rows of the last page

  std::atomic<bool> look_again_{false};
  std::atomic<bool> rung_{false};
  std::atomic<bool> busy_{false};  // a lane had no room in the last round: a ring wakes nobody
  std::atomic<bool> attended_{false};
  std::atomic<bool> pauses_changed_{false};
  std::atomic<bool> idle_{false};
  std::atomic<bool> quiet_{false};
  std::atomic<bool> claiming_{true};
  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  ScanView view_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const DueMap> latest_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine

// Finds due tasks of one shard and has them claimed for the lanes: due map → keyset pages → claims.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/exec/signal.h"
#include "framework/exec/thread.h"
#include "framework/worker/claimer.h"
#include "framework/worker/lane_set.h"
#include "framework/worker/remit.h"
#include "framework/worker/scan_cursor.h"

namespace millrace::engine {

// What the scanner needs of its shard's mill. Thread-safe.
class ScannerHost : public ClaimHost {
 public:
  // The present life; null while the worker is not registered.
  virtual std::shared_ptr<Lease> Life() const = 0;
  // As whom the lanes know this shard.
  virtual const AttemptHost& LaneHost() const = 0;
  // The shard says that something else is paused than before.
  virtual void PausesChanged() = 0;
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

class Scanner {
 public:
  struct Parts {
    const Clock& clock;
    const std::string& shard;
    ScannerHost& host;
    Remit& remit;
    LaneSet& lanes;
    InFlight& in_flight;
    SoloGate& gate;
    const LiveEngine& engine;
    bool watch_idle = false;  // also find out whether nothing at all is left to do
  };

  Scanner(Parts parts, std::unique_ptr<TaskStore> store, std::unique_ptr<TaskDesk> desk);
  ~Scanner() { Stop(); }

  // Unavailable: its thread can't be started.
  Status Start();
  // Claims nothing more; only what it does not know yet of its claims is still resolved. Thread-safe.
  void StopClaiming();
  void RequestStop();
  void Stop();
  // Looks at the shard again at once: a task came back, or other slices are its own now. Thread-safe.
  void Wake();
  // Goes on with what the last look showed: a lane has room. Thread-safe.
  void RoomAgain() { wake_.Notify(); }
  // Nothing runs and nothing is due that can run here, as of the last look. Meant for `watch_idle`.
  // Thread-safe.
  bool Idle() const { return idle_.load(); }
  // It has seen that it is to claim nothing more: what it had claimed is in the in-flight set. Thread-safe.
  bool Quiet() const { return quiet_.load(); }
  // Thread-safe.
  ScanView View() const;
  // The newest due map, of own groups alone; null while there is none. Thread-safe.
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
  struct LaneWork {
    Lane* lane = nullptr;
    std::vector<const DueGroup*> groups;  // due
    std::vector<GroupRank> ranks;         // theirs
  };
  struct Look {
    std::shared_ptr<const DueMap> map;
    std::vector<LaneWork> work;  // points into the map
    BootTime until;              // when to look again
  };

  void Run();
  // One round of work; returns how long to wait for the next.
  Micros Round();
  void TakeLook(const EngineConfig& engine);
  Result<DueMap> ReadMap(const std::vector<TableSlices>& slices);
  std::vector<LaneWork> WorkOf(const DueMap& map, ScanView& view);
  // Claims what the look shows, as far as the lanes have room.
  void WorkOff(const EngineConfig& engine, const std::shared_ptr<Lease>& life);
  // Scans and claims for one lane as far as its room goes; false: nothing more can be claimed now.
  bool Fill(LaneWork& work, std::size_t most, const std::shared_ptr<Lease>& life);
  // Finds rows for a lane, in one turn; false on an error.
  bool Gather(LaneWork& work, Candidates& found);
  // Up to so many more, of this group; false on an error.
  bool GatherFrom(const DueGroup& group, std::size_t most, Candidates& found);
  bool MayClaim(const DueGroup& group) const;
  // One page of a group into `found`; false on an error.
  bool ScanInto(const DueGroup& group, std::size_t limit, Candidates& found);
  bool IsFree(const DueGroup& group, const ScanRow& row);
  bool NothingLeft(const DueMap& map, bool was_empty);
  bool MayStillRun(const DueGroup& group);
  // True where it is well.
  bool Note(const Status& status);
  Micros AfterTrouble();

  const Parts parts_;
  const std::unique_ptr<TaskStore> store_;

  // The scanner thread's own.
  Suspects suspects_;
  Claimer claimer_;
  ScanCursors cursors_;
  std::uint64_t turn_ = 0;  // of all lanes together
  Look look_;
  Micros last_map_cost_{0};
  Micros trouble_pause_{0};
  bool failed_ = false;  // an error in this round
  std::optional<BootTime> told_paused_;
  std::size_t mean_bytes_ = MemoryBudget::Of(0);  // of the rows of the last page

  Signal wake_;
  std::atomic<bool> look_again_{false};
  std::atomic<bool> idle_{false};
  std::atomic<bool> quiet_{false};
  std::atomic<bool> claiming_{true};
  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  ScanView view_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const DueMap> latest_ MILLRACE_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace millrace::engine

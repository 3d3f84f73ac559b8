// Finds due tasks of one shard and claims them for the lanes: due map → keyset pages → one UPDATE per batch.
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
#include "framework/store/task_desk.h"
#include "framework/worker/in_flight.h"
#include "framework/worker/lane_set.h"
#include "framework/worker/ports.h"
#include "framework/worker/scan_cursor.h"
#include "framework/worker/solo_gate.h"

namespace millrace {

// What the scanner needs of its shard's mill. Thread-safe.
class ScannerHost {
 public:
  virtual ~ScannerHost() = default;
  // The present life; null while the worker is not registered.
  virtual std::shared_ptr<Standing> Life() const = 0;
  // Claimed: makes a flight of the task and ends it at once with this outcome.
  virtual void LandAtOnce(const Task& task, const std::shared_ptr<Standing>& life, Outcome outcome,
                          bool solo) = 0;
  // Claimed: makes flights of these tasks and hands them to their lanes. `solo`: it runs alone.
  virtual void Dispatch(std::vector<Task> tasks, const std::shared_ptr<Standing>& life, bool solo) = 0;
};

class Scanner {
 public:
  struct Parts {
    const Clock& clock;
    const std::string& shard;
    ScannerHost& host;
    SliceSource& slices;
    LaneSet& lanes;
    InFlight& in_flight;
    SoloGate& gate;
    EngineConfig engine;
    bool watch_idle = false;  // also find out whether nothing at all is left to do
  };

  Scanner(Parts parts, std::unique_ptr<TaskStore> store, std::unique_ptr<TaskDesk> desk);
  ~Scanner() { Stop(); }

  void Start();
  // Claims nothing more; only what it does not know yet of its claims is still resolved.
  void StopClaiming();
  void Stop();
  // Looks again at once: a lane has room, or a task came back. Thread-safe.
  void Wake() { wake_.Notify(); }
  // Nothing runs and nothing is due that can run here, as of the last round. Meant for `watch_idle`.
  bool Idle() const { return idle_.load(); }
  // It has seen that it is to claim nothing more: what it had claimed is in the in-flight set.
  bool Quiet() const { return quiet_.load(); }

 private:
  struct Candidates {
    std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint64_t>> by_attempt;  // table, attempt
    std::size_t count = 0;
  };
  struct Suspect {
    std::string table;
    std::uint64_t id = 0;
    std::uint32_t attempt = 0;
    BootTime since;
  };
  struct LaneWork {
    Lane* lane = nullptr;
    std::size_t room = 0;
    std::vector<const DueGroup*> groups;  // due, in the order of work
  };

  void Run();
  // One look at the shard; returns how long to wait for the next.
  Micros Round();
  std::vector<LaneWork> WorkOf(const DueMap& map);
  // Scans and claims for one lane as far as its room goes; false: nothing more can be claimed now.
  bool Fill(LaneWork& work, const std::shared_ptr<Standing>& life);
  // One page of a group into `found`; false on an error.
  bool ScanInto(const DueGroup& group, std::size_t limit, Candidates& found);
  void ClaimAll(Candidates found, const std::shared_ptr<Standing>& life);
  void Claim(ClaimRequest request, const std::shared_ptr<Standing>& life);
  void Accept(std::vector<Task> tasks, const std::shared_ptr<Standing>& life, bool solo = false);
  void SkipDuplicates(std::vector<Task>& tasks, const std::shared_ptr<Standing>& life, bool solo);
  void PickOutSuspects(std::vector<Task>& tasks, const std::shared_ptr<Standing>& life);
  void PickOutOftenRescued(std::vector<Task>& tasks, const std::shared_ptr<Standing>& life);
  void ResolvePending();
  bool IsSuspect(const ScanRow& row, const std::string& table) const;
  void TrySuspect(const std::shared_ptr<Standing>& life);
  void ForgetSuspect();
  bool NothingLeft(const DueMap& map, bool was_empty);
  void Report(const Error& error);

  const Parts parts_;
  const std::unique_ptr<TaskStore> store_;
  const std::unique_ptr<TaskDesk> desk_;

  // The scanner thread's own.
  ScanCursors cursors_;
  std::uint64_t turn_ = 0;
  std::vector<std::pair<ClaimRequest, std::shared_ptr<Standing>>> unknown_;
  std::optional<Suspect> suspect_;
  BootTime no_suspects_before_{};
  std::set<std::pair<std::string, std::uint64_t>> often_rescued_;
  Micros trouble_pause_{0};
  bool failed_ = false;  // an error in this round

  Signal wake_;
  std::atomic<bool> idle_{false};
  std::atomic<bool> quiet_{false};
  std::atomic<bool> claiming_{true};
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace millrace

// Tends one shard beside the scan: hands over cancels and progress, and sweeps the heads of all groups for
// rows that run under this life without its knowing (adopted) or under a dead one (rescued).
//
// A sweep needs no index: what a dead claimer left was claimed in due order, so it stands at the head of its
// group. Pages are read from the beginning while they still show running rows; what lies deeper comes to the
// head as the rows before it are worked off.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/exec/signal.h"
#include "framework/exec/thread.h"
#include "framework/worker/in_flight.h"
#include "framework/worker/ports.h"

namespace millrace {

// Thread-safe.
class TenderHost {
 public:
  virtual ~TenderHost() = default;
  virtual std::shared_ptr<Standing> Life() const = 0;
  // The claimers known to be alive; null when that is not known.
  virtual std::shared_ptr<const std::set<std::string>> LivePeers() const = 0;
  // Rows of ours whose claim's reply was lost; they are in the in-flight set.
  virtual void Adopted(std::vector<Task> tasks, const std::shared_ptr<Standing>& life) = 0;
  virtual void Rescued(std::size_t count) = 0;
};

class Tender {
 public:
  struct Parts {
    const Clock& clock;
    const std::string& shard;
    TenderHost& host;
    SliceSource& slices;
    InFlight& in_flight;
    Micros rewind;
  };

  Tender(Parts parts, std::unique_ptr<TaskStore> store);
  ~Tender() { Stop(); }

  void Start();
  void Stop();
  // Sweeps soon: somebody was marked dead. Thread-safe.
  void Wake() { wake_.Notify(); }
  // Kept until the next round, the newest for each task. Thread-safe.
  void SaveProgress(const TaskProgress& progress);

 private:
  using RowsByClaim =
      std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint64_t>>;  // claimer, attempt

  void Run();
  void Attend(const std::shared_ptr<Standing>& life);
  void Sweep(const std::shared_ptr<Standing>& life);
  void SweepGroup(const DueGroup& group, const std::shared_ptr<Standing>& life,
                  const std::set<std::string>& live);
  void Adopt(ClaimRequest request, const std::shared_ptr<Standing>& life);

  const Parts parts_;
  const std::unique_ptr<TaskStore> store_;
  std::map<std::string, std::size_t> rescued_;  // in this sweep, by claimer; the tender thread's own

  Signal wake_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  std::map<TaskKey, TaskProgress> progress_ MILLRACE_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace millrace

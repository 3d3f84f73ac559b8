// Tends one shard beside the scan: hands over cancels, then progress, charges what dead processes of this
// host left running, and sweeps the heads of all groups for rows that run under this life without its knowing
// (adopted) or under a dead one (rescued).
//
// A sweep goes by the scanner's due map, so that a table is asked for it once a poll and not twice. It needs
// no index: what a dead claimer left was claimed in due order, so it stands at the head of its group. Pages
// are read from the beginning while they still show running rows; what lies deeper comes to the head as the
// rows before it are worked off. Paused or not: to rescue is not to claim.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/exec/signal.h"
#include "framework/exec/thread.h"
#include "framework/mill/live_engine.h"
#include "framework/worker/coverage_watch.h"
#include "framework/worker/dead_recorders.h"
#include "framework/worker/in_flight.h"

namespace millrace::engine {

// Thread-safe.
class TenderHost {
 public:
  virtual ~TenderHost() = default;
  virtual std::shared_ptr<Lease> Life() const = 0;
  // The claimers known to be alive; null when that is not known.
  virtual std::shared_ptr<const std::set<std::string>> LivePeers() const = 0;
  // The newest due map, of own groups alone; null while there is none.
  virtual std::shared_ptr<const DueMap> LatestMap() const = 0;
  // Those alive when the last beat succeeded.
  virtual std::vector<Incarnation> Peers() const = 0;
  // A process of this host has died; its life in this shard is marked dead.
  virtual void Buried(const std::string& incarnation) = 0;
  // Rows of ours whose claim's reply was lost; they are in the in-flight set.
  virtual void Adopted(std::vector<Task> tasks, const std::shared_ptr<Lease>& life) = 0;
  virtual void Rescued(std::size_t count) = 0;
};

class Tender {
 public:
  struct Parts {
    const Clock& clock;
    const std::string& shard;
    std::string address;  // of the store
    TenderHost& host;
    InFlight& in_flight;
    DeadRecorders& dead_recorders;
    const LiveEngine& engine;
    CoverageWatch* coverage = nullptr;  // null: a coordinator sees to that
  };

  Tender(Parts parts, std::unique_ptr<TaskStore> store, std::unique_ptr<IncarnationStore> incarnations);
  ~Tender() { Stop(); }

  // Unavailable: its thread can't be started.
  Status Start();
  void RequestStop();
  void Stop();
  // Sweeps soon: somebody was marked dead. Thread-safe.
  void Wake() { wake_.Notify(); }
  // Kept until the next round, the newest for each task. Thread-safe.
  void SaveProgress(const TaskProgress& progress);

 private:
  using RowsByClaim =
      std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint64_t>>;  // claimer, attempt

  void Run();
  void AskToStop(const std::shared_ptr<Lease>& life);
  void WriteProgress(const std::shared_ptr<Lease>& life);
  void ChargeTheDead();
  bool Charge(const Burial& burial);
  void Sweep(const std::shared_ptr<Lease>& life);
  // False: the group could not be read to its end.
  bool SweepGroup(const DueGroup& group, const std::shared_ptr<Lease>& life,
                  const std::set<std::string>& live);
  // A replica that has taken the database's place may show as running what this life has settled. Such a row
  // may stand in a slice that is another's by now, who leaves the rows of a live claimer alone: looks at them
  // all, where there is a doubt. That is dear, and doubts may come one by one: it waits for the sweep that is
  // due anyway, and counts as a part of it.
  void SweepWhatIsDoubted(const std::shared_ptr<Lease>& life);
  // False: it could not.
  bool SweepAllSlices(const std::shared_ptr<Lease>& life, const std::set<std::string>& live);
  // Rows that run under this life and that nobody runs. Until the outcome is known they stay in the in-flight
  // set: their slice may move, and whoever gets it leaves the rows of a live claimer alone.
  struct Adoption {
    ClaimRequest request;  // with the attempt that was seen
    std::shared_ptr<Lease> life;
    std::uint32_t lost = 0;  // statements whose outcome is not known: each may have raised the attempt
  };
  void Adopt(ClaimRequest request, const std::shared_ptr<Lease>& life);
  void AdoptAgain();
  void Try(Adoption adoption);

  const Parts parts_;
  const std::unique_ptr<TaskStore> store_;
  const std::unique_ptr<IncarnationStore> incarnations_;
  std::map<std::string, std::size_t> rescued_;  // in this sweep, by claimer; the tender thread's own
  std::vector<Adoption> adoptions_;             // to be tried again; the tender thread's own

  Signal wake_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  std::map<TaskKey, TaskProgress> progress_ MILLRACE_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace millrace::engine

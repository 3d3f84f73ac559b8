// The tend strand: looks after one shard beside the scan. Hands over cancels, then progress, charges what
// dead processes of this host left running, and sweeps the heads of all groups for rows that run under this
// life without its knowing (adopted) or under a dead one (rescued).
//
// A sweep goes by the due maps of the scan, so that a table is asked for it once a poll and not twice. It
// needs no index: what a dead claimer left was claimed in due order, so it stands at the head of its group.
// Pages are read from the head while they still show running rows, of many groups at once; but not for what
// this worker claims and settles meanwhile, since that would go on for as long as it reads. What lies deeper
// comes to the head as the rows before it are worked off. The first page is small, since most groups have
// nothing running at their heads, but for a look that has a reason (somebody was marked dead), and now and
// then: rows may have come before what a dead one left, and nobody works them off where they are paused.
// Paused or not: to rescue is not to claim.
//
// A sweep is made in turns, a tenth of each second, so that one of very many groups neither fills a short
// drain nor keeps cancels and progress waiting. One after a death goes on until it is through.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/mill/scan_strands.h"
#include "framework/mill/sweeps.h"

namespace millrace::engine {

// One life on this host that has ended: to be marked dead at once, and its running handlers to be charged
// with a crash.
struct Burial {
  std::string recorder;
  std::string incarnation;
  std::vector<Crash> crashes;
};

// What it asks of the shard (see TaskStore and IncarnationStore) and of this host.
class TendPort : public StrandPort {
 public:
  virtual Reply<Result<std::vector<TaskKey>>> Cancelled(const std::string& incarnation,
                                                        const std::vector<TaskKey>& running) = 0;
  virtual Reply<Result<std::vector<TaskKey>>> SaveProgress(const std::string& incarnation,
                                                           const std::vector<TaskProgress>& progress) = 0;
  // Those that can't be read are left out: DueMap::refused.
  virtual Reply<Result<DueMap>> Due(const std::vector<TableSlices>& tables) = 0;
  virtual Reply<Result<std::vector<std::vector<ScanRow>>>> ScanEach(
      const std::vector<ScanRequest>& requests) = 0;
  virtual Reply<Result<std::vector<Task>>> Adopt(const ClaimRequest& request) = 0;
  virtual Reply<Result<std::vector<std::uint64_t>>> Rescue(const RescueRequest& request) = 0;
  virtual Reply<Result<std::size_t>> ChargeCrashes(const std::string& incarnation,
                                                   const std::vector<Crash>& crashes) = 0;
  virtual Reply<Result<bool>> Retire(const std::string& incarnation) = 0;
  // What the flight recorders of this host's dead processes have to tell this shard.
  virtual std::vector<Burial> Burials() = 0;
  virtual void Done(const Burial& burial) = 0;
  // Now and then, with those alive: whoever watches which numbers nobody covers looks at them.
  virtual void LookAtPeers(const std::vector<Incarnation>& peers) = 0;
};

// Run is the strand; Stop is thread-safe.
class Maintenance {
 public:
  struct Parts {
    const Clock& clock;
    const std::string& shard;
    const Scope& scope;
    Lives& lives;
    Attempts& attempts;
    ScanStrands& scans;
    MillCounters& counters;
    const LiveEngine& engine;
  };

  Maintenance(Parts parts, TendPort& port) : parts_(parts), port_(port) {}

  // Until Stop. It sweeps soon after its port is woken: somebody was marked dead.
  Step<> Run();
  void Stop();

 private:
  using LifePtr = std::shared_ptr<Lease>;
  using Ids = std::shared_ptr<const Lives::Ids>;
  using Stays = std::vector<InFlight::Stay>;
  using RowsByClaim =
      std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint64_t>>;  // claimer, attempt

  Step<> AskToStop(LifePtr life);
  Step<> WriteProgress(LifePtr life);
  Step<> ChargeTheDead();
  Step<bool> Charge(const Burial& burial);
  // A turn of the sweep that is under way; ends it where a group can't be read.
  Step<> SweepOn(LifePtr life);
  void LogRescued();
  // `pages`: the first of each group; each is read on while it shows running rows that do not merely pass
  // through this worker's hands while those are watched.
  Step<bool> SweepPages(std::vector<ScanRequest> pages, LifePtr life, Ids live);
  // False: not all that the dead have left could be rescued now.
  Step<bool> SweepRows(const DueGroup& group, const std::vector<ScanRow>& rows, const Stays& stays,
                       LifePtr life, Ids live);
  // A replica that has taken the database's place may show as running what this life has settled. Such a row
  // may stand in a slice that is another's by now, who leaves the rows of a live claimer alone: looks at them
  // all, where there is a doubt. That is dear, and doubts may come one by one: it waits for the sweep that is
  // due anyway, and counts as a part of it. Read to the end of what runs: it is looked at once.
  Step<> SweepWhatIsDoubted(LifePtr life);
  Step<> SweepWhatWasLocked(LifePtr life);
  void KeepLocked(const ScanRequest& page);
  // Rows that run under this life and that nobody runs. Until the outcome is known they stay in the in-flight
  // set: their slice may move, and whoever gets it leaves the rows of a live claimer alone.
  struct Adoption {
    ClaimRequest request;  // with the attempt that was seen
    LifePtr life;
    std::uint32_t lost = 0;  // statements whose outcome is not known: each may have raised the attempt
  };
  Step<> Adopt(ClaimRequest request, LifePtr life);
  Step<> AdoptAgain();
  Step<> Try(Adoption adoption);

  const Parts parts_;
  TendPort& port_;

  // The strand's own.
  BootTime asked_{};           // what is cancelled, the last time
  std::uint64_t entries_ = 0;  // in hand, until then
  Sweeps sweeps_;
  std::vector<TableName> doubted_;  // tables that are to be looked at for SweepWhatIsDoubted
  BootTime doubted_due_{};
  std::vector<ScanRequest> locked_;             // pages of which not all could be rescued, one of a group
  std::map<std::string, std::size_t> rescued_;  // in this turn, by claimer
  std::set<TableName> refused_;                 // with rows that the database does not let be set waiting
  std::vector<Adoption> adoptions_;             // to be tried again

  std::atomic<bool> stopping_{false};
};

}  // namespace millrace::engine

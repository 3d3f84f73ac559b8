// Claims the rows that a scan has found and sees them on their way: keys confirmed, suspects picked out, the
// rest to the run stage. A claim whose outcome is unknown is kept until it is resolved; a row whose claim the
// database refuses is split out, and goes to the failed pool.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/mill/attempts.h"
#include "framework/mill/live_engine.h"
#include "framework/mill/step.h"
#include "framework/mill/suspects.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

// What came of a claim, and how long the shard took over it.
struct Claimed {
  Result<std::vector<Task>> tasks;
  Micros took{};
};

// What the scan strand asks of the shard; see TaskStore.
class ScanPort : public StrandPort {
 public:
  virtual Reply<Result<DueMap>> Due(const std::vector<TableSlices>& tables, const DueWanted& wanted) = 0;
  virtual Reply<Result<std::vector<std::vector<ScanRow>>>> ScanEach(
      const std::vector<ScanRequest>& requests) = 0;
  virtual Reply<Result<std::vector<std::uint64_t>>> GreatestIds(const std::vector<TableName>& tables) = 0;
  // See HeardWrites.
  virtual bool UnchangedSince(BootTime read, BootTime now) const = 0;
  // `ahead`: the strand asks for pages meanwhile, and the reply may come with Landed alone. One such at a
  // time, and no other claim beside it; the request stays until then, and is the port's: its contents are
  // given away.
  virtual Reply<Claimed> Claim(ClaimRequest& request, bool ahead) = 0;
  // The claim that was sent ahead is answered: Landed does not wait. True where there is none.
  virtual bool HasLanded() const = 0;
  // The claim that was sent ahead, if any, is answered, and whoever awaited that has gone on.
  virtual Reply<bool> Landed() = 0;
  virtual Reply<Result<std::vector<std::uint64_t>>> FailUnclaimed(const ClaimRequest& request,
                                                                  const std::string& why) = 0;
  virtual Reply<Result<std::vector<Task>>> Resolve(const ClaimRequest& request) = 0;
  virtual Reply<Result<std::vector<KeyVerdict>>> ConfirmKeys(const std::string& incarnation,
                                                             const std::vector<Task>& tasks) = 0;
  // See TaskOperations::Rescues.
  virtual Reply<Result<RescueCounts>> RescuesOf(const TableName& table,
                                                const std::vector<std::uint64_t>& ids) = 0;
};

// What claims came to.
struct ClaimWork {
  std::size_t claimed = 0;  // rows; of a claim whose outcome is unknown all that it asked for
  Micros took{0};           // the shard's time, of all their statements
  Micros slowest{0};        // of one of them; zero: nothing was asked of the shard
  bool refused = false;     // the table is locked as a whole: a claim's error says so, and no other does
  // Rows that nobody has claimed: it failed, or somebody is to be alone.
  std::vector<std::uint64_t> left = {};
  // Rows that the shard did not let be claimed: somebody else has, or changes them just now.
  std::vector<std::uint64_t> missed = {};
};

// Not thread-safe: the scan strand's. Errors are those of the store.
class Claimer {
 public:
  struct Parts {
    const Clock& clock;
    const std::string& shard;
    Attempts& attempts;
    SoloGate& gate;
    const LiveEngine& engine;
    MillCounters& counters;
    StrandPort& beat;  // woken where a claim was refused as one of a dead life
  };

  Claimer(Parts parts, ScanPort& port, Suspects& suspects)
      : parts_(parts), port_(port), suspects_(suspects) {}

  // Claims these rows, as far as nobody has them in hand. Nothing happens while somebody wants to be alone.
  // `ahead` as ScanPort::Claim has it.
  Step<Status> Claim(ClaimRequest request, std::shared_ptr<Lease> life, bool ahead);
  // Claims the suspect whose turn it is, if any, of a group that may be claimed.
  Step<Status> ClaimSuspect(std::shared_ptr<Lease> life, Suspects::MayClaim may_claim, Micros others_take);

  // Tries to resolve the claims whose outcome is unknown, each once; what can't be resolved is kept. One that
  // waits for somebody's lock costs the strand a second, so after a failure nothing is tried for a while,
  // unless it is to be `at_once`.
  Step<> Resolve(bool at_once);
  bool HasUnknown() const { return !unknown_.empty(); }
  // When Resolve tries again, where it has anything to.
  BootTime ResolvesAgain() const { return unknown_.empty() ? BootTime::max() : resolves_again_; }
  // Since it was asked last.
  ClaimWork TakeWork() { return std::exchange(work_, {}); }

 private:
  using Sent = std::pair<ClaimRequest, std::shared_ptr<Lease>>;
  using Tasks = std::vector<Task>;

  // Claims rows that are in the in-flight set and inside the gate; all that can't be claimed leave both.
  Step<Status> ClaimEntered(ClaimRequest request, std::shared_ptr<Lease> life, bool ahead);
  // Likewise, but the gate is the caller's; and after Invalid, of several rows, so is the set.
  Step<Result<Tasks>> Send(ClaimRequest request, std::shared_ptr<Lease> life, bool ahead);
  Step<Result<Tasks>> FailUnclaimed(ClaimRequest request, std::string why);
  // Nobody has claimed these: whoever found them is to find them again.
  void NoteLeft(const ClaimRequest& request);
  // Whoever marked their lives dead sees to their rows.
  void LeaveDead();
  Step<Status> ResolveOne(Sent sent);
  Step<> AcceptResolved(Tasks tasks, std::shared_ptr<Lease> life);
  Step<Status> Accept(Tasks tasks, std::shared_ptr<Lease> life, bool solo);
  // Takes out those whose key is another's, or not known to be theirs.
  Step<Status> SkipDuplicates(Tasks& tasks, std::shared_ptr<Lease> life, bool solo);
  // Of those that are to be looked into. A statement a table: of a type that snoozes they may be all.
  Step<std::map<TaskKey, std::size_t>> ReadRescues(const Tasks& tasks);

  const Parts parts_;
  ScanPort& port_;
  Suspects& suspects_;
  std::vector<Sent> unknown_;
  BootTime resolves_again_{};
  ClaimWork work_;
};

}  // namespace millrace::engine

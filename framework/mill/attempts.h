// The attempts of one shard in this worker's hands, from their claim until the outcome of their settle is
// known: made here, handed to the run stage, and ended through here, whoever ends them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/mill/attempt.h"
#include "framework/mill/mill_counters.h"
#include "framework/mill/scope.h"
#include "framework/mill/settle.h"
#include "framework/mill/suspects.h"
#include "framework/store/task_store.h"
#include "framework/task/task.h"

namespace millrace::engine {

// How much memory the tasks in a worker's hands may take: so much in all, and a little in each shard in any
// case, so that what waits for a database that is away stops no other shard.
//
// What a claim will bring in is known before it is sent (ScanRow::bytes). Shards that claim at the same
// moment may exceed the whole by one claim each.
// Thread-safe; one for all shards of a worker.
class MemoryBudget {
 public:
  static constexpr std::size_t kInAll = std::size_t{24} << 20;
  static constexpr std::size_t kEachShard = std::size_t{2} << 20;

  // What a task counts as whose texts take so many bytes.
  static constexpr std::size_t Of(std::size_t texts) { return texts + kBesideTexts; }
  static std::size_t Of(const Attempt& attempt) { return Of(TextBytes(attempt.task)); }

  void Add(std::size_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void Remove(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  // What the next claim may bring in, in a shard that has `in_shard` in hand; 0: too little to claim for.
  std::size_t Room(std::size_t in_shard) const {
    const std::size_t room = std::min(Left(in_shard), kMostInClaim);
    return room < kLeastInClaim ? 0 : room;
  }
  // The same of all that follow.
  std::size_t Left(std::size_t in_shard) const {
    const std::size_t used = used_.load(std::memory_order_relaxed);
    return std::max(kInAll - std::min(used, kInAll), kEachShard - std::min(in_shard, kEachShard));
  }

 private:
  static constexpr std::size_t kBesideTexts = 1024;
  // While its rows are read the client library holds them too.
  static constexpr std::size_t kMostInClaim = std::size_t{4} << 20;
  static constexpr std::size_t kLeastInClaim = std::size_t{1} << 20;

  std::atomic<std::size_t> used_{0};
};

// The ids that this worker has in its hands in one shard. An id enters before its claim is sent and leaves
// when the claim's failure or the settle's outcome is known; what is in here is never claimed or dispatched
// again.
// Thread-safe.
class InFlight {
 public:
  explicit InFlight(MemoryBudget& memory) : memory_(memory) {}
  ~InFlight() {
    Clear();
    memory_.Remove(bytes_);
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  // Of each of these rows whether it is in.
  std::vector<bool> Contains(const TableName& table, std::span<const ScanRow> rows) const;
  // Enters those ids that were not in; returns them.
  std::vector<std::uint64_t> Enter(const TableName& table, std::span<const std::uint64_t> ids);
  // The claim succeeded: their ids stand for these attempts from now on.
  void Claimed(std::span<const AttemptPtr> attempts);
  void Leave(const TableName& table, std::span<const std::uint64_t> ids);
  // A claim's reply is known: what was asked for and not claimed leaves; returns that.
  std::vector<std::uint64_t> LeaveMissed(const ClaimRequest& request, std::span<const Task> claimed);
  // True once after Room was zero: there is room again.
  bool Leave(std::span<const TaskKey* const> keys);
  // A claim that may bring in so many bytes is about to be sent; and what it has brought counts for itself.
  void Expect(std::size_t bytes);
  // True as with Leave.
  bool Arrived(std::size_t bytes);

  // How many bytes (MemoryBudget::Of) the next claim may bring in. Zero: nothing more is claimed until some
  // tasks have left; so it is where the database does not take settles.
  std::size_t Room();
  // How many all claims together may bring in yet.
  std::size_t Left() const;

  // One of this type whose claim has succeeded.
  bool Holds(const std::string& handler) const;
  bool Empty() const { return Size() == 0; }
  std::size_t Size() const;
  // Those from which it has ever claimed.
  std::vector<TableName> Tables() const;
  // Nothing of the shard is this worker's any more.
  void Clear();
  // How many times ids have entered; and what came with the first so many, its claim having succeeded,
  // started or not.
  std::uint64_t Entries() const;
  std::vector<AttemptPtr> AttemptsOf(std::uint64_t entries) const;

  // While it lives, what comes and leaves is told apart: rows that are read meanwhile may show as running
  // what has left by the time that they are here. One at a time.
  class Watch {
   public:
    explicit Watch(InFlight& ids);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    InFlight& ids_;
  };
  enum class Stay {
    Out,
    In,
    Passing,  // it came, or left, while it was watched
  };
  // Of each of these rows.
  std::vector<Stay> StaysOf(const TableName& table, std::span<const ScanRow> rows) const;

 private:
  struct Place {
    std::uint64_t entry = 0;
    AttemptPtr attempt = {};  // null: a claim is under way
  };
  using Ids = std::pmr::unordered_map<std::uint64_t, Place>;
  // More is not kept in mind: what was left out counts as Out.
  static constexpr std::size_t kMostLeft = 100'000;
  class Neighbours;
  void Erase(const TableName& table, Ids& ids, std::uint64_t id) MILLRACE_REQUIRES(mutex_);
  void Uncount(const Attempt& attempt) MILLRACE_REQUIRES(mutex_);

  MemoryBudget& memory_;
  mutable Mutex mutex_;
  std::size_t bytes_ MILLRACE_GUARDED_BY(mutex_) = 0;  // of the attempts, and those that are expected
  std::size_t expected_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool held_back_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::uint64_t entries_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> watched_ MILLRACE_GUARDED_BY(mutex_);  // so many entries there were before
  // An id enters on one thread and leaves on another: malloc would lock the former's heap for each. What most
  // ids at once have taken stays here, 70 bytes each.
  std::pmr::unsynchronized_pool_resource memory_of_ids_ MILLRACE_GUARDED_BY(mutex_);
  std::pmr::map<TableName, Ids> tables_ MILLRACE_GUARDED_BY(mutex_){&memory_of_ids_};
  // What has left while they are watched.
  std::pmr::set<TaskKey> left_ MILLRACE_GUARDED_BY(mutex_){&memory_of_ids_};
};

// Thread-safe.
class Attempts final : public AttemptHost {
 public:
  struct Parts {
    const std::string& shard;
    const Scope& scope;
    Runner& runner;
    SoloGate& gate;
    MemoryBudget& memory;
    MillCounters& counters;
    const Admission& admission;
    const Clock& clock;
    Settler& settler;
    std::function<void()> room_again;  // wakes those who scan. Never waits
    std::function<std::unique_ptr<TaskTransaction>(Micros limit)> open_transaction;
  };

  explicit Attempts(Parts parts) : parts_(std::move(parts)), in_flight_(parts_.memory) {}

  // What lives as long as an attempt of the shard does: a thread that a handler has not given back still
  // asks. Once, before the first claim.
  void KeptBy(std::weak_ptr<void> keeper) { keeper_ = std::move(keeper); }

  // See Settler::Refuses.
  bool SettleRefuses(const TableName& table) const { return parts_.settler.Refuses(table); }
  std::map<TableName, std::string> SettleRefusals() const { return parts_.settler.LastingRefusals(); }

  InFlight& in_flight() { return in_flight_; }
  const InFlight& in_flight() const { return in_flight_; }

  // Claimed tasks, inside the gate and the in-flight set, on their way to the run stage. `solo`: one that
  // runs alone.
  void Dispatch(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo);
  // Likewise, but it ends at once with this outcome.
  void EndAtOnce(const Task& task, const std::shared_ptr<Lease>& life, const Outcome& outcome, bool solo);
  // Rows of ours whose claim's reply was lost; they are in the in-flight set.
  void Adopted(const std::vector<Task>& tasks, const std::shared_ptr<Lease>& life);
  // What was written of them is known.
  void Known(std::span<const SettledAttempt> settled);
  struct GoneBack {
    std::size_t rows = 0;
    BootTime due{};  // all of them are by then
  };
  // What has gone back to wait, and had not started, since this was asked last; by type.
  std::map<std::string, GoneBack> TakeGivenBack();
  // A row of this group waits, or may, that did not: due then at the earliest.
  void NoteReturned(const DueGroup& group, WallTime due);
  // Those groups that are asked for of which that was noted since they were asked for last, and the earliest
  // of it.
  using Returned = std::map<GroupKey, WallTime>;
  Returned TakeReturned(const std::function<bool(const DueGroup&)>& of);
  // It is not settled, and never will be: the mill has ended.
  void Dropped(Attempt& attempt);

  // After each beat, and after a death: what is parked starts again, or is others' business now.
  void Unpark();
  void GiveBackParked();

  // Handlers are asked to end now.
  void AskToStop() { stop_asked_.store(true); }
  // The shard is served no more: nothing is started.
  void Retire() { retired_.store(true); }
  bool Retired() const { return retired_.load(); }
  // Nothing of the shard is in hand any more, whatever it was.
  void Close();

  // What the database's clock said at a moment of this process's: how long a task was due before it started
  // is told by that clock, which made the due time.
  void NoteClock(BootTime at, WallTime said) {
    clock_ahead_.store((said.time_since_epoch() - at.time_since_epoch()).count(), std::memory_order_relaxed);
  }

  // Progress that is to be written, the newest of each task that runs; and what of it was. Until then it is
  // what the task's settlement would bring along.
  std::vector<TaskProgress> ProgressToWrite() const;
  void Wrote(std::span<const TaskProgress> progress);

  bool StopAsked() const override { return stop_asked_.load(std::memory_order_relaxed); }
  StartDecision StartDecisionOf(const Attempt& attempt) const override;
  StartDecision DecisionBeforePermit(const Attempt& attempt) const override;
  std::shared_ptr<TypeGate> GateOf(const Attempt& attempt) const override;
  bool Over() const override { return over_.load(); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return parts_.open_transaction(limit);
  }
  void SaveProgress(Attempt& attempt, std::string progress) override;
  std::optional<std::string> UnsavedProgress(const Attempt& attempt) const override;
  void Log(const Attempt& attempt, LogLevel level, std::string_view message) override;
  std::optional<WallTime> StoreTime(BootTime now) const override {
    const Micros ahead(clock_ahead_.load(std::memory_order_relaxed));
    if (ahead == Micros(0)) return std::nullopt;
    return WallTime(now.time_since_epoch() + ahead);
  }
  void RoomAgain() override { parts_.room_again(); }
  void Park(AttemptPtr attempt) override;
  void Ended(AttemptResult result) override;
  void Settled(Attempt& attempt, const Settlement& settlement) override;
  void Drop(Attempt& attempt) override;

 private:
  std::vector<AttemptPtr> Make(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo);
  void LookUpScope(std::span<const AttemptPtr> attempts) const;
  void NoteIfReturned(const Attempt& attempt, const Settlement& settlement);
  void NoteRefused(const Attempt& attempt, const Settlement& settlement);
  void Count(const Attempt& attempt, const Settlement& settlement);
  TypeCounters& CountersOf(const Attempt& attempt) const;
  AttemptTimes TimesOf(const Attempt& attempt) const;
  void LeaveGate(const Attempt& attempt);
  void LeaveHand(const TaskKey& key);
  void ForgetProgress(const Attempt& attempt);
  // Its policies are told how it ended.
  void LeavePolicies(Attempt& attempt);
  std::vector<AttemptPtr> TakeParked();

  const Parts parts_;
  std::weak_ptr<void> keeper_;
  InFlight in_flight_;
  std::atomic<Micros::rep> clock_ahead_{0};  // of the database, before this process's; 0: not known
  std::atomic<bool> stop_asked_{false};
  std::atomic<bool> retired_{false};
  std::atomic<bool> over_{false};
  mutable Mutex mutex_;
  std::vector<AttemptPtr> parked_ MILLRACE_GUARDED_BY(mutex_);
  std::map<TaskKey, TaskProgress> progress_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, GoneBack> given_back_ MILLRACE_GUARDED_BY(mutex_);
  Returned returned_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine

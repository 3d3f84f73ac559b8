// What the policies of a worker's task types let through: limits, breakers, hours. One gate for each type
// that has any; a type without one costs nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/config/config.h"
#include "framework/policy/limit_shares.h"
#include "framework/policy/permit_home.h"
#include "framework/task/task.h"

namespace millrace::engine {

class Permits;

// How an attempt that had a start has ended.
struct StartEnd {
  bool called = false;  // its handler was called
  Micros took{0};
  bool permit = false;  // it held one of its own
};

class BreakerPolicy;

// One policy of one task type in one worker. Thread-safe.
class StartPolicy {
 public:
  virtual ~StartPolicy() = default;
  // False: nothing is claimed or started, and what is queued goes back uncounted. `wall` is this host's
  // clock.
  virtual bool Open(BootTime /*now*/, WallTime /*wall*/) { return true; }
  // Nothing starts, and what is queued goes back uncounted; what may be claimed ClaimRoom says.
  virtual bool Withholds() { return false; }
  // Where it is not open, or gives no start: in which words that is told (`hours`, `limit`, `breaker`).
  virtual const char* Name() const = 0;
  // How many more tasks may be claimed, where so many are claimed and have not started.
  virtual std::size_t ClaimRoom(BootTime now, std::size_t waiting) = 0;
  // Nothing may be claimed, whatever ClaimRoom would say.
  virtual void Unwanted() {}
  // A task needs a permit of its own before it starts.
  virtual bool NeedsPermit() { return false; }
  // Takes at most so many starts; returns how many.
  virtual std::size_t Take(std::size_t most, BootTime now) = 0;
  // One of the starts taken is of a task that holds a permit of its own; `given_back`: it will be given back.
  virtual void HasPermit(bool /*given_back*/) {}
  // Starts that were taken and not used.
  virtual void GiveBack(std::size_t starts) = 0;
  // When there may be a start, or room, again; max(): only an end or the coordinator brings one.
  virtual BootTime Next(BootTime now) = 0;
  // When what was claimed may start, where Take has just given nothing; max(): likewise.
  virtual BootTime NextStart(BootTime now) { return Next(now); }
  // What may be claimed now can be started as soon as it is.
  virtual bool StartsNow(BootTime now) { return Next(now) <= now; }
  // A start has ended: the outcome of its settle is known, or it is others' business.
  virtual void Ended(const StartEnd& end, BootTime now) = 0;
  // Where this is a breaker: itself.
  virtual BreakerPolicy* AsBreaker() { return nullptr; }
};

// Who waits for starts that no clock brings: they come with an end, or with a word of the coordinator.
// Thread-safe.
class StartsAgain {
 public:
  // `told` must not wait, nor ask a gate. Once this returns the one before is not told any more.
  void Listen(std::function<void(const std::string& type)> told) {
    MutexLock lock(mutex_);
    told_ = std::move(told);
  }
  void Tell(const std::string& type) const {
    MutexLock lock(mutex_);
    if (told_) told_(type);
  }

 private:
  mutable Mutex mutex_;
  std::function<void(const std::string& type)> told_ MILLRACE_GUARDED_BY(mutex_);
};

using StartPolicies = std::vector<std::shared_ptr<StartPolicy>>;

// All policies of one task type. Thread-safe.
class TypeGate {
 public:
  // They are asked for room in their order, each only where those before it have some: a permit is
  // taken by who has a share, and a probe's turn by who has both; on all others they are lost.
  TypeGate(std::string type, StartPolicies policies, std::shared_ptr<const StartsAgain> starts_again = {})
      : type_(std::move(type)), policies_(std::move(policies)), starts_again_(std::move(starts_again)) {
    for (const auto& policy : policies_) breaker_ = breaker_ != nullptr ? breaker_ : policy->AsBreaker();
  }

  const StartPolicies& policies() const { return policies_; }
  // The one among them; null: there is none.
  BreakerPolicy* breaker() const { return breaker_; }
  bool Open(BootTime now, WallTime wall) const;
  bool Withholds() const;
  std::size_t ClaimRoom(BootTime now) const;
  // Of all policies at once: at most so many starts.
  std::size_t TakeStarts(std::size_t most, BootTime now);
  void GiveBackStarts(std::size_t starts);
  // As StartPolicy::HasPermit.
  void HasPermit(bool given_back) const;
  BootTime Next(BootTime now) const;
  BootTime NextStart(BootTime now) const;
  bool StartsNow(BootTime now) const;
  bool NeedsPermit() const;
  // What holds it back now: `hours`, `limit`; empty: nothing does.
  std::string HeldBy(BootTime now, WallTime wall) const;

  // Attempts of this type, from their claim to the known outcome of their settle.
  void Claimed(std::size_t attempts) { waiting_.fetch_add(attempts, std::memory_order_relaxed); }
  void Started(std::size_t attempts) { waiting_.fetch_sub(attempts, std::memory_order_relaxed); }
  void NeverStarted(std::size_t attempts) { Started(attempts); }
  void Ended(const StartEnd& end, BootTime now);
  std::size_t Waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // A policy may have starts again, other than by time.
  void TellStartsAgain();

 private:
  const std::string type_;
  const StartPolicies policies_;
  const std::shared_ptr<const StartsAgain> starts_again_;
  BreakerPolicy* breaker_ = nullptr;
  std::atomic<std::size_t> waiting_{0};  // claimed, and not started
  std::atomic<bool> refused_{false};     // somebody was, since the last TellStartsAgain
};

class HoursPolicy;
class LimitPolicy;

// A limit in this worker, for people and for the cluster's leader.
struct LimitView {
  LimitConfig limit;
  LimitShare share;  // in force; the whole limit where nobody divides it
  LimitUse use;
};

// Thread-safe; one for all shards of a worker.
class Admission {
 public:
  explicit Admission(const Clock& clock) : clock_(clock) {}

  // Who holds the permits of types that need some; outlives it. Once, before Follow.
  void HoldBy(Permits& permits) { permits_ = &permits; }
  Permits* permits() const { return permits_; }

  // The configuration in force, and whatever else decides; what stays the same keeps its state.
  void Follow(std::shared_ptr<const Config> config);
  // This worker's shares of the limits, in force once this returns; null: each limit is its own as a whole.
  void FollowShares(std::shared_ptr<const LimitShares> shares);
  // By task type.
  std::map<std::string, LimitView> Limits() const;
  StartsAgain& starts_again() { return *starts_again_; }
  // The gate of a type; null: it has none, and everything goes through.
  std::shared_ptr<TypeGate> Of(const std::string& type) const;
  // As long as this stays as it is, what Of has said since holds.
  std::uint64_t Version() const { return version_.load(std::memory_order_acquire); }
  // Whether tasks of this type may be claimed and started, as far as hours and breakers say.
  bool Open(const std::string& type) const;
  // Why nothing of the type starts outside its hours, as ClosedBy says it; empty: it is within them.
  std::string OutsideHours(const std::string& type) const;
  // All that are outside theirs, by type.
  std::map<std::string, std::string> OutsideHours() const;
  // How many more of the type may be claimed now.
  std::size_t Room(const std::string& type) const;
  // There is room, and what is claimed now can be started at once.
  bool StartsNow(const std::string& type) const;
  // When there may be room again, where there is none.
  BootTime Next(const std::string& type) const;
  // True once after some type is closed that was open, or has another gate, and as long as something of a
  // closed one has not started: what is queued of it goes back.
  bool TakeClosed();
  // Those of all types that have one.
  std::map<std::string, std::shared_ptr<BreakerPolicy>> Breakers() const;

 private:
  using Gates = std::map<std::string, std::shared_ptr<TypeGate>>;

  std::shared_ptr<StartPolicy> HoursOf(const std::string& type, const HoursConfig& hours)
      MILLRACE_REQUIRES(mutex_);
  void DropLimits(const Config& config) MILLRACE_REQUIRES(mutex_);
  std::shared_ptr<StartPolicy> LimitOf(const std::string& type, const LimitConfig& limit)
      MILLRACE_REQUIRES(mutex_);
  std::optional<LimitShare> ShareOf(const std::string& type) const MILLRACE_REQUIRES(mutex_);
  std::shared_ptr<StartPolicy> PermitsOf(const std::string& type) MILLRACE_REQUIRES(mutex_);
  // `former`: the shares that are still in force.
  void TellPermits(const std::shared_ptr<const LimitShares>& former) MILLRACE_REQUIRES(mutex_);

  const Clock& clock_;
  std::atomic<std::uint64_t> version_{0};
  const std::shared_ptr<StartsAgain> starts_again_ = std::make_shared<StartsAgain>();
  Permits* permits_ = nullptr;  // null: nothing is held by permits
  mutable Mutex mutex_;
  Gates gates_ MILLRACE_GUARDED_BY(mutex_);
  std::atomic<bool> any_gates_{false};  // scans ask for each group they look at: mostly there are none
  std::shared_ptr<const LimitShares> shares_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<LimitPolicy>> limits_ MILLRACE_GUARDED_BY(mutex_);
  // Of types that have none any more, as long as something that it counts has not ended.
  std::map<std::string, std::weak_ptr<LimitPolicy>> former_limits_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<BreakerPolicy>> breakers_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<HoursPolicy>> hours_ MILLRACE_GUARDED_BY(mutex_);
  PermitRules few_ MILLRACE_GUARDED_BY(mutex_);  // limits of how many run at once
  std::map<std::string, std::shared_ptr<StartPolicy>> of_few_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, bool> open_ MILLRACE_GUARDED_BY(mutex_);  // as of the last TakeClosed
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;               // a gate was, since then
};

}  // namespace millrace::engine

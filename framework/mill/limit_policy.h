// A task type's limit in one worker: starts by a rate, and as many running at once. The whole limit is the
// worker's own, or the share that the cluster's leader gave it.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/base/mutex.h"
#include "framework/config/config.h"
#include "framework/mill/admission.h"
#include "framework/policy/limit_shares.h"
#include "framework/policy/token_bucket.h"

namespace millrace::engine {

LimitShare WholeOf(const LimitConfig& limit);
// Of all task types that have one.
LimitShares WholeLimits(const Config& config);

// Thread-safe.
class LimitPolicy final : public StartPolicy {
 public:
  // `share`: nullopt: the whole limit. Where it has the whole it begins with a whole burst, otherwise with
  // what the share says is saved: the worker that had it before may have used its.
  LimitPolicy(const LimitConfig& limit, const std::optional<LimitShare>& share, BootTime now);

  // What runs is still counted. What the share was lowered by is not started any more once this returns. The
  // whole of a rate that comes to a limit that never had one begins with a whole burst.
  void Follow(const LimitConfig& limit, const std::optional<LimitShare>& share, BootTime now);
  // Under the same limit.
  void Follow(const std::optional<LimitShare>& share, BootTime now);

  const char* Name() const override { return "limit"; }
  // It has no share, or of one kind none: others may start the tasks.
  bool Withholds() override;
  std::size_t ClaimRoom(BootTime now, std::size_t waiting) override;
  std::size_t Take(std::size_t most, BootTime now) override;
  void HasPermit(bool given_back) override;
  void GiveBack(std::size_t starts) override;
  BootTime Next(BootTime now) override;
  void Ended(const StartEnd& end, BootTime now) override;

  LimitView View(BootTime now, std::size_t waiting);

 private:
  void Set(const std::optional<LimitShare>& share, BootTime now) MILLRACE_REQUIRES(mutex_);
  bool HasRate() const MILLRACE_REQUIRES(mutex_) { return limit_.rate > 0; }
  bool Counts() const MILLRACE_REQUIRES(mutex_) { return limit_.concurrency > 0 && share_.permits == 0; }
  std::size_t FreePlaces() const MILLRACE_REQUIRES(mutex_);
  // How many tasks are worth being claimed that wait for the rate alone, and of those that wait with a
  // permit.
  double AheadOfRate(BootTime now) MILLRACE_REQUIRES(mutex_);
  double AheadOfPermits(BootTime now) MILLRACE_REQUIRES(mutex_);
  double BurstOf(double rate) const MILLRACE_REQUIRES(mutex_);
  double Started(BootTime now) const MILLRACE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  LimitConfig limit_ MILLRACE_GUARDED_BY(mutex_);
  LimitShare share_ MILLRACE_GUARDED_BY(mutex_);  // in force
  // It is a share: the leader divides by who has claimed what can't start, so one at least is claimed.
  bool divided_ MILLRACE_GUARDED_BY(mutex_);
  TokenBucket bucket_ MILLRACE_GUARDED_BY(mutex_);
  bool had_rate_ MILLRACE_GUARDED_BY(mutex_);  // the limit, ever
  std::uint32_t running_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint32_t permitted_ MILLRACE_GUARDED_BY(mutex_) = 0;  // of them: it holds a permit
  double each_ MILLRACE_GUARDED_BY(mutex_) = 0;  // microseconds that one takes, a moving mean; 0: not known
  double started_ MILLRACE_GUARDED_BY(mutex_) = 0;  // each start weighs less the longer ago it was
  BootTime weighed_ MILLRACE_GUARDED_BY(mutex_){};
  double saved_ MILLRACE_GUARDED_BY(mutex_) = 0;  // of the next start, when its share went
  // When tasks were there that it could not claim, for want of the rate.
  std::optional<BootTime> asked_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<BootTime> short_of_rate_ MILLRACE_GUARDED_BY(mutex_);  // when it was last
  std::optional<BootTime> short_of_places_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine

// `handlers.H.hours`: nothing of a task type starts outside them. framework/schedule/run_hours.h says when
// they are open.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "framework/base/mutex.h"
#include "framework/config/policy_config.h"
#include "framework/mill/admission.h"
#include "framework/schedule/run_hours.h"

namespace millrace::engine {

// Why nothing of a task type with these hours starts now: `outside its hours until 01:00 Europe/Berlin`, or
// that this host does not know their zone. Empty: they are open.
std::string ClosedBy(const HoursConfig& hours, WallTime now);

// Since when they have been open now, within the last two days; nullopt: for longer, or they are not, or
// can't be told.
std::optional<WallTime> OpenSince(const HoursConfig& hours, WallTime now);

// Thread-safe. By this host's clock: hours are told in minutes, and a worker's shards may have clocks of
// their own. Where the host does not know the zone they are never open. What is queued when they end has no
// start any more, before the worker's watch sends it back.
class HoursPolicy final : public StartPolicy {
 public:
  HoursPolicy(const HoursConfig& config, const Clock& clock);

  const HoursConfig& config() const { return config_; }

  bool Open(BootTime now, WallTime wall) override;
  const char* Name() const override { return "hours"; }
  std::size_t ClaimRoom(BootTime, std::size_t) override { return std::numeric_limits<std::size_t>::max(); }
  std::size_t Take(std::size_t most, BootTime now) override { return Open(now, clock_.WallNow()) ? most : 0; }
  void GiveBack(std::size_t) override {}
  BootTime Next(BootTime now) override { return now; }
  void Ended(const StartEnd&, BootTime) override {}

 private:
  const HoursConfig config_;
  const Clock& clock_;
  const std::optional<RunHours> hours_;  // nullopt: the zone is not known
  Mutex mutex_;
  // What holds from the one time of the wall clock to the other.
  bool open_ MILLRACE_GUARDED_BY(mutex_) = false;
  WallTime since_ MILLRACE_GUARDED_BY(mutex_) = WallTime::max();
  WallTime until_ MILLRACE_GUARDED_BY(mutex_) = WallTime::min();
};

}  // namespace millrace::engine

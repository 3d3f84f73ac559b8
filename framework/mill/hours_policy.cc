#include "framework/mill/hours_policy.h"

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

Result<RunHours> HoursOf(const HoursConfig& config) {
  BOOST_OUTCOME_TRY(zone, TimeZone::Find(config.zone));
  return RunHours{std::chrono::minutes(config.from), std::chrono::minutes(config.to), zone};
}

std::optional<RunHours> KnownHours(const HoursConfig& config) {
  const auto hours = HoursOf(config);
  if (hours) return *hours;
  LogError("hours can't be told on this host: nothing that has them starts here",
           {{"zone", config.zone}, {"error", hours.error().message}});
  return std::nullopt;
}

}  // namespace

std::string ClosedBy(const HoursConfig& hours, WallTime now) {
  const auto known = HoursOf(hours);
  return known ? OutsideHours(*known, now) : "its hours can't be told here: " + known.error().message;
}

std::optional<WallTime> OpenSince(const HoursConfig& hours, WallTime now) {
  const auto known = HoursOf(hours);
  if (!known || !IsOpen(*known, now)) return std::nullopt;
  std::optional<WallTime> opened;
  for (auto change = NextChange(*known, now - std::chrono::days(2)); change && *change <= now;
       change = NextChange(*known, *change)) {
    if (IsOpen(*known, *change)) opened = *change;
  }
  return opened;
}

HoursPolicy::HoursPolicy(const HoursConfig& config, const Clock& clock)
    : config_(config), clock_(clock), hours_(KnownHours(config)) {}

bool HoursPolicy::Open(BootTime /*now*/, WallTime wall) {
  if (!hours_) return false;
  MutexLock lock(mutex_);
  if (wall < since_ || wall >= until_) {
    open_ = IsOpen(*hours_, wall);
    since_ = wall;
    until_ = NextChange(*hours_, wall).value_or(WallTime::max());
  }
  return open_;
}

}  // namespace millrace::engine

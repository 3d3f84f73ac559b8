#include "framework/mill/limit_policy.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace::engine {
namespace {

// Claimed ahead of the starts: as much as can start in this time, so that what is limited stays in the table
// for others, and a start waits for no claim.
constexpr double kAheadSeconds = 0.5;
constexpr double kMostByLimit = 4 * 999;
// By permits less: while a task waits for its start, nobody else has its permit.
constexpr double kAheadOfPermitSeconds = 0.1;
// One at least is claimed, if it can start within this time; otherwise others may, and it is told why it
// waits.
constexpr Micros kSoon = std::chrono::seconds(1);
constexpr double kNewestWeight = 0.1;                // of a call in the moving mean
constexpr Micros kLately = std::chrono::seconds(1);  // somebody was short of starts
// Who has no share looks for tasks now and then.
constexpr Micros kAsked = std::chrono::seconds(10);
// Over which the rate of starts is told: what is not used any more is others' soon.
constexpr double kFadeSeconds = 0.5;

}  // namespace

LimitShare WholeOf(const LimitConfig& limit) {
  return {.rate = limit.rate, .concurrency = limit.concurrency};
}

LimitShares WholeLimits(const Config& config) {
  LimitShares limits;
  for (const auto& [type, handler] : config.handlers) {
    if (handler.limit) limits[type] = WholeOf(*handler.limit);
  }
  return limits;
}

LimitPolicy::LimitPolicy(const LimitConfig& limit, const std::optional<LimitShare>& share, BootTime now)
    : limit_(limit),
      share_(share.value_or(WholeOf(limit))),
      divided_(share.has_value()),
      bucket_(share_.rate, BurstOf(share_.rate), share ? share->saved : BurstOf(share_.rate), now),
      had_rate_(limit.rate > 0),
      weighed_(now) {}

void LimitPolicy::Follow(const LimitConfig& limit, const std::optional<LimitShare>& share, BootTime now) {
  MutexLock lock(mutex_);
  limit_ = limit;
  Set(share, now);
}

void LimitPolicy::Follow(const std::optional<LimitShare>& share, BootTime now) {
  MutexLock lock(mutex_);
  Set(share, now);
}

void LimitPolicy::Set(const std::optional<LimitShare>& share, BootTime now) {
  const bool had = share_.rate > 0;
  if (had) saved_ = bucket_.Level(now);
  share_ = share.value_or(WholeOf(limit_));
  divided_ = share.has_value();
  const double burst = BurstOf(share_.rate);
  bucket_.Set(share_.rate, burst, now);
  if (!had) bucket_.GiveBack(share_.saved);
  // As a process that begins with it would; but of one that is taken away and added again no further burst.
  if (!divided_ && !had_rate_) bucket_.GiveBack(burst);
  had_rate_ = had_rate_ || HasRate();
}

// A share's burst is its part of the limit's, so that all shares together burst as the limit says; but one
// start must fit.
double LimitPolicy::BurstOf(double rate) const {
  if (rate <= 0 || limit_.rate <= 0) return 0;
  const double whole = limit_.burst > 0 ? limit_.burst : DefaultBurst(limit_.rate);
  return std::max(1.0, whole * std::min(rate / limit_.rate, 1.0));
}

std::size_t LimitPolicy::FreePlaces() const {
  return share_.concurrency > running_ ? share_.concurrency - running_ : 0;
}

bool LimitPolicy::Withholds() {
  MutexLock lock(mutex_);
  return (HasRate() && share_.rate <= 0) || (Counts() && share_.concurrency == 0);
}

double LimitPolicy::AheadOfRate(BootTime now) {
  const bool soon = divided_ || bucket_.Next(now) - now <= kSoon;
  return std::max({static_cast<double>(bucket_.Left(now)), share_.rate * kAheadSeconds, soon ? 1.0 : 0.0});
}

double LimitPolicy::AheadOfPermits(BootTime now) {
  return bucket_.Level(now) + share_.rate * kAheadOfPermitSeconds;
}

std::size_t LimitPolicy::ClaimRoom(BootTime now, std::size_t waiting) {
  MutexLock lock(mutex_);
  double ahead = kMostByLimit;
  if (HasRate()) {
    if (share_.rate <= 0) {
      asked_ = now;
      return 0;
    }
    ahead = std::min(ahead, share_.permits > 0 ? AheadOfPermits(now) : AheadOfRate(now));
    if (ahead < 1) asked_ = now;
  }
  if (Counts()) {
    const double turns = each_ > 0 ? std::clamp(kAheadSeconds * 1e6 / each_, 1.0, kMostByLimit) : 1.0;
    ahead = std::min(ahead, share_.concurrency * turns);
  }
  const auto most = static_cast<std::size_t>(ahead);
  // Nothing until half of it is free, so that claims stay large.
  return waiting > most / 2 ? 0 : most - waiting;
}

std::size_t LimitPolicy::Take(std::size_t most, BootTime now) {
  MutexLock lock(mutex_);
  std::size_t taken = most;
  if (Counts() && FreePlaces() < taken) {
    taken = FreePlaces();
    short_of_places_ = now;
  }
  if (HasRate()) {
    const std::size_t given = bucket_.Take(taken, now);
    if (given < taken) short_of_rate_ = now;
    taken = given;
  }
  running_ += static_cast<std::uint32_t>(taken);
  started_ = Started(now) + static_cast<double>(taken);
  weighed_ = now;
  return taken;
}

void LimitPolicy::HasPermit(bool given_back) {
  MutexLock lock(mutex_);
  if (!given_back) {
    ++permitted_;
  } else if (permitted_ > 0) {
    --permitted_;
  }
}

void LimitPolicy::GiveBack(std::size_t starts) {
  MutexLock lock(mutex_);
  running_ -= std::min<std::uint32_t>(running_, static_cast<std::uint32_t>(starts));
  if (HasRate()) bucket_.GiveBack(static_cast<double>(starts));
  started_ = std::max(0.0, started_ - static_cast<double>(starts));
}

BootTime LimitPolicy::Next(BootTime now) {
  MutexLock lock(mutex_);
  if (Counts() && FreePlaces() == 0) return BootTime::max();
  return HasRate() ? bucket_.Next(now) : now;
}

void LimitPolicy::Ended(const StartEnd& end, BootTime) {
  MutexLock lock(mutex_);
  if (running_ > 0) --running_;
  if (end.permit && permitted_ > 0) --permitted_;
  if (!end.called) return;
  const auto took = static_cast<double>(std::max<Micros::rep>(end.took.count(), 1));
  each_ = each_ == 0 ? took : each_ + (took - each_) * kNewestWeight;
}

double LimitPolicy::Started(BootTime now) const {
  const double seconds = std::chrono::duration<double>(std::max(now - weighed_, Micros(0))).count();
  return started_ * std::exp(-seconds / kFadeSeconds);
}

LimitView LimitPolicy::View(BootTime now, std::size_t waiting) {
  MutexLock lock(mutex_);
  const auto lately = [now](const std::optional<BootTime>& at) { return at && now - *at < kLately; };
  LimitUse use{.rate = Started(now) / kFadeSeconds,
               .running = running_,
               .placed = running_ - std::min(permitted_, running_),
               .waiting = waiting};
  const bool waits = waiting > 0;
  const bool none = share_.rate <= 0;
  const bool asked = none ? asked_ && now - *asked_ < kAsked : share_.permits > 0 && lately(asked_);
  const bool is_short = !none && waits && (bucket_.Left(now) == 0 || lately(short_of_rate_));
  use.wants_rate = HasRate() && (asked || is_short);
  if (HasRate() && share_.rate < 1) use.saved = none ? saved_ : bucket_.Level(now);
  use.wants_concurrency = waits && Counts() && (FreePlaces() == 0 || lately(short_of_places_));
  return {limit_, share_, use};
}

}  // namespace millrace::engine

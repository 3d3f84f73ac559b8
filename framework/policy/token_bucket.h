// So many starts a second, and so many at once after a pause. Pure: time is passed in.
//
// A token bucket as in RFC 2697: tokens come at the rate as long as there are fewer than the burst, and each
// start takes one. Over any time t at most burst + rate * t starts are taken, whatever became of the rate
// meanwhile if `rate` is its mean.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "framework/base/clock.h"

namespace millrace::engine {

// Of a limit without a burst: a tenth of a second's starts, and at least one.
inline double DefaultBurst(double rate) { return std::max(1.0, rate / 10); }

// Not thread-safe.
class TokenBucket {
 public:
  // It begins with `tokens`.
  TokenBucket(double rate, double burst, double tokens, BootTime now)
      : rate_(rate), burst_(burst), tokens_(std::min(tokens, burst)), at_(now) {}

  // From now on. What is there beyond the new burst is lost; a rate of 0 leaves nothing.
  void Set(double rate, double burst, BootTime now) {
    Fill(now);
    rate_ = rate;
    burst_ = burst;
    tokens_ = rate > 0 ? std::min(tokens_, burst) : 0;
  }
  std::size_t Left(BootTime now) {
    Fill(now);
    return static_cast<std::size_t>(tokens_ + kRounding);
  }
  // Takes at most so many; returns how many.
  std::size_t Take(std::size_t most, BootTime now) {
    const std::size_t taken = std::min(most, Left(now));
    tokens_ -= static_cast<double>(taken);
    return taken;
  }
  void GiveBack(double tokens) {
    if (rate_ > 0) tokens_ = std::min(tokens_ + tokens, burst_);
  }
  // With the part of the next one.
  double Level(BootTime now) {
    Fill(now);
    return tokens_;
  }
  // When there is one again; max(): at this rate never.
  BootTime Next(BootTime now) {
    if (Left(now) > 0) return now;
    if (rate_ <= 0) return BootTime::max();
    const double micros = std::ceil((1 - tokens_) / rate_ * 1e6);
    return micros < kFar ? now + Micros(static_cast<Micros::rep>(micros)) : BootTime::max();
  }

 private:
  static constexpr double kRounding = 1e-9;
  static constexpr double kFar = 1e15;  // microseconds

  void Fill(BootTime now) {
    if (now <= at_) return;
    const double seconds = std::chrono::duration<double>(now - at_).count();
    tokens_ = std::min(tokens_ + rate_ * seconds, burst_);
    at_ = now;
  }

  double rate_;
  double burst_;
  double tokens_;
  BootTime at_;
};

}  // namespace millrace::engine

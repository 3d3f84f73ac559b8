// When a handler that refused to open is asked again: a second later, then after twice as long each time, a
// minute at most. What it lacked, a file or a server, may come without a word. Pure.
#pragma once

#include <algorithm>
#include <optional>

#include "framework/base/clock.h"

namespace millrace::engine {

class OpenRetry {
 public:
  static constexpr Micros kFirst = std::chrono::seconds(1);
  static constexpr Micros kLongest = std::chrono::seconds(60);

  bool Due(BootTime now) const { return at_ && now >= *at_; }
  bool Waits() const { return at_.has_value(); }
  void Refused(BootTime now) {
    pause_ = at_ ? std::min(2 * pause_, kLongest) : kFirst;
    at_ = now + pause_;
  }

 private:
  Micros pause_ = kFirst;
  std::optional<BootTime> at_;  // none: it did not refuse, or will always do
};

}  // namespace millrace::engine

// From when a leader may call workers missing. Pure.
//
// Whoever was cut off can't know who is missing and who was cut off as well, so each loss of the connection
// puts the judgement off until one session time-out after it is back. A link that is lost again and again,
// each time for a moment, must not put it off for ever: one and a half time-outs after the first return of
// such a row the leader judges whenever it is connected, and what is lost after that begins a new row. An
// outage as long as a session lives is no such moment: after it everybody has the whole time-out again.
#pragma once

#include <algorithm>
#include <optional>

#include "framework/base/clock.h"

namespace millrace::engine {

// Not thread-safe.
class Judgement {
 public:
  explicit Judgement(Micros session_timeout) : timeout_(session_timeout) {}

  void Connected(BootTime now) {
    if (!row_ || !lost_ || now - *lost_ >= timeout_) row_ = now;
    lost_.reset();
    from_ = std::min(now + timeout_, *row_ + timeout_ * 3 / 2);
  }
  void Disconnected(BootTime now) {
    if (!lost_) lost_ = now;
    from_ = BootTime::max();
  }
  // The leader has looked at all workers, and decided; or this process does not lead, so that nobody waits
  // for its word.
  void Decided(BootTime now) {
    if (now >= from_) row_.reset();
  }
  // Before this time nobody is called missing; BootTime::max(): while there is no connection.
  BootTime From() const { return from_; }

 private:
  const Micros timeout_;
  std::optional<BootTime> lost_;  // since when there is no connection
  std::optional<BootTime> row_;   // the first return of the row
  BootTime from_{};
};

}  // namespace millrace::engine

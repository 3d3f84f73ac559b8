// When a feed is to be left, and for how long. Pure, one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/clock.h"
#include "framework/base/result.h"

namespace millrace::engine {

// Whether following a log costs more than it brings: all databases of a server share it.
class LogLoad {
 public:
  static constexpr std::size_t kMostBytes = 4 << 20;            // a second
  static constexpr Micros kOver = std::chrono::seconds(2);      // as a mean over so long
  static constexpr Micros kBehind = std::chrono::seconds(3);    // what is read is older than this
  static constexpr Micros kPatience = std::chrono::seconds(3);  // for so long

  // Listening begins. `server_now`: the server's clock, in seconds since 1970.
  void Begin(BootTime now, std::uint64_t server_now);
  // One event of so many bytes, logged at that time by the server's clock; `caught_up`: there is nothing more
  // now. Why to hang up; nullopt: it is well.
  std::optional<std::string> Add(BootTime now, std::size_t bytes, std::optional<std::uint32_t> logged_at,
                                 bool caught_up);

 private:
  BootTime begun_{};
  std::uint64_t server_begun_ = 0;
  BootTime window_{};
  std::size_t in_window_ = 0;
  std::optional<BootTime> behind_since_;
};

// How long to leave a feed alone after it has ended.
class Redial {
 public:
  static constexpr Micros kFirst = std::chrono::milliseconds(100);
  static constexpr Micros kLongest = std::chrono::seconds(30);
  static constexpr Micros kFirstAfterFlood = std::chrono::seconds(30);
  static constexpr Micros kLongestAfterFlood = std::chrono::minutes(5);
  static constexpr Micros kForPeople = std::chrono::minutes(1);  // until somebody has done something about it
  static constexpr Micros kWell = std::chrono::minutes(1);       // after so long what was before is forgotten

  // It ended for this reason, after it had listened for so long; 0: not at all.
  Micros After(ErrorCode why, Micros listened) {
    if (listened >= kWell) last_ = flood_ = Micros(0);
    if (IsForPeople(why)) return kForPeople;
    if (why == ErrorCode::Conflict)
      return flood_ = std::clamp(flood_ * 2, kFirstAfterFlood, kLongestAfterFlood);
    return last_ = std::clamp(last_ * 2, kFirst, kLongest);
  }

 private:
  Micros last_{0};
  Micros flood_{0};
};

}  // namespace millrace::engine

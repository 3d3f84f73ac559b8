// When to look at a shard after somebody has rung, and how often at most. Pure; one strand.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "framework/base/clock.h"

namespace millrace::engine {

// A ring may come before the row can be seen, since a server writes its log before its engine commits: the
// look is repeated. Looks of this kind take a fifth of the time at most, with some credit for a shard that
// was quiet; and half of that beside a full lane, whose work needs the database more.
class RingLooks {
 public:
  static constexpr std::array<Micros, 5> kAfter{Micros(0), std::chrono::milliseconds(1),
                                                std::chrono::milliseconds(5), std::chrono::milliseconds(20),
                                                std::chrono::milliseconds(100)};
  static constexpr int kShare = 5;
  static constexpr int kBusyShare = 10;
  static constexpr Micros kMostCredit = std::chrono::milliseconds(20);
  static constexpr Micros kRecent = std::chrono::seconds(2);  // a commit may wait for replicas for so long

  // Some lane has more than it takes.
  void SetBusy(bool busy) { share_ = busy ? kBusyShare : kShare; }
  // A ring begins the succession anew.
  void Rung(BootTime now) {
    rung_ = now;
    next_ = 0;
  }
  // A look that began then has taken so long: it serves for whatever was wanted until it began.
  void Looked(BootTime began, Micros cost) {
    credit_ = std::min(kMostCredit, credit_ + (began - counted_) / share_) - cost;
    counted_ = began;
    while (next_ < kAfter.size() && rung_ + kAfter[next_] <= began) ++next_;
  }
  // When to look next for the last ring; BootTime::max(): no more.
  BootTime Next() const {
    if (next_ == kAfter.size()) return BootTime::max();
    const Micros debt = std::max(Micros(0), -credit_);
    return std::max(rung_ + kAfter[next_], counted_ + debt * share_);
  }
  bool Recent(BootTime now) const { return now - rung_ < kRecent; }

 private:
  int share_ = kShare;
  BootTime rung_{-kRecent};
  std::size_t next_ = kAfter.size();
  BootTime counted_{};
  Micros credit_{0};
};

}  // namespace millrace::engine

// When faults begin and end, drawn from the timeline's seed; nothing of it happens once everything is healed.
#pragma once

#include <functional>
#include <string>

#include "coordinator/testing/journal.h"

namespace millrace::engine {

// Not thread-safe.
class FaultTimes {
 public:
  FaultTimes(Timeline& timeline, Journal& journal) : timeline_(timeline), journal_(journal) {}

  Micros Between(Micros least, Micros most) {
    return least + Micros(static_cast<std::int64_t>(timeline_.random().Below((most - least).count())));
  }
  std::uint64_t Below(std::uint64_t bound) { return timeline_.random().Below(bound); }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }
  void After(Micros delay, std::function<void()> what) {
    timeline_.After(delay, [this, what = std::move(what)] {
      if (!healed_) what();
    });
  }
  // Ends a fault after a while.
  void EndAfter(Micros least, Micros most, std::function<void()> end) {
    After(Between(least, most), std::move(end));
  }
  void Note(const std::string& line) { journal_.Trace("FAULT " + line); }
  void Heal() { healed_ = true; }

 private:
  Timeline& timeline_;
  Journal& journal_;
  bool healed_ = false;
};

}  // namespace millrace::engine

// Virtual time for the simulator: one heap of events, one seed. Nothing in a simulation waits for real.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/random.h"

namespace millrace::engine {

// A thread that is woken runs a moment later.
inline constexpr Micros kWaking{50};

// One thread of a modelled process, as the timeline sees it: what is to happen on it waits while it is held
// up, and is forgotten when its process has died meanwhile. Outlives the timeline's events.
struct Strand {
  BootTime held_until{};
  // A shorter hold does not end a longer one: what waits for that would be overtaken by what comes later.
  void Hold(BootTime until) { held_until = std::max(held_until, until); }
  std::uint64_t life = 0;
};

// Not thread-safe: a simulation belongs to one thread. The same seed and the same calls give the same run.
class Timeline {
 public:
  using Event = std::function<void()>;

  // So late that a time of zero is long ago.
  static constexpr BootTime kBeginning{std::chrono::seconds(1000)};

  explicit Timeline(std::uint64_t seed) : random_(seed) {}

  BootTime Now() const { return now_; }
  Random& random() { return random_; }
  // How many events have happened.
  std::uint64_t Steps() const { return steps_; }

  // Events of equal times happen in the order in which they were added. A `strand` may be null: something
  // outside of every process.
  void After(Micros delay, Strand* strand, Event event);
  void After(Micros delay, Event event) { After(delay, nullptr, std::move(event)); }

  // The next event happens. False: there is none before `end`, which is now.
  bool Step(BootTime end);
  void RunUntil(BootTime end) {
    while (Step(end)) {
    }
  }

 private:
  struct Item {
    BootTime when;
    std::uint64_t order = 0;
    Strand* strand = nullptr;
    std::uint64_t life = 0;
    Event event;
    bool operator<(const Item& other) const {  // the heap's top is the earliest
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  void Push(Item item);

  Random random_;
  BootTime now_ = kBeginning;
  std::uint64_t order_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<Item> heap_;
};

// A machine's clocks on virtual time. Its wall clock can be stepped; the other one never goes back.
class TimelineClock final : public Clock {
 public:
  explicit TimelineClock(const Timeline& timeline) : timeline_(timeline) {}
  BootTime Now() const override { return timeline_.Now(); }
  WallTime WallNow() const override {
    return WallTime(std::chrono::days(20'000)) + timeline_.Now().time_since_epoch() + stepped_;
  }
  void StepWall(Micros by) { stepped_ += by; }
  Micros Stepped() const { return stepped_; }

 private:
  const Timeline& timeline_;
  Micros stepped_{0};
};

}  // namespace millrace::engine

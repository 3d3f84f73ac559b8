// When nothing of a task type is started for a while, since whom its handler calls is broken: a circuit
// breaker. Pure; time is passed in.
//
// The idea is Michael Nygard's (Release It!, 2007); the share of failures over a sliding window with a
// minimum of calls is that of Netflix's Hystrix and of resilience4j. It departs from them in what a failure
// costs: a task has no caller that could be told, so what the breaker keeps from running stays waiting, and
// what fails because of a partner that is known to be broken is not charged to the task.
//
//   closed ── share of failures in the window ──► open ── `probes` probes in succession answered ──► closed
//                                                 │  ▲
//                                                 └──┘ a probe failed
//
// Open, at most `probes` tasks start every `probe_every`, once those before them have ended. A failed one
// resets what was counted of the successes.
//
// A worker's own calls may be few: others have their share of them, a limit holds them back, or each hangs
// until its time is over, so a window may pass before `minimum` of them have ended. Where it holds fewer, the
// last `minimum` calls (kMostLast at most) are judged, if they ended within kWindows windows, or within as
// long as they took together, one after another (kLongestWindow at most).
//
// Charged are failures of calls that began while it was closed, and has not opened since. So a probe is
// never charged, and neither is a call that was under way when it opened. And while so large a share of those
// last calls has failed, though what went well before keeps the window's share below, no task is charged that
// has failed before: so with a ladder of seconds, too, a partner's breakdown costs each task one failure at
// most.
//
// In a cluster there is one state and one turn at probing: whoever opens it says so to all, and a worker
// probes when the turn is its own (`Follow`). Without word of a cluster each worker has its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"

namespace millrace::engine {

struct BreakerRules {
  double failures = 0.5;  // share of the calls, above 0 … 1
  Micros window = std::chrono::seconds(10);
  std::uint32_t minimum = 20;  // calls in the window; at least 1
  Micros probe_every = std::chrono::seconds(2);
  std::uint32_t probes = 1;  // at least 1
  // Error classes that count (task/error_class.h); `bad_params` never does.
  std::vector<std::string> classes;
  bool operator==(const BreakerRules&) const = default;
};

// What a call says of whom it called.
enum class CallSays {
  Nothing,    // it was cut short, or never got there
  Undecided,  // it came to its end, and that is no word of whom it called
  Answered,   // it succeeded, or failed in a way that does not count
  Failed,
};

// What an operator has said of a breaker.
enum class BreakerHand {
  Auto,
  Open,   // nothing is started, not even a probe
  Close,  // it does not open
};

// What the cluster says of a breaker that is open.
struct BreakerWord {
  std::int64_t opening = 0;  // above 0; each opening has another
  std::int64_t turn = 0;     // another with each turn at probing that somebody took
  bool mine = false;         // this worker took the last
  std::string why;
  bool operator==(const BreakerWord&) const = default;
};

// What a worker would have the cluster do; the driver does it, and may ask as often as it likes.
enum class BreakerWish {
  None,
  Open,   // it has opened here
  Probe,  // it is time, and there is a task to try
  Close,  // probes of this worker have succeeded
};

struct BreakerAsk {
  BreakerWish wish = BreakerWish::None;
  // Probe, Close: what the cluster said when this was wished. If it says something else by now, that comes
  // first.
  std::int64_t opening = 0;
  std::int64_t turn = 0;
  std::string why;  // Open
  bool operator==(const BreakerAsk&) const = default;
};

// A call's mark, from its start to its end.
struct BreakerMark {
  std::uint32_t era = 0;  // openings before it, and one more; 0: it was never marked
  bool probe = false;
};

// What may be told of one.
struct BreakerView {
  bool open = false;
  BreakerHand hand = BreakerHand::Auto;
  std::string why;              // likewise
  Micros next_probe{0};         // from now, at the soonest
  std::uint64_t calls = 0;      // in the window
  std::uint64_t failed = 0;     // of those
  std::uint64_t uncharged = 0;  // failures that no task was charged with, likewise
};

// Of one task type in one worker. Not thread-safe.
class Breaker {
 public:
  static constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();
  static constexpr int kWindows = 10;
  static constexpr Micros kLongestWindow = std::chrono::hours(1);
  static constexpr Micros kShortDelay = std::chrono::seconds(2);

  explicit Breaker(BreakerRules rules) : rules_(std::move(rules)) {}
  const BreakerRules& rules() const { return rules_; }
  // Holds from now on; the state stays.
  void SetRules(BreakerRules rules) { rules_ = std::move(rules); }

  CallSays WhatItSays(bool failed, std::string_view error_class) const;

  // How many calls may start now.
  std::size_t Room(BootTime now) const;
  // A call begins; nullopt: it may not.
  std::optional<BreakerMark> Begin(BootTime now);
  // There is a task that waits to be tried: without one no turn is asked for.
  void NoteWork(BootTime now) { work_at_ = now; }
  // When there may be room again, where there is none.
  BootTime Next(BootTime now) const;

  // A marked call has ended, and took so long; once for each.
  void Ended(BreakerMark mark, CallSays says, BootTime now, Micros took = Micros(0));
  // A failure of this call that counts would be charged now; `before`: its task has failed before. To be
  // asked before `Ended` is told: the failure that opens the breaker is charged.
  bool Charges(BreakerMark mark, bool before, BootTime now) const {
    return !mark.probe && mark.era == era_ && !(before && hand_ == BreakerHand::Auto && Troubled(now));
  }
  // After how long a task comes back whose failure is not charged; nullopt: it keeps its place in the due
  // order, so that it is among the first when the breaker closes. Other tasks are probes before one that was;
  // and while nothing keeps it from being called again at once, it waits a moment. To be asked after `Ended`.
  std::optional<Micros> DelayOfUncharged(BreakerMark mark) const {
    if (mark.probe) return rules_.probe_every;
    if (open_) return std::nullopt;
    return std::min(rules_.probe_every, kShortDelay);
  }
  void NoteUncharged() { ++uncharged_; }

  void SetHand(BreakerHand hand, BootTime now);
  // The cluster's word; null: it is closed there.
  void Follow(const BreakerWord* word, BootTime now);
  // No word of a cluster, or not any more: its own state holds.
  void FollowNobody() { alone_ = true; }
  BreakerAsk Wish(BootTime now) const;

  BreakerView View(BootTime now) const;

 private:
  struct Slot {
    std::int64_t number = -1;  // of the slot of time that it counts
    std::uint64_t calls = 0;
    std::uint64_t failed = 0;
  };
  static constexpr std::size_t kSlots = 20;
  struct Call {
    BootTime at{};  // its end
    bool failed = false;
    Micros took{0};
  };
  static constexpr std::size_t kMostLast = 1000;

  // It probes when it is time, without asking for a turn: there is no cluster, or none that knows yet.
  bool ByItself() const { return alone_ || opening_ == 0; }
  std::size_t MostLast() const { return std::min<std::size_t>(rules_.minimum, kMostLast); }
  void Count(const Call& call);
  Micros TookOfLast() const;
  // Of the last calls, where they are as many as are judged and recent enough for it; else none.
  Slot OfLast(BootTime now) const;
  // So large a share of them has failed.
  bool TooMany(const Slot& calls) const {
    return calls.calls > 0 &&
           static_cast<double>(calls.failed) >= rules_.failures * static_cast<double>(calls.calls);
  }
  bool Troubled(BootTime now) const { return TooMany(OfLast(now)); }
  Slot InWindow(BootTime now) const;
  void OpenNow(std::string why, BootTime now);
  void Close();
  void ProbeEnded(CallSays says);

  BreakerRules rules_;
  std::array<Slot, kSlots> slots_{};
  std::deque<Call> last_;  // MostLast at most
  BreakerHand hand_ = BreakerHand::Auto;
  bool open_ = false;  // always so where it is open by hand
  std::uint32_t era_ = 1;
  std::string why_;
  BootTime next_{};             // a turn at probing begins no sooner
  std::size_t left_ = 0;        // probes of the turn that nobody has taken
  std::size_t out_ = 0;         // taken, and not ended
  std::uint32_t answered_ = 0;  // probes in succession
  BootTime work_at_ = BootTime::min();
  std::uint64_t uncharged_ = 0;

  bool alone_ = true;
  std::int64_t opening_ = 0;  // the cluster's, that is followed; 0: its own
  std::int64_t turn_ = 0;
  std::int64_t ended_ = 0;  // the cluster's, that this worker has closed
};

}  // namespace millrace::engine

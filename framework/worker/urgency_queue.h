// Claimed tasks that wait for a thread, the most urgent first.
//
// Within one urgency by due time; one turn in kOldestTurn goes to the task that waits longest, whatever its
// urgency; and where waiting raises urgency, what has aged as far as another takes turns with it
// (framework/policy/group_order.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "framework/mill/attempt.h"
#include "framework/policy/group_order.h"

namespace millrace::engine {

// How waiting raises urgency.
struct Aging {
  Micros step{};  // a priority for each; 0: it does not
  WallTime now;   // by the clock of the due times; of no account without a step
};

// A list for each urgency that is there, mostly one; in it what comes in the order of due times is appended,
// and what does not stands in a heap beside it. So most tasks cost O(1), and none more than O(log n).
//
// Not thread-safe.
class UrgencyQueue {
 public:
  void Push(AttemptPtr attempt);
  // It was taken and not started: before those that were due at the same moment.
  void PutBack(AttemptPtr attempt);
  // The next in order. Not of an empty queue, as the two behind it.
  AttemptPtr Take(const Aging& aging);
  struct Head {
    std::uint32_t urgency = 0;  // as aged
    WallTime due;
  };
  // Of what is most urgent, and of what waits longest.
  Head MostUrgent(const Aging& aging) const;
  WallTime OldestDue() const;

  std::size_t Size() const { return size_; }
  // Those of this urgency and of greater ones; of one urgency all have aged as the oldest has.
  std::size_t AtLeast(std::uint32_t urgency, const Aging& aging) const;
  // Takes out those for which `unwanted` is true, asked in about the order of turns.
  std::vector<AttemptPtr> TakeIf(const std::function<bool(const Attempt&)>& unwanted);

 private:
  struct Entry {
    WallTime due;
    std::uint64_t number = 0;  // of arrival
    AttemptPtr attempt;
  };
  struct List {
    std::deque<Entry> in_order;
    std::vector<Entry> late;  // a heap, the first of them at its head

    bool Empty() const { return in_order.empty() && late.empty(); }
    bool LateIsFirst() const;
    const Entry& First() const { return LateIsFirst() ? late.front() : in_order.front(); }
    Entry TakeFirst();
  };
  using Lists = std::map<std::uint32_t, List>;  // by urgency; none is empty

  static bool IsBehind(const Entry& a, const Entry& b);
  static std::uint32_t Aged(const Lists::value_type& list, const Aging& aging);
  Lists::iterator ListInTurn(const Aging& aging);
  Lists::const_iterator Oldest() const;

  Lists lists_;
  std::size_t size_ = 0;
  std::uint64_t arrivals_ = 0;
  std::uint64_t turn_ = 0;
  std::uint32_t last_ = 0;  // the urgency that was taken from last
};

}  // namespace millrace::engine

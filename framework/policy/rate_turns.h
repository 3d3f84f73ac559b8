// Which workers have a rate that is too slow to be divided over all: one, or a few, at a time. Pure: time is
// passed in.
#pragma once

#include <map>
#include <set>
#include <string>

#include "framework/base/clock.h"
#include "framework/policy/limit_shares.h"

namespace millrace::engine {

// Shares of less than a start a second let each worker save one up, so that as many start at once as there
// are workers; and whoever gets its share anew waits anew. So such a rate has as many holders as it has
// starts a second, at least one: workers that have something to start, in turns of ten seconds or of one
// start, whatever is longer. Of those that have it each has what it can use of it. What the only holder has
// saved of its next start goes on to the one after it.
// Not thread-safe.
class RateTurns {
 public:
  static constexpr Micros kTurn = std::chrono::seconds(10);

  struct Taker {
    bool has = false;  // a share of it is written
    LimitUse use = {};
  };
  static bool Slow(double rate, std::size_t takers) { return rate < static_cast<double>(takers); }
  // Between whom it should be divided now.
  std::set<std::string> Choose(double rate, const std::map<std::string, Taker>& takers, BootTime now);
  // What the next to have all of it may begin with, in starts: one, where nobody has had it before. A holder
  // that died within a moment of a start is taken not to have made that.
  double Saved(double rate, BootTime now) const;

 private:
  struct Turn {
    bool has = false;
    BootTime since{};
    BootTime until{};  // it was seen to have it last
  };
  void Note(const std::map<std::string, Taker>& takers, BootTime now);

  std::map<std::string, Turn> turns_;
  std::string saver_;  // who had it last; empty: not known
  double saved_ = 0;   // as it told
  BootTime saved_at_{};
};

}  // namespace millrace::engine

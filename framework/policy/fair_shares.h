// What each of several gets of something that is not enough for all, by their weights. Pure.
//
// Deficit round robin (M. Shreedhar and G. Varghese, Efficient Fair Queueing Using Deficit Round Robin,
// SIGCOMM 1995), with tasks in place of bytes: in each round everybody may take as much more as it weighs,
// and whoever has all that it wants saves nothing up. Who came next when nothing was left begins the next
// time, so that weights hold where there is less to divide than there are claimants, too. Where they are very
// many, more is taken in a round: each then comes less often, and gets more at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace millrace::engine {

struct ShareWish {
  std::string name;
  std::uint32_t weight = 1;  // at least 1
  std::size_t wanted = 0;
};

// Not thread-safe.
class FairShares {
 public:
  // About so many get something at a time, where there is more than that for them.
  static constexpr std::size_t kMostAtOnce = 32;

  // How much of `room` each gets, in the order of the wishes: all that it wants where there is enough.
  std::vector<std::size_t> Divide(std::span<const ShareWish> wishes, std::size_t room);

 private:
  std::map<std::string, std::size_t> deficits_;  // of those whose turn was cut short
  std::string next_;                             // whose turn it is; empty: anybody's
};

}  // namespace millrace::engine

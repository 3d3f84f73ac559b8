// Which incarnations each shard says are alive: what a leader asks before it gives a dead worker's share of a
// limit to others. Values.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/clock.h"

namespace millrace::engine {

struct SeenLives {
  BootTime asked{};                                             // what ended before then is not among them
  std::vector<std::pair<std::string, std::string>> alive = {};  // worker, incarnation
  bool operator==(const SeenLives&) const = default;
};
// Of every shard that is known; one that was never read was asked at no time.
using LivesByShard = std::map<std::string, SeenLives>;

}  // namespace millrace::engine

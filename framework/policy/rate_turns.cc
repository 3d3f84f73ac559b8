#include "framework/policy/rate_turns.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

namespace millrace::engine {
namespace {

// Whoever has just got it may not have claimed yet what it is to start.
constexpr Micros kFresh = std::chrono::seconds(1);

}  // namespace

void RateTurns::Note(const std::map<std::string, Taker>& takers, BootTime now) {
  for (const auto& [id, taker] : takers) {
    Turn& turn = turns_[id];
    if (taker.has && !turn.has) turn.since = now;
    if (taker.has) turn.until = now;
    turn.has = taker.has;
    const bool other = taker.has && saver_ != id;
    if (other) saver_ = id;
    if (saver_ != id || (!other && saved_ == taker.use.saved)) continue;
    saved_ = taker.use.saved;
    saved_at_ = now;
  }
  std::erase_if(turns_, [&](const auto& entry) { return !takers.contains(entry.first); });
}

std::set<std::string> RateTurns::Choose(double rate, const std::map<std::string, Taker>& takers,
                                        BootTime now) {
  Note(takers, now);
  const double parts = std::clamp(std::floor(rate), 1.0, static_cast<double>(takers.size()));
  const std::chrono::duration<double> turn(
      std::max(parts / rate, std::chrono::duration<double>(kTurn).count()));
  std::vector<std::tuple<int, double, BootTime, std::string>> order;
  for (const auto& [id, taker] : takers) {
    const Turn& own = turns_.at(id);
    const bool over = now - own.since >= turn;
    const bool wants = taker.use.wants_rate;
    const bool uses = wants || now - own.since < kFresh;
    const int rank = taker.has ? (uses ? (over ? 2 : 0) : 3) : (wants ? 1 : 4);
    const double unused = rank == 3 ? -taker.use.rate : 0;  // who uses some of it keeps it longest
    order.emplace_back(rank, unused, own.until, id);
  }
  std::sort(order.begin(), order.end());
  std::set<std::string> chosen;
  for (const auto& [rank, unused, until, id] : order) {
    if (chosen.size() < static_cast<std::size_t>(parts)) chosen.insert(id);
  }
  return chosen;
}

double RateTurns::Saved(double rate, BootTime now) const {
  if (saver_.empty()) return 1;
  const double seconds = std::chrono::duration<double>(now - saved_at_).count();
  return std::min(saved_ + rate * seconds, std::max(saved_, 1.0));
}

}  // namespace millrace::engine

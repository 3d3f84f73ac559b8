#include "framework/policy/limit_division.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace millrace::engine {
namespace {

constexpr double kFloor = 0.01;     // of the limit, for all floors together
constexpr double kHeadroom = 1.25;  // what somebody has over what it uses
constexpr double kMatters = 0.02;   // a share is not changed for less
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// One kind of a limit, of one holder.
struct Part {
  double written = 0;
  double in_force = 0;
  bool takes = false;
  bool out = false;  // it takes, and is to have nothing
  bool wants = false;
  double demand = 0;  // that it could use
  double next = 0;    // to be written
};

// Max-min fair parts of the budget, at least `least` each; what nobody could use is parted equally.
std::vector<double> FairParts(const std::vector<Part>& parts, double budget, double least) {
  std::vector<double> fair(parts.size(), 0);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].takes && !parts[i].out) open.push_back(i);
  }
  if (open.empty()) return fair;
  const std::size_t takers = open.size();
  least = std::min(least, budget / static_cast<double>(takers));
  std::sort(open.begin(), open.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(parts[a].demand, a) < std::pair(parts[b].demand, b);
  });
  double left = budget;
  for (std::size_t i = 0; i < takers; ++i) {
    const double equal = left / static_cast<double>(takers - i);
    const double rest = left - least * static_cast<double>(takers - i - 1);
    fair[open[i]] = std::min(std::max(std::min(parts[open[i]].demand, equal), least), rest);
    left -= fair[open[i]];
  }
  for (const std::size_t i : open) fair[i] += std::max(left, 0.0) / static_cast<double>(takers);
  return fair;
}

// In whole numbers with the same sum: first what is whole, then one each by the greatest remainder.
void MakeWhole(std::vector<double>& fair, const std::vector<Part>& parts) {
  double sum = 0;
  double whole = 0;
  std::vector<std::pair<double, std::size_t>> rests;
  for (std::size_t i = 0; i < fair.size(); ++i) {
    sum += fair[i];
    const double floor = std::floor(fair[i] + 1e-9);
    if (parts[i].takes) rests.emplace_back(floor - fair[i], i);
    fair[i] = floor;
    whole += floor;
  }
  std::sort(rests.begin(), rests.end());
  for (const auto& [rest, i] : rests) {
    if (whole + 1 > sum + 1e-6) break;
    fair[i] += 1;
    whole += 1;
  }
}

// `unit`: 1 for whole numbers, 0 for any.
void Divide(std::vector<Part>& parts, double limit, double least, double unit) {
  double fixed = 0;
  double all = 0;
  for (const Part& part : parts) {
    (part.takes ? all : fixed) += part.in_force;
  }
  const double budget = std::max(limit - fixed, 0.0);
  std::vector<double> fair = FairParts(parts, budget, least);
  if (unit > 0) MakeWhole(fair, parts);
  const double step = [&](double of) { return unit > 0 ? unit : of * kMatters; }(limit);
  bool needed = all > budget * (1 + 1e-9) || all + step <= budget;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    parts[i].next = part.written;
    if (!part.takes) continue;
    const double more = fair[i] - part.written;
    const double enough = unit > 0 ? unit : part.written * kMatters;
    needed = needed || (part.written <= 0 && fair[i] > 0) || (part.out && part.written > 0) ||
             (part.wants && more > 0 && more >= enough);
  }
  if (!needed) return;
  // Where more may be in force than there is, what somebody is taken to have still may be another's by now.
  const bool fits = fixed + all <= limit * (1 + 1e-9);
  double free = limit - fixed;
  double cost = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (!part.takes) continue;
    part.next = std::min(part.written, fair[i]);
    free -= part.in_force;
    cost += std::max(fair[i] - part.in_force, 0.0);
  }
  free = std::max(free, 0.0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (!fits || !part.takes || fair[i] <= part.written) continue;
    if (fair[i] <= part.in_force) {
      part.next = fair[i];  // it may be in force still
      continue;
    }
    double given = cost > free ? (fair[i] - part.in_force) * free / cost : fair[i] - part.in_force;
    if (unit > 0) {
      given = std::min(std::ceil(given - 1e-9), std::floor(free + 1e-9));
      cost -= fair[i] - part.in_force;
      free -= given;
    }
    part.next = std::max(part.in_force + given, part.written);
  }
}

// Four digits, rounded down: people read them, and their sum stays below the limit.
double Readable(double rate) {
  if (rate <= 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 3);
  return std::floor(rate / unit + 1e-6) * unit;
}

double DemandOf(bool wants, double uses) { return wants ? kUnbounded : uses * kHeadroom; }

// Where it is too slow for all, over those whose turn it is.
void DivideRate(const LimitShare& limit, const std::map<std::string, ShareHolder>& holders, RateTurns& turns,
                BootTime now, LimitShares& shares) {
  std::map<std::string, RateTurns::Taker> takers;
  for (const auto& [id, holder] : holders) {
    if (holder.takes) takers[id] = {holder.written.rate > 0, holder.use};
  }
  if (takers.empty()) return;  // whose turn it was stays known
  const bool slow = RateTurns::Slow(limit.rate, takers.size());
  std::set<std::string> chosen;
  if (slow) {
    chosen = turns.Choose(limit.rate, takers, now);
  } else {
    turns = {};
  }
  std::vector<Part> parts;
  for (const auto& [id, holder] : holders) {
    const LimitUse& use = holder.use;
    parts.push_back({.written = holder.written.rate,
                     .in_force = holder.in_force.rate,
                     .takes = holder.takes,
                     .out = slow && !chosen.contains(id),
                     .wants = use.wants_rate,
                     .demand = DemandOf(use.wants_rate, use.rate)});
  }
  const auto sharers = static_cast<double>(slow ? chosen.size() : takers.size());
  Divide(parts, limit.rate, limit.rate * kFloor / sharers, 0);
  auto part = parts.begin();
  for (const auto& [id, holder] : holders) {
    const double rate = part->next == holder.written.rate ? part->next : Readable(part->next);
    ++part;
    if (!holder.takes) continue;
    LimitShare& share = shares[id];
    share.rate = rate;
    if (!chosen.contains(id)) continue;
    const bool anew = holder.in_force.rate <= 0 && chosen.size() == 1;
    share.saved = anew && rate > 0 ? Readable(turns.Saved(limit.rate, now)) : holder.written.saved;
  }
}

// Whoever does not take keeps its places, however few are left: where they are fewer than those who take, a
// place each would leave one of these with none for as long as that lasts.
bool UsesPermits(const LimitShare& limit, const std::map<std::string, ShareHolder>& holders) {
  std::uint64_t takers = 0;
  std::uint64_t kept = 0;
  bool must = false;
  for (const auto& [id, holder] : holders) {
    takers += holder.takes ? 1 : 0;
    kept += holder.takes ? 0 : holder.in_force.concurrency;
    must = must || (!holder.takes && holder.in_force.permits > 0);
  }
  return must || limit.concurrency < takers + kept;
}

void DividePlaces(const LimitShare& limit, const std::map<std::string, ShareHolder>& holders,
                  LimitShares& shares) {
  std::vector<Part> parts;
  for (const auto& [id, holder] : holders) {
    const LimitUse& use = holder.use;
    parts.push_back({.written = static_cast<double>(holder.written.concurrency),
                     .in_force = static_cast<double>(holder.in_force.concurrency),
                     .takes = holder.takes,
                     .wants = use.wants_concurrency,
                     .demand = DemandOf(use.wants_concurrency, use.running + 1)});
  }
  Divide(parts, limit.concurrency, 1, 1);
  auto part = parts.begin();
  for (const auto& [id, holder] : holders) {
    if (holder.takes) shares[id].concurrency = static_cast<std::uint32_t>(std::lround(part->next));
    ++part;
  }
}

// As many permits as no place may be in force of. Places come back once no permit can be taken any more: what
// then runs with one counts as its worker's place.
void DivideConcurrency(const LimitShare& limit, const std::map<std::string, ShareHolder>& holders,
                       LimitShares& shares) {
  std::uint64_t places = 0;
  std::uint32_t permits = 0;
  for (const auto& [id, holder] : holders) {
    places += holder.in_force.concurrency;
    permits = std::max(permits, holder.in_force.permits);
  }
  if (!UsesPermits(limit, holders)) {
    if (permits == 0) DividePlaces(limit, holders, shares);
    return;
  }
  const std::uint64_t free = limit.concurrency - std::min<std::uint64_t>(places, limit.concurrency);
  for (auto& [id, share] : shares) share.permits = static_cast<std::uint32_t>(free);
}

}  // namespace

LimitShares DivideLimit(const LimitShare& limit, const std::map<std::string, ShareHolder>& holders,
                        RateTurns& turns, BootTime now) {
  LimitShares shares;
  for (const auto& [id, holder] : holders) {
    if (holder.takes) shares[id] = {};
  }
  if (limit.rate > 0) DivideRate(limit, holders, turns, now, shares);
  if (limit.concurrency > 0) DivideConcurrency(limit, holders, shares);
  return shares;
}

}  // namespace millrace::engine

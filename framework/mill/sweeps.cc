#include "framework/mill/sweeps.h"

#include <algorithm>
#include <utility>

namespace millrace::engine {
namespace {

constexpr std::size_t kSmallPage = 10;  // rows; larger ones follow those that run as a whole
constexpr int kLargeSweep = 5;          // every so many sweeps one reads large pages from the first
// Sweeps in a hurry take a quarter of the time at most: slices may move many times after a death.
constexpr int kHurryRestFactor = 3;
constexpr Micros kLongestHurryRest = std::chrono::minutes(1);
constexpr Micros kMapPatience = std::chrono::seconds(10);  // for the maps of all strands
constexpr Micros kAftermath = std::chrono::minutes(5);     // of a death: slices that come may have been its

}  // namespace

void Sweeps::Note(BootTime now, bool somebody_died, std::uint64_t gains) {
  const bool gained = std::exchange(gains_, gains) != gains;
  if (somebody_died) died_ = now;
  const bool owes = somebody_died || (gained && died_ && now - *died_ < kAftermath);
  if (owes && !owed_) owed_ = now;
}

// What is owed takes the place of a sweep that has time, and follows one that is in a hurry already: that may
// have passed what was left since. A strand whose tables can't be read has no map: the others' groups do not
// wait for it for long.
void Sweeps::Begin(BootTime now, bool is_due, Sweep::Maps maps, bool current) {
  if (maps.empty() || (sweep_ && (hurries_ || !owed_))) return;
  const bool hurries = owed_ && now >= hurry_from_ && (current || now - *owed_ > kMapPatience);
  if (!hurries && (sweep_ || !is_due)) return;
  if (hurries) owed_ = current ? std::nullopt : std::optional(now);
  hurries_ = hurries;
  began_ = now;
  const bool large = hurries || ++unhurried_ % kLargeSweep == 0;
  sweep_.emplace(std::move(maps), large ? kMaxBatchRows : kSmallPage);
}

void Sweeps::End(BootTime now, bool swept) {
  if (hurries_ && !swept && !owed_) owed_ = now;
  if (hurries_) hurry_from_ = now + std::min(kHurryRestFactor * (now - began_), kLongestHurryRest);
  sweep_.reset();
  hurries_ = false;
}

}  // namespace millrace::engine

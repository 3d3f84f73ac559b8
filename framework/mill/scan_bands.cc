#include "framework/mill/scan_bands.h"

#include <algorithm>

namespace millrace::engine {
namespace {

// The band that the group is in; null: none.
template <class Bands>
auto* BandOf(Bands& bands, const DueGroup& group) {
  const auto of_type = bands.find(group.handler);
  using Found = decltype(&of_type->second.front());
  if (of_type == bands.end()) return Found(nullptr);
  const auto band = std::find_if(of_type->second.begin(), of_type->second.end(),
                                 [&](const auto& one) { return one.rule.Covers(group.urgency); });
  return band == of_type->second.end() ? Found(nullptr) : &*band;
}

}  // namespace

void ScanBands::Follow(std::shared_ptr<const ScanOrder> order) {
  MutexLock lock(mutex_);
  if (order == order_) return;
  order_ = std::move(order);
  std::map<std::string, Bands> next;
  for (const auto& [handler, rules] : order_->bands) {
    const auto known = bands_.find(handler);
    for (const BandConfig& rule : rules) {
      Band band{rule};
      if (known != bands_.end()) {
        const auto same = std::find_if(known->second.begin(), known->second.end(),
                                       [&](const Band& old) { return old.rule == rule; });
        if (same != known->second.end()) band = std::move(*same);
      }
      next[handler].push_back(std::move(band));
    }
  }
  bands_ = std::move(next);
  any_.store(!bands_.empty(), std::memory_order_relaxed);
}

void ScanBands::Look(BootTime now, const DueMap& map) {
  if (!Any()) return;
  MutexLock lock(mutex_);
  for (const DueGroup& group : map.groups) {
    if (group.first_run_at > map.now) continue;
    auto* const band = BandOf(bands_, group);
    if (band == nullptr || (band->opened && now < *band->opened + band->rule.every)) continue;
    band->opened = now;
    band->taken = 0;
    band->places.clear();
  }
}

BootTime ScanBands::Next(BootTime now) const {
  BootTime next = BootTime::max();
  if (!Any()) return next;
  MutexLock lock(mutex_);
  for (const auto& [handler, bands] : bands_) {
    for (const Band& band : bands) {
      if (band.opened && *band.opened + band.rule.every > now) {
        next = std::min(next, *band.opened + band.rule.every);
      }
    }
  }
  return next;
}

Rewinding ScanBands::RewindingOf(const DueGroup& group) {
  MutexLock lock(mutex_);
  auto* const band = BandOf(bands_, group);
  if (band == nullptr) return Rewinding::AsNeeded;
  return std::exchange(band->places[UrgencyGroupOf(group)].rewound, true) ? Rewinding::Never : Rewinding::Now;
}

std::size_t ScanBands::Left(const DueGroup& group) const {
  if (!Any()) return kAll;
  MutexLock lock(mutex_);
  const auto* const band = BandOf(bands_, group);
  if (band == nullptr) return kAll;
  if (!band->opened) return 0;
  const auto place = band->places.find(UrgencyGroupOf(group));
  if (place != band->places.end() && place->second.gone) return 0;
  return band->rule.most == 0 ? kAll : band->rule.most - std::min<std::size_t>(band->taken, band->rule.most);
}

void ScanBands::Read(const DueGroup& group, std::size_t taken, bool more) {
  if (!Any()) return;
  MutexLock lock(mutex_);
  auto* const band = BandOf(bands_, group);
  if (band == nullptr) return;
  band->taken += taken;
  if (!more) band->places[UrgencyGroupOf(group)].gone = true;
}

void ScanBands::GiveBack(const DueGroup& group, std::size_t rows) {
  if (!Any()) return;
  MutexLock lock(mutex_);
  auto* const band = BandOf(bands_, group);
  if (band == nullptr) return;
  band->taken -= std::min(band->taken, rows);
  band->places[UrgencyGroupOf(group)].gone = false;
}

void ScanBands::Again() {
  if (!Any()) return;
  MutexLock lock(mutex_);
  for (auto& [handler, bands] : bands_) {
    for (Band& band : bands) band.places.clear();
  }
}

std::vector<BandView> ScanBands::Views() const {
  std::vector<BandView> views;
  MutexLock lock(mutex_);
  for (const auto& [handler, bands] : bands_) {
    for (const Band& band : bands) {
      if (band.opened) views.push_back({handler, band.rule, band.taken, *band.opened + band.rule.every});
    }
  }
  return views;
}

}  // namespace millrace::engine

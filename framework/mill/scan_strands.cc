#include "framework/mill/scan_strands.h"

#include <algorithm>
#include <set>
#include <utility>

namespace millrace::engine {

ScanStrands::ScanStrands(const Scanner::Parts& parts, ScanPort& first) : parts_(parts) { Add(first); }

std::size_t ScanStrands::Add(ScanPort& port) {
  const std::size_t number = count_.load();
  if (!strands_[number]) strands_[number] = std::make_unique<Strand>(parts_, number, shared_, port);
  strands_[number]->scanner.SetAttended(attended_.load());
  count_.store(number + 1, std::memory_order_release);
  return number;
}

std::size_t ScanStrands::WantedBy(const ScannersConfig& config, std::size_t tables) const {
  const std::size_t most = std::clamp<std::size_t>(config.most, 1, kMost);
  switch (config.by) {
    case ScannersConfig::By::Shard:
      return 1;
    case ScannersConfig::By::Table:
      return std::clamp<std::size_t>(tables, 1, most);
    case ScannersConfig::By::Priority:
      return std::min<std::size_t>(most, kPriorities);
  }
  return 1;
}

void ScanStrands::Follow(bool scope_changed) {
  Settings settings{parts_.engine.Get().scanners, parts_.engine.Scans(), parts_.engine.Order(), Count()};
  if (!scope_changed && settings == settings_) return;
  shared_.bands.Follow(settings.order);
  std::set<TableName> tables;
  for (const TableSlices& part : parts_.scope.Slices()) tables.insert(part.table);
  wanted_ = WantedBy(settings.config, tables.size());
  auto deal = std::make_shared<ScanPart::Deal>();
  deal->by = settings.config.by;
  deal->strands = std::min(wanted_, settings.count);
  deal->rounds = settings.rounds;
  deal->tables = DealTables(tables_, {tables.begin(), tables.end()}, deal->strands);
  const bool moved = deal->tables != tables_;
  tables_ = deal->tables;
  const bool dealt = settings_.count > 0 && !moved && settings.config == settings_.config &&
                     settings.rounds == settings_.rounds && settings.count == settings_.count;
  settings_ = std::move(settings);
  const bool several = deal->strands > 1;
  ForEach([&](Strand& strand) {
    if (!dealt && (several || strand.part.Version() > 1)) {
      strand.part.Set(deal);
      strand.scanner.Redealt();
    }
    strand.scanner.LookAgain();
  });
}

void ScanStrands::Stop() {
  ForEach([](Strand& strand) { strand.scanner.Stop(); });
}

void ScanStrands::StopClaiming() {
  ForEach([](Strand& strand) { strand.scanner.StopClaiming(); });
}

void ScanStrands::LookAgain() {
  ForEach([](Strand& strand) { strand.scanner.LookAgain(); });
}

void ScanStrands::Rung(const Ring& ring) {
  ForEach([&](Strand& strand) {
    if (strand.part.Touches(ring.table)) strand.scanner.Rung(ring);
  });
}

void ScanStrands::SetAttended(bool attended) {
  attended_.store(attended);
  ForEach([&](Strand& strand) { strand.scanner.SetAttended(attended); });
}

void ScanStrands::Wake() {
  ForEach([](Strand& strand) { strand.port.Wake(); });
}

bool ScanStrands::Idle() const {
  bool idle = true;
  ForEach([&](const Strand& strand) { idle = idle && strand.scanner.Idle(); });
  return idle;
}

IdleSpan ScanStrands::Idleness() const {
  IdleSpan all{BootTime{}, BootTime::max()};
  ForEach([&](const Strand& strand) {
    const IdleSpan own = strand.scanner.Idleness();
    all = {std::max(all.since, own.since), std::min(all.looked, own.looked)};
  });
  return all;
}

std::set<std::string> ScanStrands::LeftAside() const {
  std::set<std::string> left;
  ForEach([&](const Strand& strand) { left.merge(strand.scanner.LeftAside()); });
  return left;
}

std::set<std::string> ScanStrands::HeldBack() const {
  std::set<std::string> held;
  ForEach([&](const Strand& strand) { held.merge(strand.scanner.HeldBack()); });
  return held;
}

bool ScanStrands::Quiet() const {
  bool quiet = true;
  ForEach([&](const Strand& strand) { quiet = quiet && strand.scanner.Quiet(); });
  return quiet;
}

bool ScanStrands::TakePausesChanged() {
  bool changed = false;
  ForEach([&](Strand& strand) { changed = strand.scanner.TakePausesChanged() || changed; });
  return changed;
}

ScanView ScanStrands::View() const {
  ScanView all = strands_[0]->scanner.View();
  std::set<std::string> unrunnable(all.unrunnable.begin(), all.unrunnable.end());
  for (std::size_t i = 1; i < Count(); ++i) {
    const ScanView one = strands_[i]->scanner.View();
    if (all.error.empty()) all.error = one.error;
    all.poll = std::max(all.poll, one.poll);
    all.lag = std::max(all.lag, one.lag);
    all.speed = std::min(all.speed, one.speed);
    unrunnable.insert(one.unrunnable.begin(), one.unrunnable.end());
  }
  all.unrunnable.assign(unrunnable.begin(), unrunnable.end());
  all.bands = shared_.bands.Views();
  all.resting = parts_.attempts.SettleRefusals();
  for (const RestingTables* tables : {&shared_.unwritable, &shared_.unreadable})
    all.resting.merge(tables->Lasting(parts_.clock.Now()));
  return all;
}

ScanStrands::Maps ScanStrands::LatestMaps() const {
  Maps latest;
  ForEach([&](const Strand& strand) {
    Scanner::Seen seen = strand.scanner.LatestMap();
    if (seen.map) latest.maps.push_back(std::move(seen.map));
    latest.current = latest.current && seen.current;
  });
  return latest;
}

}  // namespace millrace::engine

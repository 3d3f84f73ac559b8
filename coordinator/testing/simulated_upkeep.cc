#include "coordinator/testing/simulated_upkeep.h"

#include <utility>

namespace millrace::engine {
namespace {

constexpr Micros kRound = std::chrono::seconds(1);
constexpr Micros kTryAsCandidate = std::chrono::seconds(10);
constexpr std::size_t kRowsInAStep = 200;

// As many slices a table as the configuration wants (0: as they are), and no row beyond them; the tables
// after it.
std::vector<TableInfo> FollowCounts(CompactShard& shard, std::uint32_t wanted) {
  for (const TableInfo& info : shard.Tables()) {
    if (wanted > 0 && wanted != info.slices) (void)shard.Resize(info.table, wanted);
    if (!info.beyond.empty()) shard.RenumberStep(info.table, kRowsInAStep);
  }
  return shard.Tables();
}

}  // namespace

SimulatedUpkeep::SimulatedUpkeep(Parts parts) : parts_(std::move(parts)), shards_(parts_.shards.size()) {
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    parts_.timeline.After(Micros(0), &parts_.process.On(ThreadName::Upkeep, shard),
                          [this, shard] { Round(shard); });
  }
}

LeaderFacts SimulatedUpkeep::Facts() const { return facts_; }

bool SimulatedUpkeep::Named(std::size_t shard) const {
  return parts_.control.CurrentConfig()->shards.contains(parts_.shards[shard]);
}

void SimulatedUpkeep::Round(std::size_t shard) {
  Shard& known = shards_[shard];
  if (!Named(shard)) {
    known.tables.reset();
    known.readable.reset();
    known.tried.reset();
    Again(shard);
  } else if (parts_.leads()) {
    known.tried.reset();
    Lead(shard);
  } else {
    known.tables.reset();
    Try(shard);
  }
  Gather();
}

void SimulatedUpkeep::Again(std::size_t shard) {
  parts_.timeline.After(kRound, &parts_.process.On(ThreadName::Upkeep, shard),
                        [this, shard] { Round(shard); });
}

void SimulatedUpkeep::Lead(std::size_t shard) {
  const std::uint32_t wanted = parts_.control.CurrentConfig()->shards.at(parts_.shards[shard]).slices;
  parts_.databases[shard].Write<Result<Tables>>(
      parts_.process.databases.at(shard), parts_.process.On(ThreadName::Upkeep, shard),
      [wanted](CheckedShard& checked) { return Result<Tables>(FollowCounts(checked.shard(), wanted)); },
      [this, shard](const Result<Tables>& tables) { Heard(shard, tables, true); });
}

void SimulatedUpkeep::ReadLives(std::size_t shard) {
  parts_.databases[shard].Read<Result<std::vector<PeerBeat>>>(
      parts_.process.databases.at(shard), parts_.process.On(ThreadName::Upkeep, shard),
      [](CheckedShard& checked) { return checked.shard().Peers(); },
      [this, shard, asked = parts_.timeline.Now()](const Result<std::vector<PeerBeat>>& peers) {
        Again(shard);
        if (!peers) return;
        SeenLives seen{asked};
        for (const PeerBeat& peer : *peers)
          seen.alive.emplace_back(peer.incarnation.worker, peer.incarnation.id);
        shards_[shard].lives = std::move(seen);
        parts_.changed();
      });
}

LivesByShard SimulatedUpkeep::Lives() const {
  LivesByShard lives;
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    if (Named(shard)) lives[parts_.shards[shard]] = shards_[shard].lives;
  }
  return lives;
}

// The others want to know whether it could lead.
void SimulatedUpkeep::Try(std::size_t shard) {
  Shard& known = shards_[shard];
  const BootTime now = parts_.timeline.Now();
  if (!parts_.stands()) {
    known.tried.reset();
    known.readable.reset();
  }
  if (!parts_.stands() || (known.tried && now - *known.tried < kTryAsCandidate)) {
    Again(shard);
    return;
  }
  known.tried = now;
  parts_.databases[shard].Read<Result<Tables>>(
      parts_.process.databases.at(shard), parts_.process.On(ThreadName::Upkeep, shard),
      [](CheckedShard& checked) { return Result<Tables>(checked.shard().Tables()); },
      [this, shard](const Result<Tables>& tables) { Heard(shard, tables, false); });
}

void SimulatedUpkeep::Heard(std::size_t shard, const Result<Tables>& tables, bool led) {
  shards_[shard].readable = tables.has_value();
  if (tables && led) shards_[shard].tables = *tables;
  Gather();
  if (led) {
    ReadLives(shard);
  } else {
    Again(shard);
  }
}

void SimulatedUpkeep::Gather() {
  LeaderFacts facts;
  TableCatalog catalog;
  std::vector<std::string> unread;
  bool complete = true;
  bool any = false;
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    if (!Named(shard)) continue;
    const Shard& known = shards_[shard];
    any = true;
    catalog.Add(parts_.shards[shard], known.tables ? &*known.tables : nullptr);
    complete = complete && known.readable;
    if (known.readable && !*known.readable) unread.push_back(parts_.shards[shard]);
  }
  if (any) facts.catalog = std::make_shared<const TableCatalog>(std::move(catalog));
  if (any && complete) facts.unread = std::move(unread);
  const bool same = (facts.catalog == nullptr) == (facts_.catalog == nullptr) &&
                    (facts.catalog == nullptr || *facts.catalog == *facts_.catalog);
  if (same) facts.catalog = facts_.catalog;
  if (facts == facts_) return;
  facts_ = std::move(facts);
  parts_.changed();
}

}  // namespace millrace::engine

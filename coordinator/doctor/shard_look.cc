#include "coordinator/doctor/shard_look.h"

#include <algorithm>
#include <utility>

#include "framework/base/time_text.h"

namespace millrace::engine::doctor {
namespace {

// Of a shard with more groups the first are looked at.
constexpr std::size_t kMostGroups = 64;
constexpr std::size_t kRowsOfAGroup = 100;
constexpr Micros kLongestWatch = std::chrono::seconds(10);
// A rescuer comes by on each rewind of the default configuration.
constexpr Micros kRescue = std::chrono::seconds(5);

// How long to watch a life for a beat: there are five in its lease.
Micros WatchOf(const Incarnation& life) { return life.lease * 3 / 10; }

}  // namespace

ShardLook::ShardLook(Store& store, const Clock& clock, ShardFacts facts)
    : store_(store), clock_(clock), facts_(std::move(facts)) {}

void ShardLook::Begin(const DiagnosisOptions& options) {
  if (facts_.away) return;
  const auto diagnosis = store_.OpenDiagnosis();
  if (Status there = store_.Ping(); !there || !diagnosis) {
    facts_.away = there ? Error{ErrorCode::Internal, "this store says nothing of itself"} : there.error();
    return;
  }
  auto store = diagnosis->Examine(options);
  if (!store) {
    facts_.away = store.error();
    return;
  }
  facts_.store = std::move(*store);
  LookAtClock(*diagnosis);
  auto tables = store_.OpenSchema()->Tables();
  if (tables) {
    facts_.tables = std::move(*tables);
  } else if (facts_.store.schema.empty() && facts_.store.missing_rights.empty()) {  // else it is a finding
    Doubt("the task tables, and what waits in them", tables.error());
  }
  incarnations_ = store_.OpenIncarnations();
  tasks_ = store_.OpenTasks();
  if (auto peers = incarnations_->Peers()) {
    peers_ = std::move(*peers);
  } else {
    Doubt("whether workers are alive", peers.error());
  }
  running_ = LookAtGroups();
}

void ShardLook::Doubt(const std::string& what, const Error& why) {
  const bool told = std::any_of(facts_.store.unknown.begin(), facts_.store.unknown.end(),
                                [&](const UnknownFact& known) { return known.what == what; });
  if (!told) facts_.store.unknown.push_back({what, why.message});
}

void ShardLook::LookAtClock(StoreDiagnosis& diagnosis) {
  const WallTime before = clock_.WallNow();
  const BootTime sent = clock_.Now();
  const auto now = diagnosis.Now();
  if (!now) return;
  facts_.clock_doubt = clock_.Now() - sent;
  facts_.clock_offset = *now - (before + facts_.clock_doubt / 2);
}

ShardLook::Claimers ShardLook::LookAtGroups() {
  Claimers running;
  std::vector<TableSlices> all;
  for (const TableInfo& info : facts_.tables) all.push_back({.table = info.table});
  if (all.empty()) return running;
  const auto map = tasks_->Due(all, DueWanted{});
  if (!map) {
    Doubt("orphans, and which task types wait", map.error());
    return running;
  }
  for (const auto& [table, why] : map->refused)
    Doubt("orphans, and which task types wait, in " + table, {ErrorCode::Conflict, why});
  if (map->groups.size() > kMostGroups) {
    Doubt("orphans behind the first " + std::to_string(kMostGroups) + " due groups",
          {ErrorCode::Unknown, "there are " + std::to_string(map->groups.size()) +
                                   "; whoever owns their slices sets such rows waiting, and its log tells"});
  }
  std::size_t looked = 0;
  for (const DueGroup& group : map->groups) {
    facts_.handlers.insert(group.handler);
    if (looked++ >= kMostGroups) continue;
    const auto rows = tasks_->Scan({.group = group, .after = {}, .limit = kRowsOfAGroup});
    if (!rows) {
      Doubt("orphans in " + std::string(group.table.text()), rows.error());
      continue;
    }
    for (const ScanRow& row : *rows) {
      if (row.state == TaskState::Running) ++running[{group.table, row.claimed_by}];
    }
  }
  return running;
}

bool ShardLook::IsLive(const std::vector<PeerBeat>& peers, const std::string& claimer) const {
  return std::any_of(peers.begin(), peers.end(),
                     [&](const PeerBeat& peer) { return peer.incarnation.id == claimer; });
}

Micros ShardLook::Wait() const {
  Micros wait{0};
  for (const PeerBeat& peer : peers_)
    wait = std::max(wait, std::min(WatchOf(peer.incarnation), kLongestWatch));
  for (const auto& [claimed, rows] : running_) {
    if (!IsLive(peers_, claimed.second)) wait = std::max(wait, kRescue);
  }
  return wait;
}

ShardFacts ShardLook::Finish() {
  if (facts_.away || incarnations_ == nullptr) return std::move(facts_);
  const auto later = incarnations_->Peers();
  if (!later) {  // it went away while it was looked at
    facts_.away = later.error();
    return std::move(facts_);
  }
  for (const PeerBeat& peer : *later) {
    const auto before = std::find_if(peers_.begin(), peers_.end(), [&](const PeerBeat& known) {
      return known.incarnation.id == peer.incarnation.id;
    });
    // One that has come meanwhile was just seen alive.
    bool beats = before == peers_.end() || (peer.beat && peer.beat != before->beat);
    if (!beats && peer.beat && WatchOf(peer.incarnation) > kLongestWatch) {
      Doubt(
          "whether the worker " + peer.incarnation.worker + " is alive",
          {ErrorCode::Unknown, "with a lease of " + FormatDuration(peer.incarnation.lease) +
                                   " it may beat less often than was watched; it is taken for one that is"});
      beats = true;
    }
    facts_.lives.push_back({peer.incarnation, beats});
  }
  const Claimers again = running_.empty() ? Claimers{} : LookAtGroups();
  for (const auto& [claimed, rows] : again) {
    // Twice the same, so that nobody has come by; who has claimed since then is alive.
    if (IsLive(peers_, claimed.second) || IsLive(*later, claimed.second) || !running_.contains(claimed))
      continue;
    facts_.orphans.push_back({claimed.first, claimed.second.empty() ? "nobody" : claimed.second, rows});
  }
  return std::move(facts_);
}

}  // namespace millrace::engine::doctor

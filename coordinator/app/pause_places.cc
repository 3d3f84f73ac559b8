#include "coordinator/app/pause_places.h"

#include <algorithm>

#include "coordinator/app/handler_catalog.h"
#include "coordinator/app/operator_mark.h"
#include "coordinator/app/paths.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/documents.h"

namespace millrace::engine {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kPauses = "/control/pause";

}  // namespace

Result<PausePlaces> PausePlaces::Find(const CommonFlags& flags) {
  PausePlaces places;
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags, Variable, kDefaultStore));
  places.cluster_.settings = std::move(settings);
  const bool named = !places.cluster_.settings.shards.empty();
  const bool reached = places.Reach(std::chrono::seconds(named ? 2 : 20));
  const bool away =
      named && (!places.cluster_.settings.cluster || places.unreached_.code == ErrorCode::Unavailable);
  if (!reached && !away) return Fail(places.unreached_);  // before anybody is told
  auto shards = reached ? OpenShards(places.cluster_) : OpenShards(places.cluster_.settings);
  places.shards_known_ = shards.has_value();
  if (shards) {
    places.shards_ = std::move(*shards);
  } else {
    places.Complain(shards.error().message);
  }
  return places;
}

void PausePlaces::Complain(const std::string& what) {
  PrintError(what);
  complete_ = false;
}

// False: there is no cluster, or it is away.
bool PausePlaces::Reach(Micros limit) {
  if (cluster_.client) return true;
  if (!cluster_.settings.cluster) return false;
  auto client = ClusterClient::Open(*cluster_.settings.cluster, limit);
  if (client) {
    cluster_.client = std::move(*client);
  } else {
    unreached_ = client.error();
  }
  return cluster_.client != nullptr;
}

// What the workers say that they run, what is configured, and what waits for somebody who runs it.
std::optional<std::set<std::string>> PausePlaces::TypesOfWorkers() {
  const auto workers = cluster_.client->List("/workers");
  const auto layers = ReadLayers(*cluster_.client, cluster_.settings);
  const auto plan = cluster_.client->Get("/plan");
  if (!workers || workers->empty() || !layers || !plan) return std::nullopt;
  std::set<std::string> types;
  for (const std::string& id : *workers) {
    const auto node = cluster_.client->Get("/workers/" + id);
    if (!node || !*node) continue;
    const auto document = ReadWorker((*node)->data);
    if (!document || !document->limits.handlers) return std::nullopt;  // it may run any
    types.insert(document->limits.handlers->begin(), document->limits.handlers->end());
  }
  for (const auto& [type, handler] : layers->Effective()->handlers) types.insert(type);
  const PlanDocument told = *plan ? ReadPlan((*plan)->data).value_or(PlanDocument{}) : PlanDocument{};
  for (const std::string& type : told.unrunnable) types.insert(type.substr(type.rfind(' ') + 1));
  return types;
}

// Without a cluster: what the plugins of this host have, and what there were tasks of.
std::optional<std::set<std::string>> PausePlaces::TypesAtHand(const CommonFlags& flags) {
  const auto at_hand = HandlersAtHand(flags);
  if (!at_hand) return std::nullopt;
  std::set<std::string> types;
  for (const auto& [name, info] : *at_hand) types.insert(name);
  for (auto& [name, shard] : shards_) {
    const auto totals = shard.store->OpenDesk()->Totals();
    if (!totals) return std::nullopt;
    for (const TaskTotals& group : *totals) types.insert(group.handler);
  }
  return types;
}

// The button is pressed in a hurry: a cluster that is away is not waited for to check a name.
std::optional<std::set<std::string>> PausePlaces::KnownTypes(const CommonFlags& flags) {
  std::optional<std::set<std::string>> types;
  if (!cluster_.settings.cluster) {
    types = TypesAtHand(flags);
  } else if (Reach(std::chrono::seconds(2))) {
    types = TypesOfWorkers();
  }
  if (!types) return types;
  for (const auto& [type, handler] : cluster_.settings.config.handlers) types->insert(type);
  return types;
}

PauseTargets PausePlaces::Known(const CommonFlags& flags, const Names& names) {
  const auto begins = [&](const char* kind) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n.starts_with(kind); });
  };
  PauseTargets known;
  if (shards_known_) known.shards.emplace();
  for (auto& [name, shard] : shards_) {
    known.shards->insert(name);
    if (begins(("slice:" + name + ":").c_str()) && Prepare(shard, Missing::Refuse))
      known.tables[name] = shard.tables;
  }
  if (begins("handler:")) known.types = KnownTypes(flags);
  return known;
}

void PausePlaces::SetInShards(const Names& names, bool on, std::set<std::string>& changed) {
  for (auto& [name, shard] : shards_) {
    auto desk = shard.store->OpenDesk();
    for (const std::string& what : names) {
      const auto set = desk->SetPause(what, Actor(), on);
      if (set && *set) changed.insert(what);
      if (set) continue;
      Complain("shard " + name + ": " + set.error().message +
               "; its workers hear of it from ZooKeeper alone: repeat this once the shard is back");
      break;
    }
  }
}

Status PausePlaces::SetInTree(const Names& names, bool on, std::set<std::string>& changed) {
  for (const std::string& name : names) {
    const std::string path = std::string(kPauses) + "/" + name;
    if (on) {
      BOOST_OUTCOME_TRYV(cluster_.client->Put(path, OperatorMark()));
      changed.insert(name);
      continue;
    }
    BOOST_OUTCOME_TRY(removed, cluster_.client->Remove(path));
    if (removed) changed.insert(name);
  }
  return {};
}

// ZooKeeper may be away: unless it is at hand already the shards are told first.
Result<std::set<std::string>> PausePlaces::Set(const Names& names, bool on) {
  std::set<std::string> changed;
  const bool at_hand = cluster_.client != nullptr;
  if (!at_hand) SetInShards(names, on, changed);
  if (cluster_.settings.cluster) {
    const Status set =
        Reach(std::chrono::seconds(20)) ? SetInTree(names, on, changed) : Status(Fail(unreached_));
    if (!set && at_hand) return Fail(set.error());  // nobody was told
    if (!set)
      Complain(set.error().message + (on ? "; the shards alone are told" : "; what it holds stays paused") +
               ": repeat this once it is back");
  }
  if (at_hand) SetInShards(names, on, changed);
  return changed;
}

std::set<std::string> PausePlaces::Paused() {
  std::set<std::string> paused;
  if (cluster_.client) {
    const auto names = cluster_.client->List(kPauses);
    if (names) paused.insert(names->begin(), names->end());
  }
  for (auto& [name, shard] : shards_) {
    const auto records = shard.store->OpenDesk()->Pauses();
    for (const PauseRecord& record : records ? *records : std::vector<PauseRecord>{})
      paused.insert(record.what);
  }
  return paused;
}

}  // namespace millrace::engine

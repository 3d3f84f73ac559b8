#include "coordinator/app/cluster/pause_places.h"

#include <algorithm>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/json_text.h"

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
  if (!reached) places.FindShards();
  return places;
}

void PausePlaces::FindShards() {
  auto shards = cluster_.client ? OpenShards(cluster_) : OpenShards(cluster_.settings);
  shards_known_ = shards && (cluster_.client || !cluster_.settings.cluster);
  if (!shards) return Complain(shards.error().message);
  shards_ = std::move(*shards);
}

void PausePlaces::Complain(const std::string& what) {
  PrintError(what);
  complete_ = false;
}

// False: there is no cluster, or it is away. Once it is reached it says which shards there are.
bool PausePlaces::Reach(Micros limit) {
  if (cluster_.client) return true;
  if (!cluster_.settings.cluster) return false;
  auto client = ClusterClient::Open(*cluster_.settings.cluster, limit);
  if (!client) {
    unreached_ = client.error();
    return false;
  }
  cluster_.client = std::move(*client);
  FindShards();
  return true;
}

// What the workers say that they run, what is configured, and what waits for somebody who runs it.
std::optional<std::set<std::string>> PausePlaces::TypesOfCluster() {
  const auto workers = TypesOfWorkers(*cluster_.client);
  const auto layers = ReadLayers(*cluster_.client, cluster_.settings);
  const auto plan = cluster_.client->Get("/plan");
  if (!workers || !*workers || !layers || !plan) return std::nullopt;
  std::set<std::string> types = **workers;
  for (const auto& [type, handler] : layers->Effective()->handlers) types.insert(type);
  const PlanDocument told = *plan ? ReadPlan((*plan)->data).value_or(PlanDocument{}) : PlanDocument{};
  for (const std::string& type : told.unrunnable) types.insert(type.substr(type.rfind(' ') + 1));
  return types;
}

// Without a cluster: what the plugins of this host have, and what there were tasks of.
std::optional<std::set<std::string>> PausePlaces::TypesAtHand(const CommonFlags& flags) {
  auto types = HandlerNamesAtHand(flags);
  if (!types) return std::nullopt;
  for (auto& [name, shard] : shards_) {
    const auto totals = shard.store->OpenOperations()->TypeTotals();
    if (!totals) return std::nullopt;
    for (const TaskTotals& group : *totals) types->insert(group.handler);
  }
  return types;
}

// The button is pressed in a hurry: a cluster that is away is not waited for to check a name.
std::optional<std::set<std::string>> PausePlaces::KnownTypes(const CommonFlags& flags) {
  std::optional<std::set<std::string>> types;
  if (!cluster_.settings.cluster) {
    types = TypesAtHand(flags);
  } else if (Reach(std::chrono::seconds(2))) {
    types = TypesOfCluster();
  }
  if (!types) return types;
  for (const auto& [type, handler] : cluster_.settings.config.handlers) types->insert(type);
  return types;
}

// Those that are registered in the cluster, or without one in the shards.
std::optional<std::set<std::string>> PausePlaces::KnownWorkers() {
  if (cluster_.settings.cluster) {
    if (!Reach(std::chrono::seconds(2))) return std::nullopt;
    const auto ids = cluster_.client->List("/workers");
    if (!ids) return std::nullopt;
    return std::set<std::string>(ids->begin(), ids->end());
  }
  std::set<std::string> workers;
  for (auto& [name, shard] : shards_) {
    const auto peers = shard.store->OpenIncarnations()->Peers();
    if (!peers) return std::nullopt;
    for (const PeerBeat& peer : *peers) workers.insert(peer.incarnation.worker);
  }
  return workers;
}

PauseTargets PausePlaces::Known(const CommonFlags& flags, const Names& names) {
  const auto begins = [&](const char* kind) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n.starts_with(kind); });
  };
  PauseTargets known;
  if (begins("handler:")) known.types = KnownTypes(flags);
  if (begins("worker:")) known.workers = KnownWorkers();
  if (!shards_known_) return known;
  known.shards.emplace();
  for (auto& [name, shard] : shards_) {
    known.shards->insert(name);
    if (begins(("slice:" + name + ":").c_str()) && PrepareToPlan(shard)) known.tables[name] = shard.tables;
  }
  return known;
}

void PausePlaces::SetInShards(const Names& names, bool on, const std::string& reason,
                              std::set<std::string>& changed) {
  struct Told {
    const Shard* shard;
    std::vector<std::string> changed = {};
    Status status = {};  // of the first name that could not be set
  };
  std::vector<Told> all;
  for (const auto& [name, shard] : shards_) all.push_back({&shard});
  ForEachAtOnce(all.size(), [&](std::size_t i) {
    auto operations = all[i].shard->store->OpenOperations();
    for (const std::string& what : names) {
      const auto set = operations->SetPause(what, Actor(), on, reason);
      if (!set) {
        all[i].status = Fail(set.error());
        return;
      }
      if (*set) all[i].changed.push_back(what);
    }
  });
  for (const Told& told : all) {
    changed.insert(told.changed.begin(), told.changed.end());
    if (told.status) continue;
    Complain("shard " + told.shard->name + ": " + told.status.error().message +
             "; its workers hear of it from ZooKeeper alone: repeat this once the shard is back");
  }
}

Status PausePlaces::SetInTree(const Names& names, bool on, const std::string& reason,
                              std::set<std::string>& changed) {
  for (const std::string& name : names) {
    const std::string path = std::string(kPauses) + "/" + name;
    if (on) {
      BOOST_OUTCOME_TRYV(cluster_.client->Put(path, AuditStamp(reason)));
      changed.insert(name);
      continue;
    }
    BOOST_OUTCOME_TRY(removed, cluster_.client->Remove(path));
    if (removed) changed.insert(name);
  }
  return {};
}

// ZooKeeper may be away: unless it is at hand already the shards are told first.
Result<std::set<std::string>> PausePlaces::Set(const Names& names, bool on, const std::string& reason) {
  std::set<std::string> changed;
  const bool at_hand = cluster_.client != nullptr;
  if (!at_hand) SetInShards(names, on, reason, changed);
  if (cluster_.settings.cluster) {
    const Status set =
        Reach(std::chrono::seconds(20)) ? SetInTree(names, on, reason, changed) : Status(Fail(unreached_));
    if (!set && at_hand) return Fail(set.error());  // nobody was told
    if (!set)
      Complain(set.error().message + (on ? "; the shards alone are told" : "; what it holds stays paused") +
               ": repeat this once it is back");
  }
  if (cluster_.client) SetInShards(names, on, reason, changed);  // reached late it may have named others
  return changed;
}

std::set<std::string> PausePlaces::Paused() {
  std::set<std::string> paused;
  if (cluster_.client) {
    const auto names = cluster_.client->List(kPauses);
    if (names) paused.insert(names->begin(), names->end());
  }
  std::vector<std::pair<const Shard*, std::vector<PauseRecord>>> all;
  for (const auto& [name, shard] : shards_) all.emplace_back(&shard, std::vector<PauseRecord>{});
  ForEachAtOnce(all.size(), [&all](std::size_t i) {
    if (auto records = all[i].first->store->OpenOperations()->Pauses()) all[i].second = std::move(*records);
  });
  for (const auto& [shard, records] : all) {
    for (const PauseRecord& record : records) paused.insert(record.what);
  }
  return paused;
}

}  // namespace millrace::engine

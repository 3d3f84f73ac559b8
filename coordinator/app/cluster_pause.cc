#include "coordinator/app/cluster_pause.h"

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster_client.h"
#include "coordinator/app/command.h"
#include "coordinator/app/handler.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/suggest.h"
#include "framework/policy/pauses.h"

namespace millrace::engine {
namespace {

struct PauseOptions {
  CommonFlags common;
  std::vector<std::string> targets;
  bool force = false;  // pause: also what the cluster does not know
  std::string reason;
};

using Names = std::vector<std::string>;

constexpr const char* kPauses = "/control/pause";

Failure Unknown(const std::string& name, const std::string& why) {
  return Fail(ErrorCode::Invalid,
              "nothing was paused by '" + name + "': " + why + "; to pause it all the same, add --force");
}

Status CheckShard(const std::string& name, const std::string& shard, const PauseTargets& known) {
  if (!known.shards || known.shards->contains(shard)) return {};
  return Unknown(name, "there is no shard '" + shard + "'" +
                           NearestOf(shard, {known.shards->begin(), known.shards->end()}, "; there are ", 8));
}

Status CheckType(const std::string& name, const std::string& type, const PauseTargets& known) {
  if (!known.types || known.types->contains(type)) return {};
  return Unknown(name, "nobody runs the task type '" + type + "', and none is configured" +
                           NearestOf(type, {known.types->begin(), known.types->end()}, "; there are ", 8));
}

Status CheckWorker(const std::string& name, const std::string& id, const PauseTargets& known) {
  if (!known.workers || known.workers->contains(id)) return {};
  return Unknown(name, "there is no worker '" + id + "'" +
                           NearestOf(id, {known.workers->begin(), known.workers->end()}, "; there are ", 8));
}

Status CheckSlice(const std::string& name, const std::vector<std::string>& parts, const PauseTargets& known) {
  BOOST_OUTCOME_TRYV(CheckShard(name, parts[1], known));
  const auto tables = known.tables.find(parts[1]);
  if (tables == known.tables.end()) return {};
  std::vector<std::string> names;
  for (const TableInfo& info : tables->second) {
    names.emplace_back(info.table);
    if (info.table != parts[2]) continue;
    std::uint32_t number = 0;
    std::from_chars(parts[3].data(), parts[3].data() + parts[3].size(), number);
    if (info.Has(number)) return {};
    return Unknown(name,
                   parts[1] + "/" + parts[2] + " has the slices 0 to " + std::to_string(info.slices - 1));
  }
  return Unknown(name, "shard " + parts[1] + " has no task table '" + parts[2] + "'" +
                           NearestOf(parts[2], names, "; there are ", 8));
}

// Every place where a pause may stand: the cluster's tree, and each shard for workers that ZooKeeper does not
// reach. Whoever is away is named at once, and remembered.
class PausePlaces {
 public:
  // The cluster says which shards there are; where it can't be reached, the store that is named.
  static Result<PausePlaces> Find(const CommonFlags& flags);

  // What there is, as far as the check of these names needs it.
  PauseTargets Known(const CommonFlags& flags, const std::vector<std::string>& names);
  // For each name, whether it was changed anywhere.
  Result<std::set<std::string>> Set(const std::vector<std::string>& names, bool on,
                                    const std::string& reason = {});
  // What is paused anywhere now.
  std::set<std::string> Paused();
  // All could be told.
  bool complete() const { return complete_; }

 private:
  bool Reach(Micros limit);
  std::optional<std::set<std::string>> TypesOfCluster();
  std::optional<std::set<std::string>> KnownWorkers();
  std::optional<std::set<std::string>> TypesAtHand(const CommonFlags& flags);
  std::optional<std::set<std::string>> KnownTypes(const CommonFlags& flags);
  void SetInShards(const std::vector<std::string>& names, bool on, const std::string& reason,
                   std::set<std::string>& changed);
  Status SetInTree(const std::vector<std::string>& names, bool on, const std::string& reason,
                   std::set<std::string>& changed);
  void Complain(const std::string& what);

  ClusterConnection cluster_;  // without a client until it is reached
  Error unreached_{};          // why it could not be, when it was tried last
  Shards shards_;
  bool shards_known_ = false;
  bool complete_ = true;
};

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
    const auto totals = shard.store->OpenOperations()->Totals();
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
  if (shards_known_) known.shards.emplace();
  for (auto& [name, shard] : shards_) {
    known.shards->insert(name);
    if (begins(("slice:" + name + ":").c_str()) && Prepare(shard, Missing::Refuse))
      known.tables[name] = shard.tables;
  }
  if (begins("handler:")) known.types = KnownTypes(flags);
  if (begins("worker:")) known.workers = KnownWorkers();
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
  if (at_hand) SetInShards(names, on, reason, changed);
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

void TellNotPaused(const std::string& name, const std::set<std::string>& paused, bool complete) {
  const std::string hint = DidYouMean(name, std::vector<std::string>(paused.begin(), paused.end()));
  PrintError("'" + name + "' was not paused" + (complete ? "" : " where it could be asked") + hint +
             (paused.empty() ? "; nothing is paused" : "; paused: " + Joined(paused)));
}

bool AllWorkers(const std::vector<std::string>& targets) {
  return std::all_of(targets.begin(), targets.end(),
                     [](const std::string& target) { return target.starts_with("worker:"); });
}

Result<ExitCode> RunClusterPause(const PauseOptions& options) {
  BOOST_OUTCOME_TRYV(Pauses::Parse(options.targets));
  if (options.reason.size() > kMaxReason)
    return Fail(ErrorCode::Invalid, "--reason is longer than " + std::to_string(kMaxReason) + " bytes");
  BOOST_OUTCOME_TRY(places, PausePlaces::Find(options.common));
  if (!options.force) {
    BOOST_OUTCOME_TRYV(CheckPauseTargets(options.targets, places.Known(options.common, options.targets)));
  }
  BOOST_OUTCOME_TRYV(places.Set(options.targets, true, options.reason));
  PrintAnswer(
      options.common, {{"paused", options.targets}},
      AllWorkers(options.targets)
          ? "paused: it starts nothing more within 2 s, and finishes what runs. Its slices stay its own and "
            "their tasks wait; to give them to others: millrace cluster drain"
          : "paused: nothing more of it is started, on any worker, within 2 s; what runs is finished");
  return places.complete() ? ExitCode::Done : ExitCode::SomethingFailed;
}

Result<ExitCode> RunClusterResume(const PauseOptions& options) {
  BOOST_OUTCOME_TRY(places, PausePlaces::Find(options.common));
  BOOST_OUTCOME_TRY(changed, places.Set(options.targets, false));
  const std::set<std::string> paused = places.Paused();
  const auto valid = Pauses::Parse(options.targets);
  std::set<std::string> missing;
  for (const std::string& name : options.targets) {
    if (changed.contains(name)) continue;
    missing.insert(name);
    if (valid) TellNotPaused(name, paused, places.complete());
  }
  if (!missing.empty() && !valid) return Fail(valid.error());
  if (options.common.json) {
    PrintJson({{"resumed", changed}, {"not_paused", missing}, {"paused", paused}});
  } else if (!changed.empty()) {
    PrintLine("resumed: " + Joined(changed) + (paused.empty() ? "" : "; still paused: " + Joined(paused)));
  }
  return places.complete() && missing.empty() ? ExitCode::Done : ExitCode::SomethingFailed;
}

struct BreakerOptions {
  CommonFlags common;
  std::string handler;
  std::string word;
  bool force = false;
  std::string reason;
};

constexpr const char* kOpened = "open: within 2 s nothing of it starts, on any worker; what runs is finished";
constexpr const char* kClosed = "closed: its tasks start, and it does not open by itself";
constexpr const char* kAuto = "it goes by its rules; where it was open by hand, a probe closes it";

Result<BreakerHand> ReadHand(const std::string& word) {
  if (word == "open") return BreakerHand::Open;
  if (word == "close") return BreakerHand::Close;
  if (word == "auto") return BreakerHand::Auto;
  return Fail(ErrorCode::Invalid, "'" + word + "' is no state of a breaker; give open, close or auto");
}

Result<ExitCode> RunHandlerBreaker(const BreakerOptions& options) {
  BOOST_OUTCOME_TRY(hand, ReadHand(options.word));
  const std::string handler = "handler:" + options.handler;
  if (!Pauses::Parse(Names{handler}))
    return Fail(ErrorCode::Invalid, "'" + options.handler + "' is no name of a task type");
  if (options.reason.size() > kMaxReason)
    return Fail(ErrorCode::Invalid, "--reason is longer than " + std::to_string(kMaxReason) + " bytes");
  BOOST_OUTCOME_TRY(places, PausePlaces::Find(options.common));
  if (!options.force && hand != BreakerHand::Auto) {
    const PauseTargets known = places.Known(options.common, {handler});
    if (known.types && !known.types->contains(options.handler))
      return Fail(
          ErrorCode::Invalid,
          "no breaker was changed: nobody runs the task type '" + options.handler + "'" +
              NearestOf(options.handler, {known.types->begin(), known.types->end()}, "; there are ", 8) +
              "; to change it all the same, add --force");
  }
  for (const BreakerHand other : {BreakerHand::Open, BreakerHand::Close}) {
    const Names name{BreakerHandName(options.handler, other)};
    BOOST_OUTCOME_TRYV(places.Set(name, other == hand, options.reason));
  }
  PrintAnswer(options.common, {{"handler", options.handler}, {"breaker", options.word}},
              hand == BreakerHand::Open    ? kOpened
              : hand == BreakerHand::Close ? kClosed
                                           : kAuto);
  return places.complete() ? ExitCode::Done : ExitCode::SomethingFailed;
}

}  // namespace

void AddHandlerBreaker(CLI::App& handler, Chosen& chosen) {
  const auto breaker = AddCommand(
      handler, chosen, "breaker", "Open or close a circuit breaker by hand, or leave it to its rules",
      "  millrace handler breaker http_call open --reason 'the partner asked for an hour'\n"
      "  millrace handler breaker http_call auto",
      RunHandlerBreaker);
  AddFolders(*breaker.app, breaker->common);
  breaker.Add("handler,--handler", breaker->handler, "the task type", "NAME")->required();
  breaker.Add("state", breaker->word, "open, close or auto", "STATE")->required();
  breaker.Add("--reason", breaker->reason, "why, for status and task why", "TEXT");
  breaker.app->add_flag("--force", breaker->force, "also of a task type that nobody runs yet");
}

Status CheckPauseTargets(const std::vector<std::string>& names, const PauseTargets& known) {
  for (const std::string& name : names) {
    std::vector<std::string> parts;
    boost::split(parts, name, boost::is_any_of(":"));
    Status good;
    if (parts[0] == "shard") good = CheckShard(name, parts[1], known);
    if (parts[0] == "handler") good = CheckType(name, parts[1], known);
    if (parts[0] == "worker") good = CheckWorker(name, parts[1], known);
    if (parts[0] == "slice") good = CheckSlice(name, parts, known);
    if (!good) return good;
  }
  return {};
}

PauseWords WordsOfPause(const std::string& name) {
  if (const auto tripped = ReadTripped(name)) {
    return {"the breaker of " + tripped->type + " is open, and its tasks wait",
            "see what its calls fail of; millrace handler breaker " + tripped->type +
                " close starts them at once"};
  }
  const std::map<std::string, BreakerHand> hands = BreakerHandsOf(std::vector{name});
  if (hands.empty()) return {"paused: " + name, "millrace cluster resume " + name};
  const auto& [type, hand] = *hands.begin();
  return {
      std::string(hand == BreakerHand::Open ? "open" : "kept closed") + " by hand: the breaker of " + type,
      "millrace handler breaker " + type + " auto"};
}

void AddClusterPauses(CLI::App& cluster, Chosen& chosen) {
  const auto pause =
      AddCommand(cluster, chosen, "pause", "The red button: start nothing more of this, on any worker",
                 "  millrace cluster pause cluster\n"
                 "  millrace cluster pause handler:send_mail shard:east slice:main:tasks:17\n"
                 "  millrace cluster pause worker:w2 --reason 'its disk is being changed'",
                 RunClusterPause);
  pause.Add("target", pause->targets, "cluster, shard:S, handler:H, slice:S:T:N or worker:ID", "NAME")
      ->required();
  pause.Add("--reason", pause->reason, "why, for status and task why", "TEXT");
  pause.app->add_flag("--force", pause->force, "also what is not there yet");
  const auto resume = AddCommand(cluster, chosen, "resume", "Take a pause back",
                                 "  millrace cluster resume cluster", RunClusterResume);
  resume.Add("target", resume->targets, "what was paused", "NAME")->required();
}

}  // namespace millrace::engine

// What there is to know of one task: its shard, the cluster and the plugins at hand are asked; and the
// command.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cluster/cluster_health.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/app/cluster/limit_report.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/task/task_why.h"
#include "framework/base/escape.h"
#include "framework/base/time_text.h"
#include "framework/config/policy_text.h"
#include "framework/policy/permit_home.h"

namespace millrace::engine {
namespace {

constexpr Micros kLongestLook = std::chrono::seconds(10);

bool RunsType(const ClusterSnapshot& snapshot, const std::string& type) {
  return std::any_of(snapshot.workers.begin(), snapshot.workers.end(),
                     [&](const auto& entry) { return Allows(entry.second.limits.handlers, type); });
}

using Json = nlohmann::ordered_json;

// What the owner's status says of the shard's scan that concerns the task. Anybody may have written it.
void ReadScan(const Json& status, WhyFacts& facts) {
  const Task& task = facts.record.task;
  const Json& shard = PartOf(PartOf(status, status_key::kShards), facts.shard);
  facts.cluster->cut_off = TextPart(shard, status_key::kError);
  facts.cluster->table_rests = TextPart(PartOf(shard, status_key::kResting), std::string(task.key.table));
  if (const Json& speed = PartOf(shard, status_key::kScanSpeed); speed.is_number())
    facts.cluster->scan_speed = speed.get<double>();
  const auto rule = facts.config.BandOf(Urgency(task.priority, task.failures));
  if (!rule) return;
  const std::string priorities = RangeText(rule->priority_from, rule->priority_to);
  const std::string failures = RangeText(rule->failures_from, rule->failures_to);
  for (const Json& band : PartOf(shard, status_key::kBands)) {
    if (TextPart(band, status_key::kBandHandler) != task.handler) continue;
    if (TextPart(band, status_key::kBandPriority) != priorities) continue;
    if (TextPart(band, status_key::kBandFailures) != failures) continue;
    if (const auto next = ParseTime(TextPart(band, status_key::kBandNext))) facts.cluster->band_next = *next;
  }
}

using AtHand = std::optional<HandlersByName>;

Status AskCluster(ClusterClient& client, const Settings& settings, const AtHand& at_hand, WhyFacts& facts) {
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(client));
  BOOST_OUTCOME_TRY(layers, ReadLayers(client, settings));
  const Task& task = facts.record.task;
  facts.config = InForce(*layers.Effective(), task.handler, at_hand);
  // Set with a plain ZooKeeper client a pause stands there alone.
  for (const std::string& name : snapshot.pauses) {
    const bool known = std::any_of(facts.pauses.begin(), facts.pauses.end(),
                                   [&](const PauseRecord& pause) { return pause.what == name; });
    if (!known) facts.pauses.push_back(snapshot.pause_stamps[name]);
  }
  facts.cluster->slice = SliceOf(snapshot, facts.shard, task.key.table, task.slice, task.handler);
  facts.cluster->owner = OwnerOf(snapshot, facts.cluster->slice);
  const auto breaker = snapshot.breakers.find(task.handler);
  if (breaker != snapshot.breakers.end())
    facts.cluster->breaker = BreakerText(snapshot, task.handler, SystemClock().WallNow());
  facts.cluster->owner_there = snapshot.workers.contains(facts.cluster->owner);
  const auto status = snapshot.statuses.find(facts.cluster->owner);
  if (status != snapshot.statuses.end()) {
    ReadScan(status->second, facts);
    const std::string held_up = TextPart(status->second, status_key::kPermitsHeldUp);
    if (!held_up.empty()) facts.permits_held_up = held_up;
    const auto names_type = [&](const char* key) {
      const Json& types = PartOf(status->second, key);
      return std::find(types.begin(), types.end(), Json(task.handler)) != types.end();
    };
    facts.permits_locked = names_type(status_key::kPermitsLocked);
    facts.cluster->queue_full = names_type(status_key::kFull);
    if (facts.cluster->owner_there)
      facts.cannot_open = WhyUnopened(snapshot, facts.cluster->owner, facts.shard, task.handler);
  }
  facts.cluster->draining = snapshot.draining.contains(facts.cluster->owner);
  facts.cluster->planned_at = snapshot.planned_at;
  for (const auto& [id, document] : snapshot.workers)
    if (snapshot.draining.contains(id)) facts.cluster->drained.push_back(id);
  facts.cluster->all_drained =
      !facts.cluster->drained.empty() && facts.cluster->drained.size() == snapshot.workers.size();
  facts.cluster->limit_holds = HeldBack(snapshot).contains(task.handler);
  facts.cluster->limit_unshared = Unshared(snapshot).contains(task.handler);
  facts.cluster->type_runs = snapshot.workers.empty() || RunsType(snapshot, task.handler);
  return {};
}

// The task is explained by its shard alone where the cluster is away.
void AskCluster(const Settings& settings, const AtHand& at_hand, WhyFacts& facts) {
  facts.cluster.emplace();
  auto client = ClusterClient::Open(*settings.cluster, std::chrono::seconds(5));
  const Status asked = client ? AskCluster(**client, settings, at_hand, facts) : Status(Fail(client.error()));
  if (!asked) facts.cluster->unreached = asked.error().message;
}

// Whether the worker lives that has the task: looks until its beat moves, for as long as two beats may take.
Result<bool> Beats(IncarnationStore& incarnations, const std::string& claimer) {
  std::optional<std::uint64_t> first;
  for (const BootTime began = BootClock::now();; RestUnlessStopped(std::chrono::milliseconds(100))) {
    BOOST_OUTCOME_TRY(peers, incarnations.Peers());
    const auto peer = std::find_if(peers.begin(), peers.end(),
                                   [&](const PeerBeat& one) { return one.incarnation.id == claimer; });
    if (peer == peers.end() || !peer->beat) return false;
    if (first && peer->beat != first) return true;
    first = peer->beat;
    const bool over = BootClock::now() - began > std::min(peer->incarnation.lease * 2 / 5, kLongestLook);
    if (over || StopSignalsSeen() > 0) return false;
  }
}

// Those of the living; the shard knows which one is their home.
Status ReadPermits(TaskShards& open, const TaskName& name, WhyFacts& facts) {
  const std::string& handler = facts.record.task.handler;
  const auto permits = open.shards.at(name.shard).store->OpenPermits();
  if (!permits) return {};
  BOOST_OUTCOME_TRY(home, permits->Home());
  if (home.empty()) return {};
  if (!open.settings.shards.contains(home)) {
    facts.permits_held_up = ChooseHome({{name.shard, home}}).trouble;
    return {};
  }
  BOOST_OUTCOME_TRY(shards, OpenShards(open.settings, home));  // --shard may have left it out
  const auto rows = shards.at(home).store->OpenPermits()->Permits(std::span(&handler, 1));
  if (!rows) {
    facts.permits_held_up = "their home, shard " + home + ": " + rows.error().message;
    return {};
  }
  for (const Permit& row : *rows) {
    if (!row.holder.empty() && !row.lapsed) facts.permits.push_back({row.task, row.worker, row.taken_at});
  }
  return {};
}

Result<WhyFacts> GatherFacts(TaskShards& open, const CommonFlags& common, const TaskName& name) {
  WhyFacts facts;
  BOOST_OUTCOME_TRY(record, GetTask(open, name));
  facts.shard = name.shard;
  facts.record = std::move(record);
  facts.now = SystemClock().WallNow();
  const Task& task = facts.record.task;
  const auto plugins = PluginsAtHand(common);
  const AtHand at_hand = HandlersOf(plugins.get());
  facts.config = InForce(open.settings.config, task.handler, at_hand);
  facts.has_config = !open.settings.config_file.empty();
  if (at_hand) {
    facts.plugin_handlers.emplace();
    for (const auto& [known, info] : *at_hand) facts.plugin_handlers->push_back(known);
  }
  if (task.state == TaskState::Waiting && !task.biz_key.empty()) {
    const auto holder = open.Operations(name.shard).Find(name.key.table, task.handler, task.biz_key);
    if (holder && *holder != name.key) facts.key_holder = ToString(TaskName{name.shard, *holder});
  }
  TaskOperations& operations = open.Operations(name.shard);
  BOOST_OUTCOME_TRY(peers, open.shards.at(name.shard).store->OpenIncarnations()->Peers());
  for (const PeerBeat& peer : peers)
    facts.workers.push_back({peer.incarnation.id, peer.incarnation.worker, peer.incarnation.slices});
  BOOST_OUTCOME_TRY(pauses, operations.Pauses());
  facts.pauses = std::move(pauses);
  if (task.state == TaskState::Waiting && task.run_at <= facts.now) {
    BOOST_OUTCOME_TRY(ahead, operations.Ahead(task));
    facts.ahead = std::move(ahead);
    if (facts.config.limit && facts.config.limit->concurrency > 0) {
      BOOST_OUTCOME_TRYV(ReadPermits(open, name, facts));
    }
  }
  if (task.state == TaskState::Held || task.state == TaskState::Cancelled) {
    const bool held = task.state == TaskState::Held;
    BOOST_OUTCOME_TRY(act, operations.LastAct(held ? TaskAction::Hold : TaskAction::Cancel, name.key));
    facts.act = std::move(act);
  }
  if (open.settings.cluster && !IsOtherStore(common)) {
    AskCluster(open.settings, at_hand, facts);
  } else if (plugins && task.state == TaskState::Waiting) {
    facts.cannot_open = WhyNotOpened(*plugins, open.settings.config, task.handler);
  }
  return facts;
}

Result<ExitCode> RunTaskWhy(const TaskChoice& choice) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(choice.common, choice.shard));
  BOOST_OUTCOME_TRY(name, OneNamedTask(open, choice));
  BOOST_OUTCOME_TRY(facts, GatherFacts(open, choice.common, name));
  const std::string& claimer = facts.record.task.claimed_by;
  if (facts.record.task.state == TaskState::Running && IsAlive(facts, claimer)) {
    BOOST_OUTCOME_TRY(beats, Beats(*open.shards.at(name.shard).store->OpenIncarnations(), claimer));
    facts.beats = beats;
  }
  const std::vector<Reason> reasons = ExplainTask(facts);
  if (choice.common.json) {
    nlohmann::ordered_json out{{"name", ToString(name)},
                               {"state", ToString(facts.record.task.state)},
                               {"code", reasons.front().code},
                               {"why", nlohmann::ordered_json::array()},
                               {"reasons", nlohmann::ordered_json::array()}};
    for (const Reason& reason : reasons) {
      out["why"].push_back(reason.text);
      out["reasons"].push_back({{"code", reason.code}, {"text", reason.text}});
    }
    PrintJson(out);
    return ExitCode::Done;
  }
  PrintLine(ToString(name) + " is " + ToString(facts.record.task.state) + ". " +
            Escape(reasons.front().text));
  for (std::size_t i = 1; i < reasons.size(); ++i) PrintLine("  " + Escape(reasons[i].text));
  return ExitCode::Done;
}

}  // namespace

Result<std::vector<Reason>> ExplainTask(TaskShards& open, const CommonFlags& common, const TaskName& name) {
  BOOST_OUTCOME_TRY(facts, GatherFacts(open, common, name));
  return ExplainTask(facts);
}

void AddTaskWhy(CLI::App& task, Chosen& chosen) {
  const auto why =
      AddCommand(task, chosen, "why", "Say why a task is not running", "  millrace task why 17", RunTaskWhy);
  AddNames(*why.app, *why.options);
  AddChoice(*why.app, *why.options);
  AddFolders(*why.app, why->common);
}

}  // namespace millrace::engine

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/cluster_view.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/handler_catalog.h"
#include "coordinator/app/slice_owner.h"
#include "coordinator/app/task_lookup.h"
#include "coordinator/app/task_text.h"
#include "coordinator/app/task_why.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

bool RunsType(const ClusterTree& tree, const std::string& type) {
  return std::any_of(tree.workers.begin(), tree.workers.end(),
                     [&](const auto& entry) { return Allows(entry.second.limits.handlers, type); });
}

using AtHand = std::optional<HandlersByName>;

Status AskCluster(ClusterClient& client, const Settings& settings, const AtHand& at_hand, WhyFacts& facts) {
  BOOST_OUTCOME_TRY(tree, ReadTree(client));
  BOOST_OUTCOME_TRY(layers, ReadLayers(client, settings));
  const Task& task = facts.record.task;
  facts.config = InForce(*layers.Effective(), task.handler, at_hand);
  // Set with a plain ZooKeeper client a pause stands there alone.
  for (const std::string& name : tree.pauses) {
    if (std::find(facts.pauses.begin(), facts.pauses.end(), name) == facts.pauses.end())
      facts.pauses.push_back(name);
  }
  facts.cluster->slice = SliceOf(tree, facts.shard, task.key.table, task.slice, task.handler);
  facts.cluster->owner = OwnerOf(tree, facts.cluster->slice);
  facts.cluster->owner_there = tree.workers.contains(facts.cluster->owner);
  facts.cluster->type_runs = tree.workers.empty() || RunsType(tree, task.handler);
  return {};
}

// The task is explained by its shard alone where the cluster is away.
void AskCluster(const Settings& settings, const AtHand& at_hand, WhyFacts& facts) {
  facts.cluster.emplace();
  auto client = ClusterClient::Open(*settings.cluster, std::chrono::seconds(5));
  const Status asked = client ? AskCluster(**client, settings, at_hand, facts) : Status(Fail(client.error()));
  if (!asked) facts.cluster->unreached = asked.error().message;
}

Result<WhyFacts> GatherFacts(Desks& desks, const TaskChoice& choice, const TaskName& name) {
  WhyFacts facts;
  BOOST_OUTCOME_TRY(record, GetTask(desks, name));
  facts.shard = name.shard;
  facts.record = std::move(record);
  facts.now = SystemClock().WallNow();
  const Task& task = facts.record.task;
  const AtHand at_hand = HandlersAtHand(choice.common);
  facts.config = InForce(desks.settings.config, task.handler, at_hand);
  if (at_hand) {
    facts.plugin_handlers.emplace();
    for (const auto& [known, info] : *at_hand) facts.plugin_handlers->push_back(known);
  }
  if (!task.biz_key.empty()) {
    const auto holder = desks.Desk(name.shard).Find(name.key.table, task.handler, task.biz_key);
    if (holder && *holder != name.key) facts.key_holder = ToString(TaskName{name.shard, *holder});
  }
  BOOST_OUTCOME_TRY(peers, desks.shards.at(name.shard).store->OpenIncarnations()->Peers());
  for (const PeerBeat& peer : peers) facts.workers.push_back(peer.incarnation.id);
  BOOST_OUTCOME_TRY(pauses, desks.Desk(name.shard).Pauses());
  for (const PauseRecord& pause : pauses) facts.pauses.push_back(pause.what);
  if (desks.settings.cluster) AskCluster(desks.settings, at_hand, facts);
  return facts;
}

}  // namespace

Result<ExitCode> RunTaskWhy(const TaskChoice& choice) {
  BOOST_OUTCOME_TRY(desks, OpenDesks(choice.common, choice.shard));
  BOOST_OUTCOME_TRY(name, OneNamedTask(desks, choice));
  BOOST_OUTCOME_TRY(facts, GatherFacts(desks, choice, name));
  const std::vector<std::string> sentences = ExplainTask(facts);
  if (choice.common.json) {
    PrintLine(
        JsonText({{"name", ToString(name)}, {"state", ToString(facts.record.task.state)}, {"why", sentences}},
                 OutputIsTerminal() ? 2 : -1));
    return ExitCode::Done;
  }
  PrintLine(ToString(name) + " is " + ToString(facts.record.task.state) + ".");
  for (const std::string& sentence : sentences) PrintLine("  " + Escape(sentence));
  return ExitCode::Done;
}

}  // namespace millrace::engine

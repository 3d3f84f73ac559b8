#include "coordinator/app/task_why.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster_snapshot.h"
#include "coordinator/app/command.h"
#include "coordinator/app/handler.h"
#include "framework/base/escape.h"
#include "framework/base/time_text.h"
#include "framework/policy/pauses.h"

namespace millrace::engine {
namespace {

using Sentences = std::vector<std::string>;

std::string NameOf(const WhyFacts& facts) { return ToString(TaskName{facts.shard, facts.record.task.key}); }

bool Alive(const WhyFacts& facts, const std::string& incarnation) {
  return std::find(facts.workers.begin(), facts.workers.end(), incarnation) != facts.workers.end();
}

std::string HandlerUsed(const WhyFacts& facts) {
  return facts.config.uses.empty() ? facts.record.task.handler : facts.config.uses;
}

// What the plugins of this host have is of interest where its workers do the work.
void ExplainHandler(const WhyFacts& facts, Sentences& out) {
  if (facts.cluster && facts.cluster->unreached.empty()) return;
  if (!facts.plugin_handlers) return;
  const auto& known = *facts.plugin_handlers;
  if (std::find(known.begin(), known.end(), HandlerUsed(facts)) != known.end()) return;
  out.push_back("No plugin at hand has its handler '" + HandlerUsed(facts) +
                "': see `millrace handler list`, or name the folder with --plugins.");
}

void ExplainPauses(const WhyFacts& facts, Sentences& out) {
  const Task& task = facts.record.task;
  for (const std::string& name : facts.pauses) {
    Pauses pause;
    if (!pause.Add(name) || !pause.Covers(facts.shard, task.key.table, task.slice, task.handler)) continue;
    out.push_back("It is paused (" + name + "): nothing of it starts until `millrace cluster resume " + name +
                  "`.");
  }
}

void ExplainCluster(const WhyFacts& facts, Sentences& out) {
  if (!facts.cluster) return;
  const ClusterFacts& cluster = *facts.cluster;
  if (!cluster.unreached.empty()) {
    out.push_back("The cluster could not be asked who owns its slice, and what it has paused: " +
                  cluster.unreached + ".");
    return;
  }
  if (!cluster.type_runs) {
    out.push_back("No worker of the cluster runs its type '" + facts.record.task.handler + "'.");
  } else if (cluster.owner.empty()) {
    out.push_back("Its slice " + cluster.slice + " is nobody's: see `millrace cluster slices --why " +
                  cluster.slice + "`.");
  } else {
    out.push_back("Its slice " + cluster.slice + " is with " + cluster.owner +
                  (cluster.owner_there ? "." : ", who is not there: the leader gives it to another."));
  }
}

void ExplainWaiting(const WhyFacts& facts, Sentences& out) {
  const Task& task = facts.record.task;
  if (task.run_at > facts.now) {
    out.push_back("It waits until " + FormatTime(task.run_at) + " (" + Relative(task.run_at, facts.now) +
                  ")" +
                  (task.failures > 0 ? ": the next step of its retry ladder." : ": it is not due before."));
  } else {
    out.push_back("It has been due since " + FormatTime(task.run_at) + " (" +
                  Relative(task.run_at, facts.now) + ") and waits for a worker.");
  }
  ExplainPauses(facts, out);
  if (!facts.key_holder.empty()) {
    out.push_back("Its key '" + task.biz_key + "' belongs to " + facts.key_holder +
                  ": when its turn comes it is skipped as a duplicate.");
  }
  if (facts.workers.empty()) {
    out.push_back("No worker is running on this store: start one with `millrace run` or `millrace worker`.");
  } else {
    out.push_back(Count(facts.workers.size(), "worker is", "workers are") + " registered on this store.");
  }
  ExplainCluster(facts, out);
  ExplainHandler(facts, out);
}

void ExplainRunning(const WhyFacts& facts, Sentences& out) {
  const Task& task = facts.record.task;
  const std::string since = task.claimed_at ? " since " + FormatTime(*task.claimed_at) + " (" +
                                                  Relative(*task.claimed_at, facts.now) + ")"
                                            : "";
  if (Alive(facts, task.claimed_by)) {
    out.push_back("It is with " + task.claimed_by + since + ": running, or next in its queue.");
  } else {
    out.push_back("It was claimed by " + (task.claimed_by.empty() ? "nobody" : task.claimed_by) + since +
                  ", which is dead or gone: the next worker that scans its slice sets it waiting again.");
    if (facts.workers.empty()) {
      out.push_back(
          "No worker is running on this store: start one with `millrace run` or `millrace worker`.");
    }
  }
  if (task.cancel)
    out.push_back("It was asked to stop; its handler ends it at the next point where it looks.");
}

std::string FinishedText(const WhyFacts& facts) {
  const auto& at = facts.record.finished_at;
  return at ? " at " + FormatTime(*at) + " (" + Relative(*at, facts.now) + ")" : "";
}

void ExplainState(const WhyFacts& facts, Sentences& out) {
  const Task& task = facts.record.task;
  switch (task.state) {
    case TaskState::Waiting:
      return ExplainWaiting(facts, out);
    case TaskState::Running:
      return ExplainRunning(facts, out);
    case TaskState::Held:
      out.push_back("It is held: nothing happens to it until `millrace task release " + NameOf(facts) + "`.");
      return;
    case TaskState::Succeeded:
      out.push_back("It succeeded" + FinishedText(facts) + ", so there is nothing left to run.");
      return;
    case TaskState::Cancelled:
      out.push_back("It was cancelled or skipped" + FinishedText(facts) +
                    (task.last_error.empty() ? "." : ": " + task.last_error));
      return;
    case TaskState::Failed:
      out.push_back("It failed for good" + FinishedText(facts) + " and needs a person: " +
                    (task.last_error.empty() ? "no reason is noted." : task.last_error));
      out.push_back("When the cause is gone: `millrace task retry " + NameOf(facts) + "`.");
      return;
  }
}

void ExplainHistory(const WhyFacts& facts, Sentences& out) {
  const Task& task = facts.record.task;
  const auto& attempts = facts.record.attempts;
  if (attempts.empty() && task.failures == 0 && task.crashes == 0) return;
  std::string text = "So far " + Count(task.attempt, "attempt", "attempts") + ", of which " +
                     Count(task.failures, "failure counts", "failures count") + " towards the limit of " +
                     std::to_string(facts.config.retry.max_failures);
  if (task.crashes > 0) text += "; " + Count(task.crashes, "time", "times") + " its worker died under it";
  out.push_back(text + ".");
  for (std::size_t i = attempts.size() > 5 ? attempts.size() - 5 : 0; i < attempts.size(); ++i) {
    const AttemptRecord& attempt = attempts[i];
    out.push_back("Attempt " + std::to_string(attempt.attempt) + " " + attempt.kind + " " +
                  Relative(attempt.at, facts.now) + " on " + attempt.incarnation + ": " + attempt.message);
  }
}

bool RunsType(const ClusterSnapshot& snapshot, const std::string& type) {
  return std::any_of(snapshot.workers.begin(), snapshot.workers.end(),
                     [&](const auto& entry) { return Allows(entry.second.limits.handlers, type); });
}

using AtHand = std::optional<HandlersByName>;

Status AskCluster(ClusterClient& client, const Settings& settings, const AtHand& at_hand, WhyFacts& facts) {
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(client));
  BOOST_OUTCOME_TRY(layers, ReadLayers(client, settings));
  const Task& task = facts.record.task;
  facts.config = InForce(*layers.Effective(), task.handler, at_hand);
  // Set with a plain ZooKeeper client a pause stands there alone.
  for (const std::string& name : snapshot.pauses) {
    if (std::find(facts.pauses.begin(), facts.pauses.end(), name) == facts.pauses.end())
      facts.pauses.push_back(name);
  }
  facts.cluster->slice = SliceOf(snapshot, facts.shard, task.key.table, task.slice, task.handler);
  facts.cluster->owner = OwnerOf(snapshot, facts.cluster->slice);
  facts.cluster->owner_there = snapshot.workers.contains(facts.cluster->owner);
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

Result<WhyFacts> GatherFacts(TaskShards& open, const CommonFlags& common, const TaskName& name) {
  WhyFacts facts;
  BOOST_OUTCOME_TRY(record, GetTask(open, name));
  facts.shard = name.shard;
  facts.record = std::move(record);
  facts.now = SystemClock().WallNow();
  const Task& task = facts.record.task;
  const AtHand at_hand = HandlersAtHand(common);
  facts.config = InForce(open.settings.config, task.handler, at_hand);
  if (at_hand) {
    facts.plugin_handlers.emplace();
    for (const auto& [known, info] : *at_hand) facts.plugin_handlers->push_back(known);
  }
  if (!task.biz_key.empty()) {
    const auto holder = open.Operations(name.shard).Find(name.key.table, task.handler, task.biz_key);
    if (holder && *holder != name.key) facts.key_holder = ToString(TaskName{name.shard, *holder});
  }
  BOOST_OUTCOME_TRY(peers, open.shards.at(name.shard).store->OpenIncarnations()->Peers());
  for (const PeerBeat& peer : peers) facts.workers.push_back(peer.incarnation.id);
  BOOST_OUTCOME_TRY(pauses, open.Operations(name.shard).Pauses());
  for (const PauseRecord& pause : pauses) facts.pauses.push_back(pause.what);
  if (open.settings.cluster) AskCluster(open.settings, at_hand, facts);
  return facts;
}

Result<ExitCode> RunTaskWhy(const TaskChoice& choice) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(choice.common, choice.shard));
  BOOST_OUTCOME_TRY(name, OneNamedTask(open, choice));
  BOOST_OUTCOME_TRY(facts, GatherFacts(open, choice.common, name));
  const std::vector<std::string> sentences = ExplainTask(facts);
  if (choice.common.json) {
    PrintJson({{"name", ToString(name)}, {"state", ToString(facts.record.task.state)}, {"why", sentences}});
    return ExitCode::Done;
  }
  PrintLine(ToString(name) + " is " + ToString(facts.record.task.state) + ".");
  for (const std::string& sentence : sentences) PrintLine("  " + Escape(sentence));
  return ExitCode::Done;
}

}  // namespace

std::vector<std::string> ExplainTask(const WhyFacts& facts) {
  Sentences out;
  ExplainState(facts, out);
  ExplainHistory(facts, out);
  return out;
}

Result<std::vector<std::string>> ExplainTask(TaskShards& open, const CommonFlags& common,
                                             const TaskName& name) {
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

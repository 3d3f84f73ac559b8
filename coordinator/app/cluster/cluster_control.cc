#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/app/command/command.h"
#include "coordinator/coordination/zookeeper/zookeeper.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

constexpr const char* kAfterADrain = "; what runs is finished there. millrace cluster undrain takes it back";

struct ClusterControlOptions {
  CommonFlags common;
  std::vector<std::string> targets;
  std::string duration = "60s";
  bool yes = false;  // drain: every worker, without a question
};

// By what is assigned alone: no shard is asked.
Result<PlanDecision> PlanWithout(const ClusterConnection& cluster, const ClusterSnapshot& snapshot,
                                 const std::set<std::string>& drained) {
  BOOST_OUTCOME_TRY(layers, ReadLayers(*cluster.client, cluster.settings));
  PlanState state = PlanStateOf(snapshot, drained, *layers.Effective());
  state.catalog.others = true;
  return DecidePlan(state, true);
}

// What the plan makes of it: for people, and as `slices` and `stay` of the answer.
std::string TellPlan(PlanDecision decision, const ClusterSnapshot& snapshot,
                     const std::set<std::string>& drained, ordered_json& answer) {
  std::vector<std::string> stay;
  for (const std::string& id : drained) {
    const std::vector<std::string>& kept = decision.wanted[id];
    if (snapshot.workers.contains(id)) stay.insert(stay.end(), kept.begin(), kept.end());
  }
  std::size_t go = 0;
  for (const SliceMove& move : decision.moves) go += drained.contains(move.from) ? 1 : 0;
  answer["slices"] = go;
  answer["stay"] = stay;
  std::string told = Count(go, "slice goes", "slices go") + " to other workers" + kAfterADrain;
  if (!stay.empty())
    told += "\n" + Count(stay.size(), "slice stays and goes on", "slices stay and go on") +
            ", since no other worker may have them: " + Joined(SliceRanges(stay)) +
            "; millrace cluster pause cluster stops work";
  return told;
}

Result<ExitCode> RunClusterDrain(const ClusterControlOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(*cluster.client));
  BOOST_OUTCOME_TRYV(CheckWorkers(snapshot, options.targets));
  const bool stays = std::any_of(snapshot.workers.begin(), snapshot.workers.end(), [&](const auto& worker) {
    const auto& targets = options.targets;
    return !snapshot.draining.contains(worker.first) &&
           std::find(targets.begin(), targets.end(), worker.first) == targets.end();
  });
  if (!stays) {
    BOOST_OUTCOME_TRYV(
        Confirm("No worker is left then to take the slices: they stay and go on "
                "(millrace cluster pause cluster stops work). Drain " +
                    (options.targets.size() == 1 ? options.targets.front() : "all of them") + "?",
                options.yes));
  }
  const std::set<std::string> drained(options.targets.begin(), options.targets.end());
  for (const std::string& id : drained) {
    BOOST_OUTCOME_TRYV(cluster.client->Put("/control/drain/" + id, AuditStamp()));
  }
  ordered_json answer{{"draining", options.targets}, {"slices", nullptr}, {"stay", nullptr}};
  std::string told = std::string("what other workers may have goes to them") + kAfterADrain;
  const auto decision = PlanWithout(cluster, snapshot, drained);
  if (decision) told = TellPlan(*decision, snapshot, drained, answer);
  if (!decision) PrintNote("how many slices go and which stay is not known: " + decision.error().message);
  PrintAnswer(options.common, answer, told);
  return ExitCode::Done;
}

Result<ExitCode> RunClusterUndrain(const ClusterControlOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  std::vector<std::string> undrained;
  for (const std::string& id : options.targets) {
    BOOST_OUTCOME_TRY(removed, cluster.client->Remove("/control/drain/" + id));
    if (removed) {
      undrained.push_back(id);
    } else {
      PrintNote("worker " + id + " was not drained");
    }
  }
  PrintAnswer(
      options.common, {{"undrained", undrained}},
      undrained.empty() ? "nothing was changed" : "slices come back once the cluster has been quiet for 5 s");
  return ExitCode::Done;
}

Result<ExitCode> RunClusterExpect(const ClusterControlOptions& options) {
  BOOST_OUTCOME_TRY(kept, ReadDuration("--for", options.duration));
  if (kept <= Micros(0) || kept > kLongestExpectation) {
    return Fail(
        ErrorCode::Invalid,
        "--for: give more than 0s and at most 1d; for longer, millrace cluster drain empties a worker");
  }
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(*cluster.client));
  BOOST_OUTCOME_TRYV(CheckWorkers(snapshot, options.targets));
  for (const std::string& id : options.targets) {
    ExpectDocument document;
    document.seconds = static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::seconds>(kept).count());
    const auto present = snapshot.workers.find(id);
    if (present != snapshot.workers.end()) document.incarnation = present->second.incarnation;
    // In place of an older announcement it counts anew, and there is no moment without one.
    BOOST_OUTCOME_TRYV(cluster.client->Put("/control/expect/" + id, ToText(document)));
  }
  PrintAnswer(options.common, {{"expected", options.targets}, {"for", options.duration}},
              "restart within " + options.duration + ": the slices are kept until then");
  return ExitCode::Done;
}

Result<ExitCode> RunClusterProceed(const CommonFlags& common) {
  BOOST_OUTCOME_TRY(cluster, Connect(common));
  BOOST_OUTCOME_TRYV(cluster.client->Put("/control/proceed", AuditStamp()));
  PrintAnswer(common, {{"proceed", true}}, "the slices of workers that are missing are placed now");
  return ExitCode::Done;
}

Result<ExitCode> RunClusterProtect(const CommonFlags& common) {
  BOOST_OUTCOME_TRY(settings, ResolveCluster(common, Variable));
  const ClusterAddress& cluster = *settings.cluster;
  BOOST_OUTCOME_TRY(
      done, ProtectZookeeper({cluster.servers, cluster.name, std::chrono::seconds(10), cluster.auth_file},
                             std::chrono::seconds(20)));
  if (common.json) {
    PrintJson({{"nodes", done.nodes}, {"closed", done.closed}, {"without_digest", done.without_digest}});
    return ExitCode::Done;
  }
  PrintLine(done.closed == 0 ? "all of its " + Count(done.nodes, "node", "nodes") + " were closed already"
                             : Count(done.closed, "node is", "nodes are") + " now for the digest in " +
                                   cluster.auth_file + " alone, as are all " + std::to_string(done.nodes));
  for (const std::string& id : done.without_digest) {
    PrintNote("worker " + id +
              " runs without the digest: it goes on with the plan it has, and hears of nothing new; start it "
              "again with --zk-auth-file");
  }
  return ExitCode::Done;
}

Command<ClusterControlOptions> AddControl(CLI::App& cluster, Chosen& chosen, const char* name,
                                          const char* what, const char* example,
                                          Result<ExitCode> (*run)(const ClusterControlOptions&)) {
  const auto command = AddCommand(cluster, chosen, name, what, example, run);
  command.Add("target", command->targets, "the worker's id", "NAME")->required();
  return command;
}

}  // namespace

void AddClusterRestarts(CLI::App& cluster, Chosen& chosen) {
  const auto drain = AddControl(cluster, chosen, "drain", "Give the slices of workers to others",
                                "  millrace cluster drain w1", RunClusterDrain);
  AddYes(*drain.app, drain->yes, "do not ask where no worker is left");
  AddControl(cluster, chosen, "undrain", "Let drained workers have slices again",
             "  millrace cluster undrain w1", RunClusterUndrain);
  const auto expect = AddControl(
      cluster, chosen, "expect", "Announce a restart: a worker's slices are kept for it",
      "  millrace cluster expect app7-1 --for 60s && systemctl restart millrace-worker@1", RunClusterExpect);
  expect.Add("--for", expect->duration, "how long they are kept", "TIME")->capture_default_str();
  AddCommand(cluster, chosen, "proceed", "After a mass loss: do not wait, place the slices now",
             "  millrace cluster proceed", RunClusterProceed);
}

void AddClusterProtect(CLI::App& cluster, Chosen& chosen) {
  AddCommand(cluster, chosen, "protect", "Close a cluster that was made without --zk-auth-file",
             "  millrace cluster protect --zk-auth-file /etc/millrace/zk", RunClusterProtect);
}

}  // namespace millrace::engine

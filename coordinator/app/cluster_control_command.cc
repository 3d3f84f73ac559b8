#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/cluster_view.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/operator_mark.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"
#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

void Say(const CommonFlags& common, nlohmann::ordered_json json, const std::string& text) {
  PrintLine(common.json ? JsonText(json) : text);
}

}  // namespace

Result<ExitCode> RunClusterDrain(const ClusterControlOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  ClusterClient& client = *cluster.client;
  BOOST_OUTCOME_TRY(tree, ReadTree(client));
  BOOST_OUTCOME_TRYV(CheckWorkers(tree, options.targets));
  std::size_t slices = 0;
  for (const std::string& id : options.targets) {
    BOOST_OUTCOME_TRYV(client.Put("/control/drain/" + id, OperatorMark()));
    const auto assigned = tree.assigned.find(id);
    if (assigned != tree.assigned.end()) slices += assigned->second.slices.size();
  }
  Say(options.common, {{"draining", options.targets}, {"slices", slices}},
      Count(slices, "slice goes", "slices go") +
          " to other workers; what runs is finished there. "
          "millrace cluster undrain takes it back");
  return ExitCode::Done;
}

Result<ExitCode> RunClusterUndrain(const ClusterControlOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  ClusterClient& client = *cluster.client;
  std::vector<std::string> undrained;
  for (const std::string& id : options.targets) {
    BOOST_OUTCOME_TRY(removed, client.Remove("/control/drain/" + id));
    if (removed) {
      undrained.push_back(id);
    } else {
      PrintNote("worker " + id + " was not drained");
    }
  }
  Say(options.common, {{"undrained", undrained}},
      undrained.empty() ? "nothing was changed" : "slices come back once the cluster has been quiet for 5 s");
  return ExitCode::Done;
}

Result<ExitCode> RunClusterExpect(const ClusterControlOptions& options) {
  const auto kept = ParseDuration(options.duration);
  if (!kept) return Fail(ErrorCode::Invalid, "--for: " + kept.error().message);
  if (*kept <= Micros(0) || *kept > kLongestExpectation) {
    return Fail(
        ErrorCode::Invalid,
        "--for: give more than 0s and at most 1d; for longer, millrace cluster drain empties a worker");
  }
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  ClusterClient& client = *cluster.client;
  BOOST_OUTCOME_TRY(tree, ReadTree(client));
  BOOST_OUTCOME_TRYV(CheckWorkers(tree, options.targets));
  for (const std::string& id : options.targets) {
    ExpectDocument document;
    document.seconds = static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::seconds>(*kept).count());
    const auto present = tree.workers.find(id);
    if (present != tree.workers.end()) document.incarnation = present->second.incarnation;
    // In place of an older announcement it counts anew, and there is no moment without one.
    BOOST_OUTCOME_TRYV(client.Put("/control/expect/" + id, ToText(document)));
  }
  Say(options.common, {{"expected", options.targets}, {"for", options.duration}},
      "restart within " + options.duration + ": the slices are kept until then");
  return ExitCode::Done;
}

Result<ExitCode> RunClusterLimit(const ClusterLimitOptions& options) {
  WorkerLimits limits{LimitTo(options.handlers), std::nullopt, LimitTo(options.shards),
                      LimitTo(options.tables)};
  if (!options.load_balance.empty()) {
    auto numbers = ParseLoadBalance(options.load_balance);
    if (!numbers) return Fail(ErrorCode::Invalid, "--load-balance: " + numbers.error().message);
    limits.load_balance = std::move(*numbers);
  }
  const bool any = limits.Any();
  if (any == options.none) return Fail(ErrorCode::Invalid, "give limits, or --none to take them back");
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  ClusterClient& client = *cluster.client;
  BOOST_OUTCOME_TRY(tree, ReadTree(client));
  BOOST_OUTCOME_TRYV(CheckWorkers(tree, {options.id}));
  const std::string path = "/control/limits/" + options.id;
  if (options.none) {
    BOOST_OUTCOME_TRYV(client.Remove(path));
  } else if (Status put = client.Put(path, ToText(limits)); !put) {
    return Fail(put.error());
  }
  Say(options.common, {{"worker", options.id}, {"limited", any}},
      any ? "limited; its slices go where they may be run" : "its limits are gone");
  return ExitCode::Done;
}

Result<ExitCode> RunClusterProceed(const ClusterControlOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  ClusterClient& client = *cluster.client;
  BOOST_OUTCOME_TRYV(client.Put("/control/proceed", OperatorMark()));
  Say(options.common, {{"proceed", true}}, "the slices of workers that are missing are placed now");
  return ExitCode::Done;
}

}  // namespace millrace::engine

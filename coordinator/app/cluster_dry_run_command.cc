// millrace cluster plan --dry-run: what the leader would do, and does not.
#include <map>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/cluster_view.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"

namespace millrace::engine {

using nlohmann::ordered_json;

Result<ExitCode> RunClusterDryRun(const ClusterPlanOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(tree, ReadTree(*cluster.client));
  BOOST_OUTCOME_TRYV(CheckWorkers(tree, options.without));
  BOOST_OUTCOME_TRY(catalog, ReadCatalog(cluster));
  PlanState state = PlanStateOf(tree, {options.without.begin(), options.without.end()});
  state.catalog = std::move(catalog);
  const PlanDecision decision = DecidePlan(state, true);
  std::map<std::pair<std::string, std::string>, std::size_t> flows;
  ordered_json moves = ordered_json::array();
  for (const SliceMove& move : decision.moves) {
    ++flows[{move.from, move.to}];
    moves.push_back(
        {{"slice", move.slice}, {"from", move.from}, {"to", move.to}, {"voluntary", move.voluntary}});
  }
  if (options.common.json) {
    PrintLine(
        JsonText({{"moves", decision.moves.size()}, {"unplaceable", decision.unplaceable}, {"list", moves}}));
    return ExitCode::Done;
  }
  PrintLine(flows.empty() ? "nothing would move"
                          : "this would move " + Count(decision.moves.size(), "slice", "slices") + ":");
  for (const auto& [flow, count] : flows) {
    PrintLine("  " + Count(count, "slice", "slices") + " from " +
              (flow.first.empty() ? "nobody" : flow.first) + " to " + flow.second);
  }
  if (!decision.unplaceable.empty()) {
    PrintLine("  " + Count(decision.unplaceable.size(), "slice has", "slices have") +
              " no worker that may take them");
  }
  return ExitCode::Done;
}

}  // namespace millrace::engine

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/cluster_view.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/shards.h"
#include "coordinator/app/slice_owner.h"
#include "coordinator/app/slice_ranges.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/text_table.h"
#include "coordinator/coordination/json_text.h"
#include "framework/policy/eligibility.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

// Each worker's answer to "may it have this slice?", empty where it may.
std::string WhyNot(const ClusterTree& tree, const std::string& id, const SliceName& slice,
                   const HandlersByGroup& groups) {
  const WorkerDocument& worker = tree.workers.at(id);
  if (tree.draining.contains(id)) return "it is drained";
  const auto group = groups.find(slice.group);
  const std::vector<std::string> types = group == groups.end() ? std::vector<std::string>() : group->second;
  switch (ObstacleOf(worker.limits, slice, types)) {
    case Obstacle::LoadBalance:
      return "it is limited to other load-balance numbers";
    case Obstacle::Shard:
      return "it is limited to other shards";
    case Obstacle::Table:
      return "it is limited to other tables";
    case Obstacle::Handler:
      return "it does not run " + *FirstRefused(worker.limits, types);
    case Obstacle::None:
      break;
  }
  return "";
}

// A slice that nobody has may be one that the tables do not have.
Status CheckExists(ClusterConnection& cluster, const SliceName& slice) {
  BOOST_OUTCOME_TRY(catalog, ReadCatalog(cluster));
  if (catalog.unread.contains(slice.shard)) return {};
  const std::string table = slice.shard + "/" + slice.table;
  for (const auto& known : catalog.tables) {
    if (known.shard != slice.shard || known.info.table != slice.table) continue;
    if (known.info.Has(slice.number)) return {};
    return Fail(ErrorCode::NotFound, "there is no slice " + ToString(slice) + ": " + table + " has 0 to " +
                                         std::to_string(known.info.slices - 1));
  }
  return Fail(ErrorCode::NotFound, "there is no table " + table + "; see millrace cluster slices");
}

Result<ExitCode> ExplainSlice(ClusterConnection& cluster, const ClusterTree& tree,
                              const ClusterSlicesOptions& options) {
  BOOST_OUTCOME_TRY(name, ParseSliceName(options.why));
  HandlersByGroup groups;
  for (const auto& [id, document] : tree.assigned)
    groups.insert(document.groups.begin(), document.groups.end());
  const std::string owner = OwnerOf(tree, ToString(name));
  if (owner.empty()) {
    BOOST_OUTCOME_TRYV(CheckExists(cluster, name));
  }
  ordered_json out{{"slice", ToString(name)}, {"owner", owner}, {"workers", ordered_json::object()}};
  TextTable table{{{"worker"}, {"slices", true}, {"may it have this one?"}}, {}};
  for (const auto& [id, document] : tree.workers) {
    const std::string why = WhyNot(tree, id, name, groups);
    const auto assigned = tree.assigned.find(id);
    const std::size_t count = assigned == tree.assigned.end() ? 0 : assigned->second.slices.size();
    out["workers"][id] = {{"eligible", why.empty()}, {"why", why}, {"slices", count}};
    std::string word = why.empty() ? "yes" : "no: " + why;
    if (id == owner) word += "; it has it";
    if (const auto until = tree.plan.probation.find(id); until != tree.plan.probation.end())
      word += "; it is on probation until " + until->second;
    table.rows.push_back({id, std::to_string(count), word});
  }
  if (options.common.json) {
    PrintLine(JsonText(out));
    return ExitCode::Done;
  }
  if (owner.empty()) {
    PrintLine(ToString(name) + " is nobody's now");
  } else {
    PrintLine(ToString(name) + " is " + owner + "'s" +
              (tree.workers.contains(owner) ? "" : ", who is not there") +
              ": each worker keeps what it has as long as the shares stay fair");
  }
  PrintLine(table.Text(0));
  return ExitCode::Done;
}

}  // namespace

Result<ExitCode> RunClusterSlices(const ClusterSlicesOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(tree, ReadTree(*cluster.client));
  if (!options.why.empty()) return ExplainSlice(cluster, tree, options);
  ordered_json out = ordered_json::object();
  TextTable table{{{"worker"}, {"slices", true}, {"which"}}, {}};
  for (const auto& [id, document] : tree.assigned) {
    out[id] = document.slices;
    std::string ranges;
    for (const std::string& range : SliceRanges(document.slices))
      ranges += (ranges.empty() ? "" : " ") + range;
    table.rows.push_back({id, std::to_string(document.slices.size()), ranges});
  }
  if (options.common.json) {
    PrintLine(JsonText(out));
  } else if (table.rows.empty()) {
    PrintLine("no slice is assigned yet; see millrace cluster status");
  } else {
    PrintLine(table.Text(OutputIsTerminal() ? TerminalWidth() : 0));
  }
  return ExitCode::Done;
}

}  // namespace millrace::engine

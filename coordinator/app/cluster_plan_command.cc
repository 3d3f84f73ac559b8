#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "coordinator/app/cluster_state_reader.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/clock.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

Result<std::string> ReadWhole(const std::string& path) {
  std::stringstream content;
  if (path == "-") {
    content << std::cin.rdbuf();
    return content.str();
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (file && file.peek() != std::ifstream::traits_type::eof()) content << file.rdbuf();
  if (!file.is_open() || file.bad() || errno != 0) {
    return Fail(ErrorCode::Invalid, path + " can't be read: " + std::strerror(errno == 0 ? EIO : errno) +
                                        "; give another file with --simulate, or - for standard input");
  }
  return content.str();
}

ordered_json ToJson(const NumberedState& state, const Plan& plan, Micros took) {
  // A hundred thousand members: added without looking each up.
  ordered_json::object_t owners;
  for (std::size_t slice = 0; slice < plan.owners.size(); ++slice) {
    if (plan.owners[slice] == kNobody) continue;
    owners.emplace_back(state.slices[slice], state.workers[plan.owners[slice]]);
  }
  ordered_json unplaceable = ordered_json::array();
  for (const SliceIndex slice : plan.unplaceable) unplaceable.push_back(state.slices[slice]);
  return {{"plan", std::move(owners)},
          {"moves", plan.moves.size()},
          {"unplaceable", std::move(unplaceable)},
          {"solve_ms", static_cast<double>(took.count()) / 1000}};
}

}  // namespace

Result<ExitCode> RunClusterPlan(const ClusterPlanOptions& options) {
  if (!options.simulate.empty()) return RunClusterSimulation(options);
  if (options.dry_run || !options.without.empty()) return RunClusterDryRun(options);
  return Fail(ErrorCode::Invalid, "give --dry-run, for the live cluster, or --simulate FILE");
}

Result<ExitCode> RunClusterSimulation(const ClusterPlanOptions& options) {
  BOOST_OUTCOME_TRY(text, ReadWhole(options.simulate));
  BOOST_OUTCOME_TRY(state,
                    ReadClusterState(text, options.simulate == "-" ? "standard input" : options.simulate));
  const NumberedState numbered = Number(state);
  const BootTime begun = BootClock::now();
  const Plan plan = SolvePlan(numbered.input);
  const Micros took = BootClock::now() - begun;
  PrintLine(JsonText(ToJson(numbered, plan, took)));
  return ExitCode::Done;
}

}  // namespace millrace::engine

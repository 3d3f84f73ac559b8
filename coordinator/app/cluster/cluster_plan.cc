#include "coordinator/app/cluster/cluster_plan.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/app/command/command.h"
#include "framework/base/clock.h"
#include "framework/base/escape.h"
#include "framework/config/position_map.h"
#include "framework/config/section.h"
#include "framework/files/paths.h"

namespace millrace::engine {
namespace {

using nlohmann::json;

using nlohmann::ordered_json;

constexpr std::size_t kLongestId = 1024;
constexpr std::size_t kMostProblems = 10;

KeyPath Below(KeyPath path, std::string key) {
  path.push_back(std::move(key));
  return path;
}

std::vector<std::string> ReadTexts(const json& list, const KeyPath& path, Problems& problems) {
  std::vector<std::string> texts;
  if (!list.is_array()) {
    problems.Add(path, "this must be a list of texts");
    return texts;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_string()) {
      problems.Add(Below(path, std::to_string(i)), "this must be a text in quotes");
    } else {
      texts.push_back(list[i].get<std::string>());
    }
  }
  return texts;
}

std::optional<std::vector<std::string>> ReadLimit(Section& section, const char* key) {
  const json* list = section.Child(key);
  if (list == nullptr || list->is_null()) return std::nullopt;
  return ReadTexts(*list, section.Path(key), section.problems());
}

void ReadRequired(Section& section, const char* key, std::string& value) {
  if (section.Child(key) == nullptr) {
    section.Add(key, "missing: every element needs one");
  } else {
    section.Text(key, value, kLongestId);
  }
}

NamedWorker ReadNamedWorker(Section& section) {
  NamedWorker worker;
  ReadRequired(section, "id", worker.id);
  section.Integer("weight", worker.weight, 1, kMaxWeight);
  worker.handlers = ReadLimit(section, "handlers");
  worker.slices = ReadLimit(section, "slices");
  return worker;
}

NamedSlice ReadNamedSlice(Section& section) {
  NamedSlice slice;
  ReadRequired(section, "id", slice.id);
  ReadRequired(section, "group", slice.group);
  return slice;
}

// A list of objects whose ids differ.
template <class Element>
std::vector<Element> ReadElements(Section& document, const char* key, Element (*read)(Section&)) {
  std::vector<Element> elements;
  const json* list = document.Child(key);
  if (list == nullptr || !list->is_array()) {
    document.Add(key, list == nullptr ? "missing: write a list, which may be empty" : "this must be a list");
    return elements;
  }
  std::set<std::string> ids;
  elements.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    Section section((*list)[i], Below(document.Path(key), std::to_string(i)), document.problems());
    elements.push_back(read(section));
    section.Done();
    const std::string& id = elements.back().id;
    if (!id.empty() && !ids.insert(id).second) {
      section.Add("id", "'" + Escape(id) + "' stands here for the second time; keep one of them");
    }
  }
  return elements;
}

void ReadGroups(Section& document, NamedInput& state) {
  const json* groups = document.Child("groups");
  if (groups == nullptr) return;
  Section section(*groups, document.Path("groups"), document.problems());
  for (const auto& [name, handlers] : section.Every().items()) {
    state.groups[name] = ReadTexts(handlers, section.Path(name), document.problems());
  }
}

void ReadCurrent(Section& document, NamedInput& state) {
  const json* current = document.Child("current");
  if (current == nullptr) return;
  Section section(*current, document.Path("current"), document.problems());
  for (const auto& [slice, worker] : section.Every().items()) {
    if (worker.is_string()) {
      state.current.emplace(slice, worker.get<std::string>());
    } else if (!worker.is_null()) {
      section.Add(slice, "this must be the id of a worker, in quotes");
    }
  }
}

NamedInput ReadDocument(const json& value, Problems& problems) {
  NamedInput state;
  Section document(value, {}, problems);
  state.workers = ReadElements(document, "workers", ReadNamedWorker);
  state.slices = ReadElements(document, "slices", ReadNamedSlice);
  ReadGroups(document, state);
  ReadCurrent(document, state);
  document.Done();
  return state;
}

// A large file with one habit gone wrong has as many problems as lines.
Failure Refuse(const Problems& problems) {
  std::string text = problems.Text();
  std::size_t end = 0;
  for (std::size_t shown = 0; shown < kMostProblems && end != text.npos; ++shown) {
    end = text.find('\n', end + 1);
  }
  if (end != text.npos) {
    const auto more = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
    text = text.substr(0, end) + "\nand " + std::to_string(more) + " more of the kind";
  }
  return Fail(ErrorCode::Invalid, text);
}

struct ClusterPlanOptions {
  CommonFlags common;
  std::string simulate;  // a file, or - for standard input
  bool dry_run = false;
  std::vector<std::string> without;  // as if these were drained
};

Result<std::string> ReadWhole(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  auto text = ReadFileText(path);
  if (!text)
    return Fail(ErrorCode::Invalid,
                text.error().message + "; give another file with --simulate, or - for standard input");
  return text;
}

ordered_json ToJson(const NumberedInput& state, const Plan& plan, Micros took) {
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

Result<ExitCode> RunClusterSimulation(const ClusterPlanOptions& options) {
  BOOST_OUTCOME_TRY(text, ReadWhole(options.simulate));
  BOOST_OUTCOME_TRY(state,
                    ReadPlanInput(text, options.simulate == "-" ? "standard input" : options.simulate));
  const NumberedInput numbered = Number(state);
  const BootTime begun = BootClock::now();
  const Plan plan = SolvePlan(numbered.input);
  const Micros took = BootClock::now() - begun;
  PrintJson(ToJson(numbered, plan, took));
  return ExitCode::Done;
}

Result<ExitCode> RunClusterDryRun(const ClusterPlanOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(*cluster.client));
  BOOST_OUTCOME_TRYV(CheckWorkers(snapshot, options.without));
  BOOST_OUTCOME_TRY(catalog, ReadCatalog(cluster));
  PlanState state =
      PlanStateOf(snapshot, {options.without.begin(), options.without.end()}, cluster.settings.config);
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
    PrintJson({{"moves", decision.moves.size()}, {"unplaceable", decision.unplaceable}, {"list", moves}});
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

Result<ExitCode> RunClusterPlan(const ClusterPlanOptions& options) {
  if (!options.simulate.empty() && !options.without.empty()) {
    return Fail(ErrorCode::Invalid,
                "--without is for the live cluster: of a file with --simulate leave those workers out");
  }
  if (!options.simulate.empty()) return RunClusterSimulation(options);
  if (options.dry_run || !options.without.empty()) return RunClusterDryRun(options);
  return Fail(ErrorCode::Invalid, "give --dry-run, for the live cluster, or --simulate FILE");
}

}  // namespace

Result<NamedInput> ReadPlanInput(std::string_view text, std::string_view source) {
  const PositionMap positions = PositionMap::Read(text);
  Problems problems(positions, std::string(source));
  for (const TextProblem& problem : positions.problems()) {
    problems.AddAt(problem.line, problem.path, problem.what);
  }
  if (!problems.empty()) return Refuse(problems);
  const json value = json::parse(text.begin(), text.end(), nullptr, true, true);
  NamedInput state = ReadDocument(value, problems);
  if (!problems.empty()) return Refuse(problems);
  return state;
}

void AddClusterPlan(CLI::App& cluster, Chosen& chosen) {
  const auto plan =
      AddCommand(cluster, chosen, "plan", "Show who would own which slice, and how many would move",
                 "  millrace cluster plan --dry-run\n"
                 "  millrace cluster plan --simulate cluster.json",
                 RunClusterPlan);
  CLI::Option* simulate = plan.Add("--simulate", plan->simulate,
                                   "plan for the cluster in this JSON file; - is standard input", "FILE");
  plan.app->add_flag("--dry-run", plan->dry_run, "plan for the live cluster, and change nothing")
      ->excludes(simulate);
  plan.Add("--without", plan->without, "as if these workers were drained", "ID")->delimiter(',');
}

}  // namespace millrace::engine

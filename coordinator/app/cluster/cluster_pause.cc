#include "coordinator/app/cluster/cluster_pause.h"

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <charconv>
#include <set>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/pause_places.h"
#include "coordinator/app/command/command.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"
#include "framework/policy/pauses.h"

namespace millrace::engine {
namespace {

struct PauseOptions {
  CommonFlags common;
  std::vector<std::string> targets;
  bool force = false;  // pause: also what the cluster does not know
  std::string reason;
};

Failure Unknown(const std::string& name, const std::string& why) {
  return Fail(ErrorCode::Invalid,
              "nothing was paused by '" + name + "': " + why + "; to pause it all the same, add --force");
}

// `trouble`: what is wrong where it is none of those that are known.
Status CheckIsThere(const std::string& name, const std::string& one,
                    const std::optional<std::set<std::string>>& known, const std::string& trouble) {
  if (!known || known->contains(one)) return {};
  return Unknown(name, trouble + NearestOf(one, {known->begin(), known->end()}, "; there are ", 8));
}

Status CheckShard(const std::string& name, const std::string& shard, const PauseTargets& known) {
  return CheckIsThere(name, shard, known.shards, "there is no shard '" + shard + "'");
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
  BOOST_OUTCOME_TRYV(CheckReason(options.reason));
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

}  // namespace

Status CheckPauseTargets(const std::vector<std::string>& names, const PauseTargets& known) {
  for (const std::string& name : names) {
    std::vector<std::string> parts;
    boost::split(parts, name, boost::is_any_of(":"));
    Status good;
    if (parts[0] == "shard") good = CheckShard(name, parts[1], known);
    if (parts[0] == "handler") {
      good = CheckIsThere(name, parts[1], known.types,
                          "nobody runs the task type '" + parts[1] + "', and none is configured");
    }
    if (parts[0] == "worker")
      good = CheckIsThere(name, parts[1], known.workers, "there is no worker '" + parts[1] + "'");
    if (parts[0] == "slice") good = CheckSlice(name, parts, known);
    if (!good) return good;
  }
  return {};
}

Status CheckReason(const std::string& reason) {
  if (reason.size() <= kMaxReason) return {};
  return Fail(ErrorCode::Invalid, "--reason is longer than " + std::to_string(kMaxReason) + " bytes");
}

std::string WordsOfClose(const std::string& type) {
  const std::string breaker = "millrace handler breaker " + type;
  return breaker + " close starts them at once, and keeps it closed until " + breaker + " auto";
}

nlohmann::ordered_json PauseJson(const PauseRecord& pause) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  return {{"what", pause.what},
          {"by", or_null(pause.actor)},
          {"since", or_null(pause.since == WallTime{} ? "" : FormatTime(pause.since))},
          {"reason", or_null(pause.reason)}};
}

PauseWords WordsOfPause(const std::string& name) {
  if (const auto tripped = ReadTripped(name)) {
    return {"the breaker of " + tripped->type + " is open, and its tasks wait",
            "see what its calls fail of; " + WordsOfClose(tripped->type)};
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

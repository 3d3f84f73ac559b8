// millrace cluster pause and resume: the red button.
#include <nlohmann/json.hpp>
#include <set>

#include "coordinator/app/commands.h"
#include "coordinator/app/pause_places.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/suggest.h"
#include "framework/policy/pauses.h"

namespace millrace::engine {
namespace {

std::string Joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void TellNotPaused(const std::string& name, const std::set<std::string>& paused, bool complete) {
  const std::string hint = DidYouMean(name, std::vector<std::string>(paused.begin(), paused.end()));
  PrintError("'" + name + "' was not paused" + (complete ? "" : " where it could be asked") + hint +
             (paused.empty() ? "; nothing is paused" : "; paused: " + Joined(paused)));
}

}  // namespace

Result<ExitCode> RunClusterPause(const ClusterControlOptions& options) {
  BOOST_OUTCOME_TRYV(Pauses::Parse(options.targets));
  BOOST_OUTCOME_TRY(places, PausePlaces::Find(options.common));
  if (!options.force) {
    BOOST_OUTCOME_TRYV(CheckPauseTargets(options.targets, places.Known(options.common, options.targets)));
  }
  BOOST_OUTCOME_TRYV(places.Set(options.targets, true));
  PrintLine(options.common.json
                ? JsonText({{"paused", options.targets}})
                : "paused: nothing more of it is started, on any worker, within 2 s; what runs is finished");
  return places.complete() ? ExitCode::Done : ExitCode::SomethingFailed;
}

Result<ExitCode> RunClusterResume(const ClusterControlOptions& options) {
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
    PrintLine(JsonText({{"resumed", changed}, {"not_paused", missing}, {"paused", paused}}));
  } else if (!changed.empty()) {
    PrintLine("resumed: " + Joined(changed) + (paused.empty() ? "" : "; still paused: " + Joined(paused)));
  }
  return places.complete() && missing.empty() ? ExitCode::Done : ExitCode::SomethingFailed;
}

}  // namespace millrace::engine

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/app/cluster/cluster_health.h"
#include "coordinator/app/cluster/cluster_pause.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/app/cluster/limit_report.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"
#include "framework/base/utf8.h"
#include "tests/fuzz/target.h"

namespace millrace::engine::fuzz {
namespace {

WallTime Now() { return *ParseTime("2026-11-20T18:00:00Z"); }

void RequireText(const std::string& text) { Require(IsUtf8(text), "what people are shown is UTF-8"); }

// Nobody keeps another worker's version, or a person with a plain client, from writing any status: what is
// not understood of it says nothing, and the rest is shown.
void StatusShown(std::string_view input) {
  auto status = ParseNode<nlohmann::ordered_json>(std::string(input));
  if (!status.is_object()) return;
  ClusterSnapshot snapshot;
  snapshot.workers["w1"] = {};
  snapshot.assigned["w1"].slices = {"main/tasks/1"};
  snapshot.breakers["mail"] = {};
  snapshot.statuses["w1"] = std::move(status);
  const ShardStates shards{
      {"main", {.reachable = true, .error = {}, .tables = {}, .backlog = {.waiting = 7}}}};
  for (const Trouble& trouble : Troubles(snapshot, shards, Now())) {
    Require(!trouble.what.empty(), "a trouble is named");
    RequireText(ToText(trouble));
  }
  for (const LimitLine& line : LimitLines(snapshot)) {
    Require(!line.share.empty(), "a share is told in words");
    RequireText(line.share);
  }
  for (const auto& [type, running] : Unshared(snapshot)) RequireText(type);
  for (const std::string& type : HeldBack(snapshot)) RequireText(type);
  for (const auto& [worker, said] : DoorbellsOf(snapshot, "main")) RequireText(said);
  RequireText(WhyUnopened(snapshot, "w1", "main", "mail"));
  RequireText(BreakerText(snapshot, "mail", Now()));
  DropEndedBreakers(snapshot);
}

void PauseShown(std::string_view input) {
  ClusterSnapshot snapshot;
  snapshot.pauses = {"handler:mail"};
  const PauseRecord pause = ReadPauseStamp("handler:mail", {.data = std::string(input), .set_at = Now()});
  Require(pause.what == "handler:mail", "what is paused is the node's name, whatever stands in it");
  Require(pause.reason.size() <= kMaxReason, "a reason has an end");
  snapshot.pause_stamps["handler:mail"] = pause;
  bool told = false;
  for (const Trouble& trouble : Troubles(snapshot, {}, Now())) {
    RequireText(ToText(trouble));
    told = told ||
           (trouble.what.starts_with(WordsOfPause(pause.what).says) && trouble.what.ends_with(pause.reason));
  }
  Require(told, "a pause is told, with its reason");
}

}  // namespace

std::vector<Target> ShownTargets() {
  return {
      {"status_shown",
       StatusShown,
       {R"({"incarnation":"w1.a","generation":7,"refusals":["handlers.mail: no plugin"],"ignored":["--store"],)"
        R"("shards":{"main":{"incarnation":"w1.b","error":"away","doorbell":"off: no log","unrunnable":["mail"],)"
        R"("resting":{"tasks":"no right"},"scan_speed":0.5,"bands":[{"handler":"mail","priority":"5-9",)"
        R"("failures":"1-5","next":"2026-11-20T18:00:15Z"}],"rounds":{"mail":{"open":true,)"
        R"("next":"2026-11-20T18:00:15Z"}}}},"permits":{"mail":{"concurrency":3,"held":1,"waiting":2}},)"
        R"("permits_held_up":"no home","permits_locked":["mail"],"full":["mail"],"plugins":["noop 1"]})",
        R"({"limits":{"mail":{"uses":2.5,"saved":0.5,"running":3,"placed":1,"waiting":4,"wants_rate":true,)"
        R"("wants_concurrency":true,"share":{"rate":33.3,"concurrency":2,"permits":3}}},"breakers":{"mail":)"
        R"({"state":"open","next_probe":"2026-11-20T18:00:30Z"}},"lag_ms":40,"running":3,"claims_per_second":9.5})"},
       {"\"shards\":{", "\"main\":", "\"limits\":{", "\"share\":", "\"scan_speed\":", "1e308", "-1", "[]",
        "{}", "null"}},
      {"pause_shown",
       PauseShown,
       {R"({"by":"ann@desk","at":"2026-11-20T18:00:00Z","reason":"the partner is down"})", "{}", ""},
       {"\"by\":", "\"at\":", "\"reason\":", "null"}},
  };
}

}  // namespace millrace::engine::fuzz

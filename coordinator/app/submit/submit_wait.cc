#include "coordinator/app/cli/progress.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cli/text_table.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/task/outcome_watch.h"
#include "coordinator/app/task/task_why.h"
#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

constexpr Micros kAwayAtMost = std::chrono::minutes(1);
constexpr Micros kFirstWhy = std::chrono::seconds(2);
constexpr std::size_t kEndsShown = 20;

// Says why the next task has not ended where none has for a while: after 2 s, 6 s, 18 s …
class Explainer {
 public:
  Explainer(TaskShards& open, const CommonFlags& common, const std::string& shard)
      : open_(open), common_(common), shard_(shard) {}

  void Tell(const OutcomeWatch& watch, BootTime now, ProgressLine& line) {
    if (now - watch.last_end() < kFirstWhy) after_ = kFirstWhy;
    if (now - watch.last_end() < after_) return;
    after_ = 3 * std::chrono::duration_cast<Micros>(now - watch.last_end());
    const TaskName name{shard_, watch.next()};
    const auto why = ExplainTask(open_, common_, name);
    if (!why) return;
    line.Clear();
    PrintNote("waiting for " + ToString(name) + ":");
    for (const Reason& reason : *why) PrintNote("  " + Escape(reason.text));
  }

 private:
  TaskShards& open_;
  const CommonFlags& common_;
  const std::string& shard_;
  Micros after_ = kFirstWhy;
};

std::string HowToLook(const std::string& shard, const OutcomeWatch& watch) {
  return Count(watch.open(), "task stays", "tasks stay") + " as " +
         (watch.open() == 1 ? "it is" : "they are") + ": millrace task why " +
         ToString(TaskName{shard, watch.next()});
}

}  // namespace

bool StorePatience::Bears(const Error& error, BootTime now) {
  if (error.code != ErrorCode::Unavailable && error.code != ErrorCode::Conflict &&
      error.code != ErrorCode::Unknown)
    return false;
  if (!away_since_) {
    away_since_ = now;
    PrintNote("waiting for the store: " + error.message);
  }
  return now - *away_since_ < kAwayAtMost;
}

WaitReport WaitForOutcomes(TaskShards& open, const CommonFlags& common, const std::string& shard,
                           const std::vector<TaskKey>& tasks) {
  CatchStopSignals();
  WaitReport report;
  OutcomeWatch watch(tasks, BootClock::now());
  ProgressLine line(ErrorIsTerminal() && !common.json);
  Explainer explainer(open, common, shard);
  StorePatience patience;
  while (!watch.Done() && StopSignalsSeen() == 0) {
    const BootTime now = BootClock::now();
    const Status looked = watch.Look(open.Operations(shard), now);
    if (looked) {
      patience.Answered();
    } else if (!patience.Bears(looked.error(), now)) {
      report.error = looked.error();
      report.error->message += "; " + HowToLook(shard, watch);
      break;
    }
    if (watch.Done()) break;
    line.Show(WithCommas(tasks.size() - watch.open()) + " of " + WithCommas(tasks.size()) + " ended",
              BootClock::now());
    if (!patience.away()) explainer.Tell(watch, BootClock::now(), line);
    RestUnlessStopped(watch.Pause(BootClock::now()));
  }
  line.Clear();
  report.totals = watch.totals();
  report.open = watch.open();
  if (!watch.Done() && StopSignalsSeen() > 0) PrintNote(HowToLook(shard, watch));
  if (tasks.size() == 1 && report.totals.succeeded == 1) {
    if (const auto record = open.Operations(shard).Get(tasks[0])) report.result = record->result;
  }
  return report;
}

nlohmann::ordered_json ToJson(const std::string& shard, const WaitReport& report) {
  const WatchTotals& totals = report.totals;
  nlohmann::ordered_json out;
  out["outcomes"] = {{"succeeded", totals.succeeded},
                     {"failed", totals.failed},
                     {"cancelled", totals.cancelled},
                     {"gone", totals.gone},
                     {"open", report.open}};
  out["not_succeeded"] = nlohmann::ordered_json::array();
  for (const WatchedEnd& end : totals.others) {
    out["not_succeeded"].push_back(
        {{"name", ToString(TaskName{shard, end.key})}, {"state", end.state}, {"why", end.why}});
  }
  if (!report.result.empty()) out["result"] = report.result;
  return out;
}

void PrintOutcomes(const std::string& shard, const WaitReport& report) {
  const WatchTotals& totals = report.totals;
  if (!totals.others.empty()) {
    TextTable table{{{"task"}, {"state"}, {"why"}}, {}};
    for (const WatchedEnd& end : totals.others) {
      if (table.rows.size() == kEndsShown) break;
      table.rows.push_back({ToString(TaskName{shard, end.key}), end.state, end.why});
    }
    PrintTable(table);
    const std::uint64_t all = totals.failed + totals.cancelled + totals.gone;
    if (all > kEndsShown)
      PrintNote("… and " + WithCommas(all - kEndsShown) + " more; --json lists up to 1,000");
  }
  std::string text = WithCommas(totals.succeeded) + " succeeded, " + WithCommas(totals.failed) + " failed";
  if (totals.cancelled > 0) text += ", " + WithCommas(totals.cancelled) + " cancelled";
  if (totals.gone > 0) text += ", " + WithCommas(totals.gone) + " gone";
  if (report.open > 0) text += ", " + WithCommas(report.open) + " not ended yet";
  if (!report.result.empty()) text += ": " + Escape(report.result);
  PrintLine(text);
}

}  // namespace millrace::engine

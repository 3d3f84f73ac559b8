#include "coordinator/app/mill_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/progress_line.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"

namespace millrace::engine {
namespace {

constexpr Micros kCounting = std::chrono::seconds(2);

const char* WordOf(WorkerEnd end) {
  switch (end) {
    case WorkerEnd::Idle:
      return "idle";
    case WorkerEnd::Stopped:
      return "stopped";
    case WorkerEnd::GaveUp:
      return "gave_up";
    case WorkerEnd::Replace:
      return "replace";
  }
  return "";
}

// What an operator asks for after trouble; empty where there was none.
std::string TroubleText(const WorkerTotals& now) {
  std::string text;
  const auto add = [&text](std::uint64_t number, const char* what) {
    if (number == 0) return;
    text += (text.empty() ? "" : ", ") + WithCommas(number) + " " + what;
  };
  add(now.retried, "failed and retried");
  add(now.returned, "given back or put off");
  add(now.rescued, "rescued from dead workers");
  add(now.adopted, "adopted after a lost reply");
  add(now.refused, "settled too late and refused");
  return text;
}

nlohmann::ordered_json SummaryJson(const Result<MillSummary>& all, const WorkerTotals& now, Micros took,
                                   WorkerEnd end) {
  nlohmann::ordered_json out = all ? ToJson(*all) : nlohmann::ordered_json::object();
  out["this_run"] = {{"claimed", now.claimed},     {"succeeded", now.succeeded}, {"failed", now.failed},
                     {"cancelled", now.cancelled}, {"retried", now.retried},     {"returned", now.returned},
                     {"refused", now.refused},     {"adopted", now.adopted},     {"rescued", now.rescued}};
  out["seconds"] = static_cast<double>(took.count() / 1000) / 1000;
  out["end"] = WordOf(end);
  return out;
}

}  // namespace

ExitCode ExitCodeOf(WorkerEnd end) {
  if (end == WorkerEnd::GaveUp) {
    PrintError(
        "the stop deadline passed with handlers still running: their tasks are run again by the next worker");
  }
  if (end == WorkerEnd::Replace) {
    PrintError(
        "too many threads are lost to handlers that ignore their time limit: start this command again, and "
        "look at what those handlers wait for");
  }
  return end == WorkerEnd::Idle || end == WorkerEnd::Stopped ? ExitCode::Done : ExitCode::SomethingFailed;
}

Result<MillSummary> ReadSummary(const Shards& shards, const WorkerStatus& status) {
  MillSummary summary;
  for (const ShardStatus& shard : status.shards) {
    if (!shard.error.empty()) return Fail(ErrorCode::Unavailable, shard.shard + ": " + shard.error);
    summary.unrunnable.insert(shard.unrunnable.begin(), shard.unrunnable.end());
  }
  const BootTime deadline = BootClock::now() + kCounting;
  for (const auto& [name, shard] : shards) {
    if (Status added = AddShard(*shard.store->OpenDesk(), shard.tables, deadline, summary); !added)
      return Fail(added.error().code, name + ": " + added.error().message);
  }
  return summary;
}

void PrintSummary(const MillFlags& flags, const Result<MillSummary>& all, const WorkerTotals& now,
                  Micros took, WorkerEnd end) {
  if (!all && !all.error().message.empty()) PrintNote("the totals can't be read now: " + all.error().message);
  if (flags.common.json) {
    PrintLine(JsonText(SummaryJson(all, now, took, end)));
    return;
  }
  const std::uint64_t ended = now.succeeded + now.failed + now.cancelled;
  if (ended > 0) {
    const double seconds = std::max(0.001, std::chrono::duration<double>(took).count());
    PrintNote("this run: " + Count(ended, "task", "tasks") + " in " + ElapsedText(took) + ", " +
              WithCommas(static_cast<std::uint64_t>(static_cast<double>(ended) / seconds)) + " a second");
  } else {
    PrintNote("this run: nothing was due");
  }
  if (const std::string trouble = TroubleText(now); !trouble.empty()) PrintNote("this run: " + trouble);
  if (!all) return;
  PrintLine(SummaryText(*all));
  const std::string where = flags.common.store.empty() ? "" : " --store '" + flags.common.store + "'";
  for (const std::string& line : LeftTexts(*all, where, SystemClock().WallNow())) PrintNote(line);
}

}  // namespace millrace::engine

#include "coordinator/app/process/worker_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"
#include "framework/threads/signal.h"

namespace millrace::engine {
namespace {

std::string HowMany(std::uint64_t number, bool or_more, const char* one, const char* many) {
  if (or_more) return WithCommas(number) + " or more tasks " + many;
  return Count(number, "task", "tasks") + " " + (number == 1 ? one : many);
}

std::string WaitingText(const TaskSummary& summary, const std::string& where, WallTime now) {
  const std::string many = HowMany(summary.backlog.waiting, summary.backlog.or_more, "waits", "wait");
  const auto first = summary.backlog.next_due;
  if (!first) return many + ": millrace task list --state waiting" + where;  // what is due runs
  const WallTime due = *first;
  if (due <= now) {
    return many + ", the first has been due for " + ElapsedText(now - due) +
           ": millrace task list --state waiting" + where + ", and millrace task why NAME" + where;
  }
  return many + ", the first until " + FormatTime(std::chrono::ceil<std::chrono::seconds>(due)) + " (" +
         Relative(due, now) + "): millrace task list --state waiting" + where;
}

constexpr Micros kCounting = std::chrono::seconds(2);

std::string EndedText(std::uint64_t succeeded, std::uint64_t failed, std::uint64_t cancelled) {
  std::string text = std::to_string(succeeded) + " succeeded, " + std::to_string(failed) + " failed";
  if (cancelled > 0) text += ", " + std::to_string(cancelled) + " cancelled or skipped";
  return text;
}

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
  add(now.held, "failed and held");
  add(now.returned, "given back or put off");
  add(now.rescued, "rescued from dead workers");
  add(now.adopted, "adopted after a lost reply");
  add(now.refused, "settled too late and refused");
  return text;
}

nlohmann::ordered_json SummaryJson(const Result<TaskSummary>& all, const WorkerTotals& now, Micros took,
                                   WorkerEnd end) {
  nlohmann::ordered_json out = all ? ToJson(*all) : nlohmann::ordered_json::object();
  out["this_run"] = {{"claimed", now.claimed},     {"succeeded", now.succeeded}, {"failed", now.failed},
                     {"cancelled", now.cancelled}, {"retried", now.retried},     {"held", now.held},
                     {"returned", now.returned},   {"refused", now.refused},     {"adopted", now.adopted},
                     {"rescued", now.rescued}};
  out["seconds"] = static_cast<double>(std::chrono::floor<std::chrono::milliseconds>(took).count()) / 1000;
  out["end"] = WordOf(end);
  return out;
}

constexpr Micros kBetweenReads = std::chrono::milliseconds(500);
// The backlog is counted for the eye: between two reads so many times as long passes as the last one took,
// within limits: it may have waited for a server.
constexpr int kPausesPerRead = 20;
constexpr Micros kMostBetweenReads = std::chrono::seconds(30);

}  // namespace

Status AddShard(Store& store, const std::vector<TableInfo>& tables, BootTime deadline, TaskSummary& summary) {
  BOOST_OUTCOME_TRY(totals, store.OpenOperations()->TypeTotals());
  for (const TaskTotals& group : totals) {
    summary.succeeded += group.succeeded;
    summary.cancelled += group.cancelled;
    summary.failed += group.failed;
    summary.attempts_failed += group.attempts_failed;
  }
  const auto overview = store.OpenOverview();
  for (const TableInfo& info : tables) {
    if (BootClock::now() >= deadline) {
      summary.backlog.or_more = summary.held_or_more = true;
      return {};
    }
    BOOST_OUTCOME_TRY(waiting, overview->Waiting(std::span(&info.table, 1)));
    summary.backlog += waiting;
    for (const HandlerOverview& one : waiting.handlers) {
      summary.held += one.held.count;
      summary.held_or_more = summary.held_or_more || one.held.more;
    }
  }
  return {};
}

std::string SummaryText(const TaskSummary& all, const WorkerTotals& run) {
  const std::string in_all = EndedText(all.succeeded, all.failed, all.cancelled);
  const std::string here = EndedText(run.succeeded, run.failed, run.cancelled);
  return here == in_all ? in_all : "this run: " + here + "; in all: " + in_all;
}

std::vector<std::string> LeftTexts(const TaskSummary& summary, const std::string& where, WallTime now) {
  std::vector<std::string> lines;
  // A bound of nothing says nothing: the count was given up before it found one.
  if (summary.backlog.waiting > 0) lines.push_back(WaitingText(summary, where, now));
  for (const auto& [type, why] : summary.unrunnable) {
    lines.push_back(why.empty() ? "no plugin here has the handler of type " + type + ", whose tasks are due"
                                : "tasks of " + type + " are due and can't be run here: " + why);
  }
  if (summary.held > 0) {
    lines.push_back(HowMany(summary.held, summary.held_or_more, "is held", "are held") +
                    ": millrace task list --state held" + where);
  }
  if (summary.failed > 0) {
    lines.push_back(HowMany(summary.failed, false, "failed and needs", "failed and need") +
                    " a person: millrace task list --state failed" + where);
  }
  return lines;
}

nlohmann::ordered_json ToJson(const TaskSummary& summary) {
  auto unrunnable = nlohmann::ordered_json::array();
  auto cannot_open = nlohmann::ordered_json::object();
  for (const auto& [type, why] : summary.unrunnable) {
    unrunnable.push_back(type);
    if (!why.empty()) cannot_open[type] = why;
  }
  return {
      {"succeeded", summary.succeeded},
      {"failed", summary.failed},
      {"cancelled", summary.cancelled},
      {"attempts_failed", summary.attempts_failed},
      {"waiting", summary.backlog.waiting},
      {"waiting_or_more", summary.backlog.or_more},
      {"next_due", summary.backlog.next_due ? nlohmann::ordered_json(FormatTime(*summary.backlog.next_due))
                                            : nlohmann::ordered_json(nullptr)},
      {"held", summary.held},
      {"held_or_more", summary.held_or_more},
      {"unrunnable", std::move(unrunnable)},
      {"cannot_open", std::move(cannot_open)}};
}

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

Result<TaskSummary> ReadSummary(const Shards& shards, const WorkerStatus& status) {
  TaskSummary summary;
  for (const ShardStatus& shard : status.shards) {
    if (!shard.error.empty()) return Fail(ErrorCode::Unavailable, shard.shard + ": " + shard.error);
    for (const std::string& type : shard.unrunnable) {
      const auto refused = status.unopened.find(type);
      summary.unrunnable[type] = refused == status.unopened.end() ? "" : refused->second;
    }
  }
  const BootTime deadline = BootClock::now() + kCounting;
  for (const auto& [name, shard] : shards) {
    if (Status added = AddShard(*shard.store, shard.tables, deadline, summary); !added)
      return Fail(added.error().code, name + ": " + added.error().message);
  }
  return summary;
}

void PrintSummary(const WorkerFlags& flags, const Result<TaskSummary>& all, const WorkerTotals& now,
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
    PrintNote("this run: no task ended");
  }
  if (const std::string trouble = TroubleText(now); !trouble.empty()) PrintNote("this run: " + trouble);
  if (!all) return;
  PrintLine(SummaryText(*all, now));
  const std::string where = flags.common.store.empty() ? "" : " --store '" + flags.common.store + "'";
  for (const std::string& line : LeftTexts(*all, where, SystemClock().WallNow())) PrintNote(line);
}

WorkerProgress::WorkerProgress(Shards& shards, bool enabled) : shards_(shards), line_(enabled) {
  if (!enabled) return;
  for (auto& [name, shard] : shards_) overviews_[name] = shard.store->OpenOverview();
}

// A shard that is away keeps its last numbers: the worker says that it is away.
void WorkerProgress::ReadBacklog(BootTime begun) {
  Backlog backlog;
  bool all = true;
  for (auto& [name, shard] : shards_) {
    const auto waiting = overviews_.at(name)->Waiting(NamesOf(shard.tables));
    all = all && waiting;
    if (!all) break;
    backlog += *waiting;
  }
  if (all) backlog_ = backlog;
  last_read_ = BootClock::now();
  read_cost_ = *last_read_ - begun;
}

void WorkerProgress::Update(const WorkerTotals& totals) {
  const BootTime now = BootClock::now();
  if (!line_.Due(now)) return;
  if (!reading_) {
    if (last_read_) shown_ = backlog_;
    const Micros rest = std::clamp<Micros>(read_cost_ * kPausesPerRead, kBetweenReads, kMostBetweenReads);
    if (!last_read_ || now - *last_read_ >= rest) {
      reading_ = true;
      const Status begun = reader_.Start("backlog", [this, now] {
        ReadBacklog(now);
        reading_ = false;
      });
      if (!begun) reading_ = false;
    }
  }
  if (!shown_) return;
  const std::uint64_t done = totals.succeeded + totals.cancelled;
  const double rate = rate_.Rate(done + totals.failed, now);
  line_.Show(ProgressText({done, totals.failed, totals.retried, shown_->waiting, shown_->or_more, rate},
                          TerminalWidth() - 1),
             now);
}

bool WorkerProgress::Stop() {
  line_.Clear();
  Signal never;
  for (int i = 0; i < 100 && reading_; ++i) never.WaitFor(std::chrono::milliseconds(10));
  return !reading_;
}

}  // namespace millrace::engine

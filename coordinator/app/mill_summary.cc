#include "coordinator/app/mill_summary.h"

#include <algorithm>

#include "coordinator/app/progress_line.h"
#include "coordinator/app/task_text.h"
#include "coordinator/app/terminal.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr std::uint64_t kMostHeld = 1000;

Status AddWaiting(TaskDesk& desk, const TableName& table, MillSummary& summary) {
  BOOST_OUTCOME_TRY(backlog, desk.Backlog(table));
  for (const GroupBacklog& group : backlog) {
    summary.waiting += group.waiting;
    summary.waiting_or_more = summary.waiting_or_more || group.more;
    if (!group.oldest_due) continue;
    summary.next_due = std::min(summary.next_due.value_or(*group.oldest_due), *group.oldest_due);
  }
  return {};
}

Status AddHeld(TaskDesk& desk, const TableName& table, BootTime deadline, MillSummary& summary) {
  TaskFilter held;
  held.state = TaskState::Held;
  std::string mark;
  do {
    BOOST_OUTCOME_TRY(page, desk.List(table, held, mark, kMaxBatchRows));
    summary.held += page.records.size();
    mark = page.next;
    const bool enough = summary.held >= kMostHeld || BootClock::now() >= deadline;
    if (!mark.empty() && enough) summary.held_or_more = true;
  } while (!mark.empty() && !summary.held_or_more);
  return {};
}

std::string HowMany(std::uint64_t number, bool or_more, const char* one, const char* many) {
  if (or_more) return WithCommas(number) + " or more tasks " + many;
  return Count(number, "task", "tasks") + " " + (number == 1 ? one : many);
}

std::string WaitingText(const MillSummary& summary, const std::string& where, WallTime now) {
  const std::string many = HowMany(summary.waiting, summary.waiting_or_more, "waits", "wait");
  const WallTime due = summary.next_due.value_or(now);
  if (due <= now) {
    return many + ", the first has been due for " + ElapsedText(now - due) +
           ": millrace task list --state waiting" + where + ", and millrace task why NAME" + where;
  }
  return many + ", the first until " + FormatTime(std::chrono::ceil<std::chrono::seconds>(due)) + " (" +
         Relative(due, now) + "): millrace task list --state waiting" + where;
}

}  // namespace

Status AddShard(TaskDesk& desk, const std::vector<TableInfo>& tables, BootTime deadline,
                MillSummary& summary) {
  BOOST_OUTCOME_TRY(totals, desk.Totals());
  for (const TaskTotals& group : totals) {
    summary.succeeded += group.succeeded;
    summary.cancelled += group.cancelled;
    summary.failed += group.failed;
    summary.attempts_failed += group.attempts_failed;
  }
  for (const TableInfo& info : tables) {
    if (BootClock::now() >= deadline) {
      summary.waiting_or_more = summary.held_or_more = true;
      return {};
    }
    BOOST_OUTCOME_TRYV(AddWaiting(desk, info.table, summary));
    BOOST_OUTCOME_TRYV(AddHeld(desk, info.table, deadline, summary));
  }
  return {};
}

std::string SummaryText(const MillSummary& summary) {
  std::string text =
      std::to_string(summary.succeeded) + " succeeded, " + std::to_string(summary.failed) + " failed";
  if (summary.cancelled > 0) text += ", " + std::to_string(summary.cancelled) + " cancelled or skipped";
  return text;
}

std::vector<std::string> LeftTexts(const MillSummary& summary, const std::string& where, WallTime now) {
  std::vector<std::string> lines;
  if (summary.waiting > 0 || summary.waiting_or_more) lines.push_back(WaitingText(summary, where, now));
  for (const std::string& type : summary.unrunnable)
    lines.push_back("no plugin here has the handler of type " + type + ", whose tasks are due");
  if (summary.held > 0 || summary.held_or_more) {
    lines.push_back(HowMany(summary.held, summary.held_or_more, "is held", "are held") +
                    ": millrace task list --state held" + where);
  }
  if (summary.failed > 0) {
    lines.push_back(HowMany(summary.failed, false, "failed and needs", "failed and need") +
                    " a person: millrace task list --state failed" + where);
  }
  return lines;
}

nlohmann::ordered_json ToJson(const MillSummary& summary) {
  return {{"succeeded", summary.succeeded},
          {"failed", summary.failed},
          {"cancelled", summary.cancelled},
          {"attempts_failed", summary.attempts_failed},
          {"waiting", summary.waiting},
          {"waiting_or_more", summary.waiting_or_more},
          {"next_due", summary.next_due ? nlohmann::ordered_json(FormatTime(*summary.next_due))
                                        : nlohmann::ordered_json(nullptr)},
          {"held", summary.held},
          {"held_or_more", summary.held_or_more},
          {"unrunnable", summary.unrunnable}};
}

}  // namespace millrace::engine

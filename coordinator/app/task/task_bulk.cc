#include "coordinator/app/task/task_bulk.h"

#include <algorithm>
#include <functional>

#include "coordinator/app/cli/progress.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/stop_signals.h"
#include "framework/base/random.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kExamples = 3;
constexpr int kTriesOfAStep = 10;

bool Fits(const BulkAct& act, const Task& task) {
  return StateAfter(act.action, task.state, act.edit).has_value();
}

// The tasks of a page that the action would change, which may be none; false ends the walk.
using PageVisitor = std::function<Result<bool>(const std::string& shard, const TableName& table,
                                               const std::vector<TaskRecord>& records)>;

// Returns whether it came to the end.
Result<bool> Walk(TaskShards& open, const BulkAct& act, std::size_t page_size, const PageVisitor& visit) {
  BOOST_OUTCOME_TRY(tables, TablesOf(open, act.choice));
  TaskFilter filter = act.filter;
  filter.without_finished = true;  // no action changes what is there
  for (const auto& [shard, table] : tables) {
    std::string mark;
    do {
      if (StopSignalsSeen() > 0) return false;
      BOOST_OUTCOME_TRY(page, open.Operations(shard).List(table, filter, mark, page_size));
      std::erase_if(page.records, [&](const TaskRecord& record) { return !Fits(act, record.task); });
      BOOST_OUTCOME_TRY(on, visit(shard, table, page.records));
      if (!on) return false;
      mark = page.next;
    } while (!mark.empty());
  }
  return true;
}

class Progress {
 public:
  Progress(bool shown, const BulkAct& act, const BulkPreview& preview)
      : line_(shown), preview_(preview), what_(PastOf(act.action)) {
    meter_.Rate(0, BootClock::now());
  }
  void Show(std::uint64_t changed) {
    const BootTime now = BootClock::now();
    if (!line_.Due(now)) return;
    ProgressNumbers numbers{.done = changed, .waiting_or_more = preview_.more};
    numbers.waiting = preview_.count - std::min(preview_.count, changed);
    numbers.per_second = meter_.Rate(changed, now);
    line_.Show(preview_.more ? WithCommas(changed) + " " + what_ + " · " +
                                   WithCommas(static_cast<std::uint64_t>(numbers.per_second)) + "/s"
                             : ProgressText(numbers, TerminalWidth()),
               now);
  }

 private:
  ProgressLine line_;
  RateMeter meter_;
  const BulkPreview& preview_;
  const std::string what_;
};

}  // namespace

const char* PastOf(TaskAction action) {
  switch (action) {
    case TaskAction::Retry:
      return "retried";
    case TaskAction::Cancel:
      return "cancelled";
    case TaskAction::Hold:
      return "held";
    case TaskAction::Release:
      return "released";
    case TaskAction::Edit:
      return "edited";
  }
  return "";
}

const char* AgainOf(TaskAction action) {
  return action == TaskAction::Edit ? "the same again begins with the first of them"
                                    : "the same again goes on from there";
}

Result<BulkPreview> PreviewBulk(TaskShards& open, const BulkAct& act) {
  BulkPreview preview;
  const PageVisitor note = [&](const auto& shard, const auto&, const auto& records) -> Result<bool> {
    preview.count += records.size();
    for (const TaskRecord& record : records) {
      const Task& task = record.task;
      ++preview.groups[{task.handler, task.state}];
      if (preview.examples.size() == kExamples) continue;
      preview.examples.push_back(ToString(TaskName{shard, task.key}));
      preview.example_texts.push_back(preview.examples.back() + "  " + ToString(task.state) + "  " +
                                      task.handler + "  " +
                                      (task.last_error.empty() ? task.params : task.last_error));
    }
    return preview.count < kPreviewBound;
  };
  BOOST_OUTCOME_TRY(whole, Walk(open, act, kMaxBatchRows, note));
  preview.more = !whole;
  return preview;
}

std::string ActText(const std::string& what) { return what + " (act " + Random::FromSystem().Hex(8) + ")"; }

std::uint64_t CountRunning(std::span<const ChangedTask> changed) {
  return static_cast<std::uint64_t>(
      std::count_if(changed.begin(), changed.end(),
                    [](const ChangedTask& task) { return task.before == TaskState::Running; }));
}

Result<std::vector<ChangedTask>> ApplyStep(TaskOperations& operations, TaskAction action,
                                           const TaskEdit& edit, const TableName& table,
                                           const std::vector<std::uint64_t>& ids, const Author& author) {
  for (int attempt = 1;; ++attempt) {
    auto changed = action == TaskAction::Edit ? operations.Edit(edit, table, ids, author)
                                              : operations.Apply(action, table, ids, author);
    if (changed || changed.error().code != ErrorCode::Conflict || attempt == kTriesOfAStep) return changed;
    RestUnlessStopped(std::chrono::milliseconds(20 * attempt));
  }
}

Result<BulkResult> RunBulk(TaskShards& open, const BulkAct& act, const BulkPreview& preview) {
  BulkResult result;
  const Pace pace(act.per_second, kMaxBatchRows);
  Author author(Actor(), ActText("all that match " + act.filter_text));
  author.state = act.filter.state;
  Progress progress(ErrorIsTerminal() && !act.choice.common.json, act, preview);
  BootTime began = BootClock::now();  // of a step: its look, too, which may find nothing for long
  const PageVisitor change = [&](const auto& shard, const auto& table, const auto& records) -> Result<bool> {
    std::vector<std::uint64_t> ids;
    for (const TaskRecord& record : records) ids.push_back(record.task.key.id);
    auto done = ApplyStep(open.Operations(shard), act.action, act.edit, table, ids, author);
    if (!done) {
      return Fail(done.error().code, done.error().message + "; " + Count(result.changed, "task", "tasks") +
                                         " were changed before: " + AgainOf(act.action));
    }
    result.changed += done->size();
    result.asked += CountRunning(*done);
    progress.Show(result.changed);
    RestUnlessStopped(pace.Rest(done->size(), began, BootClock::now()));
    began = BootClock::now();
    return true;
  };
  BOOST_OUTCOME_TRY(whole, Walk(open, act, pace.StepSize(), change));
  result.stopped = !whole;
  return result;
}

}  // namespace millrace::engine

#include <algorithm>

#include "framework/base/utf8.h"
#include "framework/testing/memory_changes.h"

namespace millrace::engine {
namespace {

using To = Settlement::To;

void Count(MemoryState& state, const Settlement& settlement) {
  TaskTotals& totals = state.Totals(settlement.key.table, settlement.handler, settlement.batch);
  totals.succeeded += settlement.to == To::Succeeded;
  totals.cancelled += settlement.to == To::Cancelled;
  totals.failed += settlement.to == To::Failed;
  totals.attempts_failed += settlement.failed_attempt;
}

void SetWaiting(TaskRecord& row, const Settlement& settlement, WallTime now) {
  Task& task = row.task;
  task.state = StateAfter(settlement.to);
  task.claimed_by.clear();
  task.claimed_at.reset();
  if (settlement.run_at) task.run_at = *settlement.run_at;
  if (settlement.delay) task.run_at = now + *settlement.delay;
}

void Move(MemoryTable& table, TaskRecord row, const Settlement& settlement, WallTime now) {
  const std::uint64_t id = row.task.key.id;
  row.finished_at = now;
  row.task.cancel = false;
  row.task.state = StateAfter(settlement.to);
  if (settlement.to == To::Succeeded) row.result = Shorten(settlement.text);
  if (settlement.to == To::Failed) table.error_classes[id] = settlement.error_class;
  table.tasks.erase(id);
  (settlement.to == To::Failed ? table.failed : table.done)[id] = std::move(row);
}

void EndKey(MemoryState& state, const Settlement& settlement, const Task& task, WallTime now) {
  MemoryKey* entry = task.biz_key.empty() ? nullptr : state.KeyOf(task);
  if (entry == nullptr) return;
  entry->started = entry->started || settlement.started;
  if (settlement.to == To::Waiting) return;
  if (settlement.to == To::Cancelled && !entry->started) {
    state.keys.erase({task.handler, task.biz_key});
    return;
  }
  entry->ended = true;
  entry->keep_until.reset();
  if (settlement.to != To::Failed) entry->keep_until = now + kMemoryKeyRetention;
}

void End(MemoryState& state, TaskRecord& row, const Settlement& settlement, const std::string& incarnation,
         WallTime now) {
  Task& task = row.task;
  if (settlement.failed_attempt) {
    task.failures = std::max(task.failures, task.failures + 1);  // the largest number there is stays
    state.attempts[task.key][settlement.attempt] = {
        settlement.attempt,      now, incarnation, "failed", Shorten(settlement.error_class, 64),
        Shorten(settlement.text)};
  }
  if (settlement.to != To::Succeeded && !settlement.text.empty()) task.last_error = Shorten(settlement.text);
  Count(state, settlement);
  EndKey(state, settlement, task, now);
  if (settlement.to == To::Waiting) {
    SetWaiting(row, settlement, now);
  } else {
    Move(state.tables[task.key.table], row, settlement, now);
  }
}

}  // namespace

SettleReport SettleIn(MemoryState& state, const std::string& incarnation, std::span<const Settlement> batch,
                      WallTime now) {
  SettleReport report;
  report.verdicts.resize(batch.size(), SettleVerdict::Refused);
  report.errors.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Settlement& settlement = batch[i];
    if (!IsUtf8(settlement.text) || !IsUtf8(settlement.error_class)) {
      report.verdicts[i] = SettleVerdict::Broken;
      report.errors[i] = "the result or reason is not UTF-8";
      continue;
    }
    TaskRecord* row = state.Running(settlement.key, incarnation, settlement.attempt);
    if (row == nullptr) continue;
    End(state, *row, settlement, incarnation, now);
    report.verdicts[i] = SettleVerdict::Settled;
  }
  return report;
}

}  // namespace millrace::engine

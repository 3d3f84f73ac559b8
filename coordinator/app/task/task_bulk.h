// One action on all tasks that a filter chooses: what it would change, and the change, in steps at a bounded
// rate. What is changed matches no more, so that an act that was stopped goes on where it is given again; but
// for an edit, whose tasks may match still: that begins anew.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/app/cli/pace.h"
#include "coordinator/app/task/task_lookup.h"

namespace millrace::engine {

struct BulkAct {
  TaskChoice choice;
  TaskFilter filter;
  std::string filter_text;  // in words, for people and the audit
  TaskAction action = TaskAction::Retry;
  TaskEdit edit = {};  // of TaskAction::Edit
  double per_second = kBulkRate;
};

// `retried`, `asked to stop` …
const char* PastOf(TaskAction action);

// `the same again goes on from there`
const char* AgainOf(TaskAction action);

struct BulkPreview {
  std::uint64_t count = 0;
  bool more = false;                                                  // the look ended before the pools did
  std::map<std::pair<std::string, TaskState>, std::uint64_t> groups;  // by type and state
  std::vector<std::string> examples;                                  // names, at most three
  std::vector<std::string> example_texts;  // each with its state, type and what it is about
};
inline constexpr std::uint64_t kPreviewBound = 10'000;

Result<BulkPreview> PreviewBulk(TaskShards& open, const BulkAct& act);

struct BulkResult {
  std::uint64_t changed = 0;
  std::uint64_t asked = 0;  // of them, that run and were asked to stop
  bool stopped = false;     // by a signal, between two steps
};

// What `Author::act` says of an act on many: `all that match …`, with a word that only its steps share.
std::string ActText(const std::string& what);

// Of tasks that were cancelled: those that ran, and so were asked to stop.
std::uint64_t CountRunning(std::span<const ChangedTask> changed);

// One step: one transaction, with one row of the audit. A lock wait is tried again.
Result<std::vector<ChangedTask>> ApplyStep(TaskOperations& operations, TaskAction action,
                                           const TaskEdit& edit, const TableName& table,
                                           const std::vector<std::uint64_t>& ids, const Author& author);

// Each step is one transaction, with one row of the audit. A lock wait is tried again. An error says how many
// tasks were changed before.
Result<BulkResult> RunBulk(TaskShards& open, const BulkAct& act, const BulkPreview& preview);

}  // namespace millrace::engine

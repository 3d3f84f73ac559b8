// What becomes of entries in the ledger of keys, as SQL. Pure.
//
// `keep_until` says until when an entry holds, whatever becomes of its task: NULL while the task may never
// have started, the last day there is once it has, and thirty days from its end. An attempt has started
// when its handler was called; where nobody can tell, since the worker died with the task in its hands, it is
// taken for started: a key that is held for too long costs less than an effect that happens twice.
#pragma once

#include <string>
#include <vector>

#include "framework/task/task.h"

namespace millrace::engine::mysql {

struct KeyEntry {
  std::string handler;
  std::string key;
  TaskKey task;  // where the entry is another's nothing happens to it
  auto operator<=>(const KeyEntry&) const = default;
};
using KeyEntries = std::vector<KeyEntry>;

// Empty for no entries. The task ended for good: its retention begins.
std::string KeepText(KeyEntries entries);
// It was cancelled without having been started in its last attempt: the first where an earlier one was, the
// second where none was.
std::string KeepStartedText(KeyEntries entries);
std::string FreeUnstartedText(KeyEntries entries);
// It is in the failed pool: kept without a limit.
std::string FailText(KeyEntries entries);
// It waits, and has been started.
std::string MarkStartedText(KeyEntries entries);
// The same, of one that came from the failed pool.
std::string ReopenText(KeyEntries entries);
// Those of tasks that a dead worker had in its hands; `ids` as in an IN list.
std::string MarkInDoubtText(const TableName& table, const std::string& ids);

}  // namespace millrace::engine::mysql

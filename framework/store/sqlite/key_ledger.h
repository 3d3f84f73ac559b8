// The ledger of business keys. Every function runs inside a transaction that the caller has open.
#pragma once

#include <string>
#include <string_view>

#include "framework/store/sqlite/connection.h"
#include "framework/task/task.h"

namespace millrace {

inline constexpr Micros kKeyRetention = std::chrono::days(30);

// Enters the key for `task`, or confirms it. Empty: the task has it. Otherwise table/id of the one that has.
Result<std::string> TakeKey(SqliteConnection& db, std::string_view handler, std::string_view key,
                            const TaskKey& task, const std::string& now);
// table/id of the task that has the key; empty: it is free.
Result<std::string> KeyHolder(SqliteConnection& db, std::string_view handler, std::string_view key,
                              const std::string& now);

// What becomes of the entry of a task. Nothing happens where the entry is another's.
enum class KeyFate {
  Retain,  // it ended well, or was removed from the failed pool: the retention begins
  Failed,  // it is in the failed pool: kept without a limit
  Reopen,  // it waits again
  Free,    // it never started: the key may be used again
};
Status EndKey(SqliteConnection& db, std::string_view handler, std::string_view key, const TaskKey& task,
              KeyFate fate, WallTime now);

}  // namespace millrace

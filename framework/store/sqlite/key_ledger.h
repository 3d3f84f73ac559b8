// The ledger of business keys. Every function runs inside a transaction that the caller has open.
#pragma once

#include <string>
#include <string_view>

#include "framework/store/sqlite/connection.h"
#include "framework/task/task.h"

namespace millrace::engine {

inline constexpr Micros kKeyRetention = std::chrono::days(30);

// Enters the key for `task`, or confirms it. Empty: the task has it. Otherwise table/id of the one that has.
Result<std::string> TakeKey(SqliteConnection& db, std::string_view handler, std::string_view key,
                            const TaskKey& task, const std::string& now);
// table/id of the task that has the key; empty: it is free.
Result<std::string> KeyHolder(SqliteConnection& db, std::string_view handler, std::string_view key,
                              const std::string& now);

// What becomes of the entry of a task. Nothing happens where the entry is another's. `keep_until` says until
// when it holds: NULL while its task may never have started, the last day there is once it has, and thirty
// days from its end. Where nobody can tell, since the worker died with the task in its hands, it has started:
// a key that is held for too long costs less than an effect that happens twice.
enum class KeyFate {
  Retain,   // it ended well, or was removed from the failed pool: the retention begins
  Failed,   // it is in the failed pool: kept without a limit
  Started,  // it waits, and its handler has been called
  Reopen,   // the same, from the failed pool
  Free,  // cancelled, not started in its last attempt: the key may be used again, unless it was in an earlier
};
Status SetKeyFate(SqliteConnection& db, std::string_view handler, std::string_view key, const TaskKey& task,
                  KeyFate fate, WallTime now);

}  // namespace millrace::engine

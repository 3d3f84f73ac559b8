// The ledger of keys: which task of a handler has which key, and until when.
//
// `keep_until` says until when an entry holds, whatever becomes of its task: NULL while the task may never
// have started, the last day there is once it has, and thirty days from its end. An attempt has started
// when its handler was called; where nobody can tell, since the worker died with the task in its hands, it is
// taken for started: a key that is held for too long costs less than an effect that happens twice.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/store/sql/connection.h"
#include "framework/task/task.h"

namespace millrace::engine::sql {

inline constexpr Micros kKeyRetention = std::chrono::days(30);

using LedgerKey = std::pair<std::string, std::string>;  // handler, key

struct LedgerEntry {
  std::optional<TaskKey> task;  // nullopt: of a table that can't be one of tasks, so that it is in no pool
  std::string holder;           // the same for people: table/id, as it stands
  bool ended = false;
  bool expired = false;
};

// Leaves those of the tables that are there by the database's word: an entry may name one that was dropped.
Status KeepKnown(Connection& db, std::set<TableName>& tables);

using LedgerEntries = std::map<LedgerKey, LedgerEntry>;

// The entries of these keys. At most kMaxBatchRows keys. `lock` is what the dialect has for the end of a
// SELECT: $lock, $share, $free, or nothing.
Result<LedgerEntries> ReadEntries(Connection& db, const std::vector<LedgerKey>& keys, std::string_view lock);
// Those of the keys whose entry somebody else has locked: whoever has met it as a duplicate, as long as his
// transaction lasts.
Result<std::set<LedgerKey>> LockedKeys(Connection& db, const std::vector<LedgerKey>& keys);
// Those that may be taken over: their task is in no pool and never ended, or their time has passed.
Result<std::vector<LedgerKey>> FindVoid(Connection& db, const LedgerEntries& entries);
// Removes those, from `entries` too.
Status RemoveVoid(Connection& db, LedgerEntries& entries);

// Who has a key by the ledger.
struct KeyHolders {
  std::vector<TaskKey> tasks;  // of each handler one at most, the one that was entered last first
  // It did, until its time had passed, and whoever waits with the key may have it.
  std::optional<TaskKey> former;
};
// Without a handler all are asked, kMaxBatchRows at most. A task that a lossy failover took holds nothing.
Result<KeyHolders> FindHolders(Connection& db, const std::string& handler, const std::string& key);

struct KeyEntry {
  std::string handler;
  std::string key;
  TaskKey task;  // where the entry is another's nothing happens to it
  auto operator<=>(const KeyEntry&) const = default;
};
using KeyEntries = std::vector<KeyEntry>;

enum class KeyFate {
  Keep,    // the task ended for good: its retention begins
  Cancel,  // it did, and was not started in its last attempt: kept if an earlier one was, else free again
  Fail,    // it is in the failed pool: kept without a limit
  Start,   // it waits, and has been started
  Reopen,  // the same, of one that came from the failed pool
};
// What becomes of the entry of an attempt's key; nullopt where it has none, or the entry stays as it is.
std::optional<KeyFate> FateOf(const Settlement& settlement);
// One statement, two for Cancel, or none where there are no entries; within a transaction.
Status SetFate(Connection& db, KeyEntries entries, KeyFate fate);
// Writes what becomes of the keys of attempts that end so: SetFate once for each fate.
Status EndKeys(Connection& db, const std::vector<const Settlement*>& batch);

}  // namespace millrace::engine::sql

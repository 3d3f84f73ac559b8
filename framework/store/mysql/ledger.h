// The ledger of keys: which task of a handler has which key.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/store/mysql/session.h"
#include "framework/task/task.h"

namespace millrace::engine::mysql {

using LedgerKey = std::pair<std::string, std::string>;  // handler, key

struct LedgerEntry {
  std::optional<TaskKey> task;  // nullopt: of a table that can't be one of tasks, so that it is in no pool
  std::string holder;           // the same for people: table/id, as it stands
  bool ended = false;
  bool expired = false;
};

// The entries of these keys, locked until the transaction ends. At most kMaxBatchRows keys.
Result<std::map<LedgerKey, LedgerEntry>> LockEntries(Session& session, const std::vector<LedgerKey>& keys);
// Of these tasks, those that are in one of their table's pools.
Result<std::vector<TaskKey>> Present(Session& session, const std::vector<TaskKey>& tasks);
// The entries that may be taken over: their task is in no pool and never ended, or their time has passed.
Result<std::vector<LedgerKey>> VoidEntries(Session& session, const std::map<LedgerKey, LedgerEntry>& entries);
// Removes these entries; they are locked by this transaction.
Status RemoveEntries(Session& session, const std::vector<LedgerKey>& keys);
// (handler,biz_key) IN (…)
std::string KeyCondition(const std::vector<LedgerKey>& keys);

}  // namespace millrace::engine::mysql

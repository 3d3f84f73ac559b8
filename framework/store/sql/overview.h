// How tasks stand, once for all databases. An adapter brings the due index's groups, by its own skips.
#pragma once

#include <map>
#include <set>

#include "framework/store/overview.h"
#include "framework/store/sql/connection.h"
#include "framework/store/task_store.h"

namespace millrace::engine::sql {

// What the index says of one handler in one table.
struct HandlerGroups {
  std::vector<DueGroup> due;        // of waiting and running rows
  std::set<std::uint32_t> held_in;  // slices with held rows, which are yet to be counted
  Counted held;                     // or those that were
};
using TableGroups = std::map<std::pair<TableName, std::string>, HandlerGroups>;  // by table and handler

class SqlOverviewStore : public OverviewStore {
 public:
  explicit SqlOverviewStore(Connection& db) : db_(db) {}

  Result<WaitingOverview> Waiting(std::span<const TableName> tables) override;
  Result<FailedOverview> Failed(std::span<const TableName> tables,
                                std::span<const TaskTotals> totals) override;

 protected:
  // Every group of these tables, held rows too.
  virtual Status ReadGroups(std::span<const TableName> tables, TableGroups& groups) = 0;

 private:
  struct Item;
  Status Count(std::vector<Item*> items, std::uint64_t limit);
  Status CountWaiting(std::vector<Item>& items);
  Status CountHeld(std::vector<Item>& items);
  Status ReadHeads(std::vector<Item>& items, WallTime now);

  Connection& db_;
};

}  // namespace millrace::engine::sql

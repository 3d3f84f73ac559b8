// The mill's session, as far as its statements are the same on every database; and how whole tasks are read.
#pragma once

#include "framework/store/sql/connection.h"
#include "framework/store/task_store.h"

namespace millrace::engine::sql {

// The columns that ReadTask expects, in its order; all pools have them (but for `cancel`).
std::string TaskColumns(bool hot);
inline constexpr unsigned kTaskColumns = 18;
Task ReadTask(const TableName& table, const Row& row);

class SqlTaskStore : public TaskStore {
 public:
  explicit SqlTaskStore(Connection& db) : db_(db) {}

  Result<std::vector<std::uint64_t>> FailUnclaimed(const ClaimRequest& request,
                                                   const std::string& why) override;
  Result<std::vector<KeyVerdict>> ConfirmKeys(const std::string& incarnation,
                                              std::span<const Task> tasks) override;

 private:
  Connection& db_;
};

}  // namespace millrace::engine::sql

// The mill's session, as far as its statements are the same on every database.
#pragma once

#include "framework/store/sql/connection.h"
#include "framework/store/task_store.h"

namespace millrace::engine::sql {

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

// What people and producers ask. Its parts: desk.cc (submit, get, find, figures), desk_list.cc,
// desk_actions.cc, pauses.cc.
#pragma once

#include "framework/store/mysql/group_plan.h"
#include "framework/store/mysql/session.h"
#include "framework/store/task_desk.h"

namespace millrace::engine::mysql {

class MysqlTaskDesk final : public TaskDesk {
 public:
  MysqlTaskDesk(const Endpoint& endpoint, ConnectionPool& pool)
      : session_(endpoint, endpoint.options.lease, &pool) {}

  Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  Result<TaskRecord> Get(const TaskKey& key) override;
  Result<TaskKey> Find(const TableName& table, const std::string& handler, const std::string& key) override;
  Result<TaskPage> List(const TableName& table, const TaskFilter& filter, const std::string& after,
                        std::size_t limit) override;
  Result<std::vector<std::uint64_t>> Apply(TaskAction action, const TableName& table,
                                           std::span<const std::uint64_t> ids,
                                           const std::string& actor) override;
  Result<bool> SetPause(const std::string& what, const std::string& actor, bool on) override;
  Result<std::vector<PauseRecord>> Pauses() override;
  Result<std::vector<TaskTotals>> Totals() override;
  Result<std::vector<GroupBacklog>> Backlog(const TableName& table) override;

 private:
  Status ReadAttempts(TaskRecord& record);

  Session session_;
  GroupPlan plan_;
};

// Where a pool's rows are and what they have beside a task's columns.
struct Pool {
  const char* suffix;
  const char* columns;  // result, error_class, finished_at
};
inline constexpr Pool kHot{"", "'','',NULL"};
inline constexpr Pool kFailed{"_failed", "'',error_class,finished_at"};
inline constexpr Pool kDone{"_done", "result,'',finished_at"};

// SELECT … FROM the pool, up to and without WHERE.
std::string PoolText(const TableName& table, const Pool& pool);
TaskRecord ReadRecord(const TableName& table, const Row& row);

}  // namespace millrace::engine::mysql

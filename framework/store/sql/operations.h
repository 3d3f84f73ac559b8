// What people and producers ask. Its parts: submit.cc, operations.cc (look), actions.cc, acts.cc (the audit,
// pauses).
#pragma once

#include <memory>
#include <utility>

#include "framework/store/sql/connection.h"
#include "framework/store/task_operations.h"

namespace millrace::engine::sql {

class SqlTaskOperations final : public TaskOperations {
 public:
  explicit SqlTaskOperations(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), db_(*connection_) {}

  Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  Result<TaskRecord> Get(const TaskKey& key) override;
  Result<std::vector<TaskOutcome>> Outcomes(const TableName& table,
                                            std::span<const std::uint64_t> ids) override;
  Result<RescueCounts> Rescues(const TableName& table, std::span<const std::uint64_t> ids) override;
  Result<TaskKey> Find(const TableName& table, const std::string& handler, const std::string& key,
                       bool by_ledger) override;
  Result<TaskPage> List(const TableName& table, const TaskFilter& filter, const std::string& after,
                        std::size_t limit) override;
  Result<TaskCount> Count(const TableName& table, TaskPool pool, const TaskFilter& filter,
                          std::uint64_t limit, BootTime deadline) override;
  Result<std::vector<ChangedTask>> Apply(TaskAction action, const TableName& table,
                                         std::span<const std::uint64_t> ids, const Author& author) override;
  Result<std::vector<ChangedTask>> Edit(const TaskEdit& edit, const TableName& table,
                                        std::span<const std::uint64_t> ids, const Author& author) override;
  Result<std::optional<ActRecord>> LastAct(TaskAction action, const TaskKey& key) override;
  Result<AheadCount> Ahead(const Task& task) override;
  Result<bool> SetPause(const std::string& what, const std::string& actor, bool on,
                        const std::string& reason) override;
  Result<std::vector<PauseRecord>> Pauses() override;
  Result<std::vector<TaskTotals>> Totals() override;
  Result<std::vector<TaskTotals>> TypeTotals(std::span<const std::string> batches) override;
  Result<BatchGlance> GlanceAtBatches(std::size_t limit) override;

 private:
  Result<std::vector<TaskTotals>> SumUp(const std::string& batch, const std::string& by,
                                        std::span<const Value> values);
  Status ReadAttempts(TaskRecord& record);

  const std::unique_ptr<Connection> connection_;
  Connection& db_;
  bool had_duplicates_ = false;  // the last batch
};

// Those of the finished pool, sorted by id.
Result<std::vector<TaskRecord>> ReadFinished(Connection& db, const TableName& table,
                                             std::span<const std::uint64_t> ids);

// What a person is called in the tables.
std::string ActorText(const std::string& actor);

// Invalid for more rows than `limit`.
Status CheckBatch(std::size_t rows, std::size_t limit = kMaxBatchRows);
// Says which task of its batch is wrong: by its place from 1 on; 0: it is alone there.
Error OfTask(std::size_t place, Error error);
// Adds the tasks, which are valid and have keys of their own or none; returns their ids, in their order.
// `places` as OfTask has them. Within a transaction, which an error leaves to be rolled back.
Result<std::vector<std::uint64_t>> AddTasks(Connection& db, const TableName& table,
                                            std::span<const NewTask* const> tasks,
                                            std::span<const std::size_t> places);
struct SubmitWay {
  bool look_first = false;  // worth while where many of the keys are likely to be taken
  bool read_standing =
      false;  // SubmitReport::standing is filled: a statement more where there are duplicates
};
// Within a transaction of the caller's, of any isolation level. Leaves out the tasks whose key is taken,
// those of a transaction that is open yet being waited for. Invalid, with the place in the batch, for a task
// that may not be. An error leaves only ROLLBACK; Conflict: the same again will do.
Result<SubmitReport> Submit(Connection& db, const TableName& table, std::span<const NewTask> tasks,
                            SubmitWay way = {});

}  // namespace millrace::engine::sql

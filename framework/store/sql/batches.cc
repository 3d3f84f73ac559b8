// The rows of millrace_batches, and what is asked of the tasks of a batch. Why these statements decide its
// end exactly once: framework/store/README.md, "Batches".
#include "framework/store/batch_store.h"

#include <algorithm>
#include <string_view>

#include "framework/store/sql/operations.h"
#include "framework/store/sql/sessions.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

constexpr const char* kBatchColumns =
    "name,state,stays_open,parts,callback_table,on_success,on_end,made_by,added,created_at,closed_at,ended_"
    "at,"
    "outcome,success_task,end_task,succeeded,cancelled,failed";
// Where the database takes `a ` and `a` for one name, a row's batch is the one without a space.
constexpr const char* kBatch = "CASE WHEN RTRIM(batch)=batch THEN RTRIM(batch) ELSE batch END";
constexpr const char* kOutcomeSucceeded = "succeeded";
constexpr const char* kOutcomeFailed = "failed";
// Points of the counters' primary key in one statement.
constexpr std::size_t kMostPoints = 5'000;

std::uint64_t Positive(std::int64_t number) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

// What a person may have written there is left out.
std::vector<BatchPart> ParseParts(std::string_view text) {
  std::vector<BatchPart> parts;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const std::size_t slash = one.rfind('/');
    if (slash == std::string_view::npos) continue;
    if (const auto table = ParseTableName(one.substr(slash + 1)))
      parts.push_back({std::string(one.substr(0, slash)), *table});
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

std::string PartsText(const std::vector<BatchPart>& parts) {
  std::string text;
  for (const BatchPart& part : parts) text += (text.empty() ? "" : ",") + ToString(part);
  return text;
}

BatchRecord RecordOf(const Row& row) {
  BatchRecord record;
  record.name = row.Text(1);
  record.state = BatchStateOf(row.Text(2));
  record.stays_open = row.Number(3) != 0;
  record.parts = ParseParts(row.Text(4));
  record.table = ParseTableName(row.Text(5)).value_or(kDefaultTable);
  record.on_success = row.Text(6);
  record.on_end = row.Text(7);
  record.made_by = row.Text(8);
  record.added = Positive(row.Signed(9));
  record.created_at = row.Time(10);
  record.closed_at = row.Time(11);
  record.ended_at = row.Time(12);
  record.success = row.Text(13) == kOutcomeSucceeded;
  record.success_task = row.Text(14);
  record.end_task = row.Text(15);
  record.at_end = {Positive(row.Signed(16)), Positive(row.Signed(17)), Positive(row.Signed(18))};
  return record;
}

class SqlBatchStore final : public BatchStore {
 public:
  explicit SqlBatchStore(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), db_(*connection_) {}

  Result<bool> Make(const NewBatch& batch) override;
  Result<bool> Unmake(const std::string& name) override;
  Result<std::optional<BatchRecord>> Find(const std::string& name) override;
  Result<std::vector<BatchRecord>> List(Which which, const std::string& after, std::size_t limit) override;
  Result<bool> Announce(const std::string& name, const BatchPart& part, std::int64_t rows) override;
  Result<bool> Close(const std::string& name, const std::string& actor) override;
  Result<bool> End(const BatchEnd& end) override;
  Result<std::map<std::string, BatchSums>> Sums(std::span<const TableName> tables,
                                                std::span<const std::string> names) override;
  Result<BatchPage> Walk(const TableName& table, std::uint64_t after, std::size_t limit) override;
  Result<std::vector<BatchRow>> Still(const TableName& table, const std::string& batch,
                                      std::span<const std::uint64_t> ids) override;

 private:
  // At most kMaxBatchRows of those whose names come after `last`, in their order.
  Result<std::vector<std::string>> Types(const TableName& table, std::string last);
  Status AddSums(const TableName& table, const std::vector<std::string>& types,
                 std::span<const std::string> names, std::map<std::string, BatchSums>& sums);
  // table/id of the callback, or of the task that has its key; empty where there is none.
  Result<std::string> AddCallback(const TableName& table, const std::vector<NewTask>& tasks);

  const std::unique_ptr<Connection> connection_;
  Connection& db_;
};

Result<bool> SqlBatchStore::Make(const NewBatch& batch) {
  BOOST_OUTCOME_TRY(
      made,
      db_.Write("$enter INTO millrace_batches (name,state,stays_open,parts,callback_table,"
                "on_success,on_end,made_by,created_at) VALUES (?,'open',?,?,?,?,?,?,$now)",
                {batch.name, batch.stays_open ? 1 : 0, ToString(batch.home), batch.home.table,
                 Value::OrNull(batch.on_success), Value::OrNull(batch.on_end), ActorText(batch.made_by)}));
  return made > 0;
}

Result<bool> SqlBatchStore::Unmake(const std::string& name) {
  BOOST_OUTCOME_TRY(removed,
                    db_.Write("$remove(millrace_batches) WHERE name=? AND state='open' AND added=0", {name}));
  return removed > 0;
}

Result<std::optional<BatchRecord>> SqlBatchStore::Find(const std::string& name) {
  std::optional<BatchRecord> found;
  BOOST_OUTCOME_TRYV(db_.Query(std::string("SELECT ") + kBatchColumns + " FROM millrace_batches WHERE name=?",
                               {name}, [&](const Row& row) { found = RecordOf(row); }));
  return found;
}

Result<std::vector<BatchRecord>> SqlBatchStore::List(Which which, const std::string& after,
                                                     std::size_t limit) {
  std::vector<BatchRecord> batches;
  const std::string where = which == Which::Closed ? "state='closed' AND name>?" : "name>?";
  BOOST_OUTCOME_TRYV(db_.Query(std::string("SELECT ") + kBatchColumns + " FROM millrace_batches WHERE " +
                                   where + " ORDER BY name LIMIT ?",
                               {after, std::uint64_t{limit}},
                               [&](const Row& row) { batches.push_back(RecordOf(row)); }));
  return batches;
}

Result<bool> SqlBatchStore::Announce(const std::string& name, const BatchPart& part, std::int64_t rows) {
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(open, sql::Announce(db_, name, part, rows));
  if (!open) return false;
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return true;
}

Result<bool> SqlBatchStore::Close(const std::string& name, const std::string& actor) {
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(closed,
                    db_.Write("UPDATE millrace_batches SET state='closed', closed_at=$now WHERE name=? "
                              "AND state='open'",
                              {name}));
  if (closed == 0) return false;
  if (!actor.empty()) {
    BOOST_OUTCOME_TRYV(NoteEvents(db_, "close", ActorText(actor), {{.name = "batch/" + name}}));
  }
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return true;
}

Result<std::string> SqlBatchStore::AddCallback(const TableName& table, const std::vector<NewTask>& tasks) {
  if (tasks.empty()) return std::string();
  BOOST_OUTCOME_TRY(report, Submit(db_, table, tasks));
  if (report.ids.front() == 0) return report.duplicates.front();
  return ToString(TaskKey{table, report.ids.front()});
}

// The row first: whoever comes second waits for it, and finds it ended.
Result<bool> SqlBatchStore::End(const BatchEnd& end) {
  const bool success = end.sums.AllSucceeded();
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(
      ended, db_.Write("UPDATE millrace_batches SET state='ended', ended_at=$now, outcome=?, succeeded=?, "
                       "cancelled=?, failed=? WHERE name=? AND state='closed'",
                       {success ? kOutcomeSucceeded : kOutcomeFailed, end.sums.succeeded, end.sums.cancelled,
                        end.sums.failed, end.name}));
  if (ended == 0) return false;
  std::string success_task;
  if (success) {
    BOOST_OUTCOME_TRY(added, AddCallback(end.table, end.success));
    success_task = std::move(added);
  }
  BOOST_OUTCOME_TRY(end_task, AddCallback(end.table, end.end));
  BOOST_OUTCOME_TRYV(db_.Write("UPDATE millrace_batches SET success_task=?, end_task=? WHERE name=?",
                               {success_task, end_task, end.name}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return true;
}

// One jump over the primary key for each.
Result<std::vector<std::string>> SqlBatchStore::Types(const TableName& table, std::string last) {
  std::vector<std::string> types;
  while (types.size() < kMaxBatchRows) {
    std::optional<std::string> next;
    BOOST_OUTCOME_TRYV(
        db_.Query("SELECT handler FROM millrace_counters$primary WHERE task_table=? AND handler>? ORDER BY "
                  "task_table,handler LIMIT 1",
                  {table, last}, [&](const Row& row) { next = row.Text(1); }));
    if (!next) break;
    last = *next;
    types.push_back(std::move(*next));
  }
  return types;
}

Status SqlBatchStore::AddSums(const TableName& table, const std::vector<std::string>& types,
                              std::span<const std::string> names, std::map<std::string, BatchSums>& sums) {
  std::vector<Value> values{table};
  values.insert(values.end(), types.begin(), types.end());
  values.insert(values.end(), names.begin(), names.end());
  return db_.Query(
      std::string("SELECT ") + kBatch +
          ",SUM(succeeded),SUM(cancelled),SUM(failed) FROM millrace_counters$primary WHERE task_table=? AND "
          "handler IN (" +
          Repeat("?", types.size()) + ") AND batch IN (" + Repeat("?", names.size()) + ") GROUP BY batch",
      Connection::Values(values), [&](const Row& row) {
        sums[row.Text(1)] += {Positive(row.Signed(2)), Positive(row.Signed(3)), Positive(row.Signed(4))};
      });
}

Result<std::map<std::string, BatchSums>> SqlBatchStore::Sums(std::span<const TableName> tables,
                                                             std::span<const std::string> names) {
  BOOST_OUTCOME_TRYV(CheckBatch(names.size()));
  std::map<std::string, BatchSums> sums;
  if (names.empty()) return sums;
  for (const TableName& table : tables) {
    for (std::string last;;) {
      BOOST_OUTCOME_TRY(types, Types(table, last));
      if (types.empty()) break;
      last = types.back();
      const std::size_t at_once = std::max<std::size_t>(kMostPoints / types.size(), 1);
      for (std::size_t at = 0; at < names.size(); at += at_once) {
        const auto part = names.subspan(at, std::min(at_once, names.size() - at));
        BOOST_OUTCOME_TRYV(AddSums(table, types, part, sums));
      }
      if (types.size() < kMaxBatchRows) break;
    }
  }
  return sums;
}

Result<BatchPage> SqlBatchStore::Walk(const TableName& table, std::uint64_t after, std::size_t limit) {
  BatchPage page;
  std::size_t seen = 0;
  std::uint64_t last = after;
  BOOST_OUTCOME_TRYV(db_.Query(
      std::string("SELECT id,state,") + kBatch + " FROM " + table + "$primary WHERE id>? ORDER BY id LIMIT ?",
      {after, std::uint64_t{limit}}, [&](const Row& row) {
        ++seen;
        last = row.Number(1);
        if (row.Null(3)) return;
        page.rows.push_back({last, static_cast<TaskState>(row.Signed(2)), row.Text(3)});
      }));
  if (seen == limit && limit > 0) page.next = last;
  return page;
}

Result<std::vector<BatchRow>> SqlBatchStore::Still(const TableName& table, const std::string& batch,
                                                   std::span<const std::uint64_t> ids) {
  std::vector<BatchRow> rows;
  if (ids.empty()) return rows;
  BOOST_OUTCOME_TRYV(CheckBatch(ids.size()));
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT id,state,batch FROM " + table + "$primary WHERE id IN (" +
                    engine::sql::List(Sorted(ids)) + ") AND batch=?",
                {batch}, [&](const Row& row) {
                  rows.push_back({row.Number(1), static_cast<TaskState>(row.Signed(2)), row.Text(3)});
                }));
  return rows;
}

}  // namespace

BatchState BatchStateOf(std::string_view text) {
  return text == "ended" ? BatchState::Ended : text == "closed" ? BatchState::Closed : BatchState::Open;
}

Result<bool> Announce(Connection& db, const std::string& batch, const BatchPart& part, std::int64_t rows) {
  std::optional<BatchRecord> found;
  BOOST_OUTCOME_TRYV(
      db.Query(std::string("SELECT ") + kBatchColumns + " FROM millrace_batches WHERE name=?$lock", {batch},
               [&](const Row& row) { found = RecordOf(row); }));
  if (!found || (rows >= 0 && found->state != BatchState::Open)) return false;
  if (!std::binary_search(found->parts.begin(), found->parts.end(), part)) found->parts.push_back(part);
  const auto added = static_cast<std::int64_t>(found->added) + rows;
  BOOST_OUTCOME_TRYV(db.Write("UPDATE millrace_batches SET added=?, parts=? WHERE name=?",
                              {std::max<std::int64_t>(added, 0), PartsText(found->parts), batch}));
  return true;
}

std::unique_ptr<BatchStore> OpenBatches(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlBatchStore>(std::move(connection));
}

}  // namespace millrace::engine::sql

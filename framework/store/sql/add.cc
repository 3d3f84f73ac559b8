#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "framework/store/sql/operations.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

// The texts of one INSERT, which stays below the smallest usual max_allowed_packet even where each byte of
// them is escaped.
constexpr std::size_t kTextLimit = 1024 * 1024;

// What a row's text looks like.
enum Due : std::size_t { kNow, kAt, kAfter, kDues };
Due DueOf(const NewTask& task) {
  if (task.run_at) return kAt;
  return task.delay ? kAfter : kNow;
}

// The database's word for a refused row says which constraint it was; people know the rule by another name.
Error Explain(Error error) {
  for (const char* constraint : {"json_valid", "params_json"}) {
    if (error.message.find(constraint) != std::string::npos) error.message = "the params are not valid JSON";
  }
  return error;
}

class Addition {
 public:
  Addition(Connection& db, const TableName& table, std::span<const NewTask* const> tasks,
           std::span<const std::size_t> places)
      : db_(db),
        table_(table),
        tasks_(tasks),
        places_(places),
        expire_(std::any_of(tasks.begin(), tasks.end(),
                            [](const NewTask* task) { return task->expires_at || task->expires_in; })) {}

  Result<std::vector<std::uint64_t>> Run() {
    while (ids_.size() < tasks_.size()) {
      BOOST_OUTCOME_TRYV(AddPart());
    }
    return std::move(ids_);
  }

 private:
  Status AddPart();
  const std::string& RowText(const NewTask& task);
  void AppendTime(std::optional<WallTime> at, std::optional<Micros> after);
  void AppendValues(const NewTask& task);
  std::size_t RowsOfPart() const;
  Status Insert(std::size_t first, std::size_t rows);
  Error Refused(Error error, std::size_t first, std::size_t rows);
  Status ReadIds(std::span<const NewTask* const> part);
  Status FindIds(std::span<const NewTask* const> part, std::uint64_t first);

  Connection& db_;
  const TableName& table_;
  const std::span<const NewTask* const> tasks_;
  const std::span<const std::size_t> places_;
  const bool expire_;  // one of them at least; else tables of version 3 will do
  std::vector<std::uint64_t> ids_;
  std::array<std::string, 2 * kDues * kDues> row_texts_;
  // Of the INSERT at hand.
  std::vector<Value> values_;
  std::deque<std::string> times_;
};

const std::string& Addition::RowText(const NewTask& task) {
  constexpr const char* kDueTexts[] = {"$now", "?", "$after(?)"};
  constexpr const char* kExpiryTexts[] = {",NULL", ",?", ",$after(?)"};
  const Due due = DueOf(task);
  const Due expiry = task.expires_at ? kAt : task.expires_in ? kAfter : kNow;
  const bool with_slice = task.slice.has_value();
  std::string& text = row_texts_[(due * kDues + expiry) * 2 + (with_slice ? 1 : 0)];
  if (text.empty()) {
    text = db_.Expanded(std::string("(?,?,?,?,?,") + kDueTexts[due] + ",?" +
                        (expire_ ? kExpiryTexts[expiry] : "") + ",$now" + (with_slice ? ",?)" : ")"));
  }
  return text;
}

void Addition::AppendTime(std::optional<WallTime> at, std::optional<Micros> after) {
  if (at) {
    values_.emplace_back(times_.emplace_back(TimeText(*at)));
  } else if (after) {
    values_.emplace_back(std::int64_t{after->count()});
  }
}

void Addition::AppendValues(const NewTask& task) {
  values_.insert(values_.end(), {task.handler, task.params, Value::OrNull(task.biz_key),
                                 Value::OrNull(task.batch), task.priority.value_or(5)});
  AppendTime(task.run_at, task.delay);
  values_.emplace_back(task.held ? 3 : 0);
  AppendTime(task.expires_at, task.expires_in);
  if (task.slice) values_.emplace_back(*task.slice);
}

// How many of the next rows one INSERT takes: they all say their slice, or all leave it to the table.
std::size_t Addition::RowsOfPart() const {
  const auto rest = tasks_.subspan(ids_.size());
  std::size_t rows = 0;
  for (std::size_t bytes = 0; rows < rest.size() && rows < db_.dialect().insert_rows && bytes < kTextLimit;
       ++rows) {
    const NewTask& task = *rest[rows];
    if (task.slice.has_value() != rest[0]->slice.has_value()) break;
    bytes += task.params.size() + task.biz_key.size() + task.batch.size() + 100;
  }
  return rows;
}

Status Addition::Insert(std::size_t first, std::size_t rows) {
  const bool with_slice = tasks_[first]->slice.has_value();
  std::string sql = "INSERT INTO " + table_ + " (handler,params,biz_key,batch,priority,run_at,state" +
                    (expire_ ? ",expires_at" : "") + ",created_at" +
                    (with_slice ? ",slice) VALUES " : ") VALUES ");
  values_.clear();
  times_.clear();
  for (const NewTask* task : tasks_.subspan(first, rows)) {
    if (!values_.empty()) sql += ',';
    sql += RowText(*task);
    AppendValues(*task);
  }
  BOOST_OUTCOME_TRYV(db_.WriteExpanded(sql, Connection::Values(values_)));
  return {};
}

Status Addition::AddPart() {
  const std::size_t first = ids_.size();
  const std::size_t rows = RowsOfPart();
  const Status added = Insert(first, rows);
  if (!added) return Fail(Refused(added.error(), first, rows));
  return ReadIds(tasks_.subspan(first, rows));
}

// Of several rows the database does not say which it refuses: it is asked by halves, the first one first.
// What is added so goes with the transaction.
Error Addition::Refused(Error error, std::size_t first, std::size_t rows) {
  if (rows > 1 && error.code != ErrorCode::Invalid) return error;
  while (rows > 1) {
    const std::size_t half = rows / 2;
    const Status added = Insert(first, half);
    if (added) {
      first += half;
      rows -= half;
    } else {
      if (added.error().code != ErrorCode::Invalid) return error;
      error = added.error();
      rows = half;
    }
  }
  return OfTask(places_[first], Explain(std::move(error)));
}

// The ids of one INSERT rise by the step, from the first on. Its last row says whether they did.
Status Addition::ReadIds(std::span<const NewTask* const> part) {
  std::uint64_t first = 0;
  std::uint64_t step = 1;
  BOOST_OUTCOME_TRYV(db_.Query(db_.dialect().inserted, {}, [&](const Row& row) {
    first = row.Number(1);
    step = row.Number(2);
  }));
  bool ours = part.size() == 1;
  if (!ours) {
    const NewTask& last = *part.back();
    BOOST_OUTCOME_TRYV(db_.Query(
        "SELECT handler,biz_key,params FROM " + table_ +
            "$primary WHERE id=? AND created_at=(SELECT created_at FROM " + table_ + "$primary WHERE id=?)",
        {first + (part.size() - 1) * step, first}, [&](const Row& row) {
          ours = row.Text(1) == last.handler && row.Text(2) == last.biz_key && row.Text(3) == last.params;
        }));
  }
  if (!ours) return FindIds(part, first);
  for (std::size_t k = 0; k < part.size(); ++k) ids_.push_back(first + k * step);
  return {};
}

// The rows from the first id on that were made in the same microsecond and have these very contents, in
// order.
Status Addition::FindIds(std::span<const NewTask* const> part, std::uint64_t first) {
  std::size_t found = 0;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id,handler,biz_key,params FROM " + table_ +
                                   "$primary WHERE id>=? AND created_at=(SELECT created_at FROM " + table_ +
                                   "$primary WHERE id=?) ORDER BY id LIMIT ?",
                               {first, first, std::uint64_t{2 * part.size()}}, [&](const Row& row) {
                                 if (found == part.size()) return;
                                 const NewTask& task = *part[found];
                                 if (row.Text(2) != task.handler || row.Text(3) != task.biz_key ||
                                     row.Text(4) != task.params)
                                   return;
                                 ids_.push_back(row.Number(1));
                                 ++found;
                               }));
  if (found == part.size()) return {};
  return Fail(ErrorCode::Internal,
              db_.where() + ": the ids of new tasks can't be read back; nothing was added");
}

}  // namespace

Result<std::vector<std::uint64_t>> AddTasks(Connection& db, const TableName& table,
                                            std::span<const NewTask* const> tasks,
                                            std::span<const std::size_t> places) {
  return Addition(db, table, tasks, places).Run();
}

}  // namespace millrace::engine::sql

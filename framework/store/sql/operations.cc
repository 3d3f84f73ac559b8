#include "framework/store/sql/operations.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "framework/base/utf8.h"
#include "framework/store/sql/keys.h"
#include "framework/store/sql/sessions.h"
#include "framework/store/sql/task_store.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

// Where a pool's rows are and what they have beside a task's columns.
struct Pool {
  const char* suffix;
  const char* columns;  // result, finished_at
};
constexpr Pool kHot{"", "'',NULL"};
constexpr Pool kFailed{"_failed", "'',finished_at"};
constexpr Pool kDone{"_done", "result,finished_at"};

// SELECT … FROM the pool, up to and without WHERE.
std::string PoolText(const TableName& table, const Pool& pool) {
  return "SELECT " + TaskColumns(*pool.suffix == '\0' ? TaskRows::Hot : TaskRows::Ended) + "," +
         pool.columns + " FROM " + table + pool.suffix;
}

TaskRecord ReadRecord(const TableName& table, const Row& row) {
  TaskRecord record;
  record.task = ReadTask(table, row);
  record.result = row.Text(kTaskColumns + 1);
  record.finished_at = row.Time(kTaskColumns + 2);
  return record;
}

// A page's end: the pool's number in the order of the list, and the last id seen there. Newest first: the
// look begins below `id`, and in it the page ended at the row `last`, which ended at `at`, in microseconds;
// 0: it has not begun.
struct Place {
  std::uint64_t pool = 0;
  std::uint64_t id = 0;
  std::uint64_t at = 0;
  std::uint64_t last = 0;
};

constexpr std::uint64_t kBehindAll = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kPools = 3;

std::string ToText(const Place& place) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  const std::string text = number(place.pool) + ":" + number(place.id);
  return place.at == 0 ? text : text + ":" + number(place.at) + ":" + number(place.last);
}

Result<Place> ParsePlace(const std::string& text) {
  Place place;
  if (text.empty()) return place;
  const char* at = text.data();
  const char* const end = at + text.size();
  std::size_t read = 0;
  for (std::uint64_t* number : {&place.pool, &place.id, &place.at, &place.last}) {
    const auto [stop, error] = std::from_chars(at, end, *number);
    if (error != std::errc()) break;
    ++read;
    at = stop;
    if (at == end || *at != ':') break;
    ++at;
  }
  if (at == end && (read == 2 || read == 4) && place.pool < kPools &&
      std::max(place.at, place.id) <= kBehindAll)
    return place;
  return Fail(ErrorCode::Invalid,
              "'" + Shorten(text, 80) + "' is not the end of a page; give back what `next` said");
}

bool MayHold(std::size_t pool, const TaskFilter& filter) {
  if (!filter.error_class.empty() && pool != 1) return false;
  if (filter.without_finished && pool == 2) return false;
  if (!filter.state) return true;
  const TaskState state = *filter.state;
  if (state == TaskState::Failed) return pool == 1;
  if (state == TaskState::Succeeded || state == TaskState::Cancelled) return pool == 2;
  return pool == 0;
}

constexpr const char* kAttemptColumns = "attempt,at,incarnation,kind,error_class,message";

AttemptRecord AttemptOf(const Row& row) {
  return {static_cast<std::uint32_t>(row.Number(1)),
          row.Time(2).value_or(WallTime{}),
          row.Text(3),
          row.Text(4),
          row.Text(5),
          row.Text(6)};
}

// What a row must fulfil, with the values for it.
struct Conditions {
  std::string text;
  std::vector<Value> values;
};

// The filter's times as text, which outlives the conditions; empty: none.
struct FilterTimes {
  explicit FilterTimes(const TaskFilter& filter)
      : since(Of(filter.since)), until(Of(filter.until)), due_before(Of(filter.due_before)) {}
  static std::string Of(const std::optional<WallTime>& time) { return time ? TimeText(*time) : ""; }
  std::string since;
  std::string until;
  std::string due_before;
};

Conditions ConditionsOf(const TaskFilter& filter, const FilterTimes& times, std::uint64_t pool) {
  Conditions all;
  const auto add = [&](const char* text, Value value) {
    all.text += text;
    all.values.push_back(value);
  };
  if (filter.state) add(" AND state=?", static_cast<int>(*filter.state));
  if (!filter.handler.empty()) add(" AND handler=?", filter.handler);
  if (!filter.batch.empty()) add(" AND batch=?", filter.batch);
  if (!filter.key.empty()) add(" AND biz_key=?", filter.key);
  if (!filter.error_class.empty()) add(" AND error_class=?", filter.error_class);
  if (filter.slice) add(" AND slice=?", *filter.slice);
  if (filter.priority) add(" AND priority=?", *filter.priority);
  if (!times.since.empty()) add(pool == 0 ? " AND created_at>=?" : " AND finished_at>=?", times.since);
  if (!times.until.empty()) add(pool == 0 ? " AND created_at<?" : " AND finished_at<?", times.until);
  if (!times.due_before.empty()) add(" AND run_at<?", times.due_before);
  return all;
}

// A page looks at so many rows of a pool, whether they match or not: a filter that matches little makes short
// pages, never slow ones.
constexpr std::uint64_t kLook = 10'000;

enum class Towards { End, Beginning };

// The last row of a look that goes from `from`, which is not in it, towards one end of the pool; 0 where the
// pool ends before.
Result<std::uint64_t> EndOfLook(Connection& db, const std::string& pool, std::uint64_t from,
                                Towards towards = Towards::End) {
  std::uint64_t end = 0;
  const char* const rows = towards == Towards::End ? "id>? ORDER BY id" : "id<? ORDER BY id DESC";
  BOOST_OUTCOME_TRYV(db.Query("SELECT id FROM " + pool + "$primary WHERE " + rows + " LIMIT 1 OFFSET ?",
                              {from, kLook - 1}, [&](const Row& row) { end = row.Number(1); }));
  return end;
}

// Of each handler, or the one that is named, the first row that waits with the key. Of rows that nobody has
// entered yet no index knows the key: they are looked through, a part at a time.
Result<std::vector<TaskKey>> FirstWaiting(Connection& db, const TableName& table, const std::string& handler,
                                          const std::string& key) {
  std::map<std::string, TaskKey> first;
  const std::string by_handler = handler.empty() ? "" : " AND handler=?";
  std::uint64_t end = 0;
  do {
    const std::uint64_t from = std::exchange(end, 0);
    BOOST_OUTCOME_TRY(look, EndOfLook(db, std::string(table.text()), from));
    end = look;
    std::vector<Value> values{key};
    if (!handler.empty()) values.emplace_back(handler);
    values.emplace_back(from);
    if (end > 0) values.emplace_back(end);
    BOOST_OUTCOME_TRYV(db.Query("SELECT id,handler FROM " + table + "$primary WHERE biz_key=?" + by_handler +
                                    " AND id>?" + (end > 0 ? " AND id<=?" : "") + " ORDER BY id LIMIT " +
                                    std::to_string(kLook),
                                Connection::Values(values), [&](const Row& row) {
                                  first.try_emplace(row.Text(2), TaskKey{table, row.Number(1)});
                                }));
  } while ((first.empty() || handler.empty()) && end > 0);
  std::vector<TaskKey> found;
  for (const auto& [its, task] : first) found.push_back(task);
  return found;
}

// What a look at one pool has found: `next` is set where the page ends here.
struct Look {
  std::vector<TaskRecord> records;
  std::optional<Place> next;
};

Result<Look> LookAhead(Connection& db, const TableName& table, const Pool& pool, const Place& place,
                       const Conditions& conditions, std::uint64_t room) {
  Look look;
  std::uint64_t end = 0;
  if (!conditions.text.empty()) {
    BOOST_OUTCOME_TRY(last, EndOfLook(db, table + pool.suffix, place.id));
    end = last;
  }
  std::vector<Value> values{place.id};
  if (end > 0) values.emplace_back(end);
  values.insert(values.end(), conditions.values.begin(), conditions.values.end());
  values.emplace_back(room);
  BOOST_OUTCOME_TRYV(db.Query(PoolText(table, pool) + "$primary WHERE id>?" + (end > 0 ? " AND id<=?" : "") +
                                  conditions.text + " ORDER BY id LIMIT ?",
                              Connection::Values(values),
                              [&](const Row& row) { look.records.push_back(ReadRecord(table, row)); }));
  if (look.records.size() >= room) {
    look.next = Place{place.pool, look.records.back().task.key.id};
  } else if (end > 0) {
    look.next = Place{place.pool, end};
  }
  return look;
}

Result<Look> LookBack(Connection& db, const TableName& table, const Pool& pool, const Place& place,
                      const Conditions& conditions, std::uint64_t room) {
  Look look;
  const std::uint64_t from = place.id == 0 ? kBehindAll : place.id;
  BOOST_OUTCOME_TRY(end, EndOfLook(db, table + pool.suffix, from, Towards::Beginning));
  const std::string at = place.at == 0 ? "" : TimeText(WallTime(Micros(static_cast<std::int64_t>(place.at))));
  std::vector<Value> values{from, end};
  if (!at.empty()) values.insert(values.end(), {Value(at), Value(at), Value(place.last)});
  values.insert(values.end(), conditions.values.begin(), conditions.values.end());
  values.emplace_back(room);
  BOOST_OUTCOME_TRYV(db.Query(PoolText(table, pool) + "$primary WHERE id<? AND id>=?" +
                                  (at.empty() ? "" : " AND (finished_at<? OR finished_at=? AND id<?)") +
                                  conditions.text + " ORDER BY finished_at DESC,id DESC LIMIT ?",
                              Connection::Values(values),
                              [&](const Row& row) { look.records.push_back(ReadRecord(table, row)); }));
  if (look.records.size() >= room) {
    const TaskRecord& last = look.records.back();
    const Micros ended = last.finished_at.value_or(WallTime{}).time_since_epoch();
    look.next = Place{place.pool, from, static_cast<std::uint64_t>(ended.count()), last.task.key.id};
  } else if (end > 0) {
    look.next = Place{place.pool, end};
  }
  return look;
}

}  // namespace

Result<SubmitReport> SqlTaskOperations::Submit(const TableName& table, std::span<const NewTask> tasks) {
  if (tasks.empty()) return SubmitReport{};
  // Somebody who enters one of the keys at the same moment has decided it: the second look sees the entry.
  for (int look = 0;; ++look) {
    Transaction transaction(db_);
    BOOST_OUTCOME_TRYV(transaction.Begin());
    auto report = sql::Submit(db_, table, tasks, {.look_first = had_duplicates_, .read_standing = true});
    if (!report && report.error().code == ErrorCode::Conflict && look < 3) continue;
    if (!report) return report;
    BOOST_OUTCOME_TRYV(transaction.Commit());
    had_duplicates_ = report->added < tasks.size();
    return report;
  }
}

Result<std::vector<TaskRecord>> ReadFinished(Connection& db, const TableName& table,
                                             std::span<const std::uint64_t> ids) {
  std::vector<TaskRecord> records;
  BOOST_OUTCOME_TRYV(
      db.Query(PoolText(table, kDone) + "$primary WHERE id IN (" + List(Sorted(ids)) + ") ORDER BY id", {},
               [&](const Row& row) { records.push_back(ReadRecord(table, row)); }));
  auto record = records.begin();
  BOOST_OUTCOME_TRYV(
      db.Query(std::string("SELECT ") + kAttemptColumns +
                   ",task_id FROM millrace_attempts$primary WHERE task_table=? AND task_id IN (" +
                   List(Sorted(ids)) + ") ORDER BY task_id,attempt",
               {table}, [&](const Row& row) {
                 const std::uint64_t id = row.Number(7);
                 while (record != records.end() && record->task.key.id < id) ++record;
                 if (record != records.end() && record->task.key.id == id)
                   record->attempts.push_back(AttemptOf(row));
               }));
  return records;
}

Result<TaskRecord> SqlTaskOperations::Get(const TaskKey& key) {
  // A settle may move the row between two looks, and a retry move it back: hence the second round.
  for (int round = 0; round < 2; ++round) {
    for (const Pool& pool : {kHot, kDone, kFailed}) {
      std::optional<TaskRecord> record;
      BOOST_OUTCOME_TRYV(db_.Query(PoolText(key.table, pool) + " WHERE id=?", {key.id},
                                   [&](const Row& row) { record = ReadRecord(key.table, row); }));
      if (!record) continue;
      BOOST_OUTCOME_TRYV(ReadAttempts(*record));
      return *record;
    }
  }
  return Fail(ErrorCode::NotFound, db_.where() + ": there is no task " + ToString(key));
}

Result<std::vector<TaskOutcome>> SqlTaskOperations::Outcomes(const TableName& table,
                                                             std::span<const std::uint64_t> ids) {
  std::vector<TaskOutcome> outcomes;
  if (ids.empty()) return outcomes;
  BOOST_OUTCOME_TRYV(CheckBatch(ids.size()));
  const std::string in = "$primary WHERE id IN (" + sql::List(Sorted(ids)) + ")";
  const std::string ended = " UNION ALL SELECT id,state,CASE WHEN state=1 THEN '' ELSE last_error END FROM ";
  BOOST_OUTCOME_TRYV(db_.Query(
      "SELECT id,state,'' FROM " + table + in + ended + table + "_done" + in + ended + table + "_failed" + in,
      {}, [&](const Row& row) {
        outcomes.push_back({row.Number(1), static_cast<TaskState>(row.Signed(2)), row.Text(3)});
      }));
  return outcomes;
}

Result<RescueCounts> SqlTaskOperations::Rescues(const TableName& table, std::span<const std::uint64_t> ids) {
  RescueCounts counts;
  if (ids.empty()) return counts;
  BOOST_OUTCOME_TRYV(CheckBatch(ids.size()));
  const std::string in = sql::List(Sorted(ids));
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT task_id,COUNT(*) FROM millrace_attempts$primary WHERE task_table=? AND task_id IN (" +
                    in + ") AND kind='rescued' GROUP BY task_id",
                {table}, [&](const Row& row) { counts[row.Number(1)] = row.Number(2); }));
  return counts;
}

Status SqlTaskOperations::ReadAttempts(TaskRecord& record) {
  const TaskKey& key = record.task.key;
  return db_.Query(std::string("SELECT ") + kAttemptColumns +
                       " FROM millrace_attempts WHERE task_table=? AND task_id=? ORDER BY attempt",
                   {key.table, key.id}, [&](const Row& row) { record.attempts.push_back(AttemptOf(row)); });
}

Result<TaskKey> SqlTaskOperations::Find(const TableName& table, const std::string& handler,
                                        const std::string& key, bool by_ledger) {
  BOOST_OUTCOME_TRY(ledger, FindHolders(db_, handler, key));
  std::vector<TaskKey> found = std::move(ledger.tasks);
  if (found.empty() && !by_ledger) {
    BOOST_OUTCOME_TRY(waiting, FirstWaiting(db_, table, handler, key));
    found = std::move(waiting);
  }
  if (found.empty() && ledger.former) return *ledger.former;
  if (found.size() == 1) return found.front();
  const std::string quoted = " the key '" + Shorten(key, 190) + "'";
  if (found.empty()) return Fail(ErrorCode::NotFound, db_.where() + ": no task has" + quoted);
  return Fail(ErrorCode::Invalid, db_.where() + ": tasks of " + std::to_string(found.size()) +
                                      " handlers have" + quoted + ", such as " + ToString(found.front()) +
                                      " and " + ToString(found.back()) + ": say of which handler");
}

Result<TaskPage> SqlTaskOperations::List(const TableName& table, const TaskFilter& filter,
                                         const std::string& after, std::size_t limit) {
  if (limit == 0) return Fail(ErrorCode::Invalid, "a page of no tasks was asked for");
  BOOST_OUTCOME_TRY(place, ParsePlace(after));
  TaskPage page;
  const Pool pools[kPools] = {kHot, kFailed, kDone};
  const FilterTimes times(filter);
  for (std::uint64_t pool = place.pool; pool < kPools; ++pool) {
    if (!MayHold(pool, filter)) continue;
    const Place from = pool == place.pool ? place : Place{pool};
    const Conditions conditions = ConditionsOf(filter, times, pool);
    const auto walk = filter.newest_first && pool != 0 ? LookBack : LookAhead;
    BOOST_OUTCOME_TRY(look, walk(db_, table, pools[pool], from, conditions, limit - page.records.size()));
    std::move(look.records.begin(), look.records.end(), std::back_inserter(page.records));
    if (!look.next) continue;
    page.next = ToText(*look.next);
    return page;
  }
  return page;
}

Result<TaskCount> SqlTaskOperations::Count(const TableName& table, TaskPool pool, const TaskFilter& filter,
                                           std::uint64_t limit, BootTime deadline) {
  const Pool pools[] = {kHot, kFailed, kDone};
  const auto place = static_cast<std::size_t>(pool);
  TaskCount count;
  if (!MayHold(place, filter)) return count;
  const std::string rows = table + pools[place].suffix;
  const FilterTimes times(filter);
  const Conditions conditions = ConditionsOf(filter, times, place);
  for (std::uint64_t from = 0;;) {
    const std::uint64_t known = count.Sum();
    count.more = known >= limit || BootClock::now() >= deadline;
    if (count.more) return count;
    BOOST_OUTCOME_TRY(end, EndOfLook(db_, rows, from));
    std::vector<Value> values{from};
    if (end > 0) values.emplace_back(end);
    values.insert(values.end(), conditions.values.begin(), conditions.values.end());
    values.emplace_back(limit - known);
    BOOST_OUTCOME_TRYV(db_.Query(
        "SELECT state,COUNT(*) FROM (SELECT state FROM " + rows + "$primary WHERE id>?" +
            (end > 0 ? " AND id<=?" : "") + conditions.text + " LIMIT ?) AS counted GROUP BY state",
        Connection::Values(values),
        [&](const Row& row) { count.states[static_cast<TaskState>(row.Signed(1))] += row.Number(2); }));
    if (end == 0) break;
    from = end;
  }
  count.more = count.Sum() >= limit;
  return count;
}

// Each urgency by itself, so that what is not due yet ends its part at once. Running rows stand in the index
// too, and are left out.
Result<AheadCount> SqlTaskOperations::Ahead(const Task& task) {
  const TableName& table = task.key.table;
  const std::uint32_t own = Urgency(task.priority, task.failures);
  const std::string run_at = TimeText(task.run_at);
  const std::string waiting =
      table + "$due(" + table + ") WHERE slice=? AND handler=? AND state=0 AND urgency=";
  std::string text;
  std::vector<Value> values;
  for (std::uint32_t urgency = 0; urgency <= own; ++urgency) {
    const std::string number = std::to_string(urgency);
    text += std::string(urgency == 0 ? "" : " UNION ALL ") + "SELECT " + number +
            ",COUNT(*) FROM (SELECT id FROM " + waiting + number + " AND run_at<=$now";
    values.insert(values.end(), {task.slice, task.handler});
    if (urgency == own) {
      text += " AND run_at<=? AND (run_at<? OR id<?)";
      values.insert(values.end(), {run_at, run_at, task.key.id});
    }
    text += " LIMIT " + std::to_string(kAheadBound) + ") AS counted" + number;
  }
  AheadCount ahead;
  BOOST_OUTCOME_TRYV(db_.Query(text, Connection::Values(values), [&](const Row& row) {
    const std::uint64_t count = row.Number(2);
    if (count > 0) ahead.of_priority[static_cast<std::uint32_t>(row.Number(1)) / 10] += count;
    ahead.more = ahead.more || count >= kAheadBound;
  }));
  return ahead;
}

// `batch` is what a sum's batch is, and `by` what more the sums are by.
Result<std::vector<TaskTotals>> SqlTaskOperations::SumUp(const std::string& batch, const std::string& by,
                                                         std::span<const Value> values) {
  std::vector<TaskTotals> totals;
  // What people take out of a pool may have been counted where the row of its sums is gone.
  const auto sum = [](const Row& row, unsigned column) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(row.Signed(column), 0));
  };
  const std::string order = "task_table,handler" + by;
  BOOST_OUTCOME_TRYV(db_.Query(
      "SELECT task_table,handler," + batch +
          ",SUM(succeeded),SUM(cancelled),SUM(failed),SUM(attempts_failed) FROM millrace_counters GROUP BY " +
          order + " ORDER BY " + order,
      values, [&](const Row& row) {
        totals.push_back(
            {row.Text(1), row.Text(2), row.Text(3), sum(row, 4), sum(row, 5), sum(row, 6), sum(row, 7)});
      }));
  return totals;
}

Result<std::vector<TaskTotals>> SqlTaskOperations::Totals() { return SumUp("batch", ",batch", {}); }

Result<std::vector<TaskTotals>> SqlTaskOperations::TypeTotals(std::span<const std::string> batches) {
  if (batches.empty()) return SumUp("''", "", {});
  BOOST_OUTCOME_TRYV(CheckBatch(batches.size()));
  const std::vector<Value> names(batches.begin(), batches.end());
  return SumUp("CASE WHEN batch IN (" + Repeat("?", names.size()) + ") THEN batch ELSE '' END AS told",
               ",told", names);
}

// No index knows which batch is new: the rows are read once, and no more of them kept than are asked for. Of
// those without a row the counters know, by the first of them.
Result<BatchGlance> SqlTaskOperations::GlanceAtBatches(std::size_t limit) {
  constexpr std::uint64_t kMost = 10'000;
  BatchGlance glance;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT name,state,created_at FROM millrace_batches ORDER BY CASE WHEN state='ended' THEN 1 "
                "ELSE 0 END,created_at DESC,name LIMIT ?",
                {std::uint64_t{limit}}, [&](const Row& row) {
                  glance.batches.push_back({row.Text(1), BatchStateOf(row.Text(2)), row.Time(3)});
                }));
  BOOST_OUTCOME_TRYV(db_.Query("SELECT COUNT(*) FROM (SELECT 1 FROM millrace_batches LIMIT ?) AS counted",
                               {kMost}, [&](const Row& row) { glance.all = row.Number(1); }));
  glance.more = glance.all >= kMost;
  const std::string with_one = " FROM millrace_counters WHERE batch<>'' LIMIT ?) AS looked_at";
  BOOST_OUTCOME_TRYV(db_.Query("SELECT COUNT(*) FROM (SELECT batch" + with_one, {kMost},
                               [&](const Row& row) { glance.more = glance.more || row.Number(1) >= kMost; }));
  std::uint64_t plain = 0;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT DISTINCT batch FROM (SELECT batch" + with_one +
                    " WHERE NOT EXISTS (SELECT 1 FROM millrace_batches b WHERE b.name=batch) ORDER BY batch "
                    "LIMIT ?",
                {kMost, std::uint64_t{limit + 1}}, [&](const Row& row) {
                  if (++plain <= limit) glance.batches.push_back({row.Text(1), std::nullopt, std::nullopt});
                }));
  glance.all += std::min<std::uint64_t>(plain, limit);
  glance.more = glance.more || plain > limit;
  return glance;
}

std::unique_ptr<TaskOperations> OpenOperations(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlTaskOperations>(std::move(connection));
}

}  // namespace millrace::engine::sql

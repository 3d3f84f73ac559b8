#include "framework/store/sqlite/pools.h"

#include <charconv>

#include "framework/store/sqlite/rows.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kReadAtMost = 20'000;

struct Place {
  Pool pool = Pool::Tasks;
  std::uint64_t id = 0;
};

std::string ToText(const Place& place) {
  return std::to_string(static_cast<int>(place.pool)) + ":" + std::to_string(place.id);
}

Result<Place> ParsePlace(const std::string& text) {
  if (text.empty()) return Place{};
  Place place;
  const char* end = text.data() + text.size();
  if (text.size() > 2 && text[0] >= '0' && text[0] <= '2' && text[1] == ':') {
    place.pool = static_cast<Pool>(text[0] - '0');
    const auto [stop, error] = std::from_chars(text.data() + 2, end, place.id);
    if (error == std::errc() && stop == end) return place;
  }
  return Fail(ErrorCode::Invalid,
              "'" + Shorten(text, 40) + "' is no place in a list of tasks; begin without it");
}

bool MayHold(Pool pool, const TaskFilter& filter) {
  if (!filter.error_class.empty() && pool != Pool::Failed) return false;
  if (!filter.state) return true;
  switch (*filter.state) {
    case TaskState::Failed:
      return pool == Pool::Failed;
    case TaskState::Succeeded:
    case TaskState::Cancelled:
      return pool == Pool::Done;
    default:
      return pool == Pool::Tasks;
  }
}

// The conditions of the filter, with their values.
std::string Conditions(const TaskFilter& filter, std::vector<SqlBind>& values) {
  std::string sql = " WHERE 1";
  const auto add = [&](const char* condition, SqlBind value) {
    sql += condition;
    values.push_back(value);
  };
  if (filter.state) add(" AND state=?", static_cast<int>(*filter.state));
  if (!filter.handler.empty()) add(" AND handler=?", filter.handler);
  if (!filter.batch.empty()) add(" AND batch=?", filter.batch);
  if (!filter.key.empty()) add(" AND biz_key=?", filter.key);
  if (!filter.error_class.empty()) add(" AND error_class=?", filter.error_class);
  if (filter.slice) add(" AND slice=?", *filter.slice);
  return sql;
}

struct Window {
  std::uint64_t last = 0;
  std::size_t count = 0;
};

// The end of the stretch of rows behind `place` that one page may read.
Result<Window> WindowBehind(SqliteConnection& db, const std::string& pool, std::uint64_t place) {
  auto rows = db.Select("SELECT coalesce(max(id), 0), count(*) FROM (SELECT id FROM " + pool +
                            " WHERE id>? ORDER BY id LIMIT ?)",
                        place, static_cast<std::uint64_t>(kReadAtMost));
  Window window;
  if (rows.Next()) window = {rows.Id(0), static_cast<std::size_t>(rows.Integer(1))};
  if (rows.error()) return Fail(*rows.error());
  return window;
}

Status ReadWindow(SqliteConnection& db, const TableName& table, Pool pool, const TaskFilter& filter,
                  std::uint64_t behind, const Window& window, std::size_t limit,
                  std::vector<TaskRecord>& records) {
  std::vector<SqlBind> values;
  std::string where = Conditions(filter, values) + " AND id>? AND id<=? ORDER BY id LIMIT ?";
  values.insert(values.end(),
                {SqlBind(behind), SqlBind(window.last), SqlBind(static_cast<std::uint64_t>(limit))});
  auto rows = db.Start(RecordSql(pool, PoolTable(table, pool)) + where, values.data(), values.size());
  while (rows.Next()) records.push_back(ReadRecord(rows, table));
  if (rows.error()) return Fail(*rows.error());
  return {};
}

}  // namespace

std::string PoolTable(const TableName& table, Pool pool) {
  return table + (pool == Pool::Tasks ? "" : pool == Pool::Failed ? "_failed" : "_done");
}

std::string RecordSql(Pool pool, const std::string& source) {
  const std::string cancel = pool == Pool::Tasks ? "cancel" : "0";
  const std::string ends = pool == Pool::Tasks  ? "NULL, NULL"
                           : pool == Pool::Done ? "result, finished_at"
                                                : "NULL, finished_at";
  return "SELECT id, slice, state, handler, priority, run_at, params, biz_key, batch, failures, attempt, "
         "crashes, " +
         cancel + ", claimed_by, claimed_at, last_error, progress, created_at, " + ends + " FROM " + source;
}

TaskRecord ReadRecord(const SqliteRows& row, const TableName& table) {
  TaskRecord record;
  record.task = ReadTask(row, table);
  record.result = row.Text(kTaskColumnCount);
  record.finished_at = TimeOrNone(row.Text(kTaskColumnCount + 1));
  return record;
}

Result<std::optional<TaskRecord>> FindRecord(SqliteConnection& db, const TaskKey& key) {
  for (const Pool pool : {Pool::Tasks, Pool::Failed, Pool::Done}) {
    auto rows = db.Select(RecordSql(pool, PoolTable(key.table, pool)) + " WHERE id=?", key.id);
    if (rows.Next()) return std::optional(ReadRecord(rows, key.table));
    if (rows.error()) return Fail(*rows.error());
  }
  return std::optional<TaskRecord>();
}

Result<TaskPage> ReadPage(SqliteConnection& db, const TableName& table, const TaskFilter& filter,
                          const std::string& after, std::size_t limit) {
  auto place = ParsePlace(after);
  if (!place) return Fail(place.error());
  TaskPage page;
  std::size_t read = 0;
  for (int i = static_cast<int>(place->pool); i <= static_cast<int>(Pool::Done); ++i) {
    const Pool pool = static_cast<Pool>(i);
    if (pool != place->pool) place = Place{pool, 0};
    if (!MayHold(pool, filter)) continue;
    while (true) {
      if (page.records.size() >= limit || read >= kReadAtMost) {
        page.next = ToText(*place);
        return page;
      }
      BOOST_OUTCOME_TRY(window, WindowBehind(db, PoolTable(table, pool), place->id));
      if (window.count == 0) break;
      const std::size_t before = page.records.size();
      if (Status done = ReadWindow(db, table, pool, filter, place->id, window, limit - before, page.records);
          !done) {
        return Fail(done.error());
      }
      read += window.count;
      const bool full = page.records.size() >= limit;
      place->id = full ? page.records.back().task.key.id : window.last;
    }
  }
  return page;
}

}  // namespace millrace::engine

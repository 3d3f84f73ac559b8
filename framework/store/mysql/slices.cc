#include <algorithm>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/mysql_schema.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

// Whoever waits for a table that others have open holds up all who come later: a moment, then try again.
Status BriefWait(Session& session) {
  auto set = session.Write("SET SESSION lock_wait_timeout=1");
  if (!set) return Fail(set.error());
  return {};
}

// Instant: the rows stay as they are.
Status SetDefault(Session& session, const TableName& table, std::uint32_t slices) {
  for (const char* pool : {"", "_done", "_failed"}) {
    auto changed =
        session.Write("ALTER TABLE " + table + pool + " ALTER COLUMN slice SET DEFAULT (FLOOR(RAND()*" +
                      std::to_string(slices) + "))");
    if (!changed) return Fail(changed.error());
  }
  return {};
}

Status SetNumber(Session& session, const TableName& table, std::uint32_t slices) {
  auto changed = session.Write("UPDATE millrace_schema SET slices=" + std::to_string(slices) +
                               " WHERE task_table=" + Quote(table));
  if (!changed) return Fail(changed.error());
  return {};
}

}  // namespace

// The end of the index, and from there one jump for each slice: the more rows within the slices cost nothing.
Status MysqlSchemaStore::ReadBeyond(std::vector<TableInfo>& tables) {
  for (std::size_t at = 0; at < tables.size(); at += kTablesPerQuery) {
    const std::size_t end = std::min(at + kTablesPerQuery, tables.size());
    std::string sql;
    for (std::size_t i = at; i < end; ++i) {
      sql += (sql.empty() ? "SELECT " : " UNION ALL SELECT ") + std::to_string(i) + ",MAX(slice) FROM " +
             tables[i].table + " FORCE INDEX (due)";
    }
    std::vector<std::size_t> longer;
    Status read = session_.Query(sql, [&](const Row& row) {
      const auto i = static_cast<std::size_t>(row.Number(1));
      if (!row.Null(2) && row.Number(2) >= tables[i].slices) longer.push_back(i);
    });
    if (!read) return read;
    for (const std::size_t i : longer) {
      TableInfo& info = tables[i];
      read = session_.Query(
          "SELECT DISTINCT slice FROM " + info.table +
              " FORCE INDEX (due) WHERE slice>=" + std::to_string(info.slices) + " ORDER BY slice",
          [&](const Row& row) { info.beyond.push_back(static_cast<std::uint32_t>(row.Number(1))); });
      if (!read) return read;
    }
  }
  return {};
}

Result<std::uint32_t> MysqlSchemaStore::SlicesOf(const TableName& table) {
  std::uint32_t slices = 0;
  Status read =
      session_.Query("SELECT slices FROM millrace_schema WHERE task_table<>'' AND task_table=" + Quote(table),
                     [&](const Row& row) { slices = static_cast<std::uint32_t>(row.Number(1)); });
  if (!read) return Fail(read.error());
  if (slices > 0) return slices;
  return Fail(ErrorCode::NotFound,
              session_.where() + ": there is no task table '" + Shorten(table, 60) + "'");
}

Status MysqlSchemaStore::Resize(const TableName& table, std::uint32_t slices) {
  if (Status valid = CheckSlices(slices); !valid) return valid;
  auto present = SlicesOf(table);
  if (!present) return Fail(present.error());
  if (Status brief = BriefWait(session_); !brief) return brief;
  // A plan covers the wider of the two at every moment.
  if (slices >= *present) {
    if (Status number = SetNumber(session_, table, slices); !number) return number;
    return SetDefault(session_, table, slices);
  }
  if (Status drawn = SetDefault(session_, table, slices); !drawn) return drawn;
  return SetNumber(session_, table, slices);
}

Result<std::size_t> MysqlSchemaStore::RenumberStep(const TableName& table, std::size_t limit) {
  auto slices = SlicesOf(table);
  if (!slices) return Fail(slices.error());
  const std::string count = std::to_string(*slices);
  const std::string stray = " AND slice>=" + count + " AND state IN (0,3)";
  std::vector<std::uint64_t> ids;
  const auto take = [&](const Row& row) { ids.push_back(row.Number(1)); };
  Status read =
      session_.Query("SELECT id FROM " + table + " FORCE INDEX (due) WHERE slice>=" + count +
                         " AND state IN (0,3) LIMIT " + std::to_string(std::min(limit, kMaxBatchRows)),
                     take);
  if (!read) return Fail(read.error());
  if (ids.empty()) return std::size_t{0};
  Transaction transaction(session_);
  if (Status begun = session_.Begin(); !begun) return Fail(begun.error());
  const std::string seen = List(Sorted(ids));
  ids.clear();
  read = session_.Query("SELECT id FROM " + table + " FORCE INDEX (PRIMARY) WHERE id IN (" + seen + ")" +
                            stray + " ORDER BY id FOR UPDATE SKIP LOCKED",
                        take);
  if (!read) return Fail(read.error());
  if (ids.empty()) return std::size_t{0};
  auto moved = session_.Write("UPDATE " + table + " FORCE INDEX (PRIMARY) SET slice=id MOD " + count +
                              ", updated_at=UTC_TIMESTAMP(6) WHERE id IN (" + List(ids) + ")");
  if (!moved) return Fail(moved.error());
  if (Status done = session_.Commit(); !done) return Fail(done.error());
  return ids.size();
}

}  // namespace millrace::engine::mysql

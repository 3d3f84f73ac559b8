#include <algorithm>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/mysql_schema.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

// Whoever waits for a table that others have open holds up all who come later: a moment, then try again.
Status BriefWait(Session& session) {
  BOOST_OUTCOME_TRYV(session.Write("SET SESSION lock_wait_timeout=1"));
  return {};
}

// Instant: the rows stay as they are.
Status SetDefault(Session& session, const TableName& table, std::uint32_t slices) {
  for (const char* pool : {"", "_done", "_failed"}) {
    BOOST_OUTCOME_TRYV(session.Write("ALTER TABLE " + table + pool +
                                     " ALTER COLUMN slice SET DEFAULT (FLOOR(RAND()*" +
                                     std::to_string(slices) + "))"));
  }
  return {};
}

Status SetNumber(Session& session, const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(session.Write("UPDATE millrace_schema SET slices=" + std::to_string(slices) +
                                   " WHERE task_table=" + Quote(table)));
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
    BOOST_OUTCOME_TRYV(session_.Query(sql, [&](const Row& row) {
      const auto i = static_cast<std::size_t>(row.Number(1));
      if (!row.Null(2) && row.Number(2) >= tables[i].slices) longer.push_back(i);
    }));
    for (const std::size_t i : longer) {
      TableInfo& info = tables[i];
      BOOST_OUTCOME_TRYV(session_.Query(
          "SELECT DISTINCT slice FROM " + info.table +
              " FORCE INDEX (due) WHERE slice>=" + std::to_string(info.slices) + " ORDER BY slice",
          [&](const Row& row) { info.beyond.push_back(static_cast<std::uint32_t>(row.Number(1))); }));
    }
  }
  return {};
}

Result<std::uint32_t> MysqlSchemaStore::SlicesOf(const TableName& table) {
  std::uint32_t slices = 0;
  BOOST_OUTCOME_TRYV(
      session_.Query("SELECT slices FROM millrace_schema WHERE task_table<>'' AND task_table=" + Quote(table),
                     [&](const Row& row) { slices = static_cast<std::uint32_t>(row.Number(1)); }));
  if (slices > 0) return slices;
  return Fail(ErrorCode::NotFound,
              session_.where() + ": there is no task table '" + Shorten(table, 60) + "'");
}

Status MysqlSchemaStore::Resize(const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(CheckSlices(slices));
  BOOST_OUTCOME_TRY(present, SlicesOf(table));
  BOOST_OUTCOME_TRYV(BriefWait(session_));
  // A plan covers the wider of the two at every moment.
  if (slices >= present) {
    BOOST_OUTCOME_TRYV(SetNumber(session_, table, slices));
    return SetDefault(session_, table, slices);
  }
  BOOST_OUTCOME_TRYV(SetDefault(session_, table, slices));
  return SetNumber(session_, table, slices);
}

Result<std::size_t> MysqlSchemaStore::RenumberStep(const TableName& table, std::size_t limit) {
  BOOST_OUTCOME_TRY(slices, SlicesOf(table));
  const std::string count = std::to_string(slices);
  const std::string stray = " AND slice>=" + count + " AND state IN (0,3)";
  std::vector<std::uint64_t> ids;
  const auto take = [&](const Row& row) { ids.push_back(row.Number(1)); };
  BOOST_OUTCOME_TRYV(session_.Query("SELECT id FROM " + table + " FORCE INDEX (due) WHERE slice>=" + count +
                                        " AND state IN (0,3) LIMIT " +
                                        std::to_string(std::min(limit, kMaxBatchRows)),
                                    take));
  if (ids.empty()) return std::size_t{0};
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  const std::string seen = List(Sorted(ids));
  ids.clear();
  BOOST_OUTCOME_TRYV(session_.Query("SELECT id FROM " + table + " FORCE INDEX (PRIMARY) WHERE id IN (" +
                                        seen + ")" + stray + " ORDER BY id FOR UPDATE SKIP LOCKED",
                                    take));
  if (ids.empty()) return std::size_t{0};
  BOOST_OUTCOME_TRYV(session_.Write("UPDATE " + table + " FORCE INDEX (PRIMARY) SET slice=id MOD " + count +
                                    ", updated_at=UTC_TIMESTAMP(6) WHERE id IN (" + List(ids) + ")"));
  BOOST_OUTCOME_TRYV(session_.Commit());
  return ids.size();
}

}  // namespace millrace::engine::mysql

#include "framework/store/sqlite/slices.h"

#include <set>

#include "framework/store/sqlite/rows.h"
#include "framework/store/sqlite/schema_text.h"

namespace millrace::engine {
namespace {

// Rows that wait or run stand in the due index, held ones in another: see schema_text.cc.
std::string Strays(const TableName& table, bool held) {
  return table + " INDEXED BY " + table + (held ? "_held" : "_due") + " WHERE urgency IS " +
         (held ? "" : "NOT ") + "NULL AND slice>=?";
}

Status NoSuchTable(const TableName& table) {
  return Fail(ErrorCode::NotFound, "there is no task table '" + Shorten(table, 60) + "'");
}

// SQLite has no statement that changes a default. Its documentation gives this way for what does not touch
// the rows: the text of the table is changed, and the schema's version raised, so that every connection reads
// it anew.
Status RewriteTable(SqliteConnection& db, const TableName& table, const std::string& text) {
  std::int64_t version = 0;
  {
    auto rows = db.Select("PRAGMA schema_version");
    if (rows.Next()) version = rows.Integer(0);
    if (rows.error()) return Fail(*rows.error());
  }
  BOOST_OUTCOME_TRYV(db.Script("PRAGMA writable_schema=ON"));
  auto changed = db.Run("UPDATE sqlite_master SET sql=? WHERE type='table' AND name=?", text, table);
  Status raised =
      db.Script("PRAGMA schema_version=" + std::to_string(version + 1) + "; PRAGMA writable_schema=OFF");
  if (!changed) return Fail(changed.error());
  return raised;
}

}  // namespace

Result<std::uint32_t> SlicesOf(SqliteConnection& db, const TableName& table) {
  auto rows = db.Select("SELECT slices FROM millrace_schema WHERE task_table=?", table);
  std::uint32_t slices = 0;
  if (rows.Next()) slices = rows.Number(0);
  if (rows.error()) return Fail(*rows.error());
  return slices;
}

Result<std::vector<std::uint32_t>> SlicesBeyond(SqliteConnection& db, const TableInfo& info) {
  std::set<std::uint32_t> found;
  for (const bool held : {false, true}) {
    const std::string sql = "SELECT slice FROM " + Strays(info.table, held) + " ORDER BY slice LIMIT 1";
    for (std::uint32_t from = info.slices;;) {
      auto rows = db.Select(sql, from);
      if (!rows.Next()) {
        if (rows.error()) return Fail(*rows.error());
        break;
      }
      found.insert(rows.Number(0));
      from = rows.Number(0) + 1;
    }
  }
  return std::vector<std::uint32_t>(found.begin(), found.end());
}

Status ResizeTable(SqliteConnection& db, const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRY(present, SlicesOf(db, table));
  if (present == 0) return NoSuchTable(table);
  if (present == slices) return {};
  std::string text;
  {
    auto rows = db.Select("SELECT sql FROM sqlite_master WHERE type='table' AND name=?", table);
    if (rows.Next()) text = rows.Text(0);
    if (rows.error()) return Fail(*rows.error());
  }
  const std::string drawn = SliceDefault(present);
  const std::size_t at = text.find(drawn);
  if (at == std::string::npos) {
    return Fail(ErrorCode::Invalid, "the table " + table + " draws its slices otherwise than " + drawn +
                                        ": see `millrace schema check`");
  }
  text.replace(at, drawn.size(), SliceDefault(slices));
  BOOST_OUTCOME_TRYV(RewriteTable(db, table, text));
  BOOST_OUTCOME_TRYV(db.Run("UPDATE millrace_schema SET slices=? WHERE task_table=?", slices, table));
  return {};
}

Result<std::size_t> RenumberRows(SqliteConnection& db, const TableName& table, std::size_t limit) {
  BOOST_OUTCOME_TRY(slices, SlicesOf(db, table));
  if (slices == 0) return Fail(NoSuchTable(table).error());
  std::vector<std::uint64_t> ids;
  for (const bool held : {false, true}) {
    auto rows = db.Select("SELECT id FROM " + Strays(table, held) + " AND state<>2 LIMIT ?", slices,
                          static_cast<std::uint64_t>(limit - ids.size()));
    while (rows.Next()) ids.push_back(rows.Id(0));
    if (rows.error()) return Fail(*rows.error());
  }
  const std::string now = TimeText(StoreNow());
  for (const std::uint64_t id : ids) {
    BOOST_OUTCOME_TRYV(
        db.Run("UPDATE " + table + " SET slice=id%?, updated_at=? WHERE id=?", slices, now, id));
  }
  return ids.size();
}

}  // namespace millrace::engine

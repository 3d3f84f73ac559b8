#include "framework/store/sql/schema.h"

#include <algorithm>

#include "framework/store/sql/text.h"

namespace millrace::engine::sql {

namespace {

Result<BeatsSeen> ReadBeats(Connection& db) {
  BeatsSeen beats;
  BOOST_OUTCOME_TRYV(db.Query(
      "SELECT i.id,i.worker,i.host,i.pid,i.lease_us,b.beat FROM millrace_incarnations i JOIN "
      "millrace_beats b ON b.id=i.id WHERE i.dead=0",
      {}, [&](const Row& row) {
        beats[row.Text(1)] = {row.Text(2), row.Text(3), row.Signed(4), Micros(row.Signed(5)), row.Number(6)};
      }));
  return beats;
}

}  // namespace

Result<SchemaRows> SqlSchemaStore::ReadSchema(Connection& db) {
  SchemaRows rows;
  std::optional<Error> forged;
  Status read = db.Query(
      "SELECT task_table,slices,version,applied_at FROM millrace_schema ORDER BY task_table", {},
      [&](const Row& row) {
        const std::string name = row.Text(1);
        const auto version = static_cast<std::uint32_t>(row.Number(3));
        if (name.empty()) {
          rows.state.version = version;
          rows.oldest = version;
          rows.applied_at = row.Text(4);
        } else if (const auto table = ParseTableName(name)) {
          rows.tables.push_back({*table, static_cast<std::uint32_t>(row.Number(2))});
          rows.oldest = std::min(rows.oldest, version);
          if (version < kSchemaVersion) rows.behind.push_back({rows.tables.back(), version});
        } else if (!forged) {
          forged = {ErrorCode::Invalid, db.where() + ": millrace_schema names a table '" + Shorten(name, 60) +
                                            "', which can't be one of tasks: remove its row"};
        }
      });
  if (!read && db.refusal() != Refusal::NoTable) return Fail(read.error());
  if (forged) return Fail(*forged);
  if (rows.tables.empty() || rows.state.version == 0) {
    return Fail(ErrorCode::NotFound, db.where() + ": there are no task tables: run `millrace schema apply`");
  }
  rows.state.half_way = rows.state.version == kSchemaVersion && !rows.behind.empty();
  if (rows.state.version <= kSchemaVersion) return rows;
  BOOST_OUTCOME_TRYV(
      db.Query("SELECT readable_by FROM millrace_schema WHERE task_table=''", {},
               [&](const Row& row) { rows.state.readable_by = static_cast<std::uint32_t>(row.Number(1)); }));
  return rows;
}

Result<std::vector<TableInfo>> SqlSchemaStore::Tables() {
  BOOST_OUTCOME_TRY(schema, ReadSchema(db_));
  BOOST_OUTCOME_TRYV(CheckVersion(schema.state, db_.where()));
  return std::move(schema.tables);
}

Status SqlSchemaStore::CheckNotLater(const SchemaRows& schema, const Connection& db) {
  if (schema.state.version <= kSchemaVersion) return {};
  return CheckVersion({.version = schema.state.version}, db.where());
}

Result<BeatsSeen> SqlSchemaStore::CheckStill(Connection& db, const UpgradeCalls& calls,
                                             const std::optional<BeatsSeen>& since) {
  BeatsSeen before;
  if (since) {
    before = *since;
  } else {
    BOOST_OUTCOME_TRY(first, ReadBeats(db));
    if (first.empty()) return first;
    Micros longest{};
    for (const auto& [id, seen] : first) longest = std::max(longest, seen.lease);
    // A worker beats five times in its lease.
    calls.pause(longest * 3 / 10);
    before = std::move(first);
  }
  BOOST_OUTCOME_TRY(now, ReadBeats(db));
  for (const auto& [id, seen] : now) {
    const auto known = before.find(id);
    if (known != before.end() && known->second == seen) continue;
    return Fail(ErrorCode::Conflict,
                db.where() + ": the worker " + seen.worker + " (" + id + ", process " +
                    std::to_string(seen.pid) + " on " + seen.host +
                    ") works on the tables of the older version: stop it and all others, then run `millrace "
                    "schema upgrade` again");
  }
  return now;
}

Result<std::string> SqlSchemaStore::Identity() {
  BOOST_OUTCOME_TRY(schema, ReadSchema(db_));
  return std::move(schema.applied_at);
}

Status SqlSchemaStore::CheckSpec(const SchemaSpec& spec) {
  if (spec.tables >= 1 && spec.tables <= 1000) return CheckSlices(spec.slices);
  return Fail(ErrorCode::Invalid, std::to_string(spec.tables) + " task tables; a shard takes 1 to 1000");
}

Status SqlSchemaStore::CheckOurs(const TableName& table) {
  const Status has_columns =
      db_.Query("SELECT slice,handler,urgency FROM " + table + " WHERE 1=0", {}, [](const Row&) {});
  if (has_columns || db_.refusal() == Refusal::NoTable) return {};
  // Nobody could look: it was away, locked, or not for us.
  if (has_columns.error().code != ErrorCode::Internal) return Fail(has_columns.error());
  return Fail(ErrorCode::Conflict, db_.where() + ": there is a table '" + table +
                                       "' that is not Millrace's: rename it, or use another database");
}

Status SqlSchemaStore::CheckApply(const SchemaSpec& spec) {
  const std::vector<TableName> wanted = TableNames(spec);
  for (const TableName& table : wanted) {
    BOOST_OUTCOME_TRYV(CheckOurs(table));
  }
  auto present = ReadSchema(db_);
  if (!present && present.error().code == ErrorCode::NotFound) return {};
  if (!present) return Fail(present.error());
  BOOST_OUTCOME_TRYV(CheckNotLater(*present, db_));
  BOOST_OUTCOME_TRYV(CheckVersion(present->state, db_.where()));
  const TableInfo* other = nullptr;
  for (const TableInfo& info : present->tables) {
    if (std::find(wanted.begin(), wanted.end(), info.table) == wanted.end()) continue;
    if (info.slices == spec.slices) return {};  // the others were resized, and keep their number
    if (other == nullptr) other = &info;
  }
  if (other == nullptr) return {};
  return Fail(ErrorCode::Conflict, db_.where() + ": the table " + other->table + " has " +
                                       std::to_string(other->slices) + " slices, not " +
                                       std::to_string(spec.slices) +
                                       "; leave --slices out, or use another database");
}

Result<std::uint32_t> SqlSchemaStore::SlicesOf(const TableName& table) {
  std::uint32_t slices = 0;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT slices FROM millrace_schema WHERE task_table<>'' AND task_table=?",
                               {table},
                               [&](const Row& row) { slices = static_cast<std::uint32_t>(row.Number(1)); }));
  if (slices > 0) return slices;
  return Fail(ErrorCode::NotFound, db_.where() + ": there is no task table '" + Shorten(table, 60) + "'");
}

Status SqlSchemaStore::SetNumber(const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(db_.Write("UPDATE millrace_schema SET slices=? WHERE task_table=?", {slices, table}));
  return {};
}

Result<std::size_t> SqlSchemaStore::RenumberStep(const TableName& table, std::size_t limit) {
  BOOST_OUTCOME_TRY(slices, SlicesOf(table));
  BOOST_OUTCOME_TRY(strays, Strays(table, slices, std::min(limit, kMaxBatchRows)));
  if (strays.empty()) return std::size_t{0};
  std::vector<std::uint64_t> ids;
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id FROM " + table + "$primary WHERE id IN (" + List(Sorted(strays)) +
                                   ") AND slice>=? AND state IN (0,3) ORDER BY id$free",
                               {slices}, [&](const Row& row) { ids.push_back(row.Number(1)); }));
  if (ids.empty()) return std::size_t{0};
  BOOST_OUTCOME_TRYV(db_.Write(
      "UPDATE " + table + "$primary SET slice=id%?, updated_at=$now WHERE id IN (" + List(ids) + ")",
      {slices}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return ids.size();
}

}  // namespace millrace::engine::sql

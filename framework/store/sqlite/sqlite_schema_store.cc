#include "framework/store/sqlite/sqlite_schema_store.h"

#include <algorithm>

#include "framework/store/sqlite/rows.h"
#include "framework/store/sqlite/schema_check.h"
#include "framework/store/sqlite/schema_text.h"
#include "framework/store/sqlite/slices.h"

namespace millrace::engine {
namespace {

Status CheckSpec(const SchemaSpec& spec) {
  if (spec.tables < 1 || spec.tables > 1000) {
    return Fail(ErrorCode::Invalid, std::to_string(spec.tables) + " task tables; a shard takes 1 to 1000");
  }
  return CheckSlices(spec.slices);
}

Result<bool> Exists(SqliteConnection& db, const std::string& name) {
  auto rows = db.Select("SELECT 1 FROM sqlite_master WHERE name=?", name);
  const bool found = rows.Next();
  if (rows.error()) return Fail(*rows.error());
  return found;
}

Status MakeMissing(SqliteConnection& db, const std::vector<SchemaObject>& objects) {
  for (const SchemaObject& object : objects) {
    BOOST_OUTCOME_TRY(found, Exists(db, object.name));
    if (found) continue;
    BOOST_OUTCOME_TRYV(db.Script(object.create));
  }
  return {};
}

Status ApplyTable(SqliteConnection& db, const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRY(present, SlicesOf(db, table));
  if (present != 0 && present != slices) {
    return Fail(ErrorCode::Conflict, "the table " + table + " has " + std::to_string(present) +
                                         " slices, not " + std::to_string(slices) +
                                         ": apply with the same number, or begin with an empty database");
  }
  BOOST_OUTCOME_TRYV(MakeMissing(db, TaskTableObjects(table, slices)));
  return db.Script(SchemaRow(table, slices));
}

}  // namespace

std::string SqliteSchemaStore::Print(const SchemaSpec& spec) const {
  std::string text = "BEGIN IMMEDIATE;\n";
  const auto print = [&](const std::vector<SchemaObject>& objects) {
    for (const SchemaObject& object : objects) text += object.create + ";\n";
  };
  print(ShardObjects());
  text += SchemaRow(std::nullopt, 0) + ";\n";
  for (const TableName& table : TableNames(spec)) {
    print(TaskTableObjects(table, spec.slices));
    text += SchemaRow(table, spec.slices) + ";\n";
  }
  return text + "COMMIT;\n";
}

Status SqliteSchemaStore::Apply(const SchemaSpec& spec) {
  BOOST_OUTCOME_TRYV(CheckSpec(spec));
  if (const auto version = Version()) {
    BOOST_OUTCOME_TRYV(CheckVersion(*version, db_.path()));
  }
  SqliteConnection maker(file_, true);
  BOOST_OUTCOME_TRYV(maker.Open());
  BOOST_OUTCOME_TRYV(maker.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRYV(MakeMissing(maker, ShardObjects()));
    BOOST_OUTCOME_TRYV(maker.Script(SchemaRow(std::nullopt, 0)));
    for (const TableName& table : TableNames(spec)) {
      BOOST_OUTCOME_TRYV(ApplyTable(maker, table, spec.slices));
    }
    return true;
  }));
  return {};
}

Result<std::uint32_t> SqliteSchemaStore::Version() {
  BOOST_OUTCOME_TRY(applied, Exists(db_, "millrace_schema"));
  if (!applied) {
    return Fail(
        ErrorCode::NotFound,
        db_.path() + " has no task tables: run `millrace schema apply --store sqlite:" + db_.path() + "`");
  }
  auto rows = db_.Select("SELECT version FROM millrace_schema WHERE task_table=''");
  std::uint32_t version = 0;
  if (rows.Next()) version = rows.Number(0);
  if (rows.error()) return Fail(*rows.error());
  return version;
}

Result<std::uint32_t> SqliteSchemaStore::Upgrade() {
  const auto version = Version();
  if (!version || *version == kSchemaVersion) return version;
  if (*version > kSchemaVersion) return Fail(CheckVersion(*version, db_.path()).error());
  BOOST_OUTCOME_TRYV(db_.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRYV(MakeMissing(db_, ShardObjects()));
    BOOST_OUTCOME_TRY(tables, ReadTables());
    for (const TableInfo& info : tables) {
      BOOST_OUTCOME_TRYV(MakeMissing(db_, TaskTableObjects(info.table, info.slices)));
    }
    BOOST_OUTCOME_TRYV(db_.Run("UPDATE millrace_schema SET version=?", kSchemaVersion));
    return true;
  }));
  return *version;
}

Result<std::vector<TableInfo>> SqliteSchemaStore::ReadTables() {
  auto rows =
      db_.Select("SELECT task_table, slices FROM millrace_schema WHERE task_table<>'' ORDER BY task_table");
  std::vector<TableInfo> tables;
  while (rows.Next()) {
    const auto table = ParseTableName(rows.Text(0));
    if (!table) {
      return Fail(ErrorCode::Invalid, db_.path() + ": millrace_schema: '" + Shorten(rows.Text(0), 60) +
                                          "' is not the name of a task table");
    }
    tables.push_back({*table, rows.Number(1)});
  }
  if (rows.error()) return Fail(*rows.error());
  return tables;
}

Result<std::vector<TableInfo>> SqliteSchemaStore::Tables() {
  BOOST_OUTCOME_TRY(version, Version());
  BOOST_OUTCOME_TRYV(CheckVersion(version, db_.path()));
  BOOST_OUTCOME_TRY(tables, ReadTables());
  for (TableInfo& info : tables) {
    BOOST_OUTCOME_TRY(beyond, SlicesBeyond(db_, info));
    info.beyond = std::move(beyond);
  }
  return tables;
}

Status SqliteSchemaStore::Resize(const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(CheckSlices(slices));
  BOOST_OUTCOME_TRYV(db_.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRYV(ResizeTable(db_, table, slices));
    return true;
  }));
  return {};
}

Result<std::size_t> SqliteSchemaStore::RenumberStep(const TableName& table, std::size_t limit) {
  return db_.Write([&] { return RenumberRows(db_, table, std::min(limit, kMaxBatchRows)); });
}

Result<std::vector<SchemaFinding>> SqliteSchemaStore::Check() {
  BOOST_OUTCOME_TRY(version, Version());
  BOOST_OUTCOME_TRYV(CheckVersion(version, db_.path()));
  BOOST_OUTCOME_TRY(tables, ReadTables());
  return CheckSchema(db_, tables);
}

}  // namespace millrace::engine

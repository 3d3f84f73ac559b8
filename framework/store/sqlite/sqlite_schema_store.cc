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
    const auto found = Exists(db, object.name);
    if (!found) return Fail(found.error());
    if (*found) continue;
    if (Status made = db.Script(object.create); !made) return made;
  }
  return {};
}

Status ApplyTable(SqliteConnection& db, const TableName& table, std::uint32_t slices) {
  const auto present = SlicesOf(db, table);
  if (!present) return Fail(present.error());
  if (*present != 0 && *present != slices) {
    return Fail(ErrorCode::Conflict, "the table " + table + " has " + std::to_string(*present) +
                                         " slices, not " + std::to_string(slices) +
                                         ": apply with the same number, or begin with an empty database");
  }
  if (Status made = MakeMissing(db, TaskTableObjects(table, slices)); !made) return made;
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
  if (Status valid = CheckSpec(spec); !valid) return valid;
  if (const auto version = Version()) {
    if (Status current = CheckVersion(*version, db_.path()); !current) return current;
  }
  SqliteConnection maker(file_, true);
  if (Status opened = maker.Open(); !opened) return opened;
  auto done = maker.Write([&]() -> Result<bool> {
    if (Status made = MakeMissing(maker, ShardObjects()); !made) return Fail(made.error());
    if (Status row = maker.Script(SchemaRow(std::nullopt, 0)); !row) return Fail(row.error());
    for (const TableName& table : TableNames(spec)) {
      if (Status applied = ApplyTable(maker, table, spec.slices); !applied) return Fail(applied.error());
    }
    return true;
  });
  if (!done) return Fail(done.error());
  return {};
}

Result<std::uint32_t> SqliteSchemaStore::Version() {
  const auto applied = Exists(db_, "millrace_schema");
  if (!applied) return Fail(applied.error());
  if (!*applied) {
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
  auto done = db_.Write([&]() -> Result<bool> {
    if (Status made = MakeMissing(db_, ShardObjects()); !made) return Fail(made.error());
    auto tables = ReadTables();
    if (!tables) return Fail(tables.error());
    for (const TableInfo& info : *tables) {
      if (Status made = MakeMissing(db_, TaskTableObjects(info.table, info.slices)); !made)
        return Fail(made.error());
    }
    auto noted = db_.Run("UPDATE millrace_schema SET version=?", kSchemaVersion);
    if (!noted) return Fail(noted.error());
    return true;
  });
  if (!done) return Fail(done.error());
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
  const auto version = Version();
  if (!version) return Fail(version.error());
  if (Status current = CheckVersion(*version, db_.path()); !current) return Fail(current.error());
  auto tables = ReadTables();
  if (!tables) return tables;
  for (TableInfo& info : *tables) {
    auto beyond = SlicesBeyond(db_, info);
    if (!beyond) return Fail(beyond.error());
    info.beyond = std::move(*beyond);
  }
  return tables;
}

Status SqliteSchemaStore::Resize(const TableName& table, std::uint32_t slices) {
  if (Status valid = CheckSlices(slices); !valid) return valid;
  auto done = db_.Write([&]() -> Result<bool> {
    if (Status resized = ResizeTable(db_, table, slices); !resized) return Fail(resized.error());
    return true;
  });
  if (!done) return Fail(done.error());
  return {};
}

Result<std::size_t> SqliteSchemaStore::RenumberStep(const TableName& table, std::size_t limit) {
  return db_.Write([&] { return RenumberRows(db_, table, std::min(limit, kMaxBatchRows)); });
}

Result<std::vector<SchemaFinding>> SqliteSchemaStore::Check() {
  const auto version = Version();
  if (!version) return Fail(version.error());
  if (Status current = CheckVersion(*version, db_.path()); !current) return Fail(current.error());
  const auto tables = ReadTables();
  if (!tables) return Fail(tables.error());
  return CheckSchema(db_, *tables);
}

}  // namespace millrace::engine

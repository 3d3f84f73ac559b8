#include <set>

#include "framework/store/sql/schema.h"
#include "framework/store/sqlite/ddl.h"
#include "framework/store/sqlite/schema_check.h"
#include "framework/store/sqlite/sessions.h"

namespace millrace::engine::sqlite {
namespace {

Result<bool> Exists(Session& db, const std::string& name) {
  auto rows = db.Select("SELECT 1 FROM sqlite_master WHERE name=?", name);
  const bool found = rows.Next();
  if (rows.error()) return Fail(*rows.error());
  return found;
}

Status MakeMissing(Session& db, const std::vector<SchemaObject>& objects) {
  for (const SchemaObject& object : objects) {
    BOOST_OUTCOME_TRY(found, Exists(db, object.name));
    if (found) continue;
    BOOST_OUTCOME_TRYV(db.Script(object.create));
  }
  return {};
}

// The first number of the answer.
template <class... Values>
Result<std::uint64_t> Number(Session& db, const std::string& sql, const Values&... values) {
  auto rows = db.Select(sql, values...);
  const std::uint64_t number = rows.Next() ? rows.Id(0) : 0;
  if (rows.error()) return Fail(*rows.error());
  return number;
}

// Makes a table anew as `object` says, with `values` of the old one's rows, `t`, for `columns`. Its indexes
// go, and its ids go on.
Status MakeAnew(Session& db, const SchemaObject& object, const std::string& columns,
                const std::string& values) {
  const std::string& name = object.name;
  const std::string next = name + "_next";
  BOOST_OUTCOME_TRYV(db.Script("CREATE TABLE " + next + object.create.substr(object.create.find(" ("))));
  BOOST_OUTCOME_TRYV(
      db.Run("INSERT INTO " + next + " (" + columns + ") SELECT " + values + " FROM " + name + " t"));
  BOOST_OUTCOME_TRY(last, Number(db, "SELECT seq FROM sqlite_sequence WHERE name=?", name));
  BOOST_OUTCOME_TRYV(db.Script("DROP TABLE " + name + "; ALTER TABLE " + next + " RENAME TO " + name));
  if (last == 0) return {};
  BOOST_OUTCOME_TRYV(db.Run("DELETE FROM sqlite_sequence WHERE name=?", name));
  BOOST_OUTCOME_TRYV(db.Run("INSERT INTO sqlite_sequence (name, seq) VALUES (?,?)", name, last));
  return {};
}

Result<bool> HasColumn(Session& db, const std::string& table, const std::string& column) {
  BOOST_OUTCOME_TRY(found, Number(db, "SELECT 1 FROM pragma_table_xinfo(?) WHERE name=?", table, column));
  return found == 1;
}

// The tables of the shard. Older programs can't register any more: `number` has no default.
Status UpgradeShard(Session& db) {
  BOOST_OUTCOME_TRY(readable, HasColumn(db, "millrace_schema", "readable_by"));
  if (!readable) {
    BOOST_OUTCOME_TRYV(
        db.Script("ALTER TABLE millrace_schema ADD COLUMN readable_by INTEGER NOT NULL DEFAULT 0"));
  }
  BOOST_OUTCOME_TRYV(db.Run("UPDATE millrace_schema SET readable_by=? WHERE task_table=''", kReadableBy));
  BOOST_OUTCOME_TRY(numbered, HasColumn(db, "millrace_incarnations", "number"));
  for (const SchemaObject& object : ShardObjects()) {
    if (numbered || object.name != "millrace_incarnations") continue;
    const std::string kept = "id,worker,host,pid,lease_us,slices,started_at,dead";
    // Drawn in this process, for lives of the older version: nobody else draws for them.
    BOOST_OUTCOME_TRYV(MakeAnew(db, object, kept + ",number", kept + ",random() & 9223372036854775807"));
  }
  return MakeMissing(db, ShardObjects());
}

// What somebody else has put on the table goes with it.
Status CheckOurs(Session& db, const TableInfo& info) {
  std::set<std::string> ours;
  const auto objects = TaskTableObjects(info.table, info.slices);
  for (const SchemaObject& object : objects) ours.insert(object.name);
  for (const std::string& column : ColumnsOf(objects.front().create)) ours.insert("column " + column);
  std::string others;
  // Foreign keys by the table that has them; names of tables are the same in capitals.
  auto rows = db.Select(
      "SELECT type, name, name FROM sqlite_master WHERE tbl_name=?1 AND type IN ('index','trigger') AND sql "
      "IS NOT NULL "
      "UNION ALL SELECT 'column', name, 'column ' || name FROM pragma_table_xinfo(?1) "
      "UNION ALL SELECT DISTINCT 'foreign key of', m.name, '' FROM sqlite_master m, "
      "pragma_foreign_key_list(m.name) f WHERE m.type='table' AND (m.name=?1 OR lower(f.\"table\")=?1)",
      info.table);
  while (rows.Next()) {
    if (!ours.contains(rows.Text(2)))
      others += (others.empty() ? "" : ", ") + rows.Text(0) + " " + rows.Text(1);
  }
  if (rows.error()) return Fail(*rows.error());
  if (others.empty()) return {};
  return Fail(ErrorCode::Conflict, db.path() + ": the table " + info.table +
                                       " has what is not Millrace's and would be lost with the old table: " +
                                       others + "; drop it, upgrade, and make it anew afterwards");
}

// To version 3. Running rows keep their claimers, so that they are rescued. Older checks let bytes behind a
// zero one, and any number, through; and times that there are not, which stay.
Status MakeTableAnew(Session& db, const TableInfo& info, const UpgradeCalls& calls) {
  BOOST_OUTCOME_TRYV(CheckOurs(db, info));
  UpgradeStep step{.table = info.table};
  BOOST_OUTCOME_TRY(rows, Number(db, "SELECT count(*) FROM " + info.table));
  step.rows = rows;
  calls.step(step);
  SchemaObject object = TaskTableObjects(info.table, info.slices).front();
  object.create = WithFirstChecks(WithAnyJson(object.create));
  const std::string same =
      "id,state,priority,run_at,params,biz_key,batch,cancel,last_error,progress,created_at,updated_at";
  const auto most = [](const std::string& count) {
    return ",CAST(min(" + count + ", " + std::to_string(kMaxCount) + ") AS INTEGER)";
  };
  BOOST_OUTCOME_TRYV(MakeAnew(
      db, object, same + ",slice,handler,attempt,failures,crashes,claimed_by,claimed_at",
      same + ",CAST(slice AS INTEGER),substr(handler, 1, length(handler))" + most("attempt") +
          most("failures") + most("crashes") +
          ",CASE WHEN state=2 THEN coalesce((SELECT i.number FROM millrace_incarnations i WHERE "
          "i.id=t.claimed_by), " +
          std::to_string(sql::kForgotten) + ") ELSE 0 END,coalesce(claimed_at, '" + kNeverClaimed + "')"));
  step.copied = rows;
  calls.step(step);
  return {};
}

Status UpgradeTable(Session& db, const sql::OldTable& table, const UpgradeCalls& calls) {
  const TableInfo& info = table.info;
  BOOST_OUTCOME_TRYV(db.Script("DROP VIEW IF EXISTS " + info.table + "_all"));
  if (table.version < 3) {
    BOOST_OUTCOME_TRYV(MakeTableAnew(db, info, calls));
  }
  for (const std::string pool : {"", "_done", "_failed"}) {
    BOOST_OUTCOME_TRY(there, HasColumn(db, info.table + pool, "expires_at"));
    if (there) continue;
    BOOST_OUTCOME_TRYV(
        db.Script("ALTER TABLE " + info.table + pool + " ADD COLUMN " + ExpiryColumn(pool.empty())));
  }
  return MakeMissing(db, TaskTableObjects(info.table, info.slices));
}

bool IsOfToday(const sql::SchemaRows& schema) {
  return schema.state.version == kSchemaVersion && schema.behind.empty();
}

// Rows that wait or run stand in the due index, held ones in another: see ddl.cc.
std::string StraysIn(const TableName& table, bool held) {
  return table + " INDEXED BY " + table + (held ? "_held" : "_due") + " WHERE urgency IS " +
         (held ? "" : "NOT ") + "NULL AND slice>=?";
}

class SqliteSchemaStore final : public sql::SqlSchemaStore {
 public:
  explicit SqliteSchemaStore(File& file) : SqlSchemaStore(db_), file_(file), db_(file) {}

  std::string Print(const SchemaSpec& spec) const override;
  // Makes the file too, where there is none.
  Status Apply(const SchemaSpec& spec) override;
  // One transaction.
  Result<std::uint32_t> Upgrade(const UpgradeCalls& calls) override;
  Status ReadBeyond(std::vector<TableInfo>& tables) override;
  // Invalid where somebody has changed the default of the column by hand.
  Status Resize(const TableName& table, std::uint32_t slices) override;
  Result<std::vector<SchemaFinding>> Check() override;

 private:
  Result<std::vector<std::uint64_t>> Strays(const TableName& table, std::uint32_t slices,
                                            std::size_t limit) override;
  Status RewriteTable(const TableName& table, const std::string& text);

  File& file_;
  Session db_;
};

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
  Session maker(file_, true);
  BOOST_OUTCOME_TRYV(maker.Open());
  BOOST_OUTCOME_TRYV(maker.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRYV(CheckApply(spec));
    BOOST_OUTCOME_TRYV(MakeMissing(maker, ShardObjects()));
    BOOST_OUTCOME_TRYV(maker.Script(SchemaRow(std::nullopt, 0)));
    for (const TableName& table : TableNames(spec)) {
      BOOST_OUTCOME_TRYV(MakeMissing(maker, TaskTableObjects(table, spec.slices)));
      BOOST_OUTCOME_TRYV(maker.Script(SchemaRow(table, spec.slices)));
    }
    return true;
  }));
  return {};
}

Result<std::uint32_t> SqliteSchemaStore::Upgrade(const UpgradeCalls& calls) {
  BOOST_OUTCOME_TRY(schema, ReadSchema(db_));
  BOOST_OUTCOME_TRYV(CheckNotLater(schema, db_));
  if (IsOfToday(schema)) return kSchemaVersion;
  std::optional<sql::BeatsSeen> still;
  if (schema.Breaking()) {
    BOOST_OUTCOME_TRY(beats, CheckStill(db_, calls));
    still = std::move(beats);
  }
  // A table that is made anew under another name, and then takes the old one's, leaves views as they are.
  BOOST_OUTCOME_TRYV(db_.Script("PRAGMA legacy_alter_table=ON"));
  auto was = db_.Write([&]() -> Result<std::uint32_t> {
    // Somebody else may have upgraded it since: the tables of today must not be taken for old ones.
    BOOST_OUTCOME_TRY(old, ReadSchema(db_));
    BOOST_OUTCOME_TRYV(CheckNotLater(old, db_));
    if (IsOfToday(old)) return kSchemaVersion;
    if (still) {
      BOOST_OUTCOME_TRYV(CheckStill(db_, calls, still));
    }
    BOOST_OUTCOME_TRYV(UpgradeShard(db_));
    for (const sql::OldTable& table : old.behind) {
      BOOST_OUTCOME_TRYV(UpgradeTable(db_, table, calls));
    }
    BOOST_OUTCOME_TRYV(db_.Run("UPDATE millrace_schema SET version=?", kSchemaVersion));
    return old.oldest;
  });
  BOOST_OUTCOME_TRYV(db_.Script("PRAGMA legacy_alter_table=OFF"));
  return was;
}

Status SqliteSchemaStore::ReadBeyond(std::vector<TableInfo>& tables) {
  for (TableInfo& info : tables) {
    std::set<std::uint32_t> found;
    for (const bool held : {false, true}) {
      const std::string sql = "SELECT slice FROM " + StraysIn(info.table, held) + " ORDER BY slice LIMIT 1";
      for (std::uint32_t from = info.slices;;) {
        auto rows = db_.Select(sql, from);
        if (!rows.Next()) {
          if (rows.error()) return Fail(*rows.error());
          break;
        }
        found.insert(rows.Number(0));
        from = rows.Number(0) + 1;
      }
    }
    info.beyond.assign(found.begin(), found.end());
  }
  return {};
}

Result<std::vector<std::uint64_t>> SqliteSchemaStore::Strays(const TableName& table, std::uint32_t slices,
                                                             std::size_t limit) {
  std::vector<std::uint64_t> ids;
  for (const bool held : {false, true}) {
    auto rows = db_.Select("SELECT id FROM " + StraysIn(table, held) + " AND state<>2 LIMIT ?", slices,
                           static_cast<std::uint64_t>(limit - ids.size()));
    while (rows.Next()) ids.push_back(rows.Id(0));
    if (rows.error()) return Fail(*rows.error());
  }
  return ids;
}

// SQLite has no statement that changes a default. Its documentation gives this way for what does not touch
// the rows: the text of the table is changed, and the schema's version raised, so that every connection reads
// it anew.
Status SqliteSchemaStore::RewriteTable(const TableName& table, const std::string& text) {
  std::int64_t version = 0;
  {
    auto rows = db_.Select("PRAGMA schema_version");
    if (rows.Next()) version = rows.Integer(0);
    if (rows.error()) return Fail(*rows.error());
  }
  BOOST_OUTCOME_TRYV(db_.Script("PRAGMA writable_schema=ON"));
  auto changed = db_.Run("UPDATE sqlite_master SET sql=? WHERE type='table' AND name=?", text, table);
  Status raised =
      db_.Script("PRAGMA schema_version=" + std::to_string(version + 1) + "; PRAGMA writable_schema=OFF");
  if (!changed) return Fail(changed.error());
  return raised;
}

Status SqliteSchemaStore::Resize(const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(CheckSlices(slices));
  BOOST_OUTCOME_TRYV(db_.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRY(present, SlicesOf(table));
    if (present == slices) return true;
    std::string text;
    {
      auto rows = db_.Select("SELECT sql FROM sqlite_master WHERE type='table' AND name=?", table);
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
    BOOST_OUTCOME_TRYV(RewriteTable(table, text));
    BOOST_OUTCOME_TRYV(SetNumber(table, slices));
    return true;
  }));
  return {};
}

Result<std::vector<SchemaFinding>> SqliteSchemaStore::Check() {
  BOOST_OUTCOME_TRY(schema, ReadSchema(db_));
  BOOST_OUTCOME_TRYV(CheckNotLater(schema, db_));
  BOOST_OUTCOME_TRYV(CheckVersion(schema.state, db_.where()));
  return CheckSchema(db_, schema.tables);
}

}  // namespace

std::unique_ptr<SchemaStore> OpenSchema(File& file) { return std::make_unique<SqliteSchemaStore>(file); }

}  // namespace millrace::engine::sqlite

// From an older version of the schema to this program's. What is done, and why in this order: README.md,
// "Versions".
#include <algorithm>
#include <boost/algorithm/string/join.hpp>

#include "framework/store/mysql/ddl.h"
#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/schema.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/sql/claimers.h"

namespace millrace::engine::mysql {
namespace {

constexpr std::uint64_t kRowsAtOnce = 10'000;
// Between the old table's ids and the new one's first: producers go on while the one takes the other's place.
constexpr std::uint64_t kIdsLeftFree = 100'000;
// To drop a large table takes its time.
constexpr Micros kLongestStatement = std::chrono::hours(1);
// For a table that others have open. Whoever waits for it holds up all who come later: a moment, then they
// get their turn, and it is tried again.
constexpr const char* kBriefWait = "SET SESSION lock_wait_timeout=1";
constexpr Micros kTheirTurn = std::chrono::seconds(2);
constexpr int kTries = 30;

Endpoint Patient(Endpoint endpoint) {
  endpoint.options.io_timeout = kLongestStatement;
  return endpoint;
}

Status Do(Session& session, const std::string& sql) {
  BOOST_OUTCOME_TRYV(session.Write(sql));
  return {};
}

// DDL on a table that others may have open; `before` goes before each try.
Status Alter(Session& session, const std::string& sql, const UpgradeCalls& calls,
             const std::function<Status()>& before = nullptr) {
  for (int tries = 1;; ++tries) {
    Status done = before ? before() : Status();
    if (done) done = Do(session, sql);
    if (done || done.error().code != ErrorCode::Conflict) return done;
    if (tries == kTries) {
      return Fail(ErrorCode::Conflict, done.error().message +
                                           ": somebody has the table open for long, as a transaction or a "
                                           "backup does; let it end, then run `millrace schema upgrade` "
                                           "again, which goes on where it was");
    }
    calls.pause(kTheirTurn);
  }
}

// Whether the answer has any row.
Result<bool> Any(Session& session, const std::string& sql) {
  bool any = false;
  BOOST_OUTCOME_TRYV(session.Query(sql, [&](const Row&) { any = true; }));
  return any;
}

Result<std::uint64_t> Number(Session& session, const std::string& sql) {
  std::uint64_t number = 0;
  BOOST_OUTCOME_TRYV(session.Query(sql, [&](const Row& row) { number = row.Number(1); }));
  return number;
}

// FROM … WHERE of what the server knows of a table.
std::string Of(const std::string& what, const std::string& table) {
  return " FROM information_schema." + what + " WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME=" + Quote(table);
}

Result<bool> HasColumn(Session& session, const std::string& table, const std::string& column) {
  return Any(session, "SELECT 1" + Of("COLUMNS", table) + " AND COLUMN_NAME=" + Quote(column));
}

// Nobody draws for a life of the older version, which can't register any more either: the column has no
// default.
Status NumberIncarnations(Session& session) {
  BOOST_OUTCOME_TRY(there, HasColumn(session, "millrace_incarnations", "number"));
  if (!there) {
    BOOST_OUTCOME_TRYV(
        Do(session, "ALTER TABLE millrace_incarnations ADD COLUMN number BIGINT UNSIGNED NOT NULL AFTER id"));
  }
  std::vector<std::string> without;
  BOOST_OUTCOME_TRYV(session.Query("SELECT id FROM millrace_incarnations WHERE number=0",
                                   [&](const Row& row) { without.push_back(row.Text(1)); }));
  Random random = Random::FromSystem();
  for (const std::string& id : without) {
    BOOST_OUTCOME_TRYV(Do(session, "UPDATE millrace_incarnations SET number=" +
                                       std::to_string(sql::DrawNumber(random)) + " WHERE id=" + Quote(id)));
  }
  BOOST_OUTCOME_TRY(keyed, Any(session, "SELECT 1" + Of("STATISTICS", "millrace_incarnations") +
                                            " AND INDEX_NAME='number'"));
  if (keyed) return {};
  return Do(session, "ALTER TABLE millrace_incarnations ADD UNIQUE KEY number (number)");
}

// From here on programs of a version that can't work on what there will be refuse; and while there are tables
// that only those could work on, so do all others.
Status NoteShard(Session& session, std::uint32_t readable_by) {
  BOOST_OUTCOME_TRY(there, HasColumn(session, "millrace_schema", "readable_by"));
  if (!there) {
    BOOST_OUTCOME_TRYV(
        Do(session, "ALTER TABLE millrace_schema ADD COLUMN readable_by INT UNSIGNED NOT NULL DEFAULT 0"));
  }
  return Do(session, "UPDATE millrace_schema SET version=" + std::to_string(kSchemaVersion) +
                         ", readable_by=" + std::to_string(readable_by) + " WHERE task_table=''");
}

// A column, and what it becomes of the old table's, `t`.
struct Moved {
  const char* column;
  std::string from;
};

std::vector<Moved> MovedColumns() {
  const std::string most = "," + std::to_string(kMaxCount) + ")";
  std::vector<Moved> moved;
  for (const char* column : {"id", "slice", "state", "priority", "run_at", "params", "biz_key", "batch",
                             "cancel", "last_error", "progress", "created_at", "updated_at"}) {
    moved.push_back({column, std::string("t.") + column});
  }
  // Older checks let a last newline, and any number, through.
  moved.push_back({"handler", "TRIM(TRAILING '\\n' FROM t.handler)"});
  for (const char* column : {"attempt", "failures", "crashes"})
    moved.push_back({column, std::string("LEAST(t.") + column + most});
  moved.push_back({"claimed_by",
                   "CASE WHEN t.state=2 THEN COALESCE((SELECT i.number FROM millrace_incarnations i WHERE "
                   "i.id=t.claimed_by)," +
                       std::to_string(sql::kForgotten) + ") ELSE 0 END"});
  moved.push_back({"claimed_at", std::string("COALESCE(t.claimed_at,'") + kNeverClaimed + "')"});
  return moved;
}

// One task table's.
class TableUpgrade {
 public:
  TableUpgrade(Session& session, const sql::OldTable& table, const UpgradeCalls& calls)
      : session_(session), info_(table.info), replace_(table.version < 3), calls_(calls) {}

  // What somebody else has put on the table would go with it: Conflict, and it is named.
  Status CheckOurs();
  Status Run() {
    if (replace_) {
      BOOST_OUTCOME_TRYV(MakeAnew());
    }
    BOOST_OUTCOME_TRYV(AddColumns());
    // The pools stand; the view is made anew.
    for (const Ddl& ddl : TaskTables(info_.table, info_.slices)) {
      BOOST_OUTCOME_TRYV(Alter(session_, ddl.sql, calls_));
    }
    return Do(session_, "UPDATE millrace_schema SET version=" + std::to_string(kSchemaVersion) +
                            " WHERE task_table=" + Quote(name_));
  }

 private:
  // To version 3.
  Status MakeAnew() {
    BOOST_OUTCOME_TRY(old, IsOld());
    if (old) {
      BOOST_OUTCOME_TRYV(Replace());
    }
    BOOST_OUTCOME_TRY(left, Any(session_, "SELECT 1" + Of("TABLES", before_)));
    if (!left) return {};
    BOOST_OUTCOME_TRYV(MoveRows());
    return Do(session_, "DROP TABLE " + before_);
  }
  // To version 4. INSTANT: the table's description is changed, and no row; else the server says why it can't.
  Status AddColumns() {
    for (const char* pool : {"", "_done", "_failed"}) {
      BOOST_OUTCOME_TRY(there, HasColumn(session_, name_ + pool, "expires_at"));
      if (there) continue;
      BOOST_OUTCOME_TRYV(
          Alter(session_, "ALTER TABLE " + name_ + pool + " ADD COLUMN " + kExpiresAt + ", ALGORITHM=INSTANT",
                calls_));
    }
    return {};
  }
  // Whether no new one has taken its place yet.
  Result<bool> IsOld() {
    return Any(session_,
               "SELECT 1" + Of("COLUMNS", name_) + " AND COLUMN_NAME='claimed_by' AND DATA_TYPE<>'bigint'");
  }
  Status Replace();
  Status LeaveIds();
  Status MoveRows();
  Status CheckArrived(std::uint64_t arrived, std::uint64_t last);

  Session& session_;
  const TableInfo& info_;
  const bool replace_;  // it is older than version 3
  const UpgradeCalls& calls_;
  const std::string name_ = std::string(info_.table.text());
  const std::string before_ = name_ + "_before";
  const std::string next_ = name_ + "_next";
};

Status TableUpgrade::CheckOurs() {
  if (!replace_) return {};
  BOOST_OUTCOME_TRY(old, IsOld());
  if (!old) return {};
  BOOST_OUTCOME_TRY(next, Any(session_, "SELECT 1" + Of("TABLES", next_)));
  if (next) {  // one that an earlier run has left is empty
    BOOST_OUTCOME_TRY(filled, Any(session_, "SELECT 1 FROM " + next_ + " LIMIT 1"));
    if (filled) {
      return Fail(ErrorCode::Conflict,
                  session_.where() + ": the table " + next_ +
                      " has rows that are not Millrace's, and its name is needed for the new " + name_ +
                      ": rename it, then run `millrace schema upgrade` again");
    }
  }
  std::string ours = "'urgency'";
  for (const Moved& moved : MovedColumns()) ours += "," + Quote(moved.column);
  const std::string quoted = Quote(name_);
  const std::string sql =
      "SELECT CONCAT('column ',COLUMN_NAME)" + Of("COLUMNS", name_) + " AND COLUMN_NAME NOT IN (" + ours +
      ") UNION SELECT CONCAT('index ',INDEX_NAME)" + Of("STATISTICS", name_) +
      " AND INDEX_NAME NOT IN ('PRIMARY','due') UNION SELECT CONCAT('trigger ',TRIGGER_NAME) FROM "
      "information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA=DATABASE() AND EVENT_OBJECT_TABLE=" +
      quoted +
      " UNION SELECT CONCAT('foreign key ',CONSTRAINT_NAME) FROM information_schema.KEY_COLUMN_USAGE WHERE "
      "TABLE_SCHEMA=DATABASE() AND REFERENCED_TABLE_NAME IS NOT NULL AND (TABLE_NAME=" +
      quoted + " OR REFERENCED_TABLE_NAME=" + quoted + ")";
  std::vector<std::string> others;
  BOOST_OUTCOME_TRYV(session_.Query(sql, [&](const Row& row) { others.push_back(row.Text(1)); }));
  if (others.empty()) return {};
  return Fail(ErrorCode::Conflict,
              session_.where() + ": the table " + name_ +
                  " has what is not Millrace's and would be lost with the old table: " +
                  boost::algorithm::join(others, ", ") +
                  "; drop it, run `millrace schema upgrade` again, and make it anew afterwards");
}

// An empty table takes the old one's place at one moment: no producer finds none.
Status TableUpgrade::Replace() {
  BOOST_OUTCOME_TRYV(Do(session_, "DROP TABLE IF EXISTS " + next_));
  BOOST_OUTCOME_TRYV(Do(session_, SuccessorTable(next_, info_.table, info_.slices)));
  return Alter(session_, "RENAME TABLE " + name_ + " TO " + before_ + ", " + next_ + " TO " + name_, calls_,
               [this] { return LeaveIds(); });
}

// Behind those that the old table has given by now.
Status TableUpgrade::LeaveIds() {
  std::string text;
  BOOST_OUTCOME_TRYV(
      session_.Query("SHOW CREATE TABLE " + name_, [&](const Row& row) { text = row.Text(2); }));
  constexpr std::string_view kNext = "AUTO_INCREMENT=";
  const std::size_t at = text.rfind(kNext);
  const std::uint64_t next_id =
      at == std::string::npos ? 1 : std::strtoull(text.c_str() + at + kNext.size(), nullptr, 10);
  return Do(session_, "ALTER TABLE " + next_ + " AUTO_INCREMENT=" +
                          std::to_string(std::max<std::uint64_t>(next_id, 1) + kIdsLeftFree));
}

// Producers may have got more ids than were left free: then the highest is a row of their own.
Status TableUpgrade::CheckArrived(std::uint64_t arrived, std::uint64_t last) {
  if (arrived == 0) return {};
  const std::string id = std::to_string(arrived);
  BOOST_OUTCOME_TRY(moved,
                    Any(session_, "SELECT 1 FROM " + name_ + " n JOIN " + before_ +
                                      " b ON b.id=n.id AND b.created_at=n.created_at WHERE n.id=" + id));
  if (moved) return {};
  return Fail(ErrorCode::Conflict,
              session_.where() + ": the row " + id + " of the table " + name_ +
                  " is a new one among the ids of " + before_ +
                  ", so that nobody can tell which rows have moved: give the new rows of " + name_ +
                  " ids above " + std::to_string(last) +
                  ", then run `millrace schema upgrade` again, which goes on where it was");
}

// In the order of their ids, so that the highest that has arrived says where to go on. Those of the new table
// that are no older than the last of the old one are all from there.
Status TableUpgrade::MoveRows() {
  std::string columns;
  std::string values;
  for (const Moved& moved : MovedColumns()) {
    columns += (columns.empty() ? "" : ",") + std::string(moved.column);
    values += (values.empty() ? "" : ",") + moved.from;
  }
  BOOST_OUTCOME_TRY(last, Number(session_, "SELECT COALESCE(MAX(id),0) FROM " + before_));
  BOOST_OUTCOME_TRY(arrived, Number(session_, "SELECT COALESCE(MAX(id),0) FROM " + name_ +
                                                  " WHERE id<=" + std::to_string(last)));
  BOOST_OUTCOME_TRYV(CheckArrived(arrived, last));
  UpgradeStep step{.table = info_.table};
  BOOST_OUTCOME_TRYV(session_.Query(
      kExplainInRows + ("SELECT id FROM " + before_) + " FORCE INDEX (PRIMARY) WHERE id>" +
          std::to_string(arrived),
      [&](const Row& row) { step.rows = std::strtoull(row.Named("rows").c_str(), nullptr, 10); }));
  calls_.step(step);
  while (arrived < last) {
    const std::string after = " WHERE id>" + std::to_string(arrived);
    std::uint64_t end = last;
    std::uint64_t count = 0;
    BOOST_OUTCOME_TRYV(session_.Query("SELECT MAX(id),COUNT(*) FROM (SELECT id FROM " + before_ + after +
                                          " ORDER BY id LIMIT " + std::to_string(kRowsAtOnce) + ") AS part",
                                      [&](const Row& row) {
                                        end = row.Number(1);
                                        count = row.Number(2);
                                      }));
    BOOST_OUTCOME_TRYV(Do(session_, "INSERT INTO " + name_ + " (" + columns + ") SELECT " + values +
                                        " FROM " + before_ + " t FORCE INDEX (PRIMARY)" + after +
                                        " AND id<=" + std::to_string(end) + " ORDER BY id"));
    arrived = end;
    step.copied += count;
    step.rows = std::max(step.rows, step.copied);
    calls_.step(step);
  }
  return {};
}

}  // namespace

Result<std::uint32_t> MysqlSchemaStore::Upgrade(const UpgradeCalls& calls) {
  const Endpoint patient = Patient(endpoint_);
  Session session(patient, kLongestStatement);
  BOOST_OUTCOME_TRY(schema, ReadSchema(session));
  BOOST_OUTCOME_TRYV(CheckNotLater(schema, session));
  if (schema.state.version == kSchemaVersion && schema.behind.empty()) {
    // Only its last statement may be missing.
    BOOST_OUTCOME_TRY(by, Number(session, "SELECT readable_by FROM millrace_schema WHERE task_table=''"));
    if (by == kReadableBy) return kSchemaVersion;
  }
  std::optional<sql::BeatsSeen> still;
  if (schema.Breaking()) {
    BOOST_OUTCOME_TRY(beats, CheckStill(session, calls));
    still = std::move(beats);
  }
  std::vector<TableUpgrade> tables;
  for (const sql::OldTable& table : schema.behind) {
    tables.emplace_back(session, table, calls);
    BOOST_OUTCOME_TRYV(tables.back().CheckOurs());
  }
  BOOST_OUTCOME_TRYV(Do(session, kBriefWait));
  for (const Ddl& ddl : ShardTables("")) {
    BOOST_OUTCOME_TRYV(Do(session, ddl.sql));
  }
  BOOST_OUTCOME_TRYV(NoteShard(session, still ? 0 : kReadableBy));
  if (still) {
    BOOST_OUTCOME_TRYV(NumberIncarnations(session));
    BOOST_OUTCOME_TRYV(CheckStill(session, calls, still));
  }
  for (TableUpgrade& table : tables) {
    BOOST_OUTCOME_TRYV(table.Run());
  }
  BOOST_OUTCOME_TRYV(NoteShard(session, kReadableBy));
  return schema.oldest;
}

}  // namespace millrace::engine::mysql

#include "tests/bench/sqlite/bare_loop.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace millrace::bench {
namespace {

constexpr std::int64_t kClaimer = 6501337291844056017;
// So many rows of a group, then of the next, and again from the first.
constexpr std::int64_t kRowsOfTurn = 125;

class Statement {
 public:
  Statement(sqlite3* db, const std::string& sql) : db_(db) {
    if (sqlite3_prepare_v3(db, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr) != SQLITE_OK)
      Die(sqlite3_errmsg(db) + std::string(": ") + sql);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  template <class... Values>
  Statement& Bind(const Values&... values) {
    sqlite3_reset(statement_);
    int at = 0;
    (BindOne(++at, values), ...);
    return *this;
  }
  bool Step() {
    const int result = sqlite3_step(statement_);
    if (result == SQLITE_ROW) return true;
    if (result != SQLITE_DONE) Die(sqlite3_errmsg(db_));
    sqlite3_reset(statement_);
    return false;
  }
  // A statement that is left at a row keeps its snapshot.
  void Reset() { sqlite3_reset(statement_); }
  // What it changed.
  int Run() {
    while (Step()) {
    }
    return sqlite3_changes(db_);
  }
  std::int64_t Integer(int at) { return sqlite3_column_int64(statement_, at); }
  std::string Text(int at) {
    const unsigned char* const text = sqlite3_column_text(statement_, at);
    return {reinterpret_cast<const char*>(text),
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, at))};
  }
  // The row as whoever asked for it would fetch it.
  void Fetch() {
    for (int i = 0; i < sqlite3_column_count(statement_); ++i) sqlite3_column_text(statement_, i);
  }

 private:
  void BindOne(int at, std::int64_t value) { sqlite3_bind_int64(statement_, at, value); }
  void BindOne(int at, const std::string& value) {
    sqlite3_bind_text(statement_, at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

std::string NowText() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", std::gmtime(&seconds));
  std::snprintf(
      text + length, sizeof text - length, ".%06d",
      static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(now).count() % 1'000'000));
  return text;
}

struct Group {
  std::int64_t slice = 0;
  std::string handler;
  std::int64_t urgency = 0;
  std::string run_at;
  std::int64_t id = 0;
};

const std::string kDue =
    "SELECT slice, handler, urgency FROM tasks INDEXED BY tasks_due WHERE urgency IS NOT NULL AND ";
const std::string kFirstOf = " ORDER BY slice, handler, urgency, run_at LIMIT 1";
const std::string kScan =
    "SELECT id, run_at, state, attempt FROM tasks INDEXED BY tasks_due WHERE slice=? AND handler=? AND "
    "urgency=? AND "
    "urgency IS NOT NULL AND ";
const std::string kMoved =
    "slice, handler, priority, run_at, params, biz_key, batch, attempt, crashes, claimed_by, claimed_at, "
    "progress, "
    "created_at";

class Loop {
 public:
  Loop(SqliteFile& file, std::size_t batch) : file_(file), db_(file.handle()), batch_(batch) {}

  void Run() {
    while (ReadDueMap()) {
      while (!turns_.empty()) Batch();
    }
  }

 private:
  bool ReadDueMap() {
    Statement* next = &first_group_.Bind(std::int64_t{0});
    while (true) {
      if (!next->Step()) {
        if (next == &next_urgency_) {
          next = &next_handler_.Bind(turns_.back().slice, turns_.back().handler);
        } else if (next == &next_handler_) {
          next = &first_group_.Bind(turns_.back().slice + 1);
        } else {
          return !turns_.empty();
        }
        continue;
      }
      Group group{next->Integer(0), next->Text(1), next->Integer(2), {}, 0};
      next->Reset();
      next = &next_urgency_.Bind(group.slice, group.handler, group.urgency);
      turns_.push_back(std::move(group));
    }
  }

  void Scan(Statement& page, std::int64_t limit, Group& group, std::int64_t& read) {
    while (read < limit && page.Step()) {
      ++read;
      group.id = page.Integer(0);
      group.run_at = page.Text(1);
      if (page.Integer(2) == 0) ids_.push_back(group.id);
    }
    page.Reset();
  }

  void Batch() {
    ids_.clear();
    const std::string now = NowText();
    while (ids_.size() < batch_ && !turns_.empty()) {
      Group group = std::move(turns_.front());
      turns_.pop_front();
      const std::int64_t limit = std::min(kRowsOfTurn, static_cast<std::int64_t>(batch_ - ids_.size()));
      std::int64_t read = 0;
      // Of the same time as the last one, and then of later ones: SQLite reads too much for both in one.
      if (!group.run_at.empty())
        Scan(ties_.Bind(group.slice, group.handler, group.urgency, group.run_at, group.id, limit), limit,
             group, read);
      if (read < limit)
        Scan(page_.Bind(group.slice, group.handler, group.urgency, group.run_at, now, limit - read), limit,
             group, read);
      if (read == limit) turns_.push_back(std::move(group));
    }
    std::sort(ids_.begin(), ids_.end());
    Claim(now);
    Settle();
  }

  void Claim(const std::string& now) {
    file_.Run("BEGIN IMMEDIATE");
    if (!alive_.Bind(kClaimer).Step()) Die("the bare loop was marked dead");
    alive_.Reset();
    for (const std::int64_t id : ids_) {
      if (claim_.Bind(kClaimer, now, now, id, now).Run() != 1)
        Die("a claim missed a row that is nobody else's");
      read_.Bind(id);
      while (read_.Step()) read_.Fetch();
    }
    file_.Run("COMMIT");
  }

  void Settle() {
    const std::string now = NowText();
    file_.Run("BEGIN IMMEDIATE");
    for (const std::int64_t id : ids_) {
      if (copy_.Bind(now, id, kClaimer).Run() != 1) Die("a settle missed a row that is its own");
      delete_.Bind(id).Run();
    }
    counters_.Bind(kClaimer, static_cast<std::int64_t>(ids_.size())).Run();
    file_.Run("COMMIT");
  }

  SqliteFile& file_;
  sqlite3* const db_;
  const std::size_t batch_;
  std::deque<Group> turns_;
  std::vector<std::int64_t> ids_;

  Statement first_group_{db_, kDue + "slice >= ?" + kFirstOf};
  Statement next_urgency_{db_, kDue + "slice = ? AND handler = ? AND urgency > ?" + kFirstOf};
  Statement next_handler_{db_, kDue + "slice = ? AND handler > ?" + kFirstOf};
  Statement page_{db_, kScan + "run_at>? AND run_at<=? ORDER BY run_at, id LIMIT ?"};
  Statement ties_{db_, kScan + "run_at=? AND id>? ORDER BY id LIMIT ?"};
  Statement alive_{db_, "SELECT 1 FROM millrace_incarnations WHERE id=? AND dead=0"};
  Statement claim_{
      db_,
      "UPDATE tasks SET state=2, attempt=attempt+1, claimed_by=?, claimed_at=?, updated_at=? WHERE id=? AND "
      "state=0 AND attempt=0 AND run_at<=?"};
  Statement read_{db_,
                  "SELECT id, slice, state, handler, priority, run_at, params, biz_key, batch, failures, "
                  "attempt, crashes, "
                  "cancel, claimed_by, claimed_at, last_error, progress, created_at FROM tasks WHERE id=?"};
  Statement copy_{db_, "INSERT INTO tasks_done (id, state, failures, last_error, result, finished_at, " +
                           kMoved + ") SELECT id, 1, failures, last_error, NULL, ?, " + kMoved +
                           " FROM tasks WHERE id=? AND state=2 AND claimed_by=? AND attempt=1"};
  Statement delete_{db_, "DELETE FROM tasks WHERE id=?"};
  Statement counters_{
      db_,
      "INSERT INTO millrace_counters (task_table, handler, batch, incarnation, succeeded, cancelled, "
      "failed, attempts_failed) VALUES ('tasks', 'noop', '', ?, ?, 0, 0, 0) ON CONFLICT DO UPDATE SET "
      "succeeded=succeeded+excluded.succeeded"};
};

}  // namespace

void Die(const std::string& what) {
  std::fprintf(stderr, "benchmark: %s\n", what.c_str());
  std::exit(1);
}

SqliteFile::SqliteFile(const std::string& path) {
  if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) Die(sqlite3_errmsg(db_));
  Run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-16000; "
      "PRAGMA wal_autocheckpoint=4000");
}

SqliteFile::~SqliteFile() { sqlite3_close(db_); }

void SqliteFile::Run(const std::string& script) {
  if (sqlite3_exec(db_, script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) Die(sqlite3_errmsg(db_));
}

double SqliteFile::Number(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK ||
      sqlite3_step(statement) != SQLITE_ROW)
    Die(sqlite3_errmsg(db_));
  const double number = sqlite3_column_double(statement, 0);
  sqlite3_finalize(statement);
  return number;
}

void FillNoops(SqliteFile& file, std::size_t rows) {
  file.Run("BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<" +
           std::to_string(rows) +
           ") INSERT INTO tasks (handler, params) SELECT 'noop', '{\"payment_id\":123456}' FROM n; COMMIT");
  file.Run("PRAGMA wal_checkpoint(TRUNCATE)");
}

double MiddleRate(SqliteFile& file, std::size_t rows) {
  if (const double done = file.Number("SELECT COUNT(*) FROM tasks_done"); done != static_cast<double>(rows))
    Die("of " + std::to_string(rows) + " tasks " + std::to_string(done) + " are finished");
  const auto at = [&](std::size_t count) {
    return file.Number(
        "SELECT (julianday(finished_at) - 2461000) * 86400 FROM tasks_done ORDER BY finished_at "
        "LIMIT 1 OFFSET " +
        std::to_string(count));
  };
  const std::size_t tenth = rows / 10;
  return static_cast<double>(rows - 2 * tenth) / (at(rows - tenth) - at(tenth));
}

void MakeTables(SqliteFile& file) {
  std::ifstream in(MILLRACE_BENCH_FOLDER "/tables.sql");
  std::stringstream text;
  text << in.rdbuf();
  file.Run(text.str());
  file.Run("INSERT INTO millrace_incarnations (id) VALUES (" + std::to_string(kClaimer) + ")");
}

void DrainBare(SqliteFile& file, std::size_t batch) { Loop(file, batch).Run(); }

}  // namespace millrace::bench

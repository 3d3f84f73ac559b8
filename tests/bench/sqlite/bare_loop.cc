#include "tests/bench/sqlite/bare_loop.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace millrace::engine {
namespace {

[[noreturn]] void Die(sqlite3* db) {
  std::fprintf(stderr, "bare loop: %s\n", sqlite3_errmsg(db));
  std::exit(1);
}

class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    if (sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) != SQLITE_OK) Die(db);
  }
  ~Statement() { sqlite3_finalize(statement_); }

  bool Step() {
    const int result = sqlite3_step(statement_);
    if (result != SQLITE_ROW && result != SQLITE_DONE) Die(db_);
    return result == SQLITE_ROW;
  }
  void Run() {
    while (Step()) Read();
    sqlite3_reset(statement_);
  }
  void Bind(int at, std::int64_t value) { sqlite3_bind_int64(statement_, at, value); }
  std::int64_t Id() { return sqlite3_column_int64(statement_, 0); }

 private:
  // Fetches the columns of a row, as whoever asked for them would.
  void Read() {
    for (int i = 0; i < sqlite3_column_count(statement_); ++i) sqlite3_column_text(statement_, i);
  }

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

// In due order, the slices in turns.
const std::string kOrder =
    "SELECT id FROM (SELECT id, slice, run_at, row_number() OVER (PARTITION BY slice ORDER BY run_at, id) AS "
    "place FROM tasks) ORDER BY (place - 1) / " +
    std::to_string(kRowsOfTurn) + ", slice, run_at, id";
constexpr char kClaim[] =
    "UPDATE tasks SET state=2, attempt=attempt+1, claimed_by=4611686018427387904, claimed_at='2026-01-01 "
    "00:00:00.000000',"
    " updated_at='2026-01-01 00:00:00.000000' WHERE id=? AND state=0 AND attempt=0 AND run_at<='9'";
constexpr char kRead[] =
    "SELECT id, slice, state, handler, priority, run_at, params, biz_key, batch, failures, attempt, crashes,"
    " cancel, claimed_at, last_error, progress, created_at FROM tasks WHERE id=?";
constexpr char kCopy[] =
    "INSERT INTO tasks_done (id, state, failures, last_error, result, finished_at, slice, handler, priority,"
    " run_at, params, biz_key, batch, attempt, crashes, claimed_by, claimed_at, progress, created_at)"
    " SELECT id, 1, failures, last_error, NULL, '2026-01-01 00:00:00.000000', slice, handler, priority, "
    "run_at,"
    " params, biz_key, batch, attempt, crashes, 'w.1', claimed_at, progress, created_at FROM tasks"
    " WHERE id=? AND state=2 AND claimed_by=4611686018427387904 AND attempt=1";
constexpr char kDelete[] = "DELETE FROM tasks WHERE id=?";

class Loop {
 public:
  Loop(sqlite3* db, std::size_t batch) : batch_(batch), db_(db) {}

  std::size_t Run() {
    const Ids all = DueOrder();
    for (std::size_t at = 0; at < all.size(); at += batch_) {
      const auto begin = all.begin() + static_cast<long>(at);
      Ids ids(begin, begin + static_cast<long>(std::min(batch_, all.size() - at)));
      std::sort(ids.begin(), ids.end());
      InTransaction([&] { ForEach(ids, claim_, read_); });
      InTransaction([&] { ForEach(ids, copy_, delete_); });
    }
    return all.size();
  }

 private:
  using Ids = std::vector<std::int64_t>;

  Ids DueOrder() {
    Statement order(db_, kOrder.c_str());
    Ids ids;
    while (order.Step()) ids.push_back(order.Id());
    return ids;
  }

  template <class Body>
  void InTransaction(Body body) {
    if (sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) Die(db_);
    body();
    if (sqlite3_exec(db_, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) Die(db_);
  }

  static void ForEach(const Ids& ids, Statement& first, Statement& second) {
    for (const std::int64_t id : ids) {
      first.Bind(1, id);
      first.Run();
      second.Bind(1, id);
      second.Run();
    }
  }

  const std::size_t batch_;
  sqlite3* db_;
  Statement claim_{db_, kClaim};
  Statement read_{db_, kRead};
  Statement copy_{db_, kCopy};
  Statement delete_{db_, kDelete};
};

}  // namespace

std::size_t DrainBare(const std::string& path, std::size_t batch) {
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) Die(db);
  if (sqlite3_exec(db,
                   "PRAGMA synchronous=FULL; PRAGMA cache_size=-16000; PRAGMA temp_store=MEMORY; "
                   "PRAGMA wal_autocheckpoint=4000",
                   nullptr, nullptr, nullptr) != SQLITE_OK) {
    Die(db);
  }
  const std::size_t done = Loop(db, batch).Run();
  sqlite3_close(db);
  return done;
}

}  // namespace millrace::engine

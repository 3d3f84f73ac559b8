#include "tests/bench/store/ceiling.h"

#include <cppconn/connection.h>
#include <cppconn/driver.h>
#include <cppconn/exception.h>
#include <cppconn/resultset.h>
#include <cppconn/statement.h>
#include <mysql_driver.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>

#include "framework/store/mysql/sql_text.h"

namespace millrace::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostConnections = 8;
// How often a worker looks where work is, at most.
constexpr std::chrono::milliseconds kPoll{200};

// The connector alone, with several statements in one trip.
class Connection {
 public:
  explicit Connection(const engine::TestDatabase& database) {
    const engine::StoreUrl& url = database.url();
    sql::ConnectOptionsMap options;
    options["hostName"] = sql::SQLString("tcp://" + url.host + ":" + std::to_string(url.port));
    options["userName"] = sql::SQLString(url.user);
    options["password"] = sql::SQLString(engine::ReadPasswordFile(database.password_file()).value_or(""));
    options["schema"] = sql::SQLString(url.database);
    options["CLIENT_MULTI_STATEMENTS"] = true;
    connection_.reset(sql::mysql::get_driver_instance()->connect(options));
    statement_.reset(connection_->createStatement());
    Run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    Run("SET SESSION innodb_lock_wait_timeout=1");
    Run("SET SESSION autocommit=0");  // a transaction needs no trip to begin
  }

  // Sends so many statements that return no rows, in one trip. Returns what the first one hit: of the others
  // the connector does not tell.
  std::uint64_t Run(const std::string& text, std::size_t statements = 1) {
    if (statement_->execute(text)) Die("rows where none were expected: " + text.substr(0, 200));
    const std::uint64_t hit = statement_->getUpdateCount();
    while (--statements > 0) static_cast<void>(statement_->getMoreResults());
    return hit;
  }
  template <class EachRow>
  std::size_t Query(const std::string& text, EachRow each_row) {
    const std::unique_ptr<sql::ResultSet> rows(statement_->executeQuery(text));
    std::size_t count = 0;
    for (; rows->next(); ++count) each_row(*rows);
    return count;
  }

 private:
  std::unique_ptr<sql::Connection> connection_;
  std::unique_ptr<sql::Statement> statement_;
};

// Waiting rows of one slice, handler and urgency, and behind which of them a scan goes on.
struct Group {
  std::string slice, handler, urgency;
  std::string run_at, id;  // empty: from the beginning

  auto Key() const { return std::tie(slice, handler, urgency); }
};

struct Found {
  std::uint64_t id = 0;
  std::string attempt;
  std::string updated_at;
};

// One connection's loop over its part of the slices.
class Loop {
 public:
  Loop(const engine::TestDatabase& database, const Way& way, std::size_t number, std::string claimer)
      : way_(way), claimer_(std::move(claimer)), sql_(database) {
    first_ = number * kSlices / way.connections;
    last_ = (number + 1) * kSlices / way.connections - 1;
  }

  void Run() {
    try {
      while (ReadDueMap()) {
        const auto until = Clock::now() + kPoll;
        while (!turns_.empty() && Clock::now() < until) Batch();
      }
    } catch (const sql::SQLException& error) {
      Die(error.what());
    }
  }

 private:
  // False: nothing is due any more.
  bool ReadDueMap() {
    std::set<std::tuple<std::string, std::string, std::string>> known;
    for (const Group& group : turns_) known.insert(group.Key());
    bool any = false;
    sql_.Query(
        "SELECT 0,'',0,UTC_TIMESTAMP(6) UNION ALL SELECT 0,what,0,NULL FROM millrace_pauses UNION ALL "
        "(SELECT slice,handler,urgency,MIN(run_at) FROM tasks FORCE INDEX (due) WHERE slice BETWEEN " +
            std::to_string(first_) + " AND " + std::to_string(last_) +
            " AND urgency IS NOT NULL GROUP BY slice,handler,urgency)",
        [&](sql::ResultSet& row) {
          Group group{row.getString(1).asStdString(),
                      row.getString(2).asStdString(),
                      row.getString(3).asStdString(),
                      {},
                      {}};
          if (group.handler.empty()) return;  // the clock
          any = true;
          if (known.insert(group.Key()).second) turns_.push_back(std::move(group));
        });
    return any;
  }

  // The first groups of the turns give a part of the batch each, and go to the end of the turns, unless they
  // have no more.
  std::vector<Found> Scan() {
    const std::size_t count = std::min(way_.groups, turns_.size());
    std::vector<Group> groups(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(count));
    turns_.erase(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(count));
    const std::size_t limit = way_.batch / count;
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += (i == 0 ? "(" : " UNION ALL (") + ScanText(groups[i], i, limit) + ")";
    std::vector<std::size_t> sizes(count);
    std::vector<Found> found;
    found.reserve(way_.batch);
    sql_.Query(text, [&](sql::ResultSet& row) {
      const auto at = static_cast<std::size_t>(row.getUInt64(1));
      groups[at].id = row.getString(2).asStdString();
      groups[at].run_at = row.getString(3).asStdString();
      ++sizes[at];
      if (row.getInt(4) != 0) return;  // it runs
      found.push_back({row.getUInt64(2), row.getString(5).asStdString(), row.getString(6).asStdString()});
    });
    for (std::size_t i = 0; i < count; ++i) {
      if (sizes[i] == limit) turns_.push_back(std::move(groups[i]));
    }
    return found;
  }
  std::string ScanText(const Group& group, std::size_t number, std::size_t limit) const {
    std::string after;
    if (!group.id.empty()) {
      after = " AND (run_at='" + group.run_at + "' AND id>" + group.id + " OR run_at>'" + group.run_at + "')";
    }
    return "SELECT " + std::to_string(number) + ",id,run_at,state,attempt,updated_at" +
           (way_.read_in_scan ? kContents : "") + " FROM tasks FORCE INDEX (due) WHERE slice=" + group.slice +
           " AND handler='" + group.handler + "' AND urgency=" + group.urgency + after +
           " AND run_at<=UTC_TIMESTAMP(6) ORDER BY run_at,id LIMIT " + std::to_string(limit);
  }

  void Batch() {
    std::map<std::string, std::vector<Found>> by_attempt;
    for (Found& one : Scan()) by_attempt[one.attempt].push_back(std::move(one));
    for (auto& [attempt, rows] : by_attempt) {
      std::sort(rows.begin(), rows.end(), [](const Found& a, const Found& b) { return a.id < b.id; });
      std::vector<std::uint64_t> found;
      for (const Found& one : rows) found.push_back(one.id);
      const std::string ids = engine::mysql::WithIds(found);
      Claim(rows, attempt, ids);
      Settle(rows.size(), std::to_string(std::stoull(attempt) + 1), ids);
    }
  }

  void Claim(const std::vector<Found>& rows, const std::string& attempt, const std::string& ids) {
    std::string unchanged;
    if (way_.read_in_scan) {
      // Whoever edits a row moves its time on: what the scan has read is still what stands there.
      std::set<std::string> times;
      for (const Found& one : rows) times.insert(one.updated_at);
      for (const std::string& time : times)
        unchanged += (unchanged.empty() ? " AND updated_at IN ('" : ",'") + time + "'";
      unchanged += ")";
    }
    const std::uint64_t hit =
        sql_.Run("UPDATE tasks FORCE INDEX (PRIMARY) SET state=2, attempt=attempt+1, claimed_by=" + claimer_ +
                     ", claimed_at=UTC_TIMESTAMP(6) WHERE " + ids + " AND state=0 AND attempt=" + attempt +
                     " AND run_at<=UTC_TIMESTAMP(6)" + unchanged +
                     " AND EXISTS (SELECT 1 FROM millrace_incarnations WHERE id=" + claimer_ +
                     " AND dead=0 LOCK IN SHARE MODE); COMMIT",
                 2);
    if (hit != rows.size()) Die("a claim missed rows that are nobody else's");
    if (way_.read_in_scan) return;
    const std::size_t read = sql_.Query(
        std::string("SELECT id") + kContents + Running(ids, std::to_string(std::stoull(attempt) + 1)),
        [](sql::ResultSet&) {});
    if (read != rows.size()) Die("what was claimed does not run");
  }

  void Settle(std::size_t count, const std::string& attempt, const std::string& ids) {
    const std::string running = Running(ids, attempt);
    if (sql_.Run(std::string("INSERT INTO tasks_done (") + kKept +
                 ",state,last_error,result,finished_at) SELECT " + kKept +
                 ",1,last_error,'',UTC_TIMESTAMP(6)" + running + " FOR UPDATE") != count) {
      Die("a settle missed rows that are its own");
    }
    const std::uint64_t deleted = sql_.Run(
        "DELETE tasks" + running +
            "; INSERT INTO millrace_counters "
            "(task_table,handler,batch,incarnation,succeeded,cancelled,failed,"
            "attempts_failed) VALUES ('tasks','noop',''," +
            claimer_ + "," + std::to_string(count) +
            ",0,0,0) ON DUPLICATE KEY UPDATE succeeded=succeeded+VALUES(succeeded), cancelled=cancelled+"
            "VALUES(cancelled), failed=failed+VALUES(failed), "
            "attempts_failed=attempts_failed+VALUES(attempts_failed)",
        2);
    if (deleted != count) Die("a settle deleted other rows than it copied");
    sql_.Run("COMMIT");
  }
  std::string Running(const std::string& ids, const std::string& attempt) const {
    return " FROM tasks FORCE INDEX (PRIMARY) WHERE " + ids + " AND state=2 AND claimed_by=" + claimer_ +
           " AND attempt=" + attempt;
  }

  // What a run needs beside what a scan tells anyhow.
  static constexpr const char* kContents =
      ",priority,params,biz_key,batch,failures,crashes,progress,created_at";
  static constexpr const char* kKept =
      "id,slice,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,claimed_by,claimed_at,"
      "progress,"
      "created_at";

  const Way way_;
  const std::string claimer_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  std::deque<Group> turns_;
  Connection sql_;
};

std::vector<std::string> StatementsOf(const std::string& schema) {
  std::ifstream file(std::string(MILLRACE_BENCH_FOLDER "/") + schema + ".sql");
  std::vector<std::string> statements(1);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("--")) continue;
    statements.back() += line + "\n";
    if (line.ends_with(";")) statements.emplace_back();
  }
  statements.pop_back();
  if (statements.empty()) Die("there is no schema " + schema);
  return statements;
}

double OwnCpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

std::string Way::Name() const {
  return std::to_string(batch) + " rows of " + std::to_string(groups) + " groups, contents with the " +
         (read_in_scan ? "scan" : "claim");
}

Ceiling::Ceiling(const BenchServer& server, const std::string& schema)
    : server_(server), database_(server.server()) {
  static_cast<void>(sql::mysql::get_driver_instance());  // not synchronised: before the threads
  engine::SqlConnection sql(database_.url(), database_.password_file());
  for (const std::string& statement : StatementsOf(schema)) sql.Ask(statement);
  for (std::size_t i = 0; i < kMostConnections; ++i) {
    // As long as those of a real one.
    claimers_.push_back(schema == "nullable" ? "'a-host-name-1.f3a9c2e4d1b70" + std::to_string(i) + "'"
                                             : "650133729184405601" + std::to_string(i));
    sql.Ask("INSERT INTO millrace_incarnations (id) VALUES (" + claimers_.back() + ")");
  }
}

Drained Ceiling::Drain(const Load& load, const Way& way) {
  engine::SqlConnection sql(database_.url(), database_.password_file());
  Fill(sql, load);
  const double server = server_.CpuSeconds();
  const double client = OwnCpuSeconds();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < way.connections; ++i) {
      threads.emplace_back([&, i] { Loop(database_, way, i, claimers_.at(i)).Run(); });
    }
  }
  const double tasks = static_cast<double>(load.rows);
  Drained drained;
  drained.server_us = (server_.CpuSeconds() - server) * 1e6 / tasks;
  drained.client_us = (OwnCpuSeconds() - client) * 1e6 / tasks;
  drained.rate = MiddleRate(sql, load.rows);
  return drained;
}

Way Ceiling::BestWay(const Load& load) {
  Drain(load, {});  // the files grow once
  Way best;
  double rate = 0;
  const auto attempt = [&](Way way) {
    const double now = Drain(load, way).rate;
    if (now <= rate) return;
    rate = now;
    best = way;
  };
  for (const std::size_t groups : {std::size_t{8}, std::size_t{1}, std::size_t{32}})
    attempt({.batch = 999, .groups = groups});
  for (const std::size_t batch : {std::size_t{250}, std::size_t{500}})
    attempt({.batch = batch, .groups = best.groups});
  attempt({.batch = best.batch, .groups = best.groups, .read_in_scan = false});
  return best;
}

}  // namespace millrace::bench

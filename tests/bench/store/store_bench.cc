// Drains no-op rows in turn on one private server: through a bare loop of the claim's and the settle's SQL
// and through the store's calls, with two sessions each, and by one worker process. A rate is that of the
// middle eight tenths of a drain by the database's own clock, so neither a start nor an end counts. Prints
// the medians, and those of the ratios to the bare loop of the same round. Exits 1 where the worker's is
// below `least`.
//   store_bench [rows, default 200000] [batch, default 999] [rounds, default 3] [least, default 0]
#include <cppconn/connection.h>
#include <cppconn/driver.h>
#include <cppconn/resultset.h>
#include <cppconn/statement.h>
#include <mysql_driver.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/settle.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/store.h"
#include "framework/store/sql/task_store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/report.h"
#include "tests/support/run_process.h"
#include "tests/support/sql_connection.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kSessions = 2;
constexpr std::uint32_t kSlices = 64;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "store_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T Must(Result<T> result) {
  if (!result) Die(result.error().message);
  return std::move(*result);
}

class Bench {
 public:
  Bench(std::size_t rows, std::size_t batch) : rows_(rows), batch_(batch) {
    store_ = Must(mysql::OpenStore(database_.url(), {.password_file = database_.password_file()}));
    if (auto done = store_->OpenSchema()->Apply({.tables = 1, .slices = kSlices}); !done)
      Die(done.error().message);
    // It never beats: the worker beside it must not mark it dead meanwhile.
    Incarnation me{.id = "bench.1", .worker = "bench", .host = "here", .lease = std::chrono::hours(1)};
    if (auto done = store_->OpenIncarnations()->Register(me); !done) Die(done.error().message);
    SqlConnection sql(database_.url(), database_.password_file());
    me_ = {std::stoull(sql.Ask("SELECT number FROM millrace_incarnations WHERE id='bench.1'")), me.id};
  }

  double Store() {
    return Run([this](std::span<const std::vector<std::uint64_t>> batches) { StoreSession(batches); });
  }
  // The real program: the due map, the scans, the lanes and the handler come on
  // top.
  double Worker() {
    std::atomic<bool> begun{false};
    return Run([&](std::span<const std::vector<std::uint64_t>>) {
      if (!begun.exchange(true)) WorkerProcess();
    });
  }
  double Bare() {
    static_cast<void>(::sql::mysql::get_driver_instance());  // not synchronised: before the threads
    return Run([this](std::span<const std::vector<std::uint64_t>> batches) { BareSession(batches); });
  }

 private:
  template <class Session>
  double Run(Session session) {
    const auto batches = Fill();
    const std::size_t half = batches.size() / kSessions;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kSessions; ++i) {
      const std::size_t end = i + 1 == kSessions ? batches.size() : (i + 1) * half;
      threads.emplace_back(
          [&session, part = std::span(batches).subspan(i * half, end - i * half)] { session(part); });
    }
    threads.clear();
    SqlConnection sql(database_.url(), database_.password_file());
    if (sql.Ask("SELECT COUNT(*) FROM tasks_done") != std::to_string(rows_)) Die("rows are missing");
    const std::size_t tenth = rows_ / 10;
    const double micros = FinishedAt(sql, rows_ - tenth) - FinishedAt(sql, tenth);
    return static_cast<double>(rows_ - 2 * tenth) * 1e6 / micros;
  }
  // When so many were finished, in microseconds.
  static double FinishedAt(SqlConnection& sql, std::size_t count) {
    return std::stod(
        sql.Ask("SELECT TIMESTAMPDIFF(MICROSECOND, '2020-01-01', finished_at) FROM tasks_done "
                "ORDER BY finished_at LIMIT 1 OFFSET " +
                std::to_string(count)));
  }

  std::vector<std::vector<std::uint64_t>> Fill() {
    SqlConnection sql(database_.url(), database_.password_file());
    sql.Ask("TRUNCATE tasks");
    sql.Ask("TRUNCATE tasks_done");
    for (std::size_t at = 0; at < rows_; at += 1000) {
      std::string rows;
      for (std::size_t i = at; i < std::min(at + 1000, rows_); ++i)
        rows += i == at ? "('noop')" : ",('noop')";
      sql.Ask("INSERT INTO tasks (handler) VALUES " + rows);
    }
    std::vector<std::vector<std::uint64_t>> batches(1);
    const auto ids = Must(sql.Run("SELECT id FROM tasks ORDER BY slice,run_at,id"));
    for (std::size_t i = 0; i < rows_; ++i) {
      if (batches.back().size() == batch_) batches.emplace_back();
      batches.back().push_back(std::stoull(*ids.rows.at(i).at(0)));
    }
    for (auto& batch : batches) std::sort(batch.begin(), batch.end());
    return batches;
  }

  void StoreSession(std::span<const std::vector<std::uint64_t>> batches);
  void BareSession(std::span<const std::vector<std::uint64_t>> batches);
  void WorkerProcess();

  const std::size_t rows_;
  const std::size_t batch_;
  TestDatabase database_;
  std::unique_ptr<engine::Store> store_;
  sql::Claimer me_;
};

Settlement End(const Task& task) {
  return {.key = task.key,
          .attempt = task.attempt,
          .handler = task.handler,
          .biz_key = task.biz_key,
          .batch = task.batch};
}

void Bench::StoreSession(std::span<const std::vector<std::uint64_t>> batches) {
  auto tasks = store_->OpenTasks();
  for (const auto& ids : batches) {
    const auto claimed = Must(tasks->Claim({.table = "tasks", .incarnation = "bench.1", .ids = ids}));
    std::vector<Settlement> ends;
    for (const Task& task : claimed) ends.push_back(End(task));
    (void)Must(tasks->Settle("bench.1", ends));
  }
}

// The connector alone: whatever an answer holds is drained and not looked at.
class BareConnection {
 public:
  BareConnection(const StoreUrl& url, const std::string& password_file) {
    ::sql::ConnectOptionsMap options;
    options["hostName"] = ::sql::SQLString("tcp://" + url.host + ":" + std::to_string(url.port));
    options["userName"] = ::sql::SQLString(url.user);
    options["password"] = ::sql::SQLString(Must(ReadPasswordFile(password_file)));
    options["schema"] = ::sql::SQLString(url.database);
    connection_.reset(::sql::mysql::get_driver_instance()->connect(options));
    Run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }
  void Run(const std::string& text) {
    std::unique_ptr<::sql::Statement> statement(connection_->createStatement());
    if (!statement->execute(text)) return;
    std::unique_ptr<::sql::ResultSet> rows(statement->getResultSet());
    while (rows->next()) {
    }
  }

 private:
  std::unique_ptr<::sql::Connection> connection_;
};

// The same statements, and nothing between them.
void Bench::BareSession(std::span<const std::vector<std::uint64_t>> batches) {
  BareConnection sql(database_.url(), database_.password_file());
  for (const auto& ids : batches) {
    const std::string list = mysql::List(ids);
    sql.Run(mysql::ClaimText("tasks", list, me_.number, 0));
    sql.Run("SELECT " + sql::TaskColumns(sql::TaskRows::Claimed) +
            mysql::RunningRows("tasks", list, me_.number, 1));
    std::vector<Settlement> ends(ids.size());
    std::vector<const Settlement*> pointers;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ends[i] = {.key = {"tasks", ids[i]}, .attempt = 1, .handler = "noop"};
      pointers.push_back(&ends[i]);
    }
    const mysql::SettleGroup group = mysql::GroupSettlements(pointers).at(0);
    sql.Run("BEGIN");
    sql.Run(mysql::MoveText(group, me_, list));
    sql.Run(mysql::DeleteText(group, me_.number, list));
    sql.Run(mysql::CountersText(me_.name, pointers));
    sql.Run("COMMIT");
  }
}

void Bench::WorkerProcess() {
  char folder[] = "/tmp/store_bench_XXXXXX";
  if (mkdtemp(folder) == nullptr) Die("no folder for the worker's state");
  const StoreUrl url = database_.url();
  const auto worker = testing::RunProcess("MILLRACE_PASSWORD_FILE=" + database_.password_file() +
                                              " " MILLRACE_BINARY " worker --until-idle --store mysql://" +
                                              url.user + "@" + url.host + ":" + std::to_string(url.port) +
                                              "/" + url.database + " --state-dir " + folder,
                                          600);
  std::filesystem::remove_all(folder);
  if (worker.exit_code != 0) Die("the worker failed: " + worker.output);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

int Main(int count, char** arguments) {
  const auto number = [&](int i, std::size_t otherwise) {
    return count > i ? static_cast<std::size_t>(std::strtoull(arguments[i], nullptr, 10)) : otherwise;
  };
  const std::size_t rows = number(1, 200'000);
  const std::size_t batch = std::min(number(2, kMaxBatchRows), kMaxBatchRows);
  Bench bench(rows, batch);
  std::vector<double> bare, store, worker, of_store, of_worker;
  for (std::size_t round = 0; round < number(3, 3); ++round) {
    // In turn first and last, so that a drift of the machine favours nobody.
    if (round % 2 == 0) bare.push_back(bench.Bare());
    worker.push_back(bench.Worker());
    store.push_back(bench.Store());
    if (round % 2 != 0) bare.push_back(bench.Bare());
    of_store.push_back(store.back() / bare.back());
    of_worker.push_back(worker.back() / bare.back());
    std::printf("round %zu: bare %.0f, store %.0f, worker %.0f tasks/s\n", round + 1, bare.back(),
                store.back(), worker.back());
  }
  char text[400];
  std::snprintf(
      text, sizeof text,
      "%zu rows in batches of %zu, medians of %zu rounds, the middle eight tenths of each drain: a "
      "bare loop %.0f tasks/s, the store %.0f (%.2f of it), the worker %.0f (%.2f of it, %.2f to %.2f)",
      rows, batch, bare.size(), Median(bare), Median(store), Median(of_store), Median(worker),
      Median(of_worker), *std::min_element(of_worker.begin(), of_worker.end()),
      *std::max_element(of_worker.begin(), of_worker.end()));
  const double least = count > 4 ? std::strtod(arguments[4], nullptr) : 0;
  const bool pass = Median(of_worker) >= least;
  Report("drain",
         "one worker drains no-op tasks at half the rate of a bare loop of the same statements, at least, by "
         "the median of paired drains",
         text, pass);
  return pass ? 0 : 1;
}

}  // namespace
}  // namespace millrace::engine

int main(int count, char** arguments) { return millrace::engine::Main(count, arguments); }

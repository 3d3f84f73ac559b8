#include "tests/bench/store/drain.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/bench/figures/figures.h"

namespace millrace::bench {
namespace {

using engine::SqlConnection;

constexpr std::size_t kRowsOfInsert = 1000;
constexpr int kCommits = 300;
// Of the server's old versions, which its threads remove beside whatever is measured.
constexpr std::uint64_t kFewVersions = 1000;

std::string WithNumber(std::string text, std::size_t number) {
  for (std::size_t at = 0; (at = text.find('$', at)) != std::string::npos;) {
    text.replace(at, 1, std::to_string(number % 600));
  }
  return text;
}

// Whoever may not ask does not wait.
void WaitForPurge(SqlConnection& sql) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    const auto answer =
        sql.Run("SELECT count FROM information_schema.innodb_metrics WHERE name='trx_rseg_history_len'");
    if (!answer || answer->rows.empty()) return;
    if (std::stoull(answer->rows[0].at(0).value_or("0")) < kFewVersions) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

struct Ended {
  double at = 0;          // microseconds, by the database's clock
  std::size_t count = 0;  // until then
};

// Over the middle eight tenths of `rows`.
double RateOf(const std::vector<Ended>& moments, std::size_t rows) {
  const std::size_t all = moments.empty() ? 0 : moments.back().count;
  if (all != rows) Die("of " + std::to_string(rows) + " tasks " + std::to_string(all) + " are finished");
  const auto reach = [&](std::size_t count) {
    return std::find_if(moments.begin(), moments.end(), [&](const Ended& one) { return one.count >= count; });
  };
  const auto first = reach(std::max<std::size_t>(rows / 10, 1));
  const auto last = reach(rows - rows / 10);
  if (last->at <= first->at) Die("so few tasks have no rate: they were all finished at once");
  return static_cast<double>(last->count - first->count) * 1e6 / (last->at - first->at);
}

}  // namespace

void Die(const std::string& what) {
  std::fprintf(stderr, "benchmark: %s\n", what.c_str());
  std::exit(1);
}

BenchServer::BenchServer() {
  if (std::getenv("MILLRACE_TEST_MYSQL_URL") != nullptr) {
    server_ = engine::SharedServer();
    return;
  }
  own_ = std::make_unique<engine::PrivateMariadb>(
      std::vector<std::string>{"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G"});
  server_ = engine::ServerOf(*own_);
}

double BenchServer::CpuSeconds() const { return own_ ? CpuSecondsOf(own_->pid()) : 0; }

std::string BenchServer::About() const {
  SqlConnection sql(server_.url, server_.password_file);
  return sql.Ask("SELECT VERSION()") +
         ", innodb_flush_log_at_trx_commit=" + sql.Ask("SELECT @@innodb_flush_log_at_trx_commit") +
         ", buffer pool " + sql.Ask("SELECT ROUND(@@innodb_buffer_pool_size/1048576)") + " MiB";
}

double BenchServer::CommitMilliseconds() const {
  const engine::TestDatabase database(server_);
  SqlConnection sql(database.url(), database.password_file());
  sql.Ask("CREATE TABLE one (n INT NOT NULL) ENGINE=InnoDB");
  sql.Ask("INSERT INTO one VALUES (0)");
  std::vector<double> times;
  for (int i = 0; i < kCommits; ++i) {
    const auto start = std::chrono::steady_clock::now();
    sql.Ask("UPDATE one SET n=n+1");
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return Median(times);
}

void Fill(SqlConnection& sql, const Load& load) {
  for (const char* pool : {"tasks", "tasks_done"}) sql.Ask(std::string("TRUNCATE ") + pool);
  const bool runs = load.spread == Spread::Runs;
  const std::size_t run = std::max<std::size_t>(1, std::min(kRowsOfInsert, load.rows / (8 * kSlices)));
  for (std::size_t at = 0; at < load.rows; at += kRowsOfInsert) {
    std::string text = runs ? "INSERT INTO tasks (handler,params,slice) VALUES "
                            : "INSERT INTO tasks (handler,params) VALUES ";
    for (std::size_t i = at; i < std::min(at + kRowsOfInsert, load.rows); ++i) {
      text += (i == at ? "('" : ",('") + load.handler + "','" + WithNumber(load.params, i) + "'";
      text += runs ? "," + std::to_string(i / run % kSlices) + ")" : ")";
    }
    sql.Ask(text);
  }
  WaitForPurge(sql);
}

double MiddleRate(SqlConnection& sql, std::size_t rows) {
  const auto ends = sql.Run(
      "SELECT TIMESTAMPDIFF(MICROSECOND,'2020-01-01',finished_at) AS at,COUNT(*) FROM tasks_done GROUP BY at "
      "ORDER BY at");
  if (!ends) Die(ends.error().message);
  std::vector<Ended> moments;
  std::size_t count = 0;
  for (const auto& row : ends->rows) {
    count += std::stoull(row.at(1).value_or("0"));
    moments.push_back({std::stod(row.at(0).value_or("0")), count});
  }
  return RateOf(moments, rows);
}

class CountedDrain::Watch {
 public:
  explicit Watch(std::unique_ptr<SqlConnection> sql) : sql_(std::move(sql)), before_(Look().count) {}

  double MiddleRate(std::size_t rows) {
    thread_.request_stop();
    thread_.join();
    moments_.push_back(Look());
    for (Ended& moment : moments_) moment.count -= before_;
    return RateOf(moments_, rows);
  }

 private:
  Ended Look() {
    const auto answer = sql_->Run(
        "SELECT TIMESTAMPDIFF(MICROSECOND,'2020-01-01',UTC_TIMESTAMP(6)),COALESCE(SUM(succeeded),0) FROM "
        "millrace_counters");
    if (!answer || answer->rows.empty()) Die("the counters can't be read");
    const auto& row = answer->rows[0];
    return {std::stod(row.at(0).value_or("0")), std::stoull(row.at(1).value_or("0"))};
  }

  const std::unique_ptr<SqlConnection> sql_;
  const std::size_t before_;
  std::vector<Ended> moments_;
  std::jthread thread_{[this](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(20)))
      moments_.push_back(Look());
  }};
};

CountedDrain::CountedDrain(std::unique_ptr<SqlConnection> sql)
    : watch_(std::make_unique<Watch>(std::move(sql))) {}
CountedDrain::~CountedDrain() = default;

double CountedDrain::MiddleRate(std::size_t rows) { return watch_->MiddleRate(rows); }

}  // namespace millrace::bench

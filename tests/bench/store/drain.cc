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
  std::size_t count = 0;
  std::size_t first = 0;
  double begin = 0;
  double rate = 0;
  for (const auto& row : ends->rows) {
    count += std::stoull(row.at(1).value_or("0"));
    const double at = std::stod(row.at(0).value_or("0"));
    if (first == 0 && count >= rows / 10) {
      first = count;
      begin = at;
    } else if (first != 0 && rate == 0 && count >= rows - rows / 10) {
      rate = static_cast<double>(count - first) * 1e6 / (at - begin);
    }
  }
  if (count != rows) Die("of " + std::to_string(rows) + " tasks " + std::to_string(count) + " are finished");
  return rate;
}

}  // namespace millrace::bench

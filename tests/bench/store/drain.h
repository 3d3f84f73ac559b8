// What all drains of a benchmark have in common, whoever drains: a server, rows that are put in, and how fast
// they left. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"

namespace millrace::bench {

inline constexpr std::uint32_t kSlices = 64;

[[noreturn]] void Die(const std::string& what);

// The server that MILLRACE_TEST_MYSQL_URL names, or a private MariaDB whose memory holds all rows of a drain.
class BenchServer {
 public:
  BenchServer();

  const engine::TestServer& server() const { return server_; }
  // The server's own, in seconds; zero where it is not a private one.
  double CpuSeconds() const;
  // "10.11.6-MariaDB", and the setting that makes its commits durable.
  std::string About() const;
  // What a commit takes of one connection that has nothing else to do: the median of some hundred, in
  // milliseconds.
  double CommitMilliseconds() const;

 private:
  std::unique_ptr<engine::PrivateMariadb> own_;
  engine::TestServer server_;
};

// Where the slices of rows that are put in together come from.
enum class Spread {
  Random,  // as a plain INSERT without a slice spreads them
  Runs,    // as bulk producers do: runs of one slice, so that neighbours are claimed together
};

struct Load {
  std::size_t rows = 1'000'000;
  Spread spread = Spread::Random;
  std::string handler = "noop";
  bool kept = true;           // into the finished pool
  std::string params = "{}";  // JSON; $ stands for a number that differs from row to row, below 600
};

// Empties the pools, puts the rows in, and waits until the server has cleared away what former drains left.
void Fill(engine::SqlConnection& sql, const Load& load);

struct Drained {
  double rate = 0;       // tasks/s
  double server_us = 0;  // CPU for a task, the whole drain counted
  double client_us = 0;
};

// Over the middle eight tenths of what is in tasks_done, by the database's clock: neither a start nor an end
// counts. Dies where there are not so many rows.
double MiddleRate(engine::SqlConnection& sql, std::size_t rows);

// The same of tasks that leave no row, by what their settles count: looks fifty times a second, on a thread
// and a connection of its own.
class CountedDrain {
 public:
  explicit CountedDrain(std::unique_ptr<engine::SqlConnection> sql);
  ~CountedDrain();
  CountedDrain(const CountedDrain&) = delete;
  CountedDrain& operator=(const CountedDrain&) = delete;

  // Once the drain is over; once.
  double MiddleRate(std::size_t rows);

 private:
  class Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace millrace::bench

// What the fault tests share: a fresh shard on the private MariaDB, a store that reaches it directly, one
// that reaches it through the proxy, and a live incarnation `w.1`.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/store/store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"
#include "tests/support/tcp_proxy.h"

namespace millrace::engine {

class StoreFaults : public testing::Test {
 protected:
  explicit StoreFaults(const TestServer& server = SharedServer());

  static PrivateMariadb& Private();  // a server that a test may stop; one for all of them
  // How often a random fault is repeated: `full` times with MILLRACE_FULL=1, as scripts/prove asks.
  static int Rounds(int brief, int full);
  // For its report: that so many of them went well.
  void ReportRounds(const std::string& what, int rounds);

  std::unique_ptr<Store> OpenStore(std::uint16_t port, Micros lease = std::chrono::seconds(10));
  std::vector<std::uint64_t> Add(std::size_t count);
  std::vector<Task> Claim(TaskStore& tasks, const std::vector<std::uint64_t>& ids, std::uint32_t attempt = 0);
  ClaimRequest Request(const std::vector<std::uint64_t>& ids, std::uint32_t attempt = 0);
  std::uint64_t Count(const std::string& rest) {
    return std::stoull(sql_->Ask("SELECT COUNT(*) FROM " + rest));
  }
  // Until a transaction waits for a lock; fails the test after ten seconds.
  void WaitForLockWait();
  // Every task is in exactly one pool, and as many as were added.
  void ExpectNothingLostOrDoubled(std::size_t added);

  TestDatabase database_;
  std::unique_ptr<SqlConnection> sql_;
  TcpProxy proxy_;
  std::unique_ptr<Store> direct_;
  std::unique_ptr<Store> proxied_;
};

Settlement Succeeded(const Task& task);
std::vector<Settlement> Succeeded(const std::vector<Task>& tasks);

}  // namespace millrace::engine

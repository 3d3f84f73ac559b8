#include "tests/integration/store/store_faults.h"

#include <cstdlib>
#include <thread>

#include "framework/store/mysql/store.h"
#include "tests/support/report.h"

namespace millrace::engine {

StoreFaults::StoreFaults(const TestServer& server)
    : database_(server),
      sql_(std::make_unique<SqlConnection>(database_.url(), database_.password_file())),
      proxy_(server.url.port),
      direct_(OpenStore(server.url.port)),
      proxied_(OpenStore(proxy_.port())) {
  const Status applied = direct_->OpenSchema()->Apply({.tables = 1, .slices = 4});
  EXPECT_TRUE(applied) << applied.error().message;
  const Status registered =
      direct_->OpenIncarnations()->Register({.id = "w.1", .worker = "w", .host = "here"});
  EXPECT_TRUE(registered) << registered.error().message;
}

PrivateMariadb& StoreFaults::Private() {
  static PrivateMariadb server;
  return server;
}

int StoreFaults::Rounds(int brief, int full) {
  const char* wish = std::getenv("MILLRACE_FULL");
  return wish != nullptr && std::string(wish) == "1" ? full : brief;
}

void StoreFaults::ReportRounds(const std::string& what, int rounds) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  Report("store faults", what + ": nothing lost, nothing doubled",
         std::to_string(rounds) + " times in " + test.test_suite_name() + "." + test.name(), !HasFailure());
}

std::unique_ptr<Store> StoreFaults::OpenStore(std::uint16_t port, Micros lease) {
  StoreUrl url = database_.url();
  url.port = port;
  StoreOptions options;
  options.password_file = database_.password_file();
  options.lease = lease;
  auto store = mysql::OpenStore(url, options);
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

std::vector<std::uint64_t> StoreFaults::Add(std::size_t count) {
  const auto before = sql_->Ask("SELECT COALESCE(MAX(id),0) FROM tasks_all");
  std::string rows;
  for (std::size_t i = 0; i < count; ++i) {
    rows += std::string(i == 0 ? "" : ",") + "('noop','{}',1,UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)";
  }
  sql_->Ask("INSERT INTO tasks (handler,params,slice,run_at) VALUES " + rows);
  auto answer = sql_->Run("SELECT id FROM tasks WHERE id>" + before + " ORDER BY id");
  std::vector<std::uint64_t> ids;
  for (const auto& row : answer->rows) ids.push_back(std::stoull(*row[0]));
  EXPECT_EQ(ids.size(), count);
  return ids;
}

ClaimRequest StoreFaults::Request(const std::vector<std::uint64_t>& ids, std::uint32_t attempt) {
  return {.table = "tasks", .incarnation = "w.1", .attempt = attempt, .ids = ids};
}

std::vector<Task> StoreFaults::Claim(TaskStore& tasks, const std::vector<std::uint64_t>& ids,
                                     std::uint32_t attempt) {
  auto claimed = tasks.Claim(Request(ids, attempt));
  EXPECT_TRUE(claimed) << claimed.error().message;
  return claimed ? *claimed : std::vector<Task>{};
}

void StoreFaults::WaitForLockWait() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  // The server renews this table only for those who have not asked for a tenth of a second: it may show what
  // waited in another test, and so in another database.
  while (Count("information_schema.INNODB_TRX JOIN information_schema.PROCESSLIST ON ID=trx_mysql_thread_id "
               "WHERE trx_state='LOCK WAIT' AND DB=DATABASE()") == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nobody waits for a lock";
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
  }
}

void StoreFaults::ExpectNothingLostOrDoubled(std::size_t added) {
  EXPECT_EQ(Count("tasks_all"), added);
  EXPECT_EQ(sql_->Ask("SELECT COUNT(DISTINCT id) FROM tasks_all"), std::to_string(added));
}

Settlement Succeeded(const Task& task) {
  return {.key = task.key,
          .attempt = task.attempt,
          .handler = task.handler,
          .biz_key = task.biz_key,
          .batch = task.batch};
}

std::vector<Settlement> Succeeded(const std::vector<Task>& tasks) {
  std::vector<Settlement> settlements;
  for (const Task& task : tasks) settlements.push_back(Succeeded(task));
  return settlements;
}

}  // namespace millrace::engine

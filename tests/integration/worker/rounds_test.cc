// A handler that is scanned in rounds, by a worker on a real server, while rows are inserted. What each round
// took is counted from the tables.
#include <thread>

#include "framework/store/mysql/store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"
#include "tests/unit/worker/worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kType[] = "report";

class RoundsOnAServer : public WorkerFixture {
 protected:
  RoundsOnAServer() : sql_(database_.url(), database_.password_file()) {
    StoreOptions options;
    options.password_file = database_.password_file();
    auto opened = mysql::OpenStore(database_.url(), options);
    EXPECT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    const Status applied = store_->OpenSchema()->Apply({.tables = 1, .slices = 64});
    EXPECT_TRUE(applied) << applied.error().message;
    control_.shards.Set({{"main", store_}});
    plugins_.behaviours[kType] = [](auto tasks, auto&) { return std::vector<Outcome>(tasks.size()); };
    plugins_.batch = 100;
  }
  // Five hundred rows are left to the last.
  void ExpectRounds(int rounds, const ScanConfig& scan);
  std::int64_t Number(const std::string& sql) { return std::stoll("0" + sql_.Ask(sql)); }

  TestDatabase database_;
  SqlConnection sql_;
  std::shared_ptr<Store> store_;
};

// A round's claims follow one another; behind its last task there are three seconds. The times are sums,
// since columns bring their defaults along, which MySQL refuses.
constexpr const char* kRounds =
    "CREATE TEMPORARY TABLE claims AS SELECT id,created_at+INTERVAL 0 SECOND AS created_at,"
    "claimed_at+INTERVAL 0 SECOND AS claimed_at,SUM(begins) OVER (ORDER BY claimed_at,id) AS round FROM "
    "(SELECT id,created_at,claimed_at,claimed_at>COALESCE(LAG(claimed_at) OVER (ORDER BY claimed_at,id),"
    "'2001-01-01')+INTERVAL 2 SECOND AS begins FROM tasks_done) claimed";

void RoundsOnAServer::ExpectRounds(int rounds, const ScanConfig& scan) {
  SubmitMany(*store_, kType, 1000 * rounds - 500);
  const std::string last = sql_.Ask("SELECT MAX(id) FROM tasks");
  std::this_thread::sleep_for(milliseconds(50));
  config_.handlers[kType].scan = scan;
  auto worker = Start(false);
  // Less urgent: those that were there go before.
  const BootTime deadline = BootClock::now() + seconds(90);
  do {
    worker->WaitFor(milliseconds(20));
    sql_.Ask("INSERT INTO tasks (handler,priority) VALUES ('report',9),('report',9)");
  } while (Number("SELECT COUNT(*) FROM tasks WHERE id<=" + last) > 0 && BootClock::now() < deadline);
  worker.reset();
  sql_.Ask(kRounds);
  EXPECT_EQ(Number("SELECT COUNT(DISTINCT round) FROM claims WHERE id<=" + last), rounds);
  for (int round = 1; round <= rounds; ++round) {
    const std::string of_round = " FROM claims WHERE round=" + std::to_string(round);
    EXPECT_EQ(Number("SELECT COUNT(*)" + of_round + " AND id<=" + last), round == rounds ? 500 : 1000);
    EXPECT_LE(Number("SELECT COUNT(*)" + of_round), 1000);
    EXPECT_EQ(Number("SELECT MAX(created_at)>MIN(claimed_at)" + of_round), 0) << "round " << round;
  }
  EXPECT_GT(Number("SELECT COUNT(*) FROM claims WHERE id>" + last), 0) << "the last round has others, too";
}

TEST_F(RoundsOnAServer, TenThousandFiveHundredRowsTakeElevenRoundsWhileOthersComeAllTheWhile) {
  ExpectRounds(11, {.after = milliseconds(3000), .max_rows = 1000, .scope = ScanScope::Created});
}

TEST_F(RoundsOnAServer, AndSoWithARangeOfKeys) {
  ExpectRounds(4, {.after = milliseconds(3000), .max_rows = 1000, .scope = ScanScope::Key});
}

}  // namespace
}  // namespace millrace::engine

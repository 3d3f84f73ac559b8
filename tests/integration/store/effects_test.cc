// A worker over a real server: what a handler's SQL leaves behind.
#include <thread>

#include "framework/store/mysql/store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"
#include "tests/unit/worker/worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MysqlEffects : public WorkerFixture {
 protected:
  MysqlEffects() : sql_(database_.url(), database_.password_file()) {
    store_ = Open(0);
    const Status applied = store_->OpenSchema()->Apply({.tables = 1, .slices = 4});
    EXPECT_TRUE(applied) << applied.error().message;
    sql_.Ask("CREATE TABLE points (id INT PRIMARY KEY, points INT NOT NULL)");
    sql_.Ask("INSERT INTO points VALUES (1,0)");
  }

  std::shared_ptr<Store> Open(std::size_t max_transactions) {
    StoreOptions options;
    options.password_file = database_.password_file();
    options.connect_timeout = milliseconds(100);
    options.max_transactions = max_transactions;
    auto opened = mysql::OpenStore(database_.url(), options);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  // Adds a point, and says what `outcome_of` says of the task.
  void Award(std::function<Outcome(const Task&)> outcome_of) {
    plugins_.behaviours["award"] = [outcome_of](std::span<const Task> tasks, CallContext& context) {
      (void)context.Execute("UPDATE points SET points=points+1 WHERE id=1", {});
      return std::vector{outcome_of(tasks[0])};
    };
  }

  TestDatabase database_;
  SqlConnection sql_;
  std::shared_ptr<Store> store_;
};

TEST_F(MysqlEffects, AnUpdateBesideTwoSnoozesAndADoneTakesEffectOnce) {
  control_.shards.Set({{"main", store_}});
  Award([](const Task& task) {
    return task.attempt < 3 ? Make(OutcomeKind::Snooze, "", milliseconds(1)) : Make(OutcomeKind::Done);
  });
  const auto id = SubmitTo(*store_, "award");
  auto worker = Start(false);
  EXPECT_TRUE(Eventually(*worker, [&] { return Get(*store_, id).task.state == TaskState::Succeeded; }));
  EXPECT_EQ(Get(*store_, id).task.attempt, 3u);
  EXPECT_EQ(sql_.Ask("SELECT points FROM points"), "1");
}

// One connection for four threads: whoever gets none is not to blame, and is not run in vain.
TEST_F(MysqlEffects, ATaskThatGetsNoConnectionIsGivenBackUncounted) {
  store_ = Open(1);
  control_.shards.Set({{"main", store_}});
  Award([](const Task&) {
    std::this_thread::sleep_for(milliseconds(250));
    return Make(OutcomeKind::Done);
  });
  SubmitMany(*store_, "award", 4);
  auto worker = Start(false);
  EXPECT_TRUE(Eventually(*worker, [&] { return sql_.Ask("SELECT points FROM points") == "4"; }));
  EXPECT_TRUE(Eventually(*worker, [&] { return sql_.Ask("SELECT COUNT(*) FROM tasks_done") == "4"; }));
  EXPECT_EQ(sql_.Ask("SELECT SUM(failures) FROM tasks_done"), "0");
  EXPECT_EQ(sql_.Ask("SELECT COUNT(*) FROM millrace_attempts"), "0");
}

// Replies are lost with their connections, of claims, settles and handlers' own COMMITs: what is counted is
// what has happened all the same.
TEST_F(MysqlEffects, WhatIsToldAgreesWithTheTablesHoweverOftenConnectionsAreKilled) {
  control_.shards.Set({{"main", store_}});
  Award([](const Task&) { return Make(OutcomeKind::Done); });
  config_.handlers["award"].retry.delays = {milliseconds(10)};
  plugins_.behaviours["plain"] = [](auto tasks, auto&) { return std::vector<Outcome>(tasks.size()); };
  plugins_.behaviours["fails"] = [](auto, auto&) { return std::vector{Make(OutcomeKind::Fail, "no")}; };
  auto worker = Start(false);
  const auto retries = [this] {
    std::uint64_t sum = 0;
    for (const char* code : {"unavailable", "unknown", "conflict"}) {
      sum += metrics_.GetCounter("millrace_transaction_retries_total", {{"shard", "main"}, {"code", code}})
                 .Value();
    }
    return sum;
  };
  // Until handlers' own transactions, too, were hit.
  int kills = 0;
  for (; kills < 20 || (retries() == 0 && kills < 200); ++kills) {
    const auto producer = Open(0);  // with a connection that nobody has killed yet
    SubmitMany(*producer, "plain", 500);
    SubmitMany(*producer, "award", 20);
    SubmitMany(*producer, "fails", 10);
    worker->WaitFor(milliseconds(5 * (kills % 6)));
    const auto sessions =
        sql_.Run("SELECT id FROM information_schema.PROCESSLIST WHERE DB=DATABASE() AND id<>CONNECTION_ID()");
    ASSERT_TRUE(sessions) << sessions.error().message;
    for (const auto& row : sessions->rows) (void)sql_.Run("KILL " + *row[0]);
  }
  const auto told = [this](const char* handler, const char* outcome) {
    const Registry::Labels labels{{"handler", handler}, {"outcome", outcome}};
    return std::to_string(metrics_.GetCounter("millrace_tasks_settled_total", labels).Value());
  };
  const auto written = [this](const std::string& handler, const std::string& outcome) {
    return sql_.Ask("SELECT SUM(" + outcome + ") FROM millrace_counters WHERE handler='" + handler + "'");
  };
  ASSERT_TRUE(Eventually(*worker, [&] { return sql_.Ask("SELECT COUNT(*) FROM tasks") == "0"; }));
  EXPECT_TRUE(
      Eventually(*worker, [&] { return told("plain", "succeeded") == written("plain", "succeeded"); }));
  EXPECT_EQ(told("plain", "succeeded"), std::to_string(500 * kills));
  EXPECT_TRUE(
      Eventually(*worker, [&] { return told("award", "succeeded") == written("award", "succeeded"); }));
  EXPECT_EQ(told("award", "succeeded"), sql_.Ask("SELECT points FROM points"));
  EXPECT_TRUE(Eventually(*worker, [&] { return told("fails", "failed") == written("fails", "failed"); }));
  EXPECT_EQ(told("fails", "failed"), sql_.Ask("SELECT COUNT(*) FROM tasks_failed"));
  EXPECT_GT(retries(), 0U);
}

}  // namespace
}  // namespace millrace::engine

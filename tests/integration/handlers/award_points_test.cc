// award_points against real databases: one statement adds a batch, once.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "framework/handler_kit/local_run.h"
#include "framework/store/mysql/store.h"
#include "framework/store/sqlite/store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"
#include "tests/unit/handlers/shipped_handler.h"

namespace millrace::engine {
namespace {

std::string PointsTable() {
  std::ostringstream text;
  text << std::ifstream(std::string(std::getenv("MILLRACE_SOURCE_DIR")) + "/conf/samples/points.sql").rdbuf();
  return text.str();
}

class AwardPointsTest : public ShippedHandlerTest {
 protected:
  LocalReport Award(Store& store, std::vector<std::string> params, bool commit = true) {
    LocalRunOptions options;
    options.type = "award_points";
    options.params = std::move(params);
    options.store = &store;
    options.commit = commit;
    auto report = RunLocally(*plugins_, options, clock_);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    return *std::move(report);
  }

  std::string Points(Store& store) {
    const auto transaction = store.OpenTransaction(std::chrono::seconds(5));
    const auto rows =
        transaction->Execute("SELECT customer_id, points, payments FROM points_account ORDER BY 1", {});
    transaction->Rollback();
    std::string text;
    for (const auto& row : rows.value().rows) text += *row[0] + ":" + *row[1] + "/" + *row[2] + " ";
    return text;
  }

  void AddsBatchesOnce(Store& store) {
    const auto first =
        Award(store, {R"({"customer_id":7,"amount":2.99})", R"({"customer_id":-3,"amount":10})",
                      R"({"customer_id":7,"amount":3.00,"payment_id":1})"});
    EXPECT_EQ(first.ends.at(0).said.text, "2 points");
    EXPECT_EQ(first.ends.at(0).effect, LocalEffect::Committed) << first.ends.at(0).end.text;
    EXPECT_EQ(Points(store), "-3:10/1 7:5/2 ");
    Award(store, {R"({"customer_id":7,"amount":1.5})", R"({"customer_id":8,"amount":0.99})"});
    EXPECT_EQ(Points(store), "-3:10/1 7:6/3 8:0/1 ");
    EXPECT_EQ(Award(store, {R"({"customer_id":7,"amount":1})"}, false).ends.at(0).effect,
              LocalEffect::RolledBack);
    EXPECT_EQ(Points(store), "-3:10/1 7:6/3 8:0/1 ");
  }

  SystemClock clock_;
};

TEST_F(AwardPointsTest, AddsBatchesOnceOnSqlite) {
  const std::string file = folder_ + "/points.db";
  std::ofstream(folder_ + "/points.sql") << PointsTable();
  ASSERT_EQ(std::system(("sqlite3 " + file + " < " + folder_ + "/points.sql").c_str()), 0);
  StoreUrl url;
  url.path = file;
  const auto store = sqlite::OpenStore(url, {});
  ASSERT_TRUE(store.has_value());
  AddsBatchesOnce(**store);
}

class AwardPointsOnMariadbTest : public AwardPointsTest {
 protected:
  AwardPointsOnMariadbTest() {
    EXPECT_TRUE(SqlConnection(database_.url(), database_.password_file()).Run(PointsTable()).has_value());
    StoreOptions options;
    options.password_file = database_.password_file();
    store_ = mysql::OpenStore(database_.url(), options).value();
  }
  TestDatabase database_;
  std::unique_ptr<Store> store_;
};

TEST_F(AwardPointsOnMariadbTest, AddsBatchesOnce) { AddsBatchesOnce(*store_); }

TEST_F(AwardPointsOnMariadbTest, TwoWorkersWithTheSameNewCustomersLoseNothing) {
  const auto award = [this] {
    for (int round = 0; round < 25; ++round) {
      std::vector<std::string> params;
      for (int i = 0; i < 10; ++i) {
        params.push_back(R"({"amount":1,"customer_id":)" + std::to_string(round * 5 + i) + "}");
      }
      while (Award(*store_, params).ends.at(0).effect != LocalEffect::Committed)
        continue;  // a deadlock: the engine would too
    }
  };
  std::thread other(award);
  award();
  other.join();
  const auto total = SqlConnection(database_.url(), database_.password_file())
                         .Ask("SELECT CONCAT(SUM(points), '/', SUM(payments)) FROM points_account");
  EXPECT_EQ(total, "500/500");
}

TEST_F(AwardPointsTest, ABadPaymentFailsAlone) {
  const auto opened = Open("award_points", "{}");
  context_.sql_answer = SqlResult{{"x"}, {{"3"}}, 0};
  const std::vector<Task> tasks = {SomeTask("award_points", R"({"customer_id":1,"amount":1})", 1),
                                   SomeTask("award_points", R"({"amount":1})", 2),
                                   SomeTask("award_points", R"({"customer_id":1,"amount":"5"})", 3),
                                   SomeTask("award_points", R"({"customer_id":1,"amount":1e300})", 4),
                                   SomeTask("award_points", "[1]", 5)};
  const auto outcomes = (*opened)->Run("main", PointersTo(tasks), context_);
  EXPECT_EQ(outcomes.at(0).kind, OutcomeKind::Done);
  EXPECT_EQ(outcomes.at(1).text, "'customer_id' is missing");
  EXPECT_EQ(outcomes.at(2).text, "'amount' must be a number, is a text");
  EXPECT_EQ(outcomes.at(3).text, "'amount' is out of range");
  EXPECT_EQ(outcomes.at(4).text, "the parameters must be an object, are a list");
  for (std::size_t i = 1; i < outcomes.size(); ++i) EXPECT_EQ(outcomes[i].kind, OutcomeKind::Fail);
}

}  // namespace
}  // namespace millrace::engine

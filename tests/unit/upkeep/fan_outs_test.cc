#include "coordinator/upkeep/fan_outs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/time_text.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The replies to its COMMITs are lost.
class LossyFanOuts final : public FanOutStore {
 public:
  explicit LossyFanOuts(std::unique_ptr<FanOutStore> store) : store_(std::move(store)) {}
  Result<std::vector<FanOut>> UnderWay() override { return store_->UnderWay(); }
  Result<FanOutStep> Step(const FanOut& seen, const FanOutPage& page) override {
    (void)store_->Step(seen, page);
    return Fail(ErrorCode::Unknown, "the reply is lost");
  }
  Result<std::map<std::string, EndedFanOut>> Ended() override { return store_->Ended(); }
  Result<std::uint64_t> Stop(const std::string& schedule, const std::string& actor) override {
    return store_->Stop(schedule, actor);
  }

 private:
  const std::unique_ptr<FanOutStore> store_;
};

// A shard with customers, and a fan-out over them that one or two leaders carry on.
class FanOutsTest : public testing::Test {
 protected:
  FanOutsTest() { store_.Run("CREATE TABLE customers (id INTEGER, name TEXT, active INTEGER)"); }

  void AddCustomers(int from, int to) {
    std::string rows;
    for (int id = from; id <= to; ++id) {
      rows += (id == from ? "(" : ",(") + std::to_string(id) + ",'n" + std::to_string(id) + "',1)";
    }
    store_.Run("INSERT INTO customers VALUES " + rows);
  }
  void Begin(const std::string& query = "SELECT id, name FROM customers WHERE active=1",
             const std::string& key = "{id}-{month}", const std::string& schedule = "bill") {
    FanOut fan_out{.schedule = schedule,
                   .firing = *ParseTime("2026-11-30T23:30:00Z"),  // December in Berlin
                   .handler = "statement",
                   .table = "tasks",
                   .query = query,
                   .key = key,
                   .zone = "Europe/Berlin"};
    const auto begun = store_.OpenSchedules()->RunNow(schedule, {fan_out.firing, "tasks", fan_out}, "ann");
    ASSERT_TRUE(begun) << begun.error().message;
  }
  // So many pages.
  bool Go(FanOuts& leader, int pages) {
    return leader.Go(tables_, [&] { return pages-- == 0; });
  }
  bool GoOn(FanOuts& leader) { return Go(leader, 1000); }
  std::int64_t Tasks() { return store_.Ask("SELECT count(*) FROM tasks"); }
  std::int64_t Keys() { return store_.Ask("SELECT count(DISTINCT biz_key) FROM tasks"); }
  std::int64_t UnderWay() { return store_.Ask("SELECT count(*) FROM millrace_fan_outs"); }

  const SystemClock clock_{};
  ScratchStore store_{clock_};
  std::vector<TableInfo> tables_ = *store_.OpenSchema()->Tables();
  FanOuts leader_{"main", store_, store_.OpenFanOuts(), Random(1), 10};
  FanOuts other_{"main", store_, store_.OpenFanOuts(), Random(2), 10};
};

TEST_F(FanOutsTest, EachRowIsATaskWithItsKeyAndItsColumnsAsParams) {
  AddCustomers(1, 25);
  Begin();
  EXPECT_FALSE(GoOn(leader_));
  EXPECT_EQ(Tasks(), 25);
  EXPECT_EQ(UnderWay(), 0);
  const auto found = store_.OpenOperations()->Find("tasks", "statement", "7-2026-12");
  ASSERT_TRUE(found) << found.error().message;
  const auto task = store_.OpenOperations()->Get(*found);
  EXPECT_EQ(task->task.params, R"({"id":7,"name":"n7"})");
  EXPECT_THAT(leader_.Troubles(), IsEmpty());
}

TEST_F(FanOutsTest, TwoLeadersInTurnsSubmitEachRowOnce) {
  AddCustomers(1, 45);
  Begin();
  for (int turn = 0; UnderWay() > 0 && turn < 100; ++turn) Go(turn % 2 == 0 ? leader_ : other_, 1);
  EXPECT_EQ(Tasks(), 45);
  EXPECT_EQ(Keys(), 45);
}

TEST_F(FanOutsTest, ItIsStoppedBetweenTwoPagesAndAnotherGoesOnThere) {
  AddCustomers(1, 45);
  Begin();
  EXPECT_TRUE(Go(leader_, 2));
  EXPECT_EQ(Tasks(), 19) << "a page begins with the row that the one before has ended with";
  EXPECT_FALSE(GoOn(other_));
  EXPECT_EQ(Tasks(), 45);
}

TEST_F(FanOutsTest, AfterAnUnknownCommitItGoesOnFromTheRow) {
  AddCustomers(1, 25);
  Begin();
  FanOuts lossy("main", store_, std::make_unique<LossyFanOuts>(store_.OpenFanOuts()), Random(3), 10);
  EXPECT_FALSE(GoOn(lossy));
  EXPECT_EQ(Tasks(), 10) << "it looks again a second later";
  EXPECT_THAT(lossy.Troubles(), IsEmpty());
  GoOn(other_);
  EXPECT_EQ(Tasks(), 25);
  EXPECT_EQ(store_.Ask("SELECT count(*) FROM millrace_audit WHERE detail='25 submitted, 0 refused'"), 1);
}

TEST_F(FanOutsTest, AScheduleThatIsTakenOutMeanwhileChangesNothing) {
  AddCustomers(1, 25);
  Begin();
  Go(leader_, 1);
  store_.Run("DELETE FROM millrace_schedules");
  GoOn(leader_);
  EXPECT_EQ(Tasks(), 25);
}

TEST_F(FanOutsTest, RowsThatAreNoTasksAreLeftOutAndCounted) {
  AddCustomers(1, 12);
  store_.Run("INSERT INTO customers VALUES (NULL,'none',1)");
  store_.Run("CREATE TABLE codes (code TEXT)");
  store_.Run("INSERT INTO codes VALUES ('a'),(''),('" + std::string(300, 'x') + "'),(NULL),('b')");
  Begin("SELECT code FROM codes", "{code}");
  Begin("SELECT id, name FROM customers", "{id}", "second");
  GoOn(leader_);
  EXPECT_EQ(Tasks(), 14);
  EXPECT_EQ(store_.Ask("SELECT count(*) FROM millrace_audit WHERE action='fan_out_ended' AND detail='2 "
                       "submitted, 2 refused'"),
            1);
}

TEST_F(FanOutsTest, OfTwoRowsWithOneKeyTheSecondIsRefusedUnlessItIsTheSame) {
  store_.Run("CREATE TABLE codes (region TEXT, code TEXT, name TEXT)");
  store_.Run(
      "INSERT INTO codes VALUES ('eu','west-1','a'),('eu-west','1','b'),('eu','1','c'),('eu','1','d')");
  Begin("SELECT region, code, name FROM codes", "{region}-{code}");
  GoOn(leader_);
  EXPECT_EQ(Tasks(), 2);
  EXPECT_EQ(store_.Ask("SELECT count(*) FROM millrace_audit WHERE action='fan_out_ended' AND detail LIKE '2 "
                       "submitted, 1 refused%'"),
            1);
}

// Two schedules with one handler and one key template.
TEST_F(FanOutsTest, KeysThatAreTakenAreCountedOverAllPages) {
  AddCustomers(1, 25);
  Begin();
  GoOn(leader_);
  AddCustomers(26, 27);
  Begin("SELECT id, name FROM customers WHERE active=1", "{id}-{month}", "second");
  GoOn(leader_);
  EXPECT_EQ(Tasks(), 27);
  const auto ended = store_.OpenFanOuts()->Ended();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->at("bill").taken, 0U);
  EXPECT_EQ(ended->at("second").submitted, 2U);
  EXPECT_EQ(ended->at("second").taken, 25U);
}

TEST_F(FanOutsTest, AQueryThatFailsRestsWithATroubleAndTheOthersGoOn) {
  AddCustomers(1, 12);
  Begin("SELECT id FROM no_such_table", "{id}", "a");
  Begin("SELECT name FROM customers", "{id}", "b");
  Begin("SELECT id FROM tasks", "{id}", "c");
  Begin("SELECT id FROM customers", "{id}", "d");
  EXPECT_FALSE(GoOn(leader_));
  EXPECT_EQ(Tasks(), 12);
  EXPECT_THAT(
      leader_.Troubles(),
      ElementsAre(AllOf(HasSubstr("no_such_table"), HasSubstr("millrace schedule stop a")),
                  AllOf(HasSubstr("schedules.b.from_query: "), HasSubstr("the query gives no column 'id'")),
                  HasSubstr("the table that it fills")));
  store_.Run("DELETE FROM millrace_fan_outs");
  GoOn(leader_);
  EXPECT_THAT(leader_.Troubles(), IsEmpty()) << "of one that is gone";
}

TEST_F(FanOutsTest, AScheduleWhoseFanOutsPileUpKeepsNobodyElsesOut) {
  AddCustomers(1, 12);
  store_.Run(
      "INSERT INTO millrace_fan_outs "
      "(schedule,firing,handler,task_table,from_query,key_template,zone,submitted,"
      "refused,started_at) WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<1200) SELECT "
      "'a',printf('2026-11-01 %02d:%02d:00.000000',i/60,i%60),'noop','tasks','SELECT id FROM "
      "no_such_table','{id}','UTC',0,0,'2026-11-01 00:00:00.000000' FROM n");
  Begin();
  Go(leader_, 3);
  EXPECT_EQ(Tasks(), 12);
}

TEST_F(FanOutsTest, WhoWaitsForFanOutsWaitsForThoseThatComeOn) {
  ManualClock clock;
  FanOutWatch watch([&] { return clock.Now(); });
  const StoresByShard shards{{"main", std::shared_ptr<Store>(std::shared_ptr<Store>(), &store_)}};
  EXPECT_EQ(watch.Moving(shards), 0U);
  AddCustomers(1, 25);
  Begin();
  EXPECT_EQ(watch.Moving(shards), 1U);
  clock.Advance(std::chrono::seconds(29));
  EXPECT_EQ(watch.Moving(shards), 1U);
  Go(leader_, 1);
  EXPECT_EQ(watch.Moving(shards), 1U);
  clock.Advance(std::chrono::seconds(29));
  EXPECT_EQ(watch.Moving(shards), 1U) << "a page of it was submitted since";
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(watch.Moving(shards), 0U) << "it stands still";
  GoOn(leader_);
  EXPECT_EQ(watch.Moving(shards), 0U);
}

TEST_F(FanOutsTest, ATableThatTheShardDoesNotHaveIsATrouble) {
  AddCustomers(1, 2);
  Begin();
  tables_.clear();
  EXPECT_FALSE(GoOn(leader_));
  EXPECT_THAT(leader_.Troubles(), ElementsAre(HasSubstr("the shard has no table tasks")));
}

TEST_F(FanOutsTest, ACustomerWhoComesTwiceHasOneTask) {
  AddCustomers(1, 8);
  AddCustomers(5, 12);
  Begin();
  GoOn(leader_);
  EXPECT_EQ(Tasks(), 12);
  EXPECT_EQ(Keys(), 12);
}

}  // namespace
}  // namespace millrace::engine

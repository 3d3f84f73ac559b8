#include "coordinator/upkeep/batch_decider.h"

#include <gmock/gmock.h>

#include "coordinator/upkeep/batches.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kCallback = R"({"handler":"told","params":{"who":"me"}})";

// A callback whose params are nested so deeply.
std::string Nested(std::size_t levels) {
  return R"({"handler":"told","params":{"x":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') +
         "}}";
}

// Two shards; the batch `june` has its home in `a`.
class BatchDeciderTest : public testing::Test {
 protected:
  void Make(const std::string& name = "june", std::int64_t added = 0) {
    auto made = a_->OpenBatches()->Make({.name = name,
                                         .home = {"a", "tasks"},
                                         .on_success = kCallback,
                                         .on_end = kCallback,
                                         .made_by = "me"});
    ASSERT_TRUE(made && *made);
    Announce(name, "a", added);
    Announce(name, "b", 0);
  }
  void Announce(const std::string& name, const std::string& shard, std::int64_t rows) {
    ASSERT_TRUE(a_->OpenBatches()->Announce(name, {shard, "tasks"}, rows));
  }
  void Close(const std::string& name = "june") { ASSERT_TRUE(a_->OpenBatches()->Close(name, "")); }
  // As plain SQL adds one.
  static void Add(ScratchStore& store, const std::string& batch = "june", int state = 0) {
    store.Run("INSERT INTO tasks (handler,params,batch,state,claimed_by) VALUES ('noop','{}','" + batch +
              "'," + std::to_string(state) + "," + (state == 2 ? "7" : "0") + ")");
  }
  // As a settle ends all that there are.
  static void EndAll(ScratchStore& store, const std::string& batch = "june", const char* sum = "succeeded") {
    const std::int64_t count = store.Ask("SELECT COUNT(*) FROM tasks WHERE batch='" + batch + "'");
    store.Run("DELETE FROM tasks WHERE batch='" + batch +
              "'; INSERT INTO millrace_counters "
              "(task_table,handler,batch,incarnation,succeeded,cancelled,failed,attempts_failed) VALUES "
              "('tasks','noop','" +
              batch + "','w',0,0,0,0) ON CONFLICT DO NOTHING; UPDATE millrace_counters SET " + sum + "=" +
              sum + "+" + std::to_string(count) + " WHERE batch='" + batch + "'");
  }
  // Two pages of others' rows, so that there is a pause between them.
  static void AddTwoPages(ScratchStore& store) {
    store.Run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<1500) INSERT INTO tasks "
        "(handler,params) SELECT 'noop','{}' FROM n");
  }
  void BeQuiet() {
    a_->heard.Begin(clock_.Now() - HeardWrites::kSeenAfter);
    a_->heard.Beat();
  }
  BatchLook Look(bool at_once = false) { return decider_.Look(shards_, at_once); }
  // Whether a look that ends nothing has walked through them.
  bool Walks() {
    bool walked = false;
    between_steps_ = [&] { walked = true; };
    EXPECT_EQ(Look().ended, 0U);
    between_steps_ = [] {};
    return walked;
  }
  BatchRecord Record(const std::string& name = "june") {
    return a_->OpenBatches()->Find(name).value().value_or(BatchRecord());
  }
  std::int64_t Callbacks(const std::string& batch = "june") {
    return a_->Ask("SELECT COUNT(*) FROM tasks WHERE biz_key LIKE 'batch/" + batch + "/%'");
  }

  ManualClock clock_;
  std::shared_ptr<ScratchStore> a_ = std::make_shared<ScratchStore>(clock_);
  std::shared_ptr<ScratchStore> b_ = std::make_shared<ScratchStore>(clock_);
  StoresByShard shards_{{"a", a_}, {"b", b_}};
  std::function<void()> between_steps_ = [] {};
  BatchDecider::Parts parts_{.now = [this] { return clock_.Now(); },
                             .rest = [this](Micros) { std::exchange(between_steps_, [] {})(); }};
  BatchDecider decider_{parts_};
};

TEST_F(BatchDeciderTest, ABatchEndsOnceItIsClosedAndNoRowOfItIsLeft) {
  Make("june", 2);
  Add(*a_);
  Add(*b_);
  EXPECT_EQ(Look().closed, 0U) << "it is open";
  Close();
  EXPECT_EQ(Look().ended, 0U);
  EndAll(*a_);
  EXPECT_EQ(Look().ended, 0U) << "one is left in the other shard";
  EndAll(*b_);
  EXPECT_EQ(Look().ended, 1U);
  EXPECT_TRUE(Record().success);
  EXPECT_EQ(Record().at_end, (BatchSums{2, 0, 0}));
  EXPECT_EQ(Callbacks(), 2);
  EXPECT_EQ(a_->Ask("SELECT COUNT(*) FROM tasks WHERE handler='told' AND params='{\"who\":\"me\"}'"), 2);
  EXPECT_EQ(Look().closed, 0U);
  EXPECT_EQ(Callbacks(), 2) << "and never again";
}

// The log has left out that it was closed.
TEST_F(BatchDeciderTest, AShardWithoutClosedBatchesIsAskedAgainOnceSomebodyIsHeardToWrite) {
  BeQuiet();
  Make("june", 1);
  EXPECT_EQ(Look().closed, 0U);
  Close();
  EXPECT_EQ(Look().closed, 0U);
  a_->heard.Write(clock_.Now());
  EXPECT_EQ(Look().closed, 1U);
  clock_.Advance(seconds(4));
  EndAll(*a_);
  EXPECT_EQ(Look().closed, 1U) << "until it has ended";
}

TEST_F(BatchDeciderTest, WhoeverWaitsForTheEndAsksAShardThatIsQuiet) {
  BeQuiet();
  Make("june", 1);
  EXPECT_EQ(Look().closed, 0U);
  Close();
  EXPECT_EQ(Look().closed, 0U);
  EXPECT_EQ(Look(true).closed, 1U);
  EXPECT_EQ(Look().closed, 1U) << "it is known from then on";
}

TEST_F(BatchDeciderTest, AShardThatIsQuietIsAskedNowAndThen) {
  BeQuiet();
  EXPECT_EQ(Look().closed, 0U);
  Make();
  Close();
  clock_.Advance(HeardWrites::kReadAnyway);
  EXPECT_EQ(Look().closed, 1U);
}

TEST_F(BatchDeciderTest, RowsThatPlainSqlAddedAreFoundBeforeTheEnd) {
  Make("june", 1);
  for (const int state : {0, 2, 3}) {
    Add(*a_);
    Close();
    EndAll(*a_);
    Add(*b_, "june", state);
    EXPECT_EQ(Look().ended, 0U) << "as many ended as were announced, but one is there in state " << state;
    EXPECT_EQ(Callbacks(), 0);
    EndAll(*b_);
  }
  EXPECT_EQ(Look().ended, 1U);
  EXPECT_EQ(Record().at_end.succeeded, 6U);
}

TEST_F(BatchDeciderTest, AFailedTaskKeepsABatchFromSuccessAndNotFromItsEnd) {
  Make("june", 2);
  Add(*a_);
  EndAll(*a_);
  Add(*b_);
  EndAll(*b_, "june", "failed");
  Close();
  EXPECT_EQ(Look().ended, 1U);
  EXPECT_FALSE(Record().success);
  EXPECT_EQ(a_->Ask("SELECT COUNT(*) FROM tasks WHERE biz_key='batch/june/end'"), 1);
  EXPECT_EQ(Callbacks(), 1);
}

TEST_F(BatchDeciderTest, AnnouncedRowsThatNeverCameHoldItUpNoLongerThanItsCountsMove) {
  Make("june", 10);
  Add(*a_);
  EndAll(*a_);
  Close();
  EXPECT_EQ(Look().ended, 0U);
  clock_.Advance(seconds(29));
  EXPECT_EQ(Look().ended, 0U);
  clock_.Advance(seconds(1));
  EXPECT_EQ(Look().ended, 1U);
}

// A task of the batch that runs in the table that is walked last ends, and leaves a row in the first.
TEST_F(BatchDeciderTest, WhatATaskAddsBehindAWalkIsSeenByTheCounts) {
  Make("june", 1);
  Add(*a_);
  EndAll(*a_);
  Close();
  AddTwoPages(*b_);
  between_steps_ = [this] {
    a_->Run("UPDATE millrace_counters SET succeeded=succeeded+1 WHERE batch='june'");
    Add(*a_);
  };
  const BatchLook look = Look();
  EXPECT_EQ(look.ended, 0U);
  EXPECT_TRUE(look.cut) << "it is to be looked for at once";
  EXPECT_EQ(Callbacks(), 0);
  EXPECT_EQ(Look().ended, 0U) << "the new row waits";
  EndAll(*a_);
  EXPECT_EQ(Look().ended, 1U);
}

TEST_F(BatchDeciderTest, AShardThatIsNotThereHoldsUpItsBatchesAlone) {
  Make("june", 1);
  Add(*a_);
  EndAll(*a_);
  Close();
  auto made = a_->OpenBatches()->Make({.name = "july", .home = {"a", "tasks"}, .on_end = kCallback});
  ASSERT_TRUE(made && *made);
  Close("july");
  shards_.erase("b");
  EXPECT_EQ(Look().ended, 1U) << "the other has no part in it";
  EXPECT_EQ(Record("july").state, BatchState::Ended);
  EXPECT_EQ(Record().state, BatchState::Closed);
  shards_["b"] = b_;
  EXPECT_EQ(Look().ended, 1U);
}

// A server that takes a connection and answers nothing, until the time limit of each call.
class HangingStore final : public Store {
 public:
  HangingStore(ManualClock& clock, int& calls) : calls_(clock, calls) {}
  std::string Describe() const override { return "hanging:"; }
  Status Ping() override { return {}; }
  std::unique_ptr<TaskStore> OpenTasks() override { return nullptr; }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override { return nullptr; }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros) override { return nullptr; }
  std::unique_ptr<TaskOperations> OpenOperations() override { return nullptr; }
  std::unique_ptr<SchemaStore> OpenSchema() override { return nullptr; }
  std::unique_ptr<PruneStore> OpenPruning() override { return nullptr; }
  std::unique_ptr<OverviewStore> OpenOverview() override { return nullptr; }
  std::unique_ptr<BatchStore> OpenBatches() override { return std::make_unique<Calls>(calls_); }

 private:
  class Calls final : public BatchStore {
   public:
    Calls(ManualClock& clock, int& calls) : clock_(clock), calls_(calls) {}
    Result<bool> Make(const NewBatch&) override { return Hang(); }
    Result<bool> Unmake(const std::string&) override { return Hang(); }
    Result<std::optional<BatchRecord>> Find(const std::string&) override { return Hang(); }
    Result<std::vector<BatchRecord>> List(Which, const std::string&, std::size_t) override { return Hang(); }
    Result<bool> Announce(const std::string&, const BatchPart&, std::int64_t) override { return Hang(); }
    Result<bool> Close(const std::string&, const std::string&) override { return Hang(); }
    Result<bool> End(const BatchEnd&) override { return Hang(); }
    Result<std::map<std::string, BatchSums>> Sums(std::span<const TableName>,
                                                  std::span<const std::string>) override {
      return Hang();
    }
    Result<BatchPage> Walk(const TableName&, std::uint64_t, std::size_t) override { return Hang(); }
    Result<std::vector<BatchRow>> Still(const TableName&, const std::string&,
                                        std::span<const std::uint64_t>) override {
      return Hang();
    }

   private:
    Failure Hang() {
      ++calls_;
      clock_.Advance(seconds(20));
      return Fail(ErrorCode::Unavailable, "no answer");
    }
    ManualClock& clock_;
    int& calls_;
  };
  const Calls calls_;
};

TEST_F(BatchDeciderTest, AShardThatHangsIsAskedSeldom) {
  int calls = 0;
  shards_["b"] = std::make_shared<HangingStore>(clock_, calls);
  (void)Look();
  EXPECT_EQ(calls, 1);
  clock_.Advance(seconds(59));
  (void)Look();
  EXPECT_EQ(calls, 1) << "the others have three quarters of the time";
  clock_.Advance(seconds(1));
  (void)Look();
  EXPECT_EQ(calls, 2);
}

TEST_F(BatchDeciderTest, AWorkerThatIsToEndAsksAShardThatRestsAndKnowsThatItDidNotAnswer) {
  Make("june", 1);
  Add(*a_);
  EndAll(*a_);
  Close();
  int calls = 0;
  shards_["b"] = std::make_shared<HangingStore>(clock_, calls);
  EXPECT_TRUE(Look().unread);
  EXPECT_TRUE(Look(true).unread);
  EXPECT_EQ(calls, 2) << "and once a look, whatever is wanted of it";
  EXPECT_TRUE(Look().unread) << "it rests";
  EXPECT_EQ(calls, 2);
  shards_["b"] = b_;
  const BatchLook answered = Look(true);
  EXPECT_FALSE(answered.unread);
  EXPECT_EQ(answered.ended, 1U);
}

TEST_F(BatchDeciderTest, ATableThatIsGoneHoldsUpItsBatchAlone) {
  Make("june", 1);
  ASSERT_TRUE(a_->OpenBatches()->Announce("june", {"a", "gone"}, 0));
  Add(*a_);
  EndAll(*a_);
  Close();
  auto made = a_->OpenBatches()->Make({.name = "july", .home = {"a", "tasks"}, .on_end = kCallback});
  ASSERT_TRUE(made && *made);
  Close("july");
  EXPECT_EQ(Look().ended, 1U);
  EXPECT_EQ(Record("july").state, BatchState::Ended);
  EXPECT_EQ(Record().state, BatchState::Closed) << "what stands in that table nobody knows";
}

TEST_F(BatchDeciderTest, AHomeWhoseBatchesCanNotBeReadIsAPartOfOthers) {
  Make("june", 1);
  Add(*a_);
  EndAll(*a_);
  Close();
  b_->Run("DROP TABLE millrace_batches");
  EXPECT_EQ(Look().ended, 1U);
}

TEST_F(BatchDeciderTest, WhoeverFollowsADeciderThatWasKilledDecidesTheSame) {
  Make("june", 1);
  Add(*a_);
  EndAll(*a_);
  Close();
  BatchDecider other{parts_};
  EXPECT_EQ(other.Look(shards_, false).ended, 1U);
  EXPECT_EQ(Look().ended, 0U);
  EXPECT_EQ(Callbacks(), 2);
}

TEST_F(BatchDeciderTest, AWorkerThatIsToEndWaitsForRowsThatRunElsewhereAndForNoOthers) {
  Make("june", 2);
  Add(*b_, "june", 2);
  Close();
  EXPECT_EQ(Look(true).pending, 1U);
  EndAll(*b_);
  Add(*b_, "june", 3);
  const BatchLook held = Look(true);
  EXPECT_EQ(held.pending, 0U);
  EXPECT_EQ(held.closed, 1U);
}

// A submit whose rows are on their way into another shard, while somebody closes the batch.
TEST_F(BatchDeciderTest, NoLookHoweverUrgentDecidesBeforeWhatWasAnnouncedHasEnded) {
  Make("june", 2);
  Add(*a_);
  EndAll(*a_);
  Close();
  for (int look = 0; look < 3; ++look) {
    const BatchLook early = Look(true);
    EXPECT_EQ(early.ended, 0U);
    EXPECT_EQ(early.pending, 1U);
    clock_.Advance(seconds(9));
  }
  clock_.Advance(seconds(3));
  EXPECT_EQ(Look(true).ended, 1U) << "it never came";
}

TEST_F(BatchDeciderTest, ACallbackIsATaskAndNothingElse) {
  EXPECT_TRUE(ParseCallback(R"({"handler":"a","params":{"x":1},"priority":0,"in":"5m"})", "k"));
  const std::pair<const char*, const char*> wrong[] = {
      {"[]", "JSON object"},
      {"{", "JSON object"},
      {R"({"params":{}})", "'handler'"},
      {R"({"handler":7})", "'handler'"},
      {R"({"handler":"No Name"})", "handler"},
      {R"({"handler":"a","params":"x"})", "'params'"},
      {R"({"handler":"a","priority":10})", "'priority'"},
      {R"({"handler":"a","in":"soon"})", "'in'"},
      {R"({"handler":"a","prams":{}})", "'prams' (did you mean 'params'?)"}};
  for (const auto& [text, what] : wrong) {
    const auto task = ParseCallback(text, "k");
    ASSERT_FALSE(task) << text;
    EXPECT_THAT(task.error().message, HasSubstr(what)) << text;
  }
  const auto task = ParseCallback(Nested(100'000), "k");
  ASSERT_FALSE(task);
  EXPECT_THAT(task.error().message, HasSubstr("1000 levels"));
}

// As a former version accepted it, or plain SQL wrote it.
TEST_F(BatchDeciderTest, ACallbackThatIsNestedDeeplyIsAddedAsLongAsThereIsStackForIt) {
  for (const char* name : {"june", "july"}) {
    Make(name, 1);
    Add(*a_, name);
    EndAll(*a_, name);
    Close(name);
  }
  a_->Run("UPDATE millrace_batches SET on_success='',on_end='" + Nested(40) + "' WHERE name='june'");
  a_->Run("UPDATE millrace_batches SET on_success='',on_end='" + Nested(100'000) + "' WHERE name='july'");
  EXPECT_EQ(Look().ended, 1U);
  EXPECT_EQ(Record().state, BatchState::Ended);
  EXPECT_EQ(Callbacks(), 1);
  EXPECT_EQ(Record("july").state, BatchState::Closed);
}

TEST_F(BatchDeciderTest, TablesAreNotWalkedForEverForACallbackThatIsRefusedOrCanNotBeRead) {
  Make("june", 1);
  Add(*a_);
  EndAll(*a_);
  Close();
  AddTwoPages(*b_);
  a_->Run("CREATE TRIGGER full BEFORE INSERT ON tasks BEGIN SELECT RAISE(ABORT, 'no room'); END");
  EXPECT_TRUE(Walks());
  EXPECT_FALSE(Walks()) << "it rests";
  clock_.Advance(seconds(30));
  EXPECT_TRUE(Walks());
  a_->Run("DROP TRIGGER full; UPDATE millrace_batches SET on_end='[]' WHERE name='june'");
  clock_.Advance(seconds(30));
  EXPECT_FALSE(Walks()) << "nothing can come of it";
  a_->Run("UPDATE millrace_batches SET on_end='' WHERE name='june'");
  EXPECT_EQ(Look().ended, 1U);
}

// Through the thread, with real time.
class BatchesTest : public BatchDeciderTest {
 protected:
  bool Eventually(const std::function<bool()>& condition) {
    Signal never;
    for (int i = 0; i < 1000; ++i) {
      if (condition()) return true;
      never.WaitFor(std::chrono::milliseconds(10));
    }
    return false;
  }
  IdleSpan IdleNow() { return {since_, BootClock::now()}; }

  std::atomic<bool> leading_{false};
  BootTime since_ = BootClock::now();
  Batches batches_{[this] { return leading_.load(); }};
};

TEST_F(BatchesTest, AWorkerWithNothingLeftToDoHasItsBatchesDecidedBeforeItEnds) {
  Make("june", 1);
  Add(*a_);
  EndAll(*a_);
  Close();
  EXPECT_FALSE(batches_.MayEnd(IdleNow())) << "nobody has looked yet";
  ASSERT_TRUE(Eventually([&] {
    EXPECT_TRUE(batches_.Follow(shards_));
    return !batches_.MayEnd({since_, since_}) && Record().state == BatchState::Ended;
  }));
  const BootTime decided = BootClock::now();
  EXPECT_FALSE(batches_.MayEnd({since_, since_})) << "its scanners have not looked since";
  since_ = decided;
  EXPECT_TRUE(Eventually([&] { return batches_.MayEnd(IdleNow()); }));
}

TEST_F(BatchesTest, WithoutABatchAWorkerEndsAfterOneLook) {
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(batches_.Follow(shards_));
    return batches_.MayEnd({since_, since_});
  }));
}

TEST_F(BatchesTest, AWorkerWithNothingLeftToDoWaitsForAFanOutThatIsUnderWay) {
  const FanOut bill{.schedule = "bill",
                    .firing = WallTime(std::chrono::hours(1)),
                    .handler = "noop",
                    .table = "tasks",
                    .query = "SELECT 1 AS id",
                    .key = "{id}",
                    .zone = "UTC"};
  ASSERT_TRUE(b_->OpenSchedules()->RunNow("bill", {bill.firing, "tasks", bill}, "ann"));
  leading_ = true;  // whose looks of its own are not for that
  Signal never;
  for (int look = 0; look < 5; ++look) {
    ASSERT_TRUE(batches_.Follow(shards_));
    EXPECT_FALSE(batches_.MayEnd(IdleNow()));
    never.WaitFor(std::chrono::milliseconds(250));
  }
  ASSERT_EQ(*b_->OpenFanOuts()->Stop("bill", "ann"), 1U);
  const BootTime stopped = BootClock::now();
  ASSERT_TRUE(Eventually([&] {
    EXPECT_FALSE(batches_.MayEnd({since_, stopped})) << "its scanners have not looked since";
    return batches_.MayEnd(IdleNow());
  }));
}

TEST_F(BatchesTest, AWorkerWithNothingLeftToDoWaitsForAShardThatDoesNotAnswer) {
  int calls = 0;
  shards_["b"] = std::make_shared<HangingStore>(clock_, calls);
  Signal never;
  for (int look = 0; look < 5; ++look) {
    ASSERT_TRUE(batches_.Follow(shards_));
    EXPECT_FALSE(batches_.MayEnd({since_, BootClock::now()}));
    never.WaitFor(std::chrono::milliseconds(250));
  }
  shards_["b"] = b_;
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(batches_.Follow(shards_));
    return batches_.MayEnd({since_, BootClock::now()});
  }));
}

TEST_F(BatchesTest, TheLeaderDecidesByItself) {
  Make("june", 1);
  Add(*a_);
  EndAll(*a_);
  Close();
  leading_ = true;
  ASSERT_TRUE(batches_.Follow(shards_));
  EXPECT_TRUE(Eventually([&] { return Record().state == BatchState::Ended; }));
}

}  // namespace
}  // namespace millrace::engine

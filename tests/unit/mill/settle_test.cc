#include "framework/mill/settle.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "driven_port.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// A shard whose rows have the verdicts of a list, one for each settle, then Settled; locked ones are Busy.
// The strand is driven by the test: it rests whenever it has nothing to do, until Go.
class ScriptedShard final : public Driven<SettlePort> {
 public:
  using Driven::Driven;

  Reply<Result<SettleReport>> Settle(const std::string& life, std::span<const Settlement> batch) override {
    batches.push_back(batch.size());
    if (hangs) return Hang(life, batch);
    if (away) return Result<SettleReport>(Fail(*away, "the connection was lost"));
    return Result<SettleReport>(Verdicts(life, batch));
  }
  // The statement that hangs comes to its end.
  void GoOn() {
    hangs = false;
    auto reply = away ? Result<SettleReport>(Fail(*away, "the connection was lost"))
                      : Result<SettleReport>(std::exchange(hanging_, {}));
    std::exchange(mail_, nullptr)->Deliver(std::move(reply));
  }
  Reply<Result<std::vector<bool>>> StillRunning(const std::string&,
                                                std::span<const Settlement> batch) override {
    if (away) return Result<std::vector<bool>>(Fail(*away, "the connection was lost"));
    std::vector<bool> answer;
    for (const Settlement& one : batch) answer.push_back(running.contains(one.key.id));
    return Result<std::vector<bool>>(std::move(answer));
  }
  std::map<std::uint64_t, std::vector<SettleVerdict>> script;
  std::set<std::uint64_t> locked;
  std::set<std::uint64_t> running;
  std::optional<ErrorCode> away;
  bool hangs = false;  // the next statement, until GoOn
  std::vector<std::size_t> batches;
  std::map<std::uint64_t, std::string> lives;

 private:
  Reply<Result<SettleReport>> Hang(const std::string& life, std::span<const Settlement> batch) {
    hanging_ = Verdicts(life, batch);
    mail_ = std::make_shared<Mail<Result<SettleReport>>>();
    return Reply<Result<SettleReport>>(mail_);
  }
  SettleReport Verdicts(const std::string& life, std::span<const Settlement> batch) {
    SettleReport report;
    report.errors.resize(batch.size());
    for (const Settlement& one : batch) {
      std::vector<SettleVerdict>& left = script[one.key.id];
      if (locked.contains(one.key.id)) left = {SettleVerdict::Busy};
      report.verdicts.push_back(left.empty() ? SettleVerdict::Settled : left.front());
      if (!left.empty()) left.erase(left.begin());
      lives[one.key.id] = life;
    }
    return report;
  }

  SettleReport hanging_;
  std::shared_ptr<Mail<Result<SettleReport>>> mail_;
};

class SettleTest : public testing::Test {
 protected:
  struct Told {
    Settlement settlement;
    SettleVerdict verdict;
  };

  AttemptResult ResultOf(std::uint64_t id, const std::string& life = "w.1") {
    Task task;
    task.key = {"tasks", id};
    const auto lease = std::make_shared<Lease>(life, seconds(10), clock_.Now());
    return {std::make_shared<Attempt>(nullptr, "main", task, lease, false), {.key = task.key}};
  }
  void End(std::uint64_t id) { settler_.Ended(ResultOf(id)); }
  std::vector<std::uint64_t> Known() const {
    std::vector<std::uint64_t> ids;
    for (const Told& told : told_) ids.push_back(told.settlement.key.id);
    return ids;
  }

  ManualClock clock_;
  LiveEngine engine_{EngineConfig{}};
  std::vector<Told> told_;
  ScriptedShard shard_{clock_};
  ScriptedShard second_{clock_};
  Settler settler_{clock_,
                   {shard_, second_},
                   engine_,
                   [this](std::span<const SettledAttempt> settled) {
                     for (const auto& one : settled) told_.push_back({*one.settlement, one.verdict});
                   },
                   [](Attempt&) {}};
  Step<> strand_ = settler_.Run();
  Step<> second_strand_ = settler_.RunSecond();
};

TEST_F(SettleTest, ALockedRowHoldsUpNobodyAndIsTriedAgain) {
  shard_.locked = {7};
  End(7);
  End(2);
  shard_.Go(milliseconds(100));
  EXPECT_THAT(Known(), ElementsAre(2));
  End(3);
  shard_.Go(milliseconds(900));
  EXPECT_THAT(Known(), ElementsAre(2, 3));
  shard_.locked = {};
  shard_.Go(milliseconds(200));
  EXPECT_THAT(Known(), ElementsAre(2, 3, 7));
  EXPECT_EQ(told_.back().verdict, SettleVerdict::Settled);
}

TEST_F(SettleTest, MoreLockedRowsThanABatchHoldUpNothingFresh) {
  EngineConfig engine;
  engine.batch = 10;
  engine_.Set(engine);
  for (std::uint64_t id = 100; id < 125; ++id) {
    shard_.locked.insert(id);
    End(id);
  }
  shard_.Go(seconds(1));
  EXPECT_THAT(told_, SizeIs(0));
  End(1);
  shard_.Go(milliseconds(50));
  EXPECT_THAT(Known(), ElementsAre(1));
  shard_.locked = {};
  shard_.Go(milliseconds(500));
  EXPECT_THAT(told_, SizeIs(26));
}

TEST_F(SettleTest, LockedRowsAreNotAskedForWithoutAPause) {
  shard_.locked = {7};
  End(7);
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.batches, SizeIs(::testing::Le(7)));
}

TEST_F(SettleTest, WhatEndsWhileTheShardIsAwaySettlesTogetherOnceItIsBack) {
  shard_.away = ErrorCode::Unavailable;
  End(1);
  shard_.Go(milliseconds(100));
  End(2);
  shard_.Go(seconds(5));
  EXPECT_THAT(told_, SizeIs(0));
  EXPECT_THAT(shard_.batches, SizeIs(::testing::Le(12)));
  shard_.away.reset();
  shard_.Go(seconds(1));
  EXPECT_THAT(Known(), ElementsAre(1, 2));
  EXPECT_EQ(shard_.batches.back(), 2U);
}

TEST_F(SettleTest, ALostSettleIsReadBackAndWrittenAgainOnlyWhereItStillRuns) {
  shard_.away = ErrorCode::Unknown;
  End(1);
  End(2);
  shard_.Go(milliseconds(10));
  shard_.away.reset();
  shard_.running = {2};
  const std::size_t sent = shard_.batches.size();
  shard_.Go(seconds(1));
  EXPECT_THAT(Known(), ElementsAre(1, 2));
  ASSERT_EQ(shard_.batches.size(), sent + 1);
  EXPECT_EQ(shard_.batches.back(), 1U);
}

TEST_F(SettleTest, ACommitThatTookEffectThoughItsReplyWasLostCountsAsWhatItWas) {
  AttemptResult result = ResultOf(1);
  result.settlement.to = Settlement::To::Waiting;
  result.verify = true;
  result.committed = std::make_shared<const Settlement>(
      Settlement{.key = result.settlement.key, .to = Settlement::To::Succeeded});
  settler_.Ended(std::move(result));
  shard_.Go(milliseconds(10));
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0].settlement.to, Settlement::To::Succeeded);
  EXPECT_THAT(shard_.batches, SizeIs(0));
}

TEST_F(SettleTest, ARefusedRowIsToldAsSuch) {
  shard_.script = {{1, {SettleVerdict::Refused}}};
  End(1);
  shard_.Go(milliseconds(10));
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0].verdict, SettleVerdict::Refused);
}

TEST_F(SettleTest, EachLifeSettlesByItself) {
  settler_.Ended(ResultOf(1, "w.1"));
  settler_.Ended(ResultOf(2, "w.2"));
  settler_.Ended(ResultOf(3, "w.1"));
  shard_.Go(milliseconds(10));
  EXPECT_THAT(Known(), ElementsAre(1, 2, 3));
  EXPECT_EQ(shard_.lives[2], "w.2");
  EXPECT_EQ(shard_.lives[3], "w.1");
}

TEST_F(SettleTest, AnOutcomeThatCannotBeStoredFailsTheTaskAlsoWhereItIsLockedThen) {
  shard_.script = {{1, {SettleVerdict::Broken, SettleVerdict::Busy}}};
  AttemptResult result = ResultOf(1);
  result.settlement.progress = "that may be what it refuses";
  settler_.Ended(std::move(result));
  shard_.Go(seconds(1));
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0].verdict, SettleVerdict::Settled);
  EXPECT_EQ(told_[0].settlement.progress, std::nullopt);
  EXPECT_EQ(told_[0].settlement.to, Settlement::To::Failed);
  EXPECT_EQ(told_[0].settlement.error_class, "bad_outcome");
}

TEST_F(SettleTest, ATaskThatTheDatabaseRefusesWhateverComesOfItHoldsUpNobodyAndIsTriedAgain) {
  shard_.script = {{1, {SettleVerdict::Broken, SettleVerdict::Broken, SettleVerdict::Broken}}};
  End(1);
  End(2);
  shard_.Go(milliseconds(100));
  EXPECT_THAT(Known(), ElementsAre(2));
  shard_.Go(seconds(1));
  EXPECT_THAT(Known(), ElementsAre(2, 1));
  EXPECT_EQ(told_.back().settlement.to, Settlement::To::Failed);
}

TEST_F(SettleTest, TheStrandEndsWhenItIsStoppedAlsoBesideAShardThatIsAway) {
  shard_.away = ErrorCode::Unavailable;
  End(1);
  shard_.Go(milliseconds(10));
  settler_.Stop();
  shard_.Go(Micros(0));
  EXPECT_TRUE(strand_.Done());
}

TEST_F(SettleTest, TheFirstOfABurstWaitForTheRestOfIt) {
  settler_.Coming(3);
  End(1);
  shard_.Go(Micros(0));
  End(2);
  EXPECT_THAT(shard_.batches, SizeIs(0));
  End(3);
  shard_.Go(Micros(0));
  EXPECT_THAT(shard_.batches, ElementsAre(3));
}

TEST_F(SettleTest, ALoneTaskIsSettledAtOnce) {
  settler_.Coming(1);
  End(1);
  shard_.Go(Micros(0));
  EXPECT_THAT(Known(), ElementsAre(1));
}

TEST_F(SettleTest, OneBesideATaskThatRunsForLongWaitsForAMoment) {
  settler_.Coming(2);
  End(1);
  shard_.Go(milliseconds(1));
  EXPECT_THAT(Known(), ElementsAre(1));
}

TEST_F(SettleTest, WhatComesWithoutAnEndIsSettledEveryFewMilliseconds) {
  settler_.Coming(1000);
  for (std::uint64_t id = 1; id <= 100; ++id) {
    End(id);
    shard_.Go(Micros(500));
  }
  EXPECT_THAT(shard_.batches, SizeIs(::testing::AllOf(::testing::Ge(9), ::testing::Le(11))));
}

TEST_F(SettleTest, BesideAStatementThatHangsTheSecondStrandSettlesWhatEndsMeanwhile) {
  shard_.hangs = true;
  End(1);
  shard_.Go(Micros(0));
  End(2);
  second_.Go(milliseconds(100));
  EXPECT_THAT(Known(), ElementsAre(2));
  shard_.GoOn();
  EXPECT_THAT(Known(), ElementsAre(2, 1));
}

TEST_F(SettleTest, WhatTheSecondStrandLosesTheFirstReadsBack) {
  shard_.hangs = true;
  End(1);
  shard_.Go(Micros(0));
  second_.away = ErrorCode::Unknown;
  End(2);
  End(3);
  second_.Go(milliseconds(100));
  EXPECT_THAT(second_.batches, ElementsAre(2));
  shard_.running = {3};
  shard_.GoOn();
  EXPECT_THAT(Known(), ElementsAre(1, 2, 3));
  EXPECT_THAT(shard_.batches, ElementsAre(1, 1)) << "of the two one had ended";
}

TEST_F(SettleTest, AStrandThatRestsSettlesWhatTheOtherCouldNot) {
  shard_.hangs = true;
  End(1);
  shard_.Go(Micros(0));
  second_.hangs = true;
  End(2);
  second_.Go(milliseconds(100));
  shard_.GoOn();
  EXPECT_THAT(Known(), ElementsAre(1));
  second_.away = ErrorCode::Conflict;
  second_.GoOn();
  shard_.Go(Micros(0));
  EXPECT_THAT(Known(), ElementsAre(1, 2));
}

TEST_F(SettleTest, AStrandThatRestsTriesAgainInTimeWhatTheOtherFoundLockedOrRefused) {
  shard_.hangs = second_.hangs = true;
  second_.script = {{2, {SettleVerdict::Busy}}, {3, {SettleVerdict::Broken}}};
  End(1);
  shard_.Go(Micros(0));
  End(2);
  End(3);
  second_.Go(milliseconds(100));
  shard_.GoOn();
  EXPECT_THAT(Known(), ElementsAre(1));
  second_.GoOn();
  shard_.Go(Micros(0));
  EXPECT_THAT(Known(), ElementsAre(1, 3));
  shard_.Go(milliseconds(200));
  EXPECT_THAT(Known(), ElementsAre(1, 3, 2));
}

TEST_F(SettleTest, AfterAFailureTheSecondStrandAsksNothingUntilTheFirstHasAnAnswer) {
  shard_.away = ErrorCode::Unavailable;
  End(1);
  shard_.Go(milliseconds(10));
  for (std::uint64_t id = 2; id < 2000; ++id) End(id);
  second_.Go(seconds(5));
  shard_.Go(seconds(5));
  EXPECT_THAT(second_.batches, SizeIs(0));
}

TEST_F(SettleTest, WithTheFirstTheSecondStrandEnds) {
  settler_.Stop();
  shard_.Go(Micros(0));
  second_.Go(Micros(0));
  EXPECT_TRUE(strand_.Done());
  EXPECT_TRUE(second_strand_.Done());
}

}  // namespace
}  // namespace millrace::engine

#include "framework/mill/breaker_policy.h"

#include <gmock/gmock.h>

#include "framework/mill/attempt.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// A shard of which only the settlements are looked at.
class QuietHost final : public AttemptHost {
 public:
  bool StopAsked() const override { return false; }
  StartDecision StartDecisionOf(const Attempt&) const override { return StartDecision::Start; }
  bool Over() const override { return false; }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros) override { return nullptr; }
  void SaveProgress(Attempt&, std::string) override {}
  void Log(const Attempt&, LogLevel, std::string_view) override {}
  void RoomAgain() override {}
  void Park(AttemptPtr) override {}
  void Ended(AttemptResult) override {}
  void Settled(Attempt&, const Settlement&) override {}
  void Drop(Attempt&) override {}
};

class BreakerPolicyTest : public ::testing::Test {
 protected:
  BreakerPolicyTest() {
    BreakerRules rules;
    rules.minimum = 3;
    rules.classes = {"timeout"};
    policy_ = std::make_shared<BreakerPolicy>("pay", rules);
    gate_ = std::make_shared<TypeGate>("pay", StartPolicies{policy_});
  }

  AttemptPtr Claimed() {
    Task task;
    task.key = {"tasks", ++ids_};
    task.handler = "pay";
    auto attempt = std::make_shared<Attempt>(host_, "main", task, nullptr, false);
    attempt->gate = gate_;
    return attempt;
  }
  bool MayStart(const AttemptPtr& attempt) { return !InsteadOfStart(*attempt, retry_, now_); }
  Settlement EndWith(const AttemptPtr& attempt, const Outcome& outcome) {
    return EndOf(*attempt, retry_, outcome, 0.5, now_);
  }
  Settlement TimeOut(const AttemptPtr& attempt) {
    return EndWith(attempt, FailedOnce("no answer", "timeout"));
  }
  static Outcome Done() { return {}; }
  void Open() {
    for (int i = 0; i < 3; ++i) {
      const AttemptPtr attempt = Claimed();
      ASSERT_TRUE(MayStart(attempt));
      EXPECT_TRUE(TimeOut(attempt).failed_attempt) << "it helped to open";
    }
    ASSERT_FALSE(gate_->Open(now_, {}));
  }

  const std::shared_ptr<QuietHost> host_ = std::make_shared<QuietHost>();
  const RetryPolicy retry_;
  std::shared_ptr<BreakerPolicy> policy_;
  std::shared_ptr<TypeGate> gate_;
  std::uint64_t ids_ = 0;
  BootTime now_{seconds(1000)};
};

TEST_F(BreakerPolicyTest, OpenItLetsNothingBeClaimedOrStarted) {
  const AttemptPtr queued = Claimed();
  Open();
  EXPECT_EQ(gate_->ClaimRoom(now_), 0U);
  EXPECT_EQ(gate_->HeldBy(now_, {}), "breaker");
  const auto instead = InsteadOfStart(*queued, retry_, now_);
  ASSERT_TRUE(instead);
  EXPECT_EQ(instead->kind, OutcomeKind::GiveBack);
  EXPECT_FALSE(EndWith(queued, *instead).failed_attempt);
}

TEST_F(BreakerPolicyTest, ACallThatWasUnderWayWhenItOpenedGoesBackUncharged) {
  const AttemptPtr running = Claimed();
  ASSERT_TRUE(MayStart(running));
  Open();
  const Settlement end = TimeOut(running);
  EXPECT_EQ(end.to, Settlement::To::Waiting);
  EXPECT_FALSE(end.failed_attempt);
  EXPECT_EQ(end.delay, std::nullopt) << "it is among the first once it closes";
  EXPECT_THAT(end.text, HasSubstr("no answer"));
}

TEST_F(BreakerPolicyTest, ProbesAreNotChargedAndUseDifferentTasks) {
  Open();
  for (int turn = 0; turn < 3; ++turn) {
    now_ += seconds(2);
    EXPECT_EQ(gate_->ClaimRoom(now_), 1U);
    const AttemptPtr probe = Claimed();
    ASSERT_TRUE(MayStart(probe));
    EXPECT_FALSE(MayStart(Claimed())) << "one at a time";
    const Settlement end = TimeOut(probe);
    EXPECT_FALSE(end.failed_attempt);
    EXPECT_GE(end.delay, Micros(seconds(2))) << "others are tried before it";
  }
}

TEST_F(BreakerPolicyTest, AProbeThatSucceedsLetsEverythingThrough) {
  Open();
  now_ += seconds(2);
  const AttemptPtr probe = Claimed();
  ASSERT_TRUE(MayStart(probe));
  EXPECT_EQ(EndWith(probe, Done()).to, Settlement::To::Succeeded);
  EXPECT_TRUE(gate_->Open(now_, {}));
  EXPECT_TRUE(MayStart(Claimed()));
}

TEST_F(BreakerPolicyTest, AFailureOfItsOwnIsChargedInAProbeToo) {
  Open();
  now_ += seconds(2);
  const AttemptPtr probe = Claimed();
  ASSERT_TRUE(MayStart(probe));
  EXPECT_TRUE(EndWith(probe, FailedForGood("no such customer", "http_404")).failed_attempt);
}

// As with `on_exception` hold: the exception has become a hold before the breaker hears of it.
TEST_F(BreakerPolicyTest, AFailureThatHoldsItsTaskCountsAsOne) {
  Outcome held;
  held.kind = OutcomeKind::Hold;
  held.text = "no answer";
  held.error_class = "timeout";
  for (int i = 0; i < 3; ++i) {
    const AttemptPtr attempt = Claimed();
    ASSERT_TRUE(MayStart(attempt));
    EXPECT_EQ(EndWith(attempt, held).to, Settlement::To::Held);
  }
  EXPECT_FALSE(gate_->Open(now_, {}));
  now_ += seconds(2);
  const AttemptPtr probe = Claimed();
  ASSERT_TRUE(MayStart(probe));
  EXPECT_EQ(EndWith(probe, held).to, Settlement::To::Waiting)
      << "a probe's failure is nobody's but the partner's";
}

TEST_F(BreakerPolicyTest, ATaskThatItsHandlerHoldsSaysNothingOfThePartner) {
  Outcome held;
  held.kind = OutcomeKind::Hold;
  for (int i = 0; i < 3; ++i) {
    const AttemptPtr attempt = Claimed();
    ASSERT_TRUE(MayStart(attempt));
    EXPECT_EQ(EndWith(attempt, held).to, Settlement::To::Held);
  }
  EXPECT_TRUE(gate_->Open(now_, {}));
  EXPECT_EQ(policy_->View(now_).calls, 0U);
}

TEST_F(BreakerPolicyTest, AnEndThatIsAskedForTwiceCountsOnce) {
  for (int i = 0; i < 2; ++i) {
    const AttemptPtr attempt = Claimed();
    ASSERT_TRUE(MayStart(attempt));
    TimeOut(attempt);
    TimeOut(attempt);
  }
  EXPECT_TRUE(gate_->Open(now_, {}));
  EXPECT_EQ(policy_->View(now_).calls, 2U);
}

TEST_F(BreakerPolicyTest, AProbeThatIsPutOffTakesItsTurn) {
  Open();
  now_ += seconds(2);
  const AttemptPtr probe = Claimed();
  ASSERT_TRUE(MayStart(probe));
  Outcome later;
  later.kind = OutcomeKind::Snooze;
  EndWith(probe, later);
  EXPECT_FALSE(MayStart(Claimed()));
  now_ += seconds(2);
  EXPECT_TRUE(MayStart(Claimed()));
}

TEST_F(BreakerPolicyTest, AProbeThatIsGoneWithoutAnEndLeavesItsPlace) {
  Open();
  now_ += seconds(2);
  const AttemptPtr probe = Claimed();
  ASSERT_TRUE(MayStart(probe));
  EXPECT_FALSE(MayStart(Claimed()));
  policy_->Gone(probe->pass, now_);
  EXPECT_TRUE(MayStart(Claimed()));
}

TEST_F(BreakerPolicyTest, OneThatHasPassedIsNotAskedAgain) {
  const AttemptPtr again = Claimed();
  ASSERT_TRUE(MayStart(again));
  Open();
  EXPECT_TRUE(MayStart(again)) << "its call failed as a whole, and it is run again";
}

TEST_F(BreakerPolicyTest, ANewConfigurationKeepsTheStateOfWhatStays) {
  Config config;
  config.handlers["pay"].breaker = BreakerConfig{};
  config.handlers["mail"].breaker = BreakerConfig{};
  config.handlers["plain"];
  const BreakersByType first = BreakersOf(config, {});
  ASSERT_EQ(first.size(), 2U);
  first.at("pay")->SetHand(BreakerHand::Open, now_);
  config.handlers.erase("mail");
  config.handlers["pay"].breaker->probes = 5;
  const BreakersByType next = BreakersOf(config, first);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_TRUE(next.at("pay")->View(now_).open);
}

}  // namespace
}  // namespace millrace::engine

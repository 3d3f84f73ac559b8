// What is claimed already, and has not started, once its type's policies change or close: a worker's mill, on
// a real store, in a time that the test moves.
#include <gmock/gmock.h>

#include "framework/mill/permits.h"
#include "framework/mill/starts.h"
#include "round_worker.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Answers = std::vector<PermitAnswer>;

// A worker without a home for permits: it holds none.
class Homeless final : public Driven<PermitPort> {
 public:
  using Driven::Driven;
  std::vector<std::string> Shards() override { return {}; }
  std::shared_ptr<Lease> Life(const std::string&) override { return nullptr; }
  bool OthersLive(const std::string&) override { return false; }
  Reply<Result<std::string>> Home(const std::string&) override { return Result<std::string>(""); }
  Reply<Status> NameHome(const std::string&, const std::string&) override { return Status{}; }
  Reply<Result<std::vector<Permit>>> Permits(const std::string&, const std::vector<std::string>&) override {
    return Result<std::vector<Permit>>();
  }
  Reply<Status> Make(const std::string&, const std::string&, std::uint32_t) override { return Status{}; }
  Reply<Result<Answers>> Change(const std::string&, const std::string&,
                                const std::vector<PermitChange>&) override {
    return Result<Answers>();
  }
};

// A shard that is the home of permits, and has one.
class OneHome final : public Driven<PermitPort> {
 public:
  explicit OneHome(ManualClock& clock)
      : Driven(clock), life_(std::make_shared<Lease>("w.1", hours(1), clock.Now())) {
    life_->Renewed(clock.Now());
  }
  std::vector<std::string> Shards() override { return {"home"}; }
  std::shared_ptr<Lease> Life(const std::string&) override { return life_; }
  bool OthersLive(const std::string&) override { return false; }
  Reply<Result<std::string>> Home(const std::string&) override { return Result<std::string>("home"); }
  Reply<Status> NameHome(const std::string&, const std::string&) override { return Status{}; }
  Reply<Result<std::vector<Permit>>> Permits(const std::string&, const std::vector<std::string>&) override {
    return Result<std::vector<Permit>>(std::vector<Permit>{row_});
  }
  Reply<Status> Make(const std::string&, const std::string&, std::uint32_t) override { return Status{}; }
  Reply<Result<Answers>> Change(const std::string&, const std::string& incarnation,
                                const std::vector<PermitChange>& changes) override {
    for (const PermitChange& change : changes) {
      row_.holder = change.to == PermitChange::To::Held ? incarnation : "";
      row_.turn = change.turn + 1;
    }
    return Result<Answers>(Answers(changes.size(), PermitAnswer::Done));
  }

 private:
  const std::shared_ptr<Lease> life_;
  Permit row_{.handler = "mail", .number = 1};
};

class GatesTest : public ::testing::Test {
 protected:
  GatesTest() {
    worker_.runner.takes = hours(24);
    worker_.admission().HoldBy(permits_);
  }
  void Follow(HandlerConfig mail) {
    auto config = std::make_shared<Config>();
    config->handlers["mail"] = std::move(mail);
    worker_.admission().Follow(std::move(config));
  }
  static HandlerConfig Limited(LimitConfig limit) {
    HandlerConfig mail;
    mail.limit = limit;
    return mail;
  }
  // From now on, or until now.
  HandlerConfig Hours(Micros from, Micros to) const {
    const auto minute = [this](Micros after) {
      const auto at = (clock_.WallNow() + after).time_since_epoch();
      return static_cast<std::uint32_t>(std::chrono::floor<minutes>(at).count() % (24 * 60));
    };
    HandlerConfig mail;
    mail.hours = HoursConfig{minute(from), minute(to)};
    return mail;
  }
  // Three tasks, which wait in the worker's hands.
  void Claim() {
    NewTask task;
    task.handler = "mail";
    ASSERT_TRUE(store_.OpenOperations()->Submit("tasks", std::vector<NewTask>(3, task)));
    store_.Run("UPDATE tasks SET slice=1");
    worker_.Work();
    ASSERT_THAT(worker_.runner.Taken(), SizeIs(3));
  }
  // The shard is served no more, and its database is gone: what has ended there is never settled.
  void EndMill() {
    worker_.LoseSettles();
    worker_.mill().Retire();
    worker_.Work();
    worker_.mill().Stop();
    worker_.Work();
  }
  std::vector<StartDecision> Decisions() const {
    std::vector<StartDecision> decisions;
    for (const AttemptPtr& attempt : worker_.runner.Taken())
      decisions.push_back(attempt->host->StartDecisionOf(*attempt));
    return decisions;
  }
  // What each ends with in place of its start.
  std::vector<std::optional<OutcomeKind>> Instead() const {
    std::vector<std::optional<OutcomeKind>> kinds;
    for (const AttemptPtr& attempt : worker_.runner.Taken()) {
      const auto outcome = InsteadOfStart(*attempt, {}, clock_.Now());
      kinds.push_back(outcome ? std::optional(outcome->kind) : std::nullopt);
    }
    return kinds;
  }

  ManualClock clock_;
  ScratchStore store_{clock_};
  RoundWorker worker_{clock_, store_, "w", {}};
  Registry metrics_;
  Homeless home_{clock_};
  Permits permits_{{clock_, worker_.runner, metrics_, [] {}, 1}, home_};
};

TEST_F(GatesTest, WhatWasClaimedBeforeAFewAtOnceMayRunDoesNotStartWithoutAPermit) {
  Claim();
  EXPECT_THAT(Instead(), Each(std::nullopt));
  Follow(Limited({.concurrency = 1}));
  EXPECT_THAT(Instead(), Each(OutcomeKind::GiveBack));
}

TEST_F(GatesTest, NorDoesWhatWasClaimedUnderALimitOfAnotherKind) {
  Follow(Limited({.rate = 100}));
  Claim();
  EXPECT_THAT(Instead(), Each(std::nullopt));
  Follow(Limited({.rate = 100, .concurrency = 1}));
  EXPECT_THAT(Instead(), Each(OutcomeKind::GiveBack));
}

TEST_F(GatesTest, WhatWasClaimedBeforeARateIsNotCountedByThatAndGoesBack) {
  Claim();
  Follow(Limited({.rate = 1}));
  EXPECT_THAT(Instead(), Each(OutcomeKind::GiveBack));
  Follow({});
  EXPECT_THAT(Instead(), Each(std::nullopt)) << "there is no limit any more";
}

TEST_F(GatesTest, WhatIsClaimedAndHasNoShareAnyMoreGoesBack) {
  const auto share = [&](LimitShare of) {
    worker_.admission().FollowShares(std::make_shared<const LimitShares>(LimitShares{{"mail", of}}));
  };
  Follow(Limited({.rate = 100}));
  share({.rate = 50});
  Claim();
  EXPECT_TRUE(worker_.admission().TakeClosed()) << "it has a gate that it had not";
  EXPECT_FALSE(worker_.admission().TakeClosed());
  share({});
  EXPECT_TRUE(worker_.admission().TakeClosed());
  EXPECT_THAT(Decisions(), Each(StartDecision::Withdrawn));
  share({.rate = 1});
  EXPECT_THAT(Decisions(), Each(StartDecision::Start));
}

TEST_F(GatesTest, ALimitThatIsSetAgainCountsWhatStillRuns) {
  const LimitConfig limit{.concurrency = 3};
  worker_.admission().FollowShares(
      std::make_shared<const LimitShares>(LimitShares{{"mail", {.concurrency = 3}}}));
  Follow(Limited(limit));
  Claim();
  std::vector<AttemptPtr> attempts = worker_.runner.Taken();
  ASSERT_THAT(TakeStarts(attempts, clock_.Now()), IsEmpty());
  Follow({});
  Follow(Limited(limit));
  EXPECT_EQ(worker_.admission().Limits().at("mail").use.running, 3u);
  EXPECT_EQ(worker_.admission().Of("mail")->TakeStarts(1, clock_.Now()), 0u);
}

// The cluster has one turn at a time: whoever takes it and may start nothing keeps it from those who might.
TEST_F(GatesTest, AProbeIsAskedForByWhoHasAShareOfTheRate) {
  HandlerConfig mail = Limited({.rate = 100});
  mail.breaker = BreakerConfig{.minimum = 1};
  const auto share = [&](LimitShare of) {
    worker_.admission().FollowShares(std::make_shared<const LimitShares>(LimitShares{{"mail", of}}));
  };
  share({});
  Follow(mail);
  const auto breaker = worker_.admission().Breakers().at("mail");
  const BreakerWord word{.opening = 7, .turn = 1, .why = "calls fail"};
  breaker->Follow(true, &word, clock_.Now());
  clock_.Advance(seconds(5));
  breaker->Follow(true, &word, clock_.Now());
  EXPECT_EQ(worker_.admission().Room("mail"), 0u);
  EXPECT_EQ(breaker->Wish(clock_.Now()).wish, BreakerWish::None);
  share({.rate = 50});
  EXPECT_EQ(worker_.admission().Room("mail"), 0u);
  EXPECT_EQ(breaker->Wish(clock_.Now()).wish, BreakerWish::Probe);
}

TEST_F(GatesTest, WhoseQueueIsFullAsksForNoShareAndNoPermit) {
  Follow(Limited({.rate = 100}));
  worker_.admission().FollowShares(std::make_shared<const LimitShares>(LimitShares{{"mail", {}}}));
  ASSERT_TRUE(store_.OpenOperations()->Submit("tasks", std::vector<NewTask>{{.handler = "mail"}}));
  store_.Run("UPDATE tasks SET slice=1");
  worker_.runner.most = 0;
  worker_.Work();
  EXPECT_FALSE(worker_.admission().Limits().at("mail").use.wants_rate);
  worker_.runner.most = 1;
  clock_.Advance(seconds(10));
  worker_.Work();
  EXPECT_TRUE(worker_.admission().Limits().at("mail").use.wants_rate);
}

TEST_F(GatesTest, WhoMayNotClaimAsksForNoShareAndNoPermit) {
  Follow(Limited({.rate = 100}));
  worker_.admission().FollowShares(std::make_shared<const LimitShares>(LimitShares{{"mail", {}}}));
  ASSERT_TRUE(store_.OpenOperations()->Submit("tasks", std::vector<NewTask>{{.handler = "mail"}}));
  store_.Run("UPDATE tasks SET slice=1");
  worker_.Pause({"worker:w"});
  worker_.Work();
  EXPECT_FALSE(worker_.admission().Limits().at("mail").use.wants_rate);
  worker_.Pause({});
  clock_.Advance(seconds(10));
  worker_.Work();
  EXPECT_TRUE(worker_.admission().Limits().at("mail").use.wants_rate);
}

// It took its start, or its permit was under way to it, when what was queued was sent back.
TEST_F(GatesTest, WhatHasAStartOfPoliciesThatAreGoneGoesBack) {
  Follow(Limited({.rate = 100}));
  Claim();
  std::vector<AttemptPtr> starting = worker_.runner.Taken();
  ASSERT_THAT(TakeStarts(starting, clock_.Now()), SizeIs(0));
  Follow(Hours(hours(1), hours(2)));
  EXPECT_THAT(Instead(), Each(OutcomeKind::GiveBack));
}

TEST_F(GatesTest, ALimitThatIsRaisedTakesNothingOutOfTheQueue) {
  Follow(Limited({.rate = 100}));
  Claim();
  Follow(Limited({.rate = 200}));
  EXPECT_THAT(Instead(), Each(std::nullopt));
}

TEST_F(GatesTest, WhatHasItsPermitStarts) {
  Claim();
  Follow(Limited({.concurrency = 1}));
  for (const AttemptPtr& attempt : worker_.runner.Taken()) {
    attempt->gate = worker_.admission().Of("mail");
    attempt->home = std::make_shared<Lease>("w.1", minutes(1), clock_.Now());
    attempt->home->Renewed(clock_.Now());
  }
  EXPECT_THAT(Instead(), Each(std::nullopt));
  worker_.runner.Taken().front()->stop_by.store(1);
  EXPECT_EQ(Decisions().front(), StartDecision::Withdrawn) << "its permit is in doubt";
  clock_.Advance(seconds(40));
  EXPECT_THAT(Decisions(), Each(StartDecision::Withdrawn)) << "the beat that holds them is late";
}

TEST_F(GatesTest, WhatHoldsAPermitIsNotParked) {
  Claim();
  Follow(Hours(hours(1), hours(2)));
  const AttemptPtr attempt = worker_.runner.Taken().front();
  attempt->home = std::make_shared<Lease>("w.1", minutes(1), clock_.Now());
  attempt->host->Park(attempt);
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(milliseconds(100));
    worker_.Work();
  }
  EXPECT_EQ(store_.Ask("SELECT count(*) FROM tasks WHERE state=0"), 1) << "others wait for its permit";
}

TEST_F(GatesTest, AStartThatIsReturnedIsThereAgain) {
  Follow(Limited({.rate = 1, .burst = 3}));
  Claim();
  std::vector<AttemptPtr> starting = worker_.runner.Taken();
  ASSERT_THAT(TakeStarts(starting, clock_.Now()), SizeIs(0));
  ReturnStart(*starting.front());
  starting.resize(1);
  EXPECT_THAT(TakeStarts(starting, clock_.Now()), SizeIs(0));
}

TEST_F(GatesTest, AProbeThatGoesBackUnstartedLeavesItsPlaceToAnother) {
  HandlerConfig mail;
  mail.breaker.emplace();
  Follow(mail);
  Claim();
  const auto breaker = worker_.admission().Breakers().at("mail");
  breaker->SetHand(BreakerHand::Open, clock_.Now());
  breaker->SetHand(BreakerHand::Auto, clock_.Now());
  const std::vector<AttemptPtr> taken = worker_.runner.Taken();
  EXPECT_FALSE(InsteadOfStart(*taken[0], {}, clock_.Now())) << "it is the probe";
  EXPECT_TRUE(InsteadOfStart(*taken[1], {}, clock_.Now()));
  EXPECT_EQ(Decisions()[0], StartDecision::Start) << "it has passed, and may be run again";
  EXPECT_EQ(Decisions()[1], StartDecision::Withdrawn);
  taken[0]->host->Drop(*taken[0]);
  EXPECT_FALSE(InsteadOfStart(*taken[1], {}, clock_.Now()));
}

TEST_F(GatesTest, WhatGoesBackUnstartedIsCountedNowhere) {
  Follow(Hours(-hours(1), hours(1)));
  Claim();
  const auto gate = worker_.admission().Of("mail");
  EXPECT_EQ(gate->Waiting(), 3u);
  Follow(Hours(hours(1), hours(2)));
  for (const AttemptPtr& attempt : worker_.runner.Taken()) GiveBack(attempt);
  worker_.Work();
  EXPECT_EQ(store_.Ask("SELECT count(*) FROM tasks WHERE state=0 AND failures=0"), 3);
  EXPECT_EQ(gate->Waiting(), 0u);
  EXPECT_TRUE(worker_.admission().TakeClosed());
  EXPECT_FALSE(worker_.admission().TakeClosed()) << "none is in the queue";
}

TEST_F(GatesTest, HoursThatComeLaterHoldForWhatIsClaimedAlready) {
  Claim();
  Follow(Hours(hours(1), hours(2)));
  EXPECT_THAT(Decisions(), Each(StartDecision::Withdrawn));
  EXPECT_THAT(Instead(), Each(OutcomeKind::GiveBack));
}

// A claim that was under way when they ended comes later than the sweep.
TEST_F(GatesTest, WhenHoursEndWhatHasNotBegunIsWithdrawnAndToldOfUntilItIsBack) {
  Follow(Hours(-hours(1), hours(1)));
  Claim();
  EXPECT_TRUE(worker_.admission().TakeClosed()) << "it has a gate that it had not";
  EXPECT_FALSE(worker_.admission().TakeClosed());
  EXPECT_THAT(Decisions(), Each(StartDecision::Start));
  clock_.Advance(hours(1));
  EXPECT_TRUE(worker_.admission().TakeClosed());
  EXPECT_TRUE(worker_.admission().TakeClosed()) << "they are in the queue still";
  EXPECT_THAT(Decisions(), Each(StartDecision::Withdrawn));
  EXPECT_FALSE(worker_.admission().Open("mail"));
  worker_.runner.Taken().front()->has_start.store(true);
  EXPECT_EQ(Decisions().front(), StartDecision::Start) << "it has begun";
}

TEST_F(GatesTest, WhatIsGivenBackAndNeverSettledTakesNoRoomOfItsType) {
  Follow(Limited({.rate = 6, .burst = 1}));
  Claim();
  ASSERT_EQ(worker_.admission().Room("mail"), 0u);
  const std::vector<AttemptPtr> attempts = worker_.runner.Taken();
  GiveBack(attempts[0]);
  attempts[1]->host->Park(attempts[1]);
  EndMill();
  EXPECT_EQ(worker_.admission().Of("mail")->Waiting(), 2u);
  worker_.mill().attempts().Close();
  EXPECT_EQ(worker_.admission().Of("mail")->Waiting(), 1u) << "what was parked is nobody's any more";
  attempts[2]->host->Ended({attempts[2], Settle({}, attempts[2]->task, GivenBack(), 0)});
  EXPECT_EQ(worker_.admission().Of("mail")->Waiting(), 0u) << "a thread came back late";
  EXPECT_GT(worker_.admission().Room("mail"), 0u);
}

TEST_F(GatesTest, WhatHasAPlaceAndIsNeverSettledGivesItBack) {
  worker_.admission().FollowShares(
      std::make_shared<const LimitShares>(LimitShares{{"mail", {.concurrency = 3}}}));
  Follow(Limited({.concurrency = 3}));
  Claim();
  std::vector<AttemptPtr> attempts = worker_.runner.Taken();
  ASSERT_THAT(TakeStarts(attempts, clock_.Now()), IsEmpty());
  attempts = worker_.runner.Taken();
  GiveBack(attempts[0]);
  EndMill();
  worker_.mill().attempts().Close();
  EXPECT_EQ(worker_.admission().Limits().at("mail").use.running, 2u);
  EXPECT_EQ(worker_.admission().Of("mail")->TakeStarts(2, clock_.Now()), 1u);
}

TEST_F(GatesTest, WhatHasAPermitAndIsNeverSettledLeavesItToTheNext) {
  OneHome home(clock_);
  Permits permits({clock_, worker_.runner, metrics_, [this] { worker_.mill().attempts().RoomAgain(); }, 1},
                  home);
  const Step<> strand = permits.Run();
  const auto go = [&] {
    for (int i = 0; i < 50; ++i) {
      clock_.Advance(milliseconds(20));
      home.Go(Micros(0));
      worker_.Work();
    }
  };
  worker_.admission().HoldBy(permits);
  Follow(Limited({.concurrency = 1}));
  ASSERT_TRUE(store_.OpenOperations()->Submit("tasks", std::vector<NewTask>{{.handler = "mail"}}));
  store_.Run("UPDATE tasks SET slice=1");
  go();
  ASSERT_THAT(worker_.runner.Taken(), SizeIs(1));
  const AttemptPtr first = worker_.runner.Taken().front();
  ASSERT_TRUE(first->home);
  GiveBack(first);
  EndMill();
  const auto next = std::make_shared<Attempt>(first->host, "home", first->task, first->lease, false);
  std::vector<AttemptPtr> one{next};
  ASSERT_TRUE(permits.Take("mail", one));
  go();
  EXPECT_THAT(worker_.runner.Taken(), ElementsAre(first, next));
}

// It waits for a start of that policy, which may never come.
TEST_F(GatesTest, WhatIsQueuedUnderAPolicyThatIsGoneGoesBack) {
  Follow(Hours(-hours(1), hours(1)));
  Claim();
  clock_.Advance(hours(1));
  Follow({});
  EXPECT_THAT(Decisions(), Each(StartDecision::Withdrawn));
  EXPECT_TRUE(worker_.admission().TakeClosed());
}

}  // namespace
}  // namespace millrace::engine

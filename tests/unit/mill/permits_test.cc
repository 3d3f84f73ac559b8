#include "framework/mill/permits.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <set>

#include "driven_port.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using PermitTo = PermitChange::To;

constexpr Micros kLease = seconds(10);

// The rows of one home, as the database keeps them.
struct Home {
  std::map<std::pair<std::string, std::uint32_t>, Permit> rows;
  std::map<std::string, bool> dead;  // by incarnation
  std::map<std::string, std::string> named;

  bool Write(const std::string& who, const PermitChange& change) {
    const auto row = rows.find({change.handler, change.number});
    if (row == rows.end() || row->second.turn != change.turn) return false;
    Permit& permit = row->second;
    if (change.to == PermitTo::Held) {
      if (dead[who] || (!permit.holder.empty() && permit.holder != who && !dead[permit.holder])) return false;
      permit.holder = who;
      permit.task = change.task;
      permit.attempt = change.attempt;
    } else if (change.to == PermitTo::Free) {
      if (permit.holder != who) return false;
      permit.holder.clear();
      permit.task.clear();
    }
    ++permit.turn;
    return true;
  }
  const Permit& Row(std::uint32_t number = 1) const { return rows.at({"mail", number}); }
};

class ScriptedHome final : public Driven<PermitPort> {
 public:
  ScriptedHome(ManualClock& clock, struct Home& home, std::string name)
      : Driven(clock), home_(home), life(std::make_shared<Lease>(std::move(name), kLease, clock.Now())) {}

  std::vector<std::string> Shards() override { return shards; }
  std::string AddressOf(const std::string&) override { return address; }
  std::shared_ptr<Lease> Life(const std::string&) override { return life; }
  bool OthersLive(const std::string&) override { return others; }
  Reply<Result<std::string>> Home(const std::string& shard) override {
    if (silent == shard) return Result<std::string>(Fail(ErrorCode::Unavailable, "away"));
    return Result<std::string>(home_.named[shard]);
  }
  Reply<Status> NameHome(const std::string& shard, const std::string& home) override {
    if (before_naming) std::exchange(before_naming, nullptr)();
    if (home_.named[shard].empty()) home_.named[shard] = home;
    return Status{};
  }
  Reply<Result<std::vector<Permit>>> Permits(const std::string&,
                                             const std::vector<std::string>& handlers) override {
    if (away) return Result<std::vector<Permit>>(Fail(*away, "away"));
    ++reads;
    std::vector<Permit> found;
    for (const auto& [place, row] : home_.rows) {
      if (std::find(handlers.begin(), handlers.end(), place.first) == handlers.end()) continue;
      found.push_back(row);
      found.back().lapsed = !row.holder.empty() && home_.dead[row.holder];
    }
    return Result<std::vector<Permit>>(std::move(found));
  }
  Reply<Status> Make(const std::string&, const std::string& handler, std::uint32_t count) override {
    for (std::uint32_t number = 1; number <= count; ++number) {
      home_.rows.try_emplace({handler, number}, Permit{.handler = handler, .number = number});
    }
    return Status{};
  }
  using Answers = std::vector<PermitAnswer>;
  Reply<Result<Answers>> Change(const std::string&, const std::string& incarnation,
                                const std::vector<PermitChange>& changes) override {
    if (away) return Result<Answers>(Fail(*away, "away"));
    ++writes;
    if (loses) {
      late = {incarnation, changes};
      const bool lands = std::exchange(loses, nullptr)();
      if (lands) (void)All(incarnation, changes);
      return Result<Answers>(Fail(ErrorCode::Unknown, "the reply was lost"));
    }
    return Result<Answers>(All(incarnation, changes));
  }
  // What was lost lands after all.
  Answers LandLate() { return All(late.first, late.second); }

 private:
  Answers All(const std::string& incarnation, const std::vector<PermitChange>& changes) {
    Answers answers;
    for (const PermitChange& change : changes) {
      if (locked.contains({change.handler, change.number})) {
        answers.push_back(PermitAnswer::Locked);
      } else {
        answers.push_back(home_.Write(incarnation, change) ? PermitAnswer::Done : PermitAnswer::Refused);
      }
    }
    return answers;
  }
  struct Home& home_;

 public:
  std::shared_ptr<Lease> life;
  bool others = true;
  std::vector<std::string> shards{"main"};
  std::string address = "mysql://here";
  std::string silent;                   // does not say what the home is
  std::function<void()> before_naming;  // once
  std::optional<ErrorCode> away;
  std::set<std::pair<std::string, std::uint32_t>> locked;  // types and numbers
  std::function<bool()> loses;  // the next reply is lost; whether the statement landed
  std::pair<std::string, std::vector<PermitChange>> late;
  int reads = 0;
  int writes = 0;
};

class PermittingShard final : public AttemptHost {
 public:
  bool StopAsked() const override { return false; }
  StartDecision StartDecisionOf(const Attempt& attempt) const override {
    ++looks_at_home;
    return DecisionBeforePermit(attempt);
  }
  StartDecision DecisionBeforePermit(const Attempt&) const override {
    if (asked) asked();
    return decision;
  }
  bool Over() const override { return false; }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros) override { return nullptr; }
  void SaveProgress(Attempt&, std::string) override {}
  void Log(const Attempt&, LogLevel, std::string_view) override {}
  void RoomAgain() override {}
  void Park(AttemptPtr) override {}
  void Ended(AttemptResult result) override { back.push_back(result.attempt->task.key.id); }
  void Settled(Attempt&, const Settlement&) override {}
  void Drop(Attempt&) override {}

  StartDecision decision = StartDecision::Start;
  std::function<void()> asked;
  mutable int looks_at_home = 0;
  std::vector<std::uint64_t> back;
};

// One worker: its permits, and what of them runs.
class Worker final : public Runner {
 public:
  Worker(ManualClock& clock, Home& home, const std::string& name, std::uint64_t seed)
      : clock_(clock),
        port(clock, home, name),
        permits({clock, *this, metrics_, [this] { ++room_again; }, seed}, port),
        strand_(permits.Run()) {}

  bool Runs(const std::string&) override { return true; }
  LaneRoom Room(const std::string&, const AttemptHost&, std::uint32_t) override { return {100}; }
  Micros BusyFor() override { return {}; }
  bool Take(const std::string&, std::vector<AttemptPtr>& attempts) override {
    for (AttemptPtr& attempt : attempts) running.push_back(std::move(attempt));
    return true;
  }

  void Claim(std::uint64_t id, const std::string& type = "mail") {
    Task task;
    task.key = {"tasks", id};
    task.handler = type;
    task.attempt = 1;
    std::vector<AttemptPtr> one{std::make_shared<Attempt>(
        shard, "main", task, std::make_shared<Lease>("s", kLease, clock_.Now()), false)};
    EXPECT_TRUE(permits.Take(type, one));
  }
  // The first one that runs has been settled.
  void Settle() {
    const AttemptPtr ended = running.front();
    running.pop_front();
    permits.Ended(*ended);
  }
  std::vector<std::uint64_t> Running() const {
    std::vector<std::uint64_t> ids;
    for (const AttemptPtr& attempt : running) ids.push_back(attempt->task.key.id);
    return ids;
  }
  // Its beat succeeds meanwhile.
  void Go(Micros span) {
    for (Micros gone{0}; gone < span; gone += milliseconds(10)) {
      if (beats) port.life->Renewed(clock_.Now());
      permits.Watch(clock_.Now());
      port.Go(milliseconds(10));
    }
  }

 private:
  ManualClock& clock_;
  Registry metrics_;

 public:
  ScriptedHome port;
  std::shared_ptr<PermittingShard> shard = std::make_shared<PermittingShard>();
  std::deque<AttemptPtr> running;
  int room_again = 0;
  bool beats = true;
  Permits permits;

 private:
  Step<> strand_;
};

class PermitsTest : public testing::Test {
 protected:
  void SetUp() override { Limit(1); }
  void Limit(std::uint32_t concurrency) {
    a_.permits.Follow({{"mail", {concurrency, 4}}});
    b_.permits.Follow({{"mail", {concurrency, 4}}});
  }
  // Both go on at the same time.
  void Go(Micros span) {
    for (Micros gone{0}; gone < span; gone += milliseconds(20)) {
      a_.Go(milliseconds(10));
      b_.Go(milliseconds(10));
    }
  }

  ManualClock clock_;
  Home home_;
  Worker a_{clock_, home_, "a.1", 1};
  Worker b_{clock_, home_, "b.1", 2};
};

TEST_F(PermitsTest, OneRunsAtATimeAndTheNextOnceItsSettleIsKnown) {
  a_.Claim(1);
  a_.Claim(2);
  a_.Go(milliseconds(500));
  EXPECT_THAT(a_.Running(), ElementsAre(1));
  EXPECT_EQ(home_.Row().holder, "a.1");
  EXPECT_EQ(home_.Row().task, "main/tasks/1");
  a_.Settle();
  a_.Go(milliseconds(10));
  EXPECT_THAT(a_.Running(), ElementsAre(2));
  EXPECT_EQ(home_.Row().task, "main/tasks/2");
  a_.Settle();
  a_.Go(milliseconds(200));
  EXPECT_EQ(home_.Row().holder, "") << "nothing is left to do";
}

TEST_F(PermitsTest, WhatOneWorkerRunsTheOtherDoesNot) {
  a_.Claim(1);
  Go(milliseconds(100));
  b_.Claim(2);
  Go(milliseconds(800));
  EXPECT_THAT(a_.Running(), ElementsAre(1));
  EXPECT_THAT(b_.Running(), IsEmpty());
  a_.Settle();
  Go(seconds(1));
  EXPECT_THAT(b_.Running(), ElementsAre(2));
}

TEST_F(PermitsTest, OthersHaveTheirTurnAfterASecond) {
  std::uint64_t id = 0;
  std::map<Worker*, int> done;
  for (int step = 0; step < 300; ++step) {  // 6 s
    for (Worker* worker : {&a_, &b_}) {
      if (worker->permits.Look().types.front().waiting == 0) worker->Claim(++id);
      if (worker->running.empty()) continue;
      worker->Settle();
      ++done[worker];
    }
    Go(milliseconds(20));
    ASSERT_LE(a_.running.size() + b_.running.size(), 1U);
  }
  EXPECT_GT(done[&a_], 60);
  EXPECT_GT(done[&b_], 60);
}

TEST_F(PermitsTest, ClaimsWaitUntilThereIsAPermit) {
  const auto of_a = a_.permits.PolicyOf("mail");
  const auto of_b = b_.permits.PolicyOf("mail");
  EXPECT_EQ(of_a->ClaimRoom(clock_.Now(), 0), 0U);
  a_.Go(milliseconds(50));
  EXPECT_EQ(a_.room_again, 1);
  EXPECT_EQ(of_a->ClaimRoom(clock_.Now(), 0), 1U);
  EXPECT_EQ(of_b->ClaimRoom(clock_.Now(), 0), 0U);
  b_.Go(milliseconds(50));
  EXPECT_EQ(b_.room_again, 0) << "it is another's";
  a_.Claim(1);
  EXPECT_EQ(of_a->ClaimRoom(clock_.Now(), 0), 0U);
}

TEST_F(PermitsTest, APermitThatNobodyUsesIsFreedSoon) {
  (void)a_.permits.PolicyOf("mail")->ClaimRoom(clock_.Now(), 0);
  a_.Go(milliseconds(100));
  EXPECT_EQ(home_.Row().holder, "a.1");
  a_.Go(milliseconds(400));
  EXPECT_EQ(home_.Row().holder, "");
  const int reads = a_.port.reads;
  a_.Go(seconds(5));
  EXPECT_LE(a_.port.reads, reads + 2) << "who has nothing to do hardly looks";
}

TEST_F(PermitsTest, OneThatAReplicaHasNotSeenGivenBackIsGivenBackAgain) {
  (void)a_.permits.PolicyOf("mail")->ClaimRoom(clock_.Now(), 0);
  a_.Go(milliseconds(100));
  const auto before = home_.rows;
  ASSERT_EQ(home_.Row().holder, "a.1");
  a_.Go(milliseconds(400));
  ASSERT_EQ(home_.Row().holder, "");
  home_.rows = before;  // the database that takes over
  a_.Go(seconds(8));
  EXPECT_EQ(home_.Row().holder, "") << "it needs none, and would never ask";
}

TEST_F(PermitsTest, WhoMayNotClaimForItLeavesItToOthersAtOnce) {
  const auto policy = a_.permits.PolicyOf("mail");
  a_.Claim(1);
  a_.Go(milliseconds(100));
  a_.Settle();
  policy->Unwanted();
  a_.Go(milliseconds(10));
  EXPECT_EQ(home_.Row().holder, "");
  a_.Claim(2);
  a_.Go(milliseconds(200));
  policy->Unwanted();
  a_.Go(milliseconds(10));
  EXPECT_THAT(a_.Running(), ElementsAre(2)) << "what holds it keeps it";
}

class LockedRowTest : public PermitsTest {
 protected:
  void SetUp() override { a_.permits.Follow({{"mail", {1, 4}}, {"post", {1, 4}}}); }
  const std::string& HolderOfPost() const { return home_.rows.at({"post", 1}).holder; }
  const std::set<std::pair<std::string, std::uint32_t>> mail_{{"mail", 1}};
};

TEST_F(LockedRowTest, HoldsUpItsOwnTypeAlone) {
  a_.Claim(1);
  a_.Claim(2, "post");
  a_.Go(milliseconds(300));
  ASSERT_THAT(a_.Running(), testing::UnorderedElementsAre(1, 2));
  a_.port.locked = mail_;
  a_.Claim(3);
  a_.Claim(4, "post");
  a_.Settle();
  a_.Settle();
  a_.Go(milliseconds(300));
  ASSERT_THAT(a_.Running(), ElementsAre(4));
  a_.Settle();
  a_.Go(seconds(3));
  EXPECT_EQ(HolderOfPost(), "");
  EXPECT_THAT(a_.permits.Look().locked, ElementsAre("mail"));
  EXPECT_EQ(a_.permits.Look().trouble, "") << "of other types they can be had";
  EXPECT_THAT(a_.shard->back, ElementsAre(3));
  a_.port.locked.clear();
  a_.Claim(5);
  a_.Go(seconds(2));
  EXPECT_THAT(a_.Running(), ElementsAre(5));
  EXPECT_THAT(a_.permits.Look().locked, IsEmpty());
}

TEST_F(LockedRowTest, TheNextFreeOneIsTakenInItsPlaceAndItselfOnceItIsFree) {
  a_.permits.Follow({{"mail", {2, 4}}});
  a_.port.locked = mail_;
  a_.Claim(1);
  a_.Go(milliseconds(300));
  EXPECT_THAT(a_.Running(), ElementsAre(1));
  EXPECT_EQ(home_.Row(2).holder, "a.1");
  a_.Claim(2);
  a_.Go(milliseconds(300));
  EXPECT_THAT(a_.Running(), ElementsAre(1));
  a_.port.locked.clear();
  a_.Go(milliseconds(700));
  EXPECT_THAT(a_.Running(), ElementsAre(1, 2));
}

TEST_F(LockedRowTest, ATaskWhosePermitIsLockedWaitsAndHasAnotherOnceThereIsOne) {
  a_.permits.Follow({{"mail", {2, 1}}});
  a_.Claim(1);
  a_.Go(milliseconds(100));
  a_.port.locked = mail_;
  a_.Settle();
  a_.Claim(2);
  a_.Go(milliseconds(500));
  EXPECT_THAT(a_.Running(), IsEmpty());
  EXPECT_THAT(a_.shard->back, IsEmpty());
  a_.permits.Follow({{"mail", {2, 4}}});
  a_.Go(milliseconds(500));
  EXPECT_THAT(a_.Running(), ElementsAre(2));
  EXPECT_EQ(home_.Row(2).task, "main/tasks/2");
}

TEST_F(LockedRowTest, NoTaskIsClaimedForItAndItIsToldAtAModestPace) {
  const auto policy = a_.permits.PolicyOf("mail");
  a_.Claim(1);
  a_.Go(milliseconds(100));
  a_.port.locked = mail_;
  a_.Settle();
  a_.Go(milliseconds(100));
  EXPECT_EQ(policy->ClaimRoom(clock_.Now(), 0), 0U);
  const int writes = a_.port.writes;
  a_.Go(seconds(5));
  EXPECT_GE(a_.port.writes, writes + 5);
  EXPECT_LE(a_.port.writes, writes + 30);
}

TEST_F(LockedRowTest, ALockThatIsGoneInAMomentIsNoTrouble) {
  for (int times = 0; times < 5; ++times) {
    a_.port.locked = mail_;
    a_.Claim(1);
    a_.Go(milliseconds(300));
    a_.port.locked.clear();
    a_.Go(milliseconds(500));
    EXPECT_THAT(a_.permits.Look().locked, IsEmpty());
    ASSERT_THAT(a_.Running(), ElementsAre(1));
    a_.Settle();
  }
}

TEST_F(LockedRowTest, APermitBehindItIsFreedWhenItIsUnlocked) {
  a_.Claim(1);
  a_.Go(milliseconds(100));
  a_.port.locked = mail_;
  a_.Settle();
  a_.Go(seconds(5));
  EXPECT_EQ(home_.Row().holder, "a.1");
  a_.port.locked.clear();
  a_.Go(seconds(1));
  EXPECT_EQ(home_.Row().holder, "");
}

TEST_F(LockedRowTest, WhatIsInDoubtBehindItHoldsUpNoOtherType) {
  a_.port.loses = [] { return true; };
  a_.Claim(1);
  a_.Go(milliseconds(10));
  a_.port.locked = mail_;
  a_.Claim(2, "post");
  a_.Go(milliseconds(500));
  EXPECT_THAT(a_.Running(), ElementsAre(2));
  a_.port.locked.clear();
  a_.Go(seconds(1));
  EXPECT_THAT(a_.Running(), testing::UnorderedElementsAre(1, 2));
}

TEST_F(LockedRowTest, NobodyIsTroubledByItWhoDoesNotNeedIt) {
  a_.port.locked = mail_;
  a_.Claim(1);
  a_.Go(seconds(3));
  EXPECT_THAT(a_.permits.Look().locked, ElementsAre("mail"));
  a_.permits.Follow({{"post", {1, 4}}});
  a_.Go(seconds(12));
  EXPECT_THAT(a_.permits.Look().locked, IsEmpty());
}

// As after a change of the home's entry: the shard has a new life, and its former one ends what it has.
class FormerLifeTest : public PermitsTest {
 protected:
  void SetUp() override {
    PermitsTest::SetUp();
    a_.Claim(1);
    a_.Go(milliseconds(100));
    former_ = std::exchange(a_.port.life, std::make_shared<Lease>("a.2", kLease, clock_.Now()));
  }
  // Both lives beat.
  void GoOn(Micros span) {
    for (Micros gone{0}; gone < span; gone += milliseconds(500)) {
      former_->Renewed(clock_.Now());
      a_.Go(milliseconds(500));
    }
  }
  bool IsStopped() const { return a_.running.front()->stop_by.load() != 0; }

  std::shared_ptr<Lease> former_;
};

TEST_F(FormerLifeTest, WhatRunsUnderALifeThatBeatsGoesOnUnderIt) {
  a_.Claim(2);
  GoOn(2 * kLease);
  EXPECT_FALSE(IsStopped());
  EXPECT_TRUE(a_.permits.HeldUnder(*former_));
  EXPECT_THAT(a_.shard->back, ElementsAre(2)) << "no permit is free for it";
  a_.Settle();
  EXPECT_FALSE(a_.permits.HeldUnder(*former_));
  a_.Claim(3);
  GoOn(seconds(1));
  EXPECT_THAT(a_.Running(), ElementsAre(3));
  EXPECT_EQ(home_.Row().holder, "a.2");
}

TEST_F(FormerLifeTest, WhatHasEndedFreesItsPermitThoughThatLifeGoesOn) {
  a_.Settle();
  a_.Go(milliseconds(20));
  EXPECT_EQ(home_.Row().holder, "") << "while it beats nobody could take it over";
  b_.Claim(2);
  b_.Go(seconds(1));
  EXPECT_THAT(b_.Running(), ElementsAre(2));
}

TEST_F(FormerLifeTest, WhatItHeldForNoTaskIsFreedBesideWhatRunsByIt) {
  Limit(2);
  a_.Claim(2);
  GoOn(seconds(1));
  ASSERT_EQ(home_.Row(2).holder, "a.2");
  const AttemptPtr second = a_.running.back();
  a_.running.pop_back();
  a_.permits.Ended(*second);
  a_.port.life = std::make_shared<Lease>("a.3", kLease, clock_.Now());
  GoOn(seconds(1));
  EXPECT_EQ(home_.Row(2).holder, "");
  EXPECT_EQ(home_.Row(1).holder, "a.1");
  EXPECT_FALSE(IsStopped());
}

TEST_F(FormerLifeTest, WhatRunsByItLeavesRoomForAClaimByAnotherPermit) {
  Limit(2);
  const auto policy = a_.permits.PolicyOf("mail");
  EXPECT_EQ(policy->ClaimRoom(clock_.Now(), 0), 0U);
  a_.Go(milliseconds(50));
  EXPECT_EQ(home_.Row(2).holder, "a.2");
  EXPECT_EQ(policy->ClaimRoom(clock_.Now(), 0), 1U);
}

TEST_F(FormerLifeTest, AFreeThatFailsOrIsLostIsSentAgain) {
  a_.port.away = ErrorCode::Unavailable;
  a_.Settle();
  GoOn(seconds(1));
  EXPECT_EQ(home_.Row().holder, "a.1");
  a_.port.away.reset();
  a_.port.loses = [] { return false; };
  GoOn(seconds(2));
  EXPECT_EQ(home_.Row().holder, "");
  a_.Claim(2);
  GoOn(seconds(1));
  ASSERT_THAT(a_.Running(), ElementsAre(2));
  EXPECT_THAT(a_.port.LandLate(), ElementsAre(PermitAnswer::Refused));
}

TEST_F(FormerLifeTest, AFreeThatMeetsALockIsSentAgain) {
  a_.port.locked = {{"mail", 1}};
  a_.Settle();
  GoOn(seconds(2));
  EXPECT_EQ(home_.Row().holder, "a.1");
  a_.port.locked.clear();
  GoOn(seconds(1));
  EXPECT_EQ(home_.Row().holder, "");
}

TEST_F(FormerLifeTest, ALockedRowOfAnotherTypeKeepsNothingFromBeingFreed) {
  a_.permits.Follow({{"mail", {1, 4}}, {"post", {1, 4}}});
  a_.port.locked = {{"post", 1}};
  a_.Claim(2, "post");
  a_.Settle();
  GoOn(seconds(1));
  EXPECT_EQ(home_.Row().holder, "");
}

TEST_F(FormerLifeTest, NothingIsSentInTheNameOfALifeThatIsOver) {
  former_->MarkDead();
  a_.Go(milliseconds(20));
  a_.Settle();
  a_.Go(seconds(8));
  EXPECT_EQ(home_.Row().holder, "a.1") << "whoever marks it dead sees to its rows";
}

TEST_F(PermitsTest, WhatAFormerLifeAskedForAndIsGivenLateIsFreed) {
  a_.port.loses = [] { return false; };
  a_.Claim(1);
  a_.Go(milliseconds(10));
  a_.port.life = std::make_shared<Lease>("a.2", kLease, clock_.Now());
  ASSERT_THAT(a_.port.LandLate(), ElementsAre(PermitAnswer::Done));
  a_.Go(seconds(8));
  EXPECT_NE(home_.Row().holder, "a.1");
}

TEST_F(FormerLifeTest, WhatRunsIsStoppedOnceThatLifeIsLateOrOver) {
  a_.Go(seconds(4));
  EXPECT_FALSE(IsStopped());
  a_.Go(seconds(2));
  EXPECT_TRUE(IsStopped());
}

TEST_F(FormerLifeTest, WhatRunsIsStoppedWhereTheHomeIsInAnotherDatabaseNow) {
  a_.port.address = "mysql://elsewhere";
  a_.Go(milliseconds(500));
  EXPECT_TRUE(IsStopped()) << "others take permits there";
}

TEST_F(PermitsTest, WhoFindsAllTakenLooksAtAModestPace) {
  a_.Claim(1);
  a_.Go(milliseconds(100));
  (void)b_.permits.PolicyOf("mail")->ClaimRoom(clock_.Now(), 0);
  Go(seconds(8));
  EXPECT_GE(b_.port.reads, 10);
  EXPECT_LE(b_.port.reads, 60);
}

TEST_F(PermitsTest, ATaskWhosePermitIsAnothersGoesBackAfterAWhile) {
  a_.Claim(1);
  a_.Go(milliseconds(100));
  b_.Claim(2);
  Go(seconds(5));
  EXPECT_THAT(b_.shard->back, ElementsAre(2));
}

TEST_F(PermitsTest, WhatIsToStartNoMoreGoesBack) {
  a_.Claim(1);
  a_.Go(milliseconds(50));
  a_.Claim(2);
  a_.shard->decision = StartDecision::Withdrawn;
  a_.Go(milliseconds(100));
  EXPECT_THAT(a_.shard->back, ElementsAre(2));
}

TEST_F(PermitsTest, WhatNeedsNoPermitAnyMoreGoesBackToBeClaimedWithoutOne) {
  a_.Claim(1);
  a_.Go(milliseconds(50));
  a_.Claim(2);
  a_.permits.Follow({});
  a_.Go(milliseconds(100));
  EXPECT_THAT(a_.shard->back, ElementsAre(2));
}

TEST_F(PermitsTest, WhoAsksWhetherAWaitingTaskMayStartKeepsNobodyFromThePermits) {
  a_.Claim(1);
  a_.Go(milliseconds(50));
  a_.Claim(2);
  std::future<bool> looked;
  std::vector<bool> in_time;
  a_.shard->asked = [&] {
    looked = std::async(std::launch::async, [this] { return a_.permits.Holds("mail"); });
    in_time.push_back(looked.wait_for(seconds(10)) == std::future_status::ready);
  };
  a_.permits.Watch(clock_.Now());
  EXPECT_THAT(in_time, ElementsAre(true))
      << "the admission holds a lock of its own while it tells which types are held";
}

// The strand may bind a permit to it at the same moment.
TEST_F(PermitsTest, WhoAsksWhetherAWaitingTaskMayStartDoesNotLookAtItsPermit) {
  a_.Claim(1);
  a_.Go(milliseconds(50));
  a_.Claim(2);
  a_.shard->looks_at_home = 0;
  a_.permits.Watch(clock_.Now());
  EXPECT_EQ(a_.shard->looks_at_home, 0);
  a_.shard->decision = StartDecision::Moved;
  a_.permits.Watch(clock_.Now());
  EXPECT_THAT(a_.shard->back, ElementsAre(2));
}

TEST_F(PermitsTest, APermitWhoseReplyWasLostIsUsedOnceNothingIsUnderWay) {
  a_.port.loses = [] { return true; };
  a_.Claim(1);
  a_.Go(milliseconds(300));
  EXPECT_THAT(a_.Running(), ElementsAre(1));
  EXPECT_EQ(home_.Row().holder, "a.1");
  EXPECT_EQ(home_.Row().task, "main/tasks/1");
  EXPECT_THAT(a_.port.LandLate(), ElementsAre(PermitAnswer::Refused));
}

TEST_F(PermitsTest, WhatIsStillUnderWayCannotLandLater) {
  a_.port.loses = [] { return false; };
  a_.Claim(1);
  a_.Go(milliseconds(500));
  EXPECT_THAT(a_.Running(), ElementsAre(1));
  EXPECT_THAT(a_.port.LandLate(), ElementsAre(PermitAnswer::Refused));
}

TEST_F(PermitsTest, AFreeThatWasLostFreesNoLaterHolder) {
  a_.Claim(1);
  a_.Go(milliseconds(50));
  a_.Settle();
  a_.port.loses = [] { return false; };
  a_.Go(milliseconds(60));  // it frees what it does not need
  a_.Claim(2);
  a_.Go(milliseconds(500));
  ASSERT_THAT(a_.Running(), ElementsAre(2));
  EXPECT_THAT(a_.port.LandLate(), ElementsAre(PermitAnswer::Refused));
  EXPECT_EQ(home_.Row().holder, "a.1");
}

TEST_F(PermitsTest, WhoseBeatIsLateForHalfALeaseIsStopped) {
  a_.Claim(1);
  a_.Go(milliseconds(100));
  ASSERT_THAT(a_.Running(), ElementsAre(1));
  a_.beats = false;
  a_.Go(kLease / 2 - milliseconds(50));
  EXPECT_EQ(a_.running.front()->stop_by.load(), 0);
  a_.Go(milliseconds(100));
  const BootTime by{Micros(a_.running.front()->stop_by.load())};
  EXPECT_GT(by, clock_.Now());
  EXPECT_LT(by, clock_.Now() + kLease / 2 - milliseconds(100)) << "before anybody may take it over";
}

TEST_F(PermitsTest, OnlyThePermitOfTheDeadIsTakenOver) {
  a_.Claim(1);
  Go(milliseconds(100));
  a_.beats = false;
  (void)b_.permits.PolicyOf("mail")->ClaimRoom(clock_.Now(), 0);
  for (int second = 0; second < 20; ++second) {
    (void)b_.permits.PolicyOf("mail")->ClaimRoom(clock_.Now(), 0);
    b_.Go(seconds(1));
  }
  EXPECT_EQ(home_.Row().holder, "a.1");
  home_.dead["a.1"] = true;
  b_.Claim(2);
  b_.Go(seconds(1));
  EXPECT_THAT(b_.Running(), ElementsAre(2));
}

// Its handler may be at it yet, under the life that is over.
TEST_F(PermitsTest, ANewLifeRunsNothingBesideWhatAFormerOneRuns) {
  a_.Claim(1);
  a_.Go(milliseconds(100));
  home_.dead["a.1"] = true;
  a_.port.life->MarkDead();
  a_.port.life = std::make_shared<Lease>("a.2", kLease, clock_.Now());
  a_.Claim(2);
  a_.Go(seconds(1));
  EXPECT_THAT(a_.Running(), ElementsAre(1));
  EXPECT_NE(a_.running.front()->stop_by.load(), 0);
  a_.Settle();
  a_.Go(seconds(1));
  EXPECT_THAT(a_.Running(), ElementsAre(2));
  EXPECT_EQ(home_.Row().holder, "a.2");
}

TEST_F(PermitsTest, ALoweredLimitWaitsForThoseAboveIt) {
  Limit(2);
  a_.Claim(1);
  a_.Claim(2);
  a_.Go(milliseconds(200));
  ASSERT_EQ(a_.Running().size(), 2U);
  Limit(1);
  a_.Settle();
  b_.Claim(3);
  Go(seconds(1));
  EXPECT_EQ(a_.Running().size() + b_.Running().size(), 1U);
}

TEST_F(PermitsTest, WhileTheHomeIsAwayNothingStarts) {
  a_.port.away = ErrorCode::Unavailable;
  a_.Claim(1);
  a_.Go(seconds(1));
  EXPECT_THAT(a_.Running(), IsEmpty());
  EXPECT_NE(a_.permits.Look().trouble, "");
  a_.port.away.reset();
  a_.Go(seconds(2));
  EXPECT_EQ(a_.Running().size() + a_.shard->back.size(), 1U);
  EXPECT_EQ(a_.permits.Look().trouble, "");
}

TEST_F(PermitsTest, WhatWaitsForAnUnknownOutcomeGoesBackAfterAWhileAndItsPermitIsUsedLater) {
  a_.port.loses = [this] {
    a_.port.away = ErrorCode::Unavailable;
    return true;
  };
  a_.Claim(1);
  a_.Go(seconds(1));
  EXPECT_THAT(a_.shard->back, IsEmpty());
  a_.Go(seconds(2));
  EXPECT_THAT(a_.shard->back, ElementsAre(1));
  EXPECT_EQ(home_.Row().task, "main/tasks/1");
  a_.port.away.reset();
  a_.Claim(2);
  a_.Go(seconds(3));
  EXPECT_THAT(a_.Running(), ElementsAre(2));
  EXPECT_EQ(home_.Row().task, "main/tasks/2");
  EXPECT_THAT(a_.shard->back, ElementsAre(1));
}

TEST_F(PermitsTest, AtTheEndWhatWaitsForAnUnknownOutcomeGoesBackToo) {
  a_.port.loses = [this] {
    a_.port.away = ErrorCode::Unavailable;
    return true;
  };
  a_.Claim(1);
  a_.Go(milliseconds(100));
  a_.permits.StopStarting();
  EXPECT_THAT(a_.shard->back, ElementsAre(1));
}

TEST_F(PermitsTest, AHomeThatIsSilentWhileTheShardsChangeStopsNobody) {
  a_.Claim(1);
  a_.Go(milliseconds(100));
  ASSERT_THAT(a_.Running(), ElementsAre(1));
  a_.port.silent = "main";
  a_.port.shards = {"also", "main"};
  a_.Go(milliseconds(300));
  EXPECT_EQ(a_.running.front()->stop_by.load(), 0);
  a_.Settle();
  a_.port.silent.clear();
  a_.Claim(2);
  a_.Go(milliseconds(300));
  EXPECT_THAT(a_.Running(), ElementsAre(2));
  EXPECT_EQ(home_.named["also"], "main");
}

TEST_F(PermitsTest, WhoIsSecondToNameAHomeTakesTheFirstOnes) {
  a_.port.shards = {"b"};
  b_.port.shards = {"a", "b"};
  b_.port.before_naming = [this] { home_.named["b"] = "b"; };  // by a_, which knows b alone
  b_.Go(milliseconds(100));
  EXPECT_EQ(home_.named["a"], "b");
  EXPECT_EQ(b_.permits.Look().home, "b");
}

TEST_F(PermitsTest, AHomeThatSomebodyHasForgottenIsNamedAnew) {
  a_.Go(milliseconds(100));
  ASSERT_EQ(a_.permits.Look().home, "main");
  home_.named = {{"main", "elsewhere"}};  // its row was deleted, and another has named its own
  a_.Claim(1);
  a_.Go(seconds(7));
  EXPECT_EQ(a_.permits.Look().home, "");
  EXPECT_NE(a_.permits.Look().trouble, "");
}

TEST_F(PermitsTest, AtTheEndWhatWaitsGoesBack) {
  a_.Claim(1);
  a_.Go(milliseconds(50));
  a_.Claim(2);
  a_.permits.StopStarting();
  a_.Claim(3);
  EXPECT_THAT(a_.shard->back, ElementsAre(2, 3));
}

}  // namespace
}  // namespace millrace::engine

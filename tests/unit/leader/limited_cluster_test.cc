// The must of a limit across the cluster, in virtual time: members and leaders on one tree, and workers that
// start as many tasks as their gates let them.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "coordinator/leader/leader.h"
#include "coordinator/member/cluster_control_plane.h"
#include "coordinator/member/limit_teller.h"
#include "coordinator/member/member.h"
#include "framework/testing/manual_clock.h"
#include "tests/support/machine_room.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kRate = 100;
constexpr Micros kStep = milliseconds(10);
constexpr Micros kShortSession = seconds(5);
constexpr Micros kDeath = seconds(4);  // from a kill until it is marked in the database

class LimitedClusterTest : public ::testing::Test {
 protected:
  struct Process {
    Process(LimitedClusterTest& test, std::string its_id)
        : id(std::move(its_id)),
          admission(test.clock_),
          member({id, WorkerDocument{.incarnation = id + ".1"}}, ConfigLayers(), CallsOf()),
          leader({id, id + ".1", {.session_timeout = kShortSession}}, LeaderCallsOf(test)) {
      plane.FollowShares([this](auto shares) { admission.FollowShares(std::move(shares)); });
      auto config = std::make_shared<Config>();
      config->handlers["mail"].limit = LimitConfig{.rate = test.rate_};
      admission.Follow(config);
    }
    Member::Calls CallsOf() {
      Member::Calls calls{[this](const MemberView& view) { plane.Publish(view); },
                          [this] { return "{\"limits\":" + teller.Tell(admission.Limits()) + "}"; }, nullptr};
      calls.pressing = [this] { return teller.Pressing(admission.Limits()); };
      return calls;
    }
    static Leader::Calls LeaderCallsOf(LimitedClusterTest& test) {
      Leader::Calls calls{[&test] { return test.facts_; }, nullptr};
      calls.lives = [&test] { return test.Lives(); };
      return calls;
    }
    void Work(BootTime now, std::vector<BootTime>& starts) {
      const auto gate = admission.Of("mail");
      for (; running > 0; --running) gate->Ended({.called = true, .took = kStep}, now);
      if (gate->Withholds()) {  // what is claimed goes back
        backlog += gate->Waiting();
        gate->NeverStarted(gate->Waiting());
      }
      const std::size_t claims = backlog == 0 ? 0 : std::min(backlog, gate->ClaimRoom(now));
      backlog -= claims;
      gate->Claimed(claims);
      running = gate->TakeStarts(std::min<std::size_t>(gate->Waiting(), 4), now);
      gate->Started(running);
      starts.insert(starts.end(), running, now);
      started += running;
    }

    const std::string id;
    Admission admission;
    ClusterControlPlane plane{{}};
    LimitTeller teller;
    Member member;
    Leader leader;
    std::size_t backlog = 0;
    std::size_t running = 0;
    std::size_t started = 0;
    std::optional<BootTime> killed = {};
  };

  explicit LimitedClusterTest(double rate = kRate) : rate_(rate) {
    facts_.catalog = std::make_shared<const TableCatalog>(TableCatalog{{{"main", "tasks", 64}}, {}});
    facts_.limits = {{"mail", {.rate = rate_}}};
    for (const char* id : {"w1", "w2", "w3"}) {
      auto& process = processes_[id] = std::make_unique<Process>(*this, id);
      room_.Add(process->member);
      room_.Add(process->leader);
      room_.Settle();
    }
    Pass(seconds(40));
  }
  LivesByShard Lives() {
    SeenLives seen{room_.now()};
    for (const auto& [id, process] : processes_) {
      if (!process->killed || room_.now() < *process->killed + kDeath)
        seen.alive.emplace_back(id, id + ".db");
    }
    return {{"main", seen}};
  }
  void Pass(Micros time) {
    for (const BootTime end = room_.now() + time; room_.now() < end;) {
      clock_.Advance(kStep);
      ASSERT_TRUE(room_.Pass(kStep));
      for (auto& [id, process] : processes_) {
        if (!process->killed) process->Work(clock_.Now(), starts_);
      }
    }
  }
  // kill -9; its slices' tasks are the others' once its session is over.
  void Kill(const std::string& id) {
    Process& victim = *processes_[id];
    victim.killed = room_.now();
    room_.Freeze(victim.member);
    room_.Freeze(victim.leader);
    Pass(kShortSession);
    room_.Kill(victim.member);
    room_.Kill(victim.leader);
  }
  std::string LeaderId() {
    for (const auto& [id, process] : processes_) {
      if (process->leader.Leading() && !process->killed) return id;
    }
    return "";
  }
  void Offer(const std::string& id, std::size_t tasks) { processes_[id]->backlog += tasks; }
  std::size_t Starts(BootTime from, BootTime to) const {
    return static_cast<std::size_t>(
        std::count_if(starts_.begin(), starts_.end(), [&](BootTime at) { return at >= from && at < to; }));
  }
  // Of the last `time`, a second, in its slowest second.
  double Slowest(Micros time) const {
    double slowest = kRate;
    for (BootTime from = clock_.Now() - time; from + seconds(1) <= clock_.Now(); from += milliseconds(100))
      slowest = std::min(slowest, static_cast<double>(Starts(from, from + seconds(1))));
    return slowest;
  }
  // Over any ten seconds, a second.
  double Fastest() const {
    std::size_t most = 0;
    for (auto last = starts_.begin(), first = last; last != starts_.end(); ++last) {
      while (*last - *first >= seconds(10)) ++first;
      most = std::max(most, static_cast<std::size_t>(last - first) + 1);
    }
    return static_cast<double>(most) / 10;
  }

  const double rate_;
  MachineRoom room_;
  ManualClock clock_;
  LeaderFacts facts_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
  std::vector<BootTime> starts_;
};

TEST_F(LimitedClusterTest, ARateHoldsWhereverTheWorkIsAndWhoeverIsKilled) {
  for (const char* id : {"w1", "w2", "w3"}) Offer(id, 400);
  Pass(seconds(2));
  Pass(seconds(8));
  EXPECT_GE(Slowest(seconds(8)), 95);
  Pass(seconds(4));  // all is done
  Offer("w1", 1500);
  Pass(seconds(2));
  Pass(seconds(10));
  EXPECT_GE(Slowest(seconds(10)), 95);
  Pass(seconds(5));
  for (const char* id : {"w1", "w2", "w3"}) Offer(id, 3000);
  Pass(seconds(4));
  for (const bool leader : {false, true}) {
    std::string victim;
    for (const auto& [id, process] : processes_) {
      if (!process->killed && (id == LeaderId()) == leader) victim = id;
    }
    ASSERT_NE(victim, "");
    Kill(victim);
    Pass(seconds(2));
    Pass(seconds(10));
    EXPECT_GE(Slowest(seconds(10)), 95) << victim;
  }
  EXPECT_LE(Fastest(), 105);
  EXPECT_GE(Fastest(), 98);
}

// A rate that is too slow to be divided.
class SlowLimitTest : public LimitedClusterTest {
 protected:
  SlowLimitTest() : LimitedClusterTest(1) {}
};

TEST_F(SlowLimitTest, ManyWorkersStartNoMoreAtOnceThanOneWould) {
  for (const char* id : {"w1", "w2", "w3"}) Offer(id, 40);
  const BootTime began = clock_.Now();
  Pass(seconds(60));
  EXPECT_LE(Fastest(), 1.1);
  EXPECT_GE(Starts(began, clock_.Now()), 50u);
  for (const char* id : {"w1", "w2", "w3"}) EXPECT_GE(processes_[id]->started, 10u) << id;
  const std::size_t first = processes_["w3"]->started;
  processes_["w1"]->backlog = processes_["w2"]->backlog = 0;
  Pass(seconds(20));
  EXPECT_GE(processes_["w3"]->started - first, 17u) << "it alone has tasks";
}

TEST_F(SlowLimitTest, AWorkerThatIsKilledTakesNoStartWithIt) {
  for (const char* id : {"w1", "w2", "w3"}) Offer(id, 200);
  Pass(seconds(15));
  std::string victim;
  for (const auto& [id, process] : processes_) {
    if (id != LeaderId()) victim = id;
  }
  Kill(victim);
  const BootTime dead = clock_.Now();
  Pass(seconds(30));
  EXPECT_GE(Starts(dead, clock_.Now()), 22u);
  EXPECT_LE(Fastest(), 1.2) << "one more for its death";
}

TEST_F(LimitedClusterTest, OneThatIsCutOffKeepsItsShareAndTheOthersHaveTheRest) {
  for (const char* id : {"w1", "w2", "w3"}) Offer(id, 5000);
  Pass(seconds(4));
  Process& cut = *processes_["w2"];
  room_.Freeze(cut.member);
  room_.Freeze(cut.leader);
  Pass(kShortSession);
  room_.Kill(cut.member);
  room_.Kill(cut.leader);
  Pass(seconds(20));
  EXPECT_GE(Slowest(seconds(10)), 95);
  EXPECT_LE(Fastest(), 105);
}

}  // namespace
}  // namespace millrace::engine

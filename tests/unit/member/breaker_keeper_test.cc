#include "coordinator/member/breaker_keeper.h"

#include <gmock/gmock.h>

#include <array>

#include "tests/support/machine_room.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr const char* kNode = "/control/breaker/pay";

// Three workers, each with a breaker of its own and tasks that wait.
class BreakerKeeperTest : public ::testing::Test {
 protected:
  struct Worker {
    std::optional<Breaker> breaker;
    BreakerWords words;
    std::unique_ptr<BreakerKeeper> keeper;
    int probes = 0;
  };

  BreakerKeeperTest() {
    BreakerRules rules;
    rules.minimum = 2;
    rules.classes = {"timeout"};
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      worker.breaker.emplace(rules);
      const std::string id = "w" + std::to_string(i + 1);
      worker.keeper = std::make_unique<BreakerKeeper>(
          id, id + ".life",
          BreakerKeeper::Calls{[this, &worker] {
                                 return std::optional(BreakerAsks{{"pay", worker.breaker->Wish(now_)}});
                               },
                               [&worker](BreakerWords words) { worker.words = std::move(words); },
                               [] { return WallTime(seconds(1'700'000'000)); }});
      room_.Add(*worker.keeper);
    }
  }

  // What the worker's own thread does.
  void Tick(Worker& worker, CallSays partner) {
    const auto word = worker.words.find("pay");
    worker.breaker->Follow(word == worker.words.end() ? nullptr : &word->second, now_);
    if (!worker.breaker->View(now_).open) return;
    worker.breaker->NoteWork(now_);
    const auto mark = worker.breaker->Begin(now_);
    if (!mark) return;
    ++worker.probes;
    worker.breaker->Ended(*mark, partner, now_);
  }
  void Pass(Micros time, CallSays partner) {
    for (const BootTime end = now_ + time; now_ < end; now_ += milliseconds(50)) {
      for (Worker& worker : workers_) Tick(worker, partner);
      ASSERT_TRUE(room_.Pass(milliseconds(50)));
    }
  }
  void Open(Worker& worker) {
    for (int i = 0; i < 2; ++i) {
      const auto mark = worker.breaker->Begin(now_);
      ASSERT_TRUE(mark);
      worker.breaker->Ended(*mark, CallSays::Failed, now_);
    }
  }
  bool IsOpen(const Worker& worker) const { return worker.breaker->View(now_).open; }
  int Probes() const { return workers_[0].probes + workers_[1].probes + workers_[2].probes; }

  MachineRoom room_;
  BootTime now_{seconds(1000)};
  std::array<Worker, 3> workers_;
};

TEST_F(BreakerKeeperTest, ABreakerThatOpensInOneWorkerOpensInAll) {
  Pass(milliseconds(100), CallSays::Failed);
  Open(workers_[1]);
  EXPECT_FALSE(IsOpen(workers_[0]));
  Pass(milliseconds(300), CallSays::Failed);
  EXPECT_TRUE(IsOpen(workers_[0]));
  EXPECT_TRUE(IsOpen(workers_[2]));
  EXPECT_THAT(room_.Data(kNode), HasSubstr(R"("why":"2 of 2 calls failed within 10s","by":"w2")"));
}

// By an access list that somebody gave them.
TEST_F(BreakerKeeperTest, WhatItMayNotReadItDoesNotTryToMake) {
  room_.Put(kBreakersNode, "");
  room_.Put(kNode, "");
  Open(workers_[1]);
  for (const char* path : {kNode, kBreakersNode}) {
    room_.Deny(path);
    const int before = room_.writes();
    Pass(seconds(1), CallSays::Failed);
    EXPECT_EQ(room_.writes(), before) << path;
  }
}

TEST(BreakerDocumentTest, OneThatIsNestedVeryDeepSaysNothing) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_TRUE(ReadBreaker(R"({"since":"x","probe":)" + deep + "}").since.empty());
}

TEST_F(BreakerKeeperTest, TheWorkersShareOneBudgetOfProbes) {
  Open(workers_[1]);
  Pass(seconds(30), CallSays::Failed);
  EXPECT_GE(Probes(), 10);
  EXPECT_LE(Probes(), 15);
  EXPECT_TRUE(IsOpen(workers_[0]));
}

TEST_F(BreakerKeeperTest, AProbeThatSucceedsClosesAll) {
  Open(workers_[1]);
  Pass(seconds(5), CallSays::Failed);
  Pass(seconds(4), CallSays::Answered);
  for (const Worker& worker : workers_) EXPECT_FALSE(IsOpen(worker));
  EXPECT_FALSE(room_.Has(kNode));
}

TEST_F(BreakerKeeperTest, ATurnOfAWorkerThatIsGonePassesToTheOthers) {
  Open(workers_[1]);
  Pass(seconds(3), CallSays::Failed);
  room_.Put(kNode, R"({"state":"open","probe":{"by":"gone","incarnation":"gone.life"}})");
  const int before = Probes();
  Pass(seconds(5), CallSays::Failed);
  EXPECT_GT(Probes(), before);
}

TEST_F(BreakerKeeperTest, WhoRemovesTheNodeClosesIt) {
  Open(workers_[1]);
  Pass(seconds(1), CallSays::Failed);
  room_.Delete(kNode);
  Pass(milliseconds(200), CallSays::Failed);
  for (const Worker& worker : workers_) EXPECT_FALSE(IsOpen(worker));
}

TEST_F(BreakerKeeperTest, ANodeThatCantBeReadIsOpenAllTheSame) {
  room_.Put("/control/breaker", "");
  room_.Put(kNode, "{nonsense");
  Pass(milliseconds(300), CallSays::Failed);
  EXPECT_TRUE(IsOpen(workers_[0]));
}

}  // namespace
}  // namespace millrace::engine

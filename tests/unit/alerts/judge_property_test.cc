// Whatever happens to the tasks and to those who judge, an alert's messages are few and in order.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "coordinator/alerts/judge.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;

constexpr Micros kEveryMinute = seconds(60);

struct Message {
  bool firing = false;
  std::uint64_t count = 0;
  BootTime at{};
};

// What the shards keep: each number takes effect once.
class Ledger {
 public:
  bool Add(std::uint64_t number, Message message) { return messages.try_emplace(number, message).second; }
  SaidAlert Last() const {
    SaidAlert said;
    for (const auto& [number, message] : messages) {
      said.number = number;
      said.firing = message.firing;
      if (!message.firing) continue;
      said.count = message.count;
      said.fired_at = message.at;
    }
    return said;
  }
  std::map<std::uint64_t, Message> messages;
};

// As AlertWatch does: it keeps what it has said, and reads anew when somebody else was faster.
class Judging {
 public:
  void Look(const AlertFact& fact, Ledger& ledger, BootTime now) {
    if (!said_) said_ = ledger.Last();
    const AlertWord word = judge_.Look(fact, *said_, kEveryMinute, now);
    if (word == AlertWord::Nothing) return;
    const bool firing = word == AlertWord::Firing;
    const bool mine = ledger.Add(said_->number + 1, {firing, fact.count, now});
    if (mine) {
      said_ = SaidAlert{said_->number + 1, firing, fact.count, {}, firing ? now : said_->fired_at};
    } else {
      said_.reset();
    }
  }

 private:
  AlertJudge judge_;
  std::optional<SaidAlert> said_;
};

void CheckMessages(const Ledger& ledger) {
  bool firing = false;
  std::uint64_t count = 0;
  std::uint64_t next = 1;
  std::optional<BootTime> fired;
  for (const auto& [number, message] : ledger.messages) {
    RC_ASSERT(number == next++);
    if (!message.firing) {
      RC_ASSERT(firing);  // over only after firing, and once
    } else {
      RC_ASSERT(!firing || message.count > count);
      RC_ASSERT(!fired || message.at - *fired >= kEveryMinute);
      fired = message.at;
      count = message.count;
    }
    firing = message.firing;
  }
}

TEST(AlertJudgePropertyTest, LeadersThatChangeSayItOnce) {
  EXPECT_TRUE(rc::check("one judge after the other", [] {
    Ledger ledger;
    Judging judging;
    BootTime now{seconds(1000)};
    std::uint64_t count = 0;
    const int steps = *rc::gen::inRange(10, 300);
    for (int step = 0; step < steps; ++step) {
      now += seconds(*rc::gen::inRange(1, 8));
      const int chance = *rc::gen::inRange(0, 20);
      if (chance == 0) judging = Judging();  // another leader
      if (chance == 1) count = 0;
      if (chance > 15) count += static_cast<std::uint64_t>(*rc::gen::inRange(1, 100));
      judging.Look({count > 0, count, "so it is"}, ledger, now);
    }
    CheckMessages(ledger);
  }));
}

TEST(AlertJudgePropertyTest, SeveralJudgesOfTheSameSayItOnce) {
  EXPECT_TRUE(rc::check("two judges at once", [] {
    Ledger ledger;
    Judging judges[2];
    BootTime now{seconds(1000)};
    std::uint64_t count = 0;
    const int steps = *rc::gen::inRange(10, 300);
    for (int step = 0; step < steps; ++step) {
      now += seconds(*rc::gen::inRange(1, 8));
      const int chance = *rc::gen::inRange(0, 20);
      if (chance == 1) count = 0;
      if (chance > 17) count = 10;
      for (Judging& judging : judges) judging.Look({count > 0, count, "so it is"}, ledger, now);
    }
    CheckMessages(ledger);
  }));
}

TEST(AlertJudgePropertyTest, WhatStandsLongEnoughIsSaidAndWhatIsGoneIsOver) {
  EXPECT_TRUE(rc::check("in the end the ledger says what is", [] {
    Ledger ledger;
    Judging judging;
    BootTime now{seconds(1000)};
    bool holds = false;
    for (int step = 0; step < 40; ++step) {
      holds = *rc::gen::arbitrary<bool>();
      for (int look = *rc::gen::inRange(1, 30); look > 0; --look) {
        now += seconds(1);
        judging.Look({holds, holds ? 5U : 0U, "so it is"}, ledger, now);
      }
    }
    for (int look = 0; look < 70; ++look) {
      now += seconds(1);
      judging.Look({holds, holds ? 5U : 0U, "so it is"}, ledger, now);
    }
    RC_ASSERT(ledger.Last().firing == holds);
  }));
}

}  // namespace
}  // namespace millrace::engine

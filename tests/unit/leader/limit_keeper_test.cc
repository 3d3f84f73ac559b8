#include "coordinator/leader/limit_keeper.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>

namespace millrace::engine {
namespace {

using std::chrono::seconds;

// Workers that follow their pages, and a leader that reads what they tell: as much of a cluster as the shares
// of one limit see, with the world's order of things left open.
class LimitKeeperTest : public ::testing::Test {
 protected:
  // One life of a worker's process. It may work on though nobody sees it.
  struct Life {
    std::string id;
    std::string name;
    bool works = true;      // it starts tasks
    bool marked = false;    // dead, in the database
    bool present = true;    // its session lives, as far as the tree shows
    bool connected = true;  // it reads the tree
    LimitShare in_force = {};
    std::uint64_t generation = 0;
    std::uint32_t running = 0;  // without a permit
    std::uint32_t held = 0;     // with one
    bool wants = false;
    double uses = 0;
    double saved = 0;
    std::optional<StatusDocument> told = {};
    LimitShares follows = {};  // its configuration says
  };

  Life& Start(const std::string& id) {
    for (Life& life : lives_) {
      if (life.id == id) life.present = false;
    }
    Life& life = lives_.emplace_back(Life{id, id + "." + std::to_string(++born_)});
    if (!pages_.contains(id))
      pages_[id] = AssignDocument{.epoch = 1, .generation = 1, .slices = {"main/tasks/1"}};
    return life;
  }
  Life& Of(const std::string& id) {
    return *std::find_if(lives_.rbegin(), lives_.rend(), [&](const Life& life) { return life.id == id; });
  }
  void Read(Life& life) {
    if (!life.connected || !life.works) return;
    const AssignDocument& page = pages_.at(life.id);
    const bool own = page.shares_of == life.name;
    life.in_force = own && page.shares.contains("h") ? page.shares.at("h") : LimitShare{};
    life.generation = page.generation;
    Check();
  }
  void Tell(Life& life) {
    if (!life.connected || !life.present || !life.works) return;
    // Further pages of it may be newer than the one that has the shares.
    StatusDocument status{life.name, life.generation + 100, life.generation, {life.name}};
    status.limits["h"] = {.rate = life.uses,
                          .saved = life.saved,
                          .running = life.running + life.held,
                          .placed = life.running,
                          .wants_rate = life.wants,
                          .wants_concurrency = life.wants};
    life.told = status;
  }
  void Lead() {
    now_ += seconds(1);
    StoredAssignments stored;
    std::map<std::string, WorkerDocument> present;
    std::map<std::string, StatusDocument> statuses;
    for (const auto& [id, page] : pages_)
      stored[id].push_back({"/assign/" + id, std::make_shared<const AssignDocument>(page)});
    LivesByShard shards{{"main", {now_}}};
    for (const Life& life : lives_) {
      if (!life.marked) shards["main"].alive.emplace_back(life.id, life.name);
      if (!life.present) continue;
      present[life.id].incarnation = life.name;
      present[life.id].start_limits = life.follows;
      if (life.told) statuses[life.id] = *life.told;
    }
    const LimitShares limits = LimitsToDivide(limited_ ? LimitShares{{"h", limit_}} : LimitShares{}, present);
    for (const TreeWrite& write : keeper_.Next({limits, stored, present, statuses, left_, shards}, 1, now_)) {
      pages_[write.path.substr(std::string("/assign/").size())] = ReadAssign(write.data).value();
      ++writes_;
    }
  }
  std::uint32_t Held() const {
    std::uint32_t held = 0;
    for (const Life& life : lives_) held += life.held;
    return held;
  }
  // As many as its place, or the permits, let it start.
  std::uint32_t Room(const Life& life) const {
    const LimitShare& share = life.in_force;
    const std::uint32_t most = share.permits > 0 ? share.permits : share.concurrency;
    const std::uint32_t used = share.permits > 0 ? Held() : life.running + life.held;
    return life.works && most > used ? most - used : 0;
  }
  void Begin(Life& life, std::uint32_t tasks) {
    (life.in_force.permits > 0 ? life.held : life.running) += tasks;
    Check();
  }
  // All that are connected follow until nothing changes any more.
  void Settle() {
    for (int turn = 0; turn < 50; ++turn) {
      for (Life& life : lives_) {
        Read(life);
        Tell(life);
      }
      writes_ = 0;
      Lead();
      if (writes_ == 0 && turn > 3) return;
    }
    ADD_FAILURE() << "the shares never come to rest";
  }
  void Check() const {
    double rate = 0;
    std::uint64_t running = 0;
    std::uint32_t permits = 0;
    std::uint64_t places = 0;
    for (const Life& life : lives_) {
      running += life.running + life.held;
      if (!life.works) continue;
      rate += life.in_force.rate;
      permits = std::max(permits, life.in_force.permits);
      places += life.in_force.concurrency;
    }
    ASSERT_LE(rate, limit_.rate * (1 + 1e-9)) << where_;
    ASSERT_LE(running, limit_.concurrency) << where_;
    ASSERT_LE(places + permits, limit_.concurrency) << where_;
  }

  LimitShare limit_{.rate = 100, .concurrency = 12};
  bool limited_ = true;
  std::map<std::string, AssignDocument> pages_;
  std::deque<Life> lives_;
  std::map<std::string, std::string> left_;
  LimitKeeper keeper_;
  BootTime now_{seconds(1000)};
  int born_ = 0;
  int writes_ = 0;
  std::string where_;
};

// Whatever comes in whatever order: what may start together is never more than the limit, and in the end the
// one that wants has nearly all of it, and nobody nothing.
TEST_F(LimitKeeperTest, TheSharesInForceAreNeverMoreThanTheLimit) {
  for (unsigned seed = 1; seed <= 2100; ++seed) {
    std::mt19937 random(seed);
    pages_.clear();
    lives_.clear();
    left_.clear();
    keeper_ = {};
    const std::size_t workers = 2 + random() % 4;
    limit_.concurrency = seed % 3 == 0 ? 12 : 1 + random() % 6;
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < workers; ++i) Start(ids.emplace_back("w" + std::to_string(i)));
    for (int step = 0; step < 600; ++step) {
      where_ = "seed " + std::to_string(seed) + ", step " + std::to_string(step);
      Life& life = lives_[lives_.size() - 1 - random() % std::min<std::size_t>(lives_.size(), 2 * workers)];
      switch (random() % 24) {
        default:
          Lead();
          break;
        case 0 ... 4:
          Read(life);
          break;
        case 5 ... 8:
          Tell(life);
          break;
        case 9:
          life.wants = random() % 2 == 0;
          life.uses = static_cast<double>(random() % 60);
          break;
        case 10 ... 12:
          if (const std::uint32_t room = Room(life); room > 0) Begin(life, 1 + random() % room);
          break;
        case 13:
          if (random() % 2 == 0) life.running -= life.running > 0 ? 1 : 0;
          if (random() % 2 == 0) life.held -= life.held > 0 ? 1 : 0;
          break;
        case 14:  // killed, and seen to be dead at last
          if (random() % 4 == 0) life.works = life.connected = false;
          if (!life.works) life.running = life.held = 0;
          break;
        case 15:
          if (!life.works && life.running + life.held == 0) life.marked = true;
          break;
        case 16:  // cut off from ZooKeeper, for long or not
          life.connected = random() % 2 == 0 && life.works && (life.present || &life == &Of(life.id));
          if (life.connected) life.present = true;
          break;
        case 17:
          if (!life.connected) life.present = false;
          break;
        case 18:  // another life of it, while the one before may work on
          if (!Of(life.id).connected) Start(life.id);
          break;
        case 19:  // in good order: it starts nothing any more, and finishes what runs
          if (random() % 6 == 0 && life.connected && life.present) {
            life.works = life.connected = life.present = false;
            left_[life.name] = life.id;
          }
          break;
        case 20:
          keeper_ = {};  // another leader
          break;
        case 21:  // its slices change; what it was given is written again as it stands
          ++pages_.at(life.id).generation;
          break;
        case 22:  // one more than there were
          if (ids.size() < workers + 2 && random() % 8 == 0) {
            Start(ids.emplace_back("w" + std::to_string(ids.size())));
          }
          break;
      }
      ASSERT_NO_FATAL_FAILURE(Check());
    }
    for (Life& life : lives_) {  // those that are cut off end
      if (life.connected) continue;
      life.works = life.present = false;
      life.running = life.held = 0;
      life.marked = true;
    }
    for (const std::string& id : ids) {
      if (!Of(id).connected) Start(id);
      Of(id).wants = id == "w0";
      Of(id).uses = 0;
      Of(id).running = Of(id).held = 0;
    }
    ASSERT_NO_FATAL_FAILURE(Settle()) << where_;
    if (limit_.concurrency < ids.size()) {
      for (const std::string& id : ids) EXPECT_EQ(Of(id).in_force.permits, limit_.concurrency) << where_;
      continue;
    }
    EXPECT_GE(Of("w0").in_force.rate, 90) << where_;
    for (const std::string& id : ids) {
      EXPECT_GT(Of(id).in_force.rate, 0) << where_;
      EXPECT_GE(Of(id).in_force.concurrency, 1u) << where_;
    }
    EXPECT_GE(Of("w0").in_force.concurrency + 2 * (ids.size() - 1), limit_.concurrency) << where_;
  }
}

TEST_F(LimitKeeperTest, WhoAllWantHaveEqualParts) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id).wants = true;
  Settle();
  for (const char* id : {"w1", "w2", "w3"}) {
    EXPECT_NEAR(Of(id).in_force.rate, 33.3, 2) << id;
    EXPECT_EQ(Of(id).in_force.concurrency, 4u) << id;
  }
}

TEST_F(LimitKeeperTest, WhatSomeDoNotUseIsTheOthers) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id).wants = true;
  Settle();
  Of("w2").wants = Of("w3").wants = false;
  Of("w2").uses = 8;
  Settle();
  EXPECT_NEAR(Of("w2").in_force.rate, 10, 1);
  EXPECT_GE(Of("w1").in_force.rate, 88);
  EXPECT_GT(Of("w3").in_force.rate, 0);
}

TEST_F(LimitKeeperTest, ALowerShareIsInForceBeforeAnotherIsRaised) {
  Start("w1").wants = true;
  Settle();
  Start("w2").wants = true;
  for (int turn = 0; turn < 5; ++turn) {  // w1 does not hear of its lower share
    Lead();
    Read(Of("w2"));
    Tell(Of("w2"));
  }
  EXPECT_LT(pages_["w1"].shares["h"].rate, 60);
  EXPECT_LT(Of("w2").in_force.rate, 6);
  Settle();
  EXPECT_NEAR(Of("w2").in_force.rate, 50, 2);
}

TEST_F(LimitKeeperTest, TheNextLeaderKnowsWhatMayBeInForceStill) {
  Start("w1").wants = true;
  Settle();
  Start("w2").wants = true;
  Lead();
  Of("w1").connected = false;
  keeper_ = {};
  for (int turn = 0; turn < 5; ++turn) {
    Lead();
    Read(Of("w2"));
    Tell(Of("w2"));
  }
  EXPECT_LT(Of("w2").in_force.rate, 6);
}

TEST_F(LimitKeeperTest, WhoIsAwayKeepsItsShareUntilItIsMarkedDead) {
  for (const char* id : {"w1", "w2"}) Start(id).wants = true;
  Settle();
  Of("w1").connected = Of("w1").present = false;
  Settle();
  EXPECT_LT(Of("w2").in_force.rate, 60);
  Of("w1").works = false;
  Of("w1").marked = true;
  Settle();
  EXPECT_GE(Of("w2").in_force.rate, 99);
  EXPECT_EQ(pages_["w1"].shares, LimitShares{});
}

TEST_F(LimitKeeperTest, OfOneThatLeftTheRateIsFreeAtOnceAndThePlacesOnceItHasEnded) {
  for (const char* id : {"w1", "w2"}) Start(id).wants = true;
  Settle();
  Life& leaver = Of("w1");
  Begin(leaver, 6);
  leaver.works = leaver.connected = leaver.present = false;
  left_[leaver.name] = "w1";
  Settle();
  EXPECT_GE(Of("w2").in_force.rate, 99);
  EXPECT_EQ(Of("w2").in_force.concurrency, 6u);
  left_.clear();  // the leader tidied up
  Settle();
  EXPECT_EQ(Of("w2").in_force.concurrency, 6u);
  leaver.running = 0;
  leaver.marked = true;
  Settle();
  EXPECT_EQ(Of("w2").in_force.concurrency, 12u);
}

TEST_F(LimitKeeperTest, ANewLifeOfAWorkerWaitsForTheEndOfTheOneBefore) {
  for (const char* id : {"w1", "w2"}) Start(id).wants = true;
  Settle();
  Life& before = Of("w1");
  before.connected = false;
  Start("w1").wants = true;
  Settle();
  EXPECT_EQ(Of("w1").in_force, LimitShare{});
  before.works = false;
  before.marked = true;
  Settle();
  EXPECT_NEAR(Of("w1").in_force.rate, 50, 2);
}

TEST_F(LimitKeeperTest, AChangedLimitIsDividedAnew) {
  for (const char* id : {"w1", "w2"}) Start(id).wants = true;
  Settle();
  limit_.rate = 300;
  Settle();
  EXPECT_NEAR(Of("w1").in_force.rate, 150, 5);
  for (int turn = 0; turn < 3; ++turn) {
    Lead();
    for (Life& life : lives_)
      life.in_force.rate = std::min(life.in_force.rate, pages_[life.id].shares["h"].rate);
    limit_.rate = 40;
  }
  Settle();
  EXPECT_NEAR(Of("w1").in_force.rate, 20, 1);
}

TEST_F(LimitKeeperTest, FewerPlacesThanOwnersAreHeldByPermits) {
  limit_.concurrency = 2;
  for (const char* id : {"w1", "w2"}) Start(id).wants = true;
  Settle();
  EXPECT_EQ(Of("w1").in_force.concurrency, 1u);
  Start("w3").wants = true;
  Begin(Of("w1"), 1);
  Lead();
  for (const char* id : {"w2", "w3"}) Read(Of(id)), Tell(Of(id));
  Lead();
  EXPECT_EQ(pages_["w3"].shares["h"].permits, 1u);  // w1 has a place still
  Of("w1").running = 0;
  Settle();
  EXPECT_EQ(Of("w1").in_force.permits, 2u);
  EXPECT_EQ(Of("w3").in_force.permits, 2u);
  Of("w3").works = Of("w3").connected = Of("w3").present = false;
  Settle();
  EXPECT_EQ(Of("w1").in_force.permits, 2u);  // w3 may hold one
  Of("w3").marked = true;
  Settle();
  EXPECT_EQ(Of("w1").in_force, (LimitShare{.rate = Of("w1").in_force.rate, .concurrency = 1}));
}

TEST_F(LimitKeeperTest, WhatRunsWithAPermitTakesNoPermitAway) {
  limit_.concurrency = 2;
  for (const char* id : {"w1", "w2", "w3"}) Start(id).wants = true;
  Settle();
  ASSERT_EQ(Of("w2").in_force.permits, 2u);
  Begin(Of("w1"), 1);
  Tell(Of("w1"));
  writes_ = 0;
  for (int turn = 0; turn < 5; ++turn) Lead();
  EXPECT_EQ(writes_, 0);
  EXPECT_EQ(Room(Of("w2")), 1u);
}

TEST_F(LimitKeeperTest, AWorkerThatJoinsStopsNothingUntilALongTaskEnds) {
  limit_.concurrency = 3;
  for (const char* id : {"w1", "w2", "w3"}) Start(id).wants = true;
  Settle();
  Begin(Of("w1"), 1);
  Start("w4").wants = true;
  Settle();
  EXPECT_EQ(Of("w4").in_force.permits, 2u);
  EXPECT_EQ(Room(Of("w2")), 2u);
  Begin(Of("w4"), 2);
  EXPECT_EQ(Room(Of("w2")), 0u);
  Of("w1").running = 0;
  Settle();
  EXPECT_EQ(Room(Of("w2")), 1u);
}

TEST_F(LimitKeeperTest, NorDoesOneThatLeaves) {
  limit_.concurrency = 3;
  for (const char* id : {"w1", "w2", "w3", "w4"}) Start(id).wants = true;
  Settle();
  Begin(Of("w1"), 1);
  Life& leaver = Of("w4");
  leaver.works = leaver.connected = leaver.present = false;
  leaver.marked = true;
  Settle();
  for (const char* id : {"w2", "w3"}) EXPECT_EQ(Room(Of(id)), 1u) << id;
  EXPECT_EQ(Room(Of("w1")), 0u);
  Of("w1").held = 0;
  Settle();
  EXPECT_EQ(Room(Of("w1")), 1u);
}

TEST_F(LimitKeeperTest, APlaceOfOneThatIsCutOffLeavesNobodyWithNothing) {
  limit_.concurrency = 4;
  for (const char* id : {"w1", "w2", "w3", "w4"}) Start(id).wants = true;
  Settle();
  ASSERT_EQ(Of("w4").in_force.concurrency, 1u);
  Of("w4").connected = Of("w4").present = false;
  Start("w5").wants = true;
  Settle();
  for (const char* id : {"w1", "w2", "w3", "w5"}) EXPECT_EQ(Of(id).in_force.permits, 3u) << id;
  Begin(Of("w4"), 1);
  Begin(Of("w5"), 3);
  Of("w4").works = false;
  Of("w4").running = 0;
  Of("w4").marked = true;
  Of("w5").held = 0;
  Settle();
  for (const char* id : {"w1", "w2", "w3", "w5"}) EXPECT_EQ(Of(id).in_force.concurrency, 1u) << id;
}

// Few places, some of them with workers that nobody reaches; others come. What is left is within everybody's
// reach, and whoever is back has a part of it again.
TEST_F(LimitKeeperTest, WhatNobodyElseHoldsIsWithinReachOfAll) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    pages_.clear();
    lives_.clear();
    keeper_ = {};
    limit_.concurrency = 1 + random() % 6;
    int workers = 0;
    const auto reached = [&] {
      std::uint32_t held = 0;
      for (const Life& life : lives_) {
        if (life.present) continue;
        const AssignDocument& page = pages_.at(life.id);
        const auto places = [](const LimitShares& shares) {
          return shares.contains("h") ? shares.at("h").concurrency : 0;
        };
        held += std::max(places(page.shares), places(page.shares_before));  // as far as the leader can know
      }
      for (const Life& life : lives_) {
        if (!life.present || held >= limit_.concurrency) continue;
        EXPECT_GT(life.in_force.concurrency + life.in_force.permits, 0u) << where_ << ", " << life.id;
      }
    };
    for (int step = 0; step < 12; ++step) {
      where_ = "seed " + std::to_string(seed) + ", step " + std::to_string(step);
      if (workers < 2 || random() % 3 == 0) {
        Start("w" + std::to_string(++workers)).wants = true;
      } else {
        Life& life = lives_[random() % lives_.size()];
        life.connected = life.present = random() % 2 == 0;
      }
      for (Life& life : lives_) {
        const std::uint32_t ended = life.running > 0 ? random() % (life.running + 1) : 0;
        life.running -= ended;
        if (const std::uint32_t room = Room(life); room > 0) Begin(life, random() % (room + 1));
        if (random() % 2 == 0) life.held = 0;
      }
      ASSERT_NO_FATAL_FAILURE(Settle()) << where_;
      for (Life& life : lives_) {
        if (life.present) life.running = life.held = 0;
      }
      ASSERT_NO_FATAL_FAILURE(Settle()) << where_;
      reached();
      if (HasFailure()) return;
    }
  }
}

TEST_F(LimitKeeperTest, ASlowRateIsOneWorkersAtATimeAndMovesToWhoHasWork) {
  limit_ = {.rate = 1};
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Settle();
  Of("w2").wants = true;
  Settle();
  EXPECT_EQ(Of("w2").in_force.rate, 1);
  EXPECT_EQ(Of("w1").in_force.rate + Of("w3").in_force.rate, 0);
  Of("w2").saved = 0.25;
  Tell(Of("w2"));
  Lead();
  Of("w2").wants = false;
  Of("w3").wants = true;
  Settle();
  EXPECT_EQ(Of("w3").in_force.rate, 1);
  EXPECT_GT(Of("w3").in_force.saved, 0.25) << "what w2 had saved, and since then";
  Of("w3").works = Of("w3").connected = Of("w3").present = false;
  Of("w1").wants = true;
  Settle();
  EXPECT_EQ(Of("w1").in_force.rate, 0) << "w3 may work on";
  Of("w3").marked = true;
  Settle();
  EXPECT_EQ(Of("w1").in_force.rate, 1);
}

TEST_F(LimitKeeperTest, TheFirstToHaveASlowRateBeginsWithAStartAndTheNextWithWhatIsLeft) {
  limit_ = {.rate = 0.001};
  Life& first = Start("w1");
  Settle();
  EXPECT_EQ(first.in_force.rate, 0.001);
  EXPECT_EQ(first.in_force.saved, 1);
  Tell(first);  // its start is used up
  Lead();
  first.works = first.connected = false;
  first.marked = true;
  Start("w1");
  Settle();
  EXPECT_EQ(Of("w1").in_force.rate, 0.001);
  EXPECT_LT(Of("w1").in_force.saved, 0.1);
}

TEST_F(LimitKeeperTest, ARateThatBecomesSlowIsNeverMoreThanTheLimit) {
  limit_ = {.rate = 2.5};
  for (const char* id : {"w1", "w2"}) Start(id).wants = true;
  Settle();
  EXPECT_NEAR(Of("w1").in_force.rate, 1.25, 0.01);
  Start("w3").wants = true;
  Settle();
  double sum = 0;
  for (const char* id : {"w1", "w2", "w3"}) sum += Of(id).in_force.rate;
  EXPECT_NEAR(sum, 2.5, 0.01);
  EXPECT_EQ(std::min({Of("w1").in_force.rate, Of("w2").in_force.rate, Of("w3").in_force.rate}), 0);
}

TEST_F(LimitKeeperTest, OfASlowRateThatOneWorkerWantsTheIdleHaveNothingToSpeakOf) {
  limit_ = {.rate = 8};
  for (int i = 0; i < 10; ++i) Start("w" + std::to_string(i));
  Settle();
  Of("w9").wants = true;
  Settle();
  EXPECT_GE(Of("w9").in_force.rate, 7.8);
  int idle = 0;
  for (const Life& life : lives_) idle += life.id != "w9" && life.in_force.rate > 0;
  EXPECT_EQ(idle, 7) << "a small part each, to begin with";
  Of("w9").wants = false;
  Of("w3").wants = true;
  Settle();
  EXPECT_GE(Of("w3").in_force.rate, 7.8);
}

TEST_F(LimitKeeperTest, WhoUsesASlowRateKeepsItWhenAnotherBeginsToWantIt) {
  limit_ = {.rate = 3};
  for (const char* id : {"w1", "w2", "w3", "w4"}) Start(id);
  Settle();
  Of("w3").uses = 1;  // of the three that have it
  Of("w4").wants = true;
  Settle();
  EXPECT_NEAR(Of("w3").in_force.rate, 1.25, 0.1);
  EXPECT_NEAR(Of("w4").in_force.rate, 1.75, 0.1);
}

TEST_F(LimitKeeperTest, ALimitThatOnlyWorkersKnowIsDividedToo) {
  limited_ = false;
  for (const char* id : {"w1", "w2"}) {
    Start(id).wants = true;
    Of(id).follows = {{"h", {.rate = 100}}};
  }
  Settle();
  EXPECT_NEAR(Of("w1").in_force.rate, 50, 2);
  Of("w2").follows = {{"h", {.rate = 60, .concurrency = 4}}};
  Settle();
  EXPECT_NEAR(Of("w1").in_force.rate, 30, 2) << "the least of what they say";
  EXPECT_EQ(Of("w1").in_force.concurrency, 2u);
  limited_ = true;
  Settle();
  EXPECT_NEAR(Of("w1").in_force.rate, 50, 2) << "the leader's own word goes before theirs";
}

TEST_F(LimitKeeperTest, OfATypeThatHasNoLimitAnyMoreThePagesSayNothing) {
  Start("w1").wants = true;
  Settle();
  limited_ = false;
  Settle();
  EXPECT_EQ(pages_["w1"].shares, LimitShares{});
}

}  // namespace
}  // namespace millrace::engine

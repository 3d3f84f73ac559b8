#include "coordinator/coordination/election.h"

#include <gmock/gmock.h>

#include "coordinator/coordination/documents.h"
#include "tests/support/machine_room.h"
#include "tests/support/modelled_tree_test.h"

namespace millrace::engine {
namespace {

class ElectionTest : public testing::Test {
 protected:
  EpochDocument Epoch() { return *ReadEpoch(room_.Data("/epoch")); }

  MachineRoom room_;
  Election first_{"w1", "w1.a"};
  Election second_{"w2", "w2.b"};
};

TEST_F(ElectionTest, TheFirstToStandLeadsWithANewTerm) {
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  room_.Add(second_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
  EXPECT_FALSE(second_.Leading());
  EXPECT_EQ(Epoch().epoch, 1u);
  EXPECT_EQ(Epoch().leader, "w1");
}

TEST_F(ElectionTest, TheNextOneFollowsADeadLeader) {
  room_.Add(first_);
  room_.Settle();
  room_.Add(second_);
  room_.Settle();
  room_.Kill(first_);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(second_.Leading());
  EXPECT_EQ(second_.Leading()->epoch, 2u);
  EXPECT_EQ(Epoch().leader, "w2");
}

TEST_F(ElectionTest, TheTermOfAPausedLeaderIsRefused) {
  room_.Add(first_);
  room_.Settle();
  auto stale = first_.Guard();
  stale.push_back({TreeWrite::Kind::Create, "/assign/w9"});
  room_.Add(second_);
  room_.Settle();
  room_.Kill(first_);
  room_.Settle();
  EXPECT_EQ(room_.Write(stale), TreeStatus::Conflict);
  auto present = second_.Guard();
  present.push_back({TreeWrite::Kind::Create, "/assign/w9"});
  EXPECT_EQ(room_.Write(present), TreeStatus::Ok);
}

TEST_F(ElectionTest, ACreateWhoseReplyWasLostIsFoundAgain) {
  room_.LoseNextReply();
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
  EXPECT_EQ(Epoch().epoch, 1u);
}

TEST_F(ElectionTest, AnExpiredLeaderStandsBehindTheOthers) {
  room_.Add(first_);
  room_.Settle();
  room_.Add(second_);
  room_.Settle();
  room_.Expire(first_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_FALSE(first_.Leading());
  EXPECT_TRUE(second_.Leading());
  room_.Kill(second_);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  EXPECT_EQ(first_.Leading()->epoch, 3u);
}

TEST_F(ElectionTest, RubbishInTheEpochStopsNobody) {
  room_.Put("/epoch", "rubbish");
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
  EXPECT_EQ(Epoch().leader, "w1");
}

TEST_F(ElectionTest, ATermTakenByHandIsTakenBack) {
  room_.Add(first_);
  room_.Settle();
  room_.Put("/epoch", R"({"epoch":7})");
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  EXPECT_EQ(first_.Leading()->epoch, 8u);
}

TEST_F(ElectionTest, TermsGoOnWhereTheEpochIsDeleted) {
  room_.Put("/epoch", R"({"epoch":7})");
  room_.Add(first_);
  room_.Settle();
  ASSERT_EQ(first_.Leading()->epoch, 8u);
  room_.Delete("/epoch");
  ASSERT_TRUE(room_.Settle());
  EXPECT_FALSE(first_.Leading());
  room_.Put("/epoch", R"({"epoch":0})");  // as whoever misses it does
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  EXPECT_EQ(first_.Leading()->epoch, 9u);
}

TEST_F(ElectionTest, WhoFollowsALeaderKnowsItsTermThoughTheEpochIsDeleted) {
  room_.Put("/epoch", R"({"epoch":7})");
  room_.Add(first_);
  room_.Settle();
  room_.Add(second_);
  room_.Settle();
  room_.Delete("/epoch");
  room_.Kill(first_);
  room_.Put("/epoch", R"({"epoch":0})");
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(second_.Leading());
  EXPECT_GE(second_.Leading()->epoch, 9u);
}

TEST_F(ElectionTest, AWriteUnderWayIsRefusedThoughTheEpochWasDeletedAndHasTheSameVersionAgain) {
  room_.Add(first_);
  room_.Settle();
  auto stale = first_.Guard();
  stale.push_back({TreeWrite::Kind::Create, "/assign/w9"});
  room_.Kill(first_);
  room_.Delete("/epoch");
  room_.Put("/epoch", R"({"epoch":0})");
  room_.Add(second_);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(second_.Leading());
  ASSERT_EQ(room_.Version("/epoch"), stale.front().version);
  EXPECT_EQ(room_.Write(stale), TreeStatus::NotFound);
}

TEST_F(ElectionTest, ATermThatIsNotAboveWhatWasWrittenIsFollowedByOneThatIs) {
  room_.Add(first_);
  room_.Settle();
  first_.LeadAbove(41);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  EXPECT_EQ(first_.Leading()->epoch, 42u);
}

TEST_F(ElectionTest, WhatSomebodyMadeByHandBelowTheEpochStopsNobody) {
  room_.Put("/epoch/notes", "by hand");
  room_.Put("/epoch/notes/more", "by hand");
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  room_.Put("/epoch/w1.a/more", "by hand");
  room_.Put("/epoch", R"({"epoch":7})");
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  EXPECT_EQ(first_.Leading()->epoch, 8u);
}

TEST_F(ElectionTest, AnAbsurdTermIsRubbish) {
  room_.Put("/epoch", R"({"epoch":18446744073709551615})");
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  EXPECT_EQ(first_.Leading()->epoch, 2u);
}

TEST_F(ElectionTest, WithoutItsFolderItWaitsForWhoeverMakesThat) {
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  room_.Delete("/election");
  const int before = room_.writes();
  ASSERT_TRUE(room_.Settle());
  EXPECT_FALSE(first_.Leading());
  EXPECT_EQ(room_.writes(), before);
  room_.Put("/election", "");
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
}

TEST_F(ElectionTest, TheOldestLeadsWhateverItsSlot) {
  std::vector<std::unique_ptr<Election>> all;
  for (int i = 0; i < 4; ++i) {
    const std::string id = "w" + std::to_string(i);
    room_.Add(*all.emplace_back(std::make_unique<Election>(id, id + ".x")));
    ASSERT_TRUE(room_.Settle());
  }
  for (int dead = 0; dead < 3; ++dead) {
    room_.Kill(*all[dead]);
    ASSERT_TRUE(room_.Settle());
    EXPECT_TRUE(all[dead + 1]->Leading());
    const std::string id = "new" + std::to_string(dead);
    room_.Add(*all.emplace_back(std::make_unique<Election>(id, id + ".x")));
    ASSERT_TRUE(room_.Settle());
    EXPECT_TRUE(all[dead + 1]->Leading());
    EXPECT_FALSE(all.back()->Leading());
  }
}

// Of another program, or by hand: no session may ever end it.
TEST_F(ElectionTest, WhatIsNoCandidateKeepsNobodyFromLeading) {
  room_.Put("/election/w9.old", "w9");
  room_.Put("/election/0", "by hand");
  room_.Put("/election/8", "by hand");
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
}

TEST_F(ElectionTest, ACandidacyThatSomebodyRemovesIsTakenUpAgainBehindTheOthers) {
  room_.Add(first_);
  room_.Settle();
  room_.Add(second_);
  room_.Settle();
  for (int slot = 0; slot < 8; ++slot) {
    const std::string path = "/election/" + std::to_string(slot);
    if (room_.Has(path) && ReadCandidate(room_.Data(path))->id == "w1")
      room_.Write({{TreeWrite::Kind::Remove, path}});
  }
  ASSERT_TRUE(room_.Settle());
  EXPECT_FALSE(first_.Leading());
  ASSERT_TRUE(second_.Leading());
  room_.Kill(second_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
}

// Very many candidates.
class ManyCandidatesTest : public ModelledTreeTest {
 protected:
  struct Candidate {
    Candidate(ManyCandidatesTest& test, const std::string& id)
        : process{.name = id},
          election(id, id + ".x"),
          driver(test.timeline_, test.ensemble_, process, test.journal_, std::chrono::seconds(10),
                 {&election}) {}
    ModelledProcess process;
    Election election;
    TreeDriver driver;
  };

  ManyCandidatesTest() : ModelledTreeTest(7) {
    ensemble_.Observe([this](const TreeChanges& changes, std::int64_t) {
      most_ = std::max(most_, Standing());
      for (const std::string& path : changes.nodes) terms_ += path == "/epoch" ? 1 : 0;
    });
  }
  std::size_t Standing() {
    const auto& nodes = ensemble_.head().nodes();
    return std::distance(nodes.lower_bound("/election/"), nodes.lower_bound("/election0"));
  }
  std::vector<std::size_t> Leaders() {
    std::vector<std::size_t> leaders;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i] != nullptr && all_[i]->election.Leading()) leaders.push_back(i);
    }
    return leaders;
  }
  // One that stands dies; whether it led.
  bool KillOne(std::size_t which) {
    std::vector<std::size_t> standing;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i] != nullptr && Owns(all_[i]->driver.client().Session())) standing.push_back(i);
    }
    auto& dying = all_[standing[which % standing.size()]];
    const bool led = dying->election.Leading().has_value();
    const std::int64_t session = dying->driver.client().Session();
    dying->process.Die();
    ensemble_.ExpireSession(session);
    buried_.push_back(std::move(dying));
    return led;
  }
  bool Owns(std::int64_t session) {
    const auto& nodes = ensemble_.head().nodes();
    return std::any_of(nodes.lower_bound("/election/"), nodes.lower_bound("/election0"),
                       [&](const auto& entry) { return entry.second.owner == session; });
  }

  std::vector<std::unique_ptr<Candidate>> all_;
  std::vector<std::unique_ptr<Candidate>> buried_;  // the timeline may still hold events of theirs
  std::size_t most_ = 0;
  int terms_ = 0;
};

TEST_F(ManyCandidatesTest, AfterEachOfAHundredDeathsEightStandAtMostAndOneLeads) {
  for (int i = 0; i < 110; ++i) all_.push_back(std::make_unique<Candidate>(*this, "w" + std::to_string(i)));
  Pass(std::chrono::seconds(5));
  EXPECT_EQ(Standing(), Election::kSlots);
  ASSERT_EQ(Leaders().size(), 1u);
  int led = 1;
  for (int death = 0; death < 100; ++death) {
    led += KillOne(timeline_.random().Below(8)) ? 1 : 0;
    EXPECT_EQ(Standing(), Election::kSlots - 1);
    Pass(std::chrono::seconds(3));
    EXPECT_EQ(Standing(), Election::kSlots);
    EXPECT_EQ(Leaders().size(), 1u);
  }
  EXPECT_EQ(most_, Election::kSlots);
  EXPECT_EQ(terms_, led);  // nobody took the place of a leader who lived
}

TEST_F(ManyCandidatesTest, WhereAllThatStandDieTheOthersComeForwardAtOnce) {
  for (int i = 0; i < 60; ++i) all_.push_back(std::make_unique<Candidate>(*this, "w" + std::to_string(i)));
  Pass(std::chrono::seconds(5));
  for (std::size_t i = 0; i < Election::kSlots; ++i) KillOne(0);
  Pass(std::chrono::seconds(1));
  EXPECT_EQ(Leaders().size(), 1u);
  EXPECT_LE(most_, Election::kSlots);
}

}  // namespace
}  // namespace millrace::engine

#include "framework/mill/beat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driven_port.h"
#include "framework/testing/scratch_store.h"
#include "tests/unit/mill/start_time.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;

PeerBeat Peer(const std::string& id, std::optional<std::uint64_t> beat, Micros lease = seconds(10)) {
  PeerBeat peer;
  peer.incarnation.id = id;
  peer.incarnation.lease = lease;
  peer.beat = beat;
  return peer;
}

// Looks every two seconds from `from` to `to`; the ids named dead at the last look.
std::size_t Watch(PeerWatch& watch, int from, int to, const std::vector<PeerBeat>& peers) {
  std::size_t dead = 0;
  for (int second = from; second <= to; second += 2) {
    dead = watch.Observe(kStart + seconds(second), "me", peers).size();
  }
  return dead;
}

TEST(PeerWatchTest, ABeatThatStandsStillForItsLeaseIsDead) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 8, {Peer("a", 5)}), 0u);
  const auto dead = watch.Observe(kStart + seconds(10), "me", std::vector{Peer("a", 5)});
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].beat, 5u);
}

// A failover that loses commits brings a beat back to a number that was seen before it.
TEST(PeerWatchTest, WhatWasSeenBeforeCommitsWereLostCountsNoMore) {
  PeerWatch watch(seconds(4));
  std::uint64_t own = 20;
  for (int second = 0; second <= 8; second += 2)
    (void)watch.Observe(kStart + seconds(second), "me", std::vector{Peer("a", 5), Peer("me", ++own)});
  own -= 2;  // two renewals of its own are lost, and one of a's, who has renewed since
  EXPECT_TRUE(
      watch.Observe(kStart + seconds(10), "me", std::vector{Peer("a", 5), Peer("me", ++own)}).empty());
}

TEST(PeerWatchTest, TheLeaseIsThePeersOwn) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 28, {Peer("a", 5, seconds(30))}), 0u);
  EXPECT_EQ(Watch(watch, 30, 30, {Peer("a", 5, seconds(30))}), 1u);
}

TEST(PeerWatchTest, ABeatThatIsMissingForItsLeaseIsDead) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 8, {Peer("a", 5)}), 0u);
  EXPECT_EQ(Watch(watch, 10, 18, {Peer("a", std::nullopt)}), 0u);
  const auto dead = watch.Observe(kStart + seconds(20), "me", std::vector{Peer("a", std::nullopt)});
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_FALSE(dead[0].beat);
}

TEST(PeerWatchTest, AMovingBeatIsAlive) {
  PeerWatch watch(seconds(4));
  for (int second = 0; second < 100; second += 2) {
    const std::vector peers{Peer("a", static_cast<std::uint64_t>(second / 8))};
    EXPECT_TRUE(watch.Observe(kStart + seconds(second), "me", peers).empty()) << second;
  }
}

TEST(PeerWatchTest, OneselfIsNeverDead) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 100, {Peer("me", 5)}), 0u);
}

TEST(PeerWatchTest, AGapInOnesOwnRenewalsStartsTheWatchAnew) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 8, {Peer("a", 5)}), 0u);
  // An outage of the database, or a pause of this process: nothing was watched meanwhile.
  EXPECT_EQ(Watch(watch, 20, 28, {Peer("a", 5)}), 0u);
  EXPECT_EQ(Watch(watch, 30, 30, {Peer("a", 5)}), 1u);
}

TEST(PeerWatchTest, APeerThatWasGoneForALookIsWatchedFromItsReturn) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 8, {Peer("a", 5)}), 0u);
  EXPECT_EQ(Watch(watch, 10, 10, {}), 0u);
  EXPECT_EQ(Watch(watch, 12, 20, {Peer("a", 5)}), 0u);
  EXPECT_EQ(Watch(watch, 22, 22, {Peer("a", 5)}), 1u);
}

}  // namespace

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using News = Beat::News;

// A memory shard that may be away, or slow.
class BeatingShard final : public Driven<BeatPort> {
 public:
  BeatingShard(ManualClock& clock, ScratchStore& store)
      : Driven(clock), clock_(clock), store_(store.OpenIncarnations()) {}

  Reply<Status> Register(const Incarnation& self) override {
    Spend();
    if (std::exchange(loses_reply, false)) {
      (void)store_->Register(self);
      return Status(Fail(ErrorCode::Unknown, "the connection was lost"));
    }
    return away ? Status(Away()) : store_->Register(self);
  }
  Reply<Result<bool>> Renew(const std::string& id) override {
    Spend();
    if (revives) return Result<bool>(true);
    return away ? Result<bool>(Away()) : store_->Renew(id);
  }
  Reply<Result<std::vector<PeerBeat>>> Peers() override {
    return away ? Result<std::vector<PeerBeat>>(Away()) : store_->Peers();
  }
  Reply<Result<bool>> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) override {
    return store_->MarkDead(id, seen_beat);
  }
  Reply<Result<bool>> Retire(const std::string& id) override {
    return away || keeps ? Result<bool>(Away()) : store_->Retire(id);
  }

  bool away = false;
  bool loses_reply = false;  // of the next registration
  bool keeps = false;        // it can't end a life
  bool revives = false;      // a replica answers that has not heard of any life's end
  Micros takes{0};           // a registration or a renewal
  BootTime sent{};           // the last of them

 private:
  void Spend() {
    sent = clock_.Now();
    clock_.Advance(takes);
  }
  static Failure Away() { return Fail(ErrorCode::Unavailable, "the database is away"); }
  ManualClock& clock_;
  const std::unique_ptr<IncarnationStore> store_;
};

class BeatTest : public testing::Test {
 protected:
  Beat::Parts Parts() {
    Incarnation self;
    self.worker = "w";
    return {clock_, "memory:", self, engine_, lives_, marked_dead_, Random(1)};
  }
  std::vector<std::string> Alive() {
    std::vector<std::string> ids;
    const auto peers = others_->Peers();
    for (const PeerBeat& peer : *peers) ids.push_back(peer.incarnation.id);
    return ids;
  }
  std::vector<News> TakeNews() { return std::exchange(news_, {}); }

  ManualClock clock_;
  ScratchStore store_{clock_};
  const std::unique_ptr<IncarnationStore> others_ = store_.OpenIncarnations();
  LiveEngine engine_{EngineConfig{}};  // a lease of ten seconds, a beat every two
  Lives lives_;
  Counter marked_dead_;
  std::vector<News> news_;
  BeatingShard shard_{clock_, store_};
  Beat beat_{Parts(), shard_, [this](News news) { news_.push_back(news); }};
};

TEST_F(BeatTest, ItRegistersAndBeatsFiveTimesALease) {
  const Step<> strand = beat_.Run();
  ASSERT_TRUE(lives_.Own());
  const std::string id = lives_.Own()->incarnation();
  EXPECT_THAT(Alive(), ElementsAre(id));
  shard_.Go(seconds(10));
  EXPECT_EQ(others_->Peers()->at(0).beat, 5U);
  EXPECT_EQ(lives_.Own()->incarnation(), id);
  EXPECT_THAT(TakeNews(), ElementsAre(News::Born, News::Renewed, News::Renewed, News::Renewed, News::Renewed,
                                      News::Renewed));
}

// By then others may have watched its beat stand still for as long as it was under way.
TEST_F(BeatTest, ARegistrationAndARenewalCountFromWhenTheyWereSent) {
  shard_.takes = seconds(5);
  const Step<> strand = beat_.Run();
  const std::shared_ptr<Lease> life = lives_.Own();
  ASSERT_TRUE(life);
  EXPECT_TRUE(life->MayStart(shard_.sent + milliseconds(7'999)));
  EXPECT_FALSE(life->MayStart(shard_.sent + seconds(8)));
  const BootTime registered = shard_.sent;
  shard_.Go(seconds(1));
  ASSERT_GT(shard_.sent, registered);
  EXPECT_TRUE(life->MayStart(shard_.sent + milliseconds(7'999)));
  EXPECT_FALSE(life->MayStart(shard_.sent + seconds(8)));
}

TEST_F(BeatTest, AShardThatIsAwayIsTriedUntilItTakesTheRegistration) {
  shard_.away = true;
  const Step<> strand = beat_.Run();
  shard_.Go(seconds(20));
  EXPECT_FALSE(lives_.Own());
  EXPECT_EQ(lives_.Trouble(), "the database is away");
  shard_.away = false;
  shard_.Go(seconds(2));
  EXPECT_TRUE(lives_.Own());
  EXPECT_EQ(lives_.Trouble(), "");
}

TEST_F(BeatTest, ARegistrationWhoseReplyWasLostIsEndedBeforeTheNext) {
  shard_.loses_reply = true;
  const Step<> strand = beat_.Run();
  EXPECT_FALSE(lives_.Own());
  shard_.Go(seconds(2));
  ASSERT_TRUE(lives_.Own());
  EXPECT_THAT(Alive(), ElementsAre(lives_.Own()->incarnation()));
}

TEST_F(BeatTest, ALifeThatWasEndedByOthersIsFollowedByANewOne) {
  const Step<> strand = beat_.Run();
  const std::shared_ptr<Lease> first = lives_.Own();
  (void)others_->Retire(first->incarnation());
  shard_.Go(seconds(2));
  EXPECT_FALSE(first->Alive());
  ASSERT_TRUE(lives_.Own());
  EXPECT_NE(lives_.Own()->incarnation(), first->incarnation());
  EXPECT_THAT(TakeNews(), ElementsAre(News::Born, News::Died, News::Born, News::PeerGone));
}

TEST_F(BeatTest, ALifeThatIsGivenUpIsNotTakenUpAgainWhereItsEndWasLost) {
  const Step<> strand = beat_.Run();
  const std::shared_ptr<Lease> first = lives_.Own();
  (void)others_->Retire(first->incarnation());
  shard_.keeps = true;
  shard_.Go(seconds(4));
  EXPECT_FALSE(lives_.Own());
  shard_.keeps = false;
  shard_.revives = true;
  shard_.Go(seconds(4));
  ASSERT_TRUE(lives_.Own());
  EXPECT_TRUE(lives_.Own()->Alive());
  EXPECT_NE(lives_.Own()->incarnation(), first->incarnation());
}

TEST_F(BeatTest, AClaimThatWasRefusedAsOneOfTheDeadMakesItLookAtOnce) {
  const Step<> strand = beat_.Run();
  const std::shared_ptr<Lease> first = lives_.Own();
  (void)others_->Retire(first->incarnation());
  shard_.Wake();
  shard_.Go(Micros(0));
  EXPECT_FALSE(first->Alive());
}

TEST_F(BeatTest, APeerWhoseBeatStandsStillForItsWholeLeaseIsMarkedDead) {
  Incarnation still;
  still.id = "other.1";
  still.lease = seconds(10);
  ASSERT_TRUE(others_->Register(still));
  const Step<> strand = beat_.Run();
  shard_.Go(seconds(8));
  EXPECT_THAT(Alive(), Contains("other.1"));
  EXPECT_TRUE(lives_.Live()->contains("other.1"));
  shard_.Go(seconds(4));
  EXPECT_THAT(Alive(), Not(Contains("other.1")));
  EXPECT_FALSE(lives_.Live()->contains("other.1"));
  EXPECT_EQ(marked_dead_.Value(), 1U);
  EXPECT_THAT(TakeNews(), Contains(News::PeerGone));
}

TEST_F(BeatTest, AnOutageOfTheDatabaseKillsNobody) {
  Incarnation peer;
  peer.id = "other.1";
  peer.lease = seconds(10);
  ASSERT_TRUE(others_->Register(peer));
  const Step<> strand = beat_.Run();
  shard_.Go(seconds(6));
  shard_.away = true;
  shard_.Go(seconds(30));
  shard_.away = false;
  shard_.Go(seconds(8));
  EXPECT_THAT(Alive(), Contains("other.1")) << "it could not beat either";
}

TEST_F(BeatTest, AnOrderlyEndSignsOff) {
  const Step<> strand = beat_.Run();
  const std::shared_ptr<Lease> life = lives_.Own();
  beat_.Stop(true);
  shard_.Go(Micros(0));
  EXPECT_TRUE(strand.Done());
  EXPECT_FALSE(life->Alive());
  EXPECT_THAT(Alive(), ElementsAre());
}

}  // namespace

}  // namespace millrace::engine

#include "coordinator/member/cluster_control_plane.h"

#include <gmock/gmock.h>

#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::SizeIs;

class ClusterControlPlaneTest : public testing::Test {
 protected:
  ClusterControlPlane::Options Options() {
    return {.lost = [this] { return lost_; },
            .open = [this](const ShardConfig& shard, Micros) -> Result<std::unique_ptr<Store>> {
              if (shard.password_file == "/missing") return Fail(ErrorCode::Invalid, "no password file");
              ++opened_;
              return std::make_unique<ScratchStore>(clock_, ScratchStore::Bare{});
            }};
  }
  void Configure(ClusterControlPlane& plane, std::map<std::string, ShardConfig> shards) {
    Config config;
    config.shards = std::move(shards);
    view_.config = std::make_shared<const Config>(std::move(config));
    plane.Publish(view_);
  }

  const SystemClock clock_{};
  MemberView view_;
  bool lost_ = false;
  int opened_ = 0;
};

TEST_F(ClusterControlPlaneTest, ShardsAreOpenedAsTheConfigurationChanges) {
  ClusterControlPlane plane(Options());
  Configure(plane, {{"east", {.url = "mysql://u@east/tasks"}}, {"west", {.url = "mysql://u@west/tasks"}}});
  const StoresByShard before = plane.Shards();
  EXPECT_THAT(before, ElementsAre(Key("east"), Key("west")));
  // What says nothing of where the store is opens nothing; another address does; what is gone goes.
  Configure(plane, {{"east", {.url = "mysql://u@east/tasks", .slices = 8}}});
  EXPECT_EQ(plane.Shards(), (StoresByShard{{"east", before.at("east")}}));
  Configure(plane, {{"east", {.url = "mysql://u@other/tasks"}}});
  EXPECT_NE(plane.Shards().at("east"), before.at("east"));
  EXPECT_EQ(opened_, 3);
}

TEST_F(ClusterControlPlaneTest, SharesAreToldAtOnceAndWhenTheyChange) {
  ClusterControlPlane plane(Options());
  std::vector<LimitShares> told;
  plane.FollowShares([&](std::shared_ptr<const LimitShares> shares) { told.push_back(*shares); });
  EXPECT_THAT(told, ElementsAre(IsEmpty()));
  view_.shares = std::make_shared<const LimitShares>(LimitShares{{"mail", {.rate = 5}}});
  plane.Publish(view_);
  plane.Publish(view_);
  EXPECT_THAT(told, ElementsAre(IsEmpty(), ElementsAre(Key("mail"))));
  plane.FollowShares(nullptr);
  view_.shares = std::make_shared<const LimitShares>();
  plane.Publish(view_);
  EXPECT_THAT(told, SizeIs(2));
}

TEST_F(ClusterControlPlaneTest, WhoFollowsChangesHearsOfEachViewAndOfEachNewWordOfBreakers) {
  ClusterControlPlane plane(Options());
  Signal first;
  Signal second;
  plane.FollowChanges({&first, &second});
  const auto heard = [&] { return first.WaitFor(Micros(0)) && second.WaitFor(Micros(0)); };
  plane.Publish(view_);
  EXPECT_TRUE(heard());
  plane.Publish(BreakerWords{});
  EXPECT_TRUE(heard());
  plane.Publish(BreakerWords{});
  EXPECT_FALSE(heard()) << "the nodes were read again, and say the same";
  plane.Publish(BreakerWords{{"mail", {.opening = 1}}});
  EXPECT_TRUE(heard());
  plane.Publish(BreakerWords{{"mail", {.opening = 1}}});
  EXPECT_FALSE(heard());
  plane.Publish(BreakerWords{{"mail", {.opening = 1, .turn = 2}}});
  EXPECT_TRUE(heard());
  plane.Publish(BreakerWords{});
  EXPECT_TRUE(heard());
  plane.FollowChanges({});
  plane.Publish(view_);
  EXPECT_FALSE(heard());
}

TEST_F(ClusterControlPlaneTest, WhoIsRegisteredAnewWhileItsSessionMayBeOverHasNoShareUntilItHasReadItAgain) {
  ClusterControlPlane plane(Options());
  LimitShares told;
  plane.FollowShares([&](std::shared_ptr<const LimitShares> shares) { told = *shares; });
  view_.contact = true;
  view_.shares = std::make_shared<const LimitShares>(LimitShares{{"mail", {.rate = 5}}});
  plane.Publish(view_);
  plane.LifeBegun();
  EXPECT_THAT(told, SizeIs(1));  // nobody takes it for dead: its session lives
  lost_ = true;
  plane.LifeBegun();
  EXPECT_THAT(told, IsEmpty());
  plane.ReadAnew();  // by what it read before it was stopped
  EXPECT_THAT(told, IsEmpty());
  lost_ = false;
  plane.Publish(view_);
  EXPECT_THAT(told, IsEmpty());  // that was read before
  plane.ReadAnew();
  EXPECT_THAT(told, SizeIs(1));
}

TEST_F(ClusterControlPlaneTest, AShardThatIsRefusedKeepsItsLastGoodStoreAndIsTold) {
  ClusterControlPlane plane(Options());
  Configure(plane, {{"main", {.url = "mysql://u@h/tasks"}}});
  const StoresByShard before = plane.Shards();
  Configure(plane, {{"main", {.url = "mysql://u@h/tasks", .password_file = "/missing"}},
                    {"file", {.url = "sqlite:x.db"}}});
  EXPECT_EQ(plane.Shards(), before);
  const auto refusals = plane.Refusals();
  ASSERT_THAT(refusals, SizeIs(2));
  EXPECT_EQ(refusals.at("main"), "no password file");
  EXPECT_THAT(refusals.at("file"), HasSubstr("a cluster's shard is on a server"));
  EXPECT_THAT(ServableShards(*plane.CurrentConfig()), ElementsAre("main"));
  Configure(plane, {{"main", {.url = "mysql://u@h/tasks"}}});
  EXPECT_EQ(plane.Shards(), before);
  EXPECT_THAT(plane.Refusals(), IsEmpty());
}

TEST_F(ClusterControlPlaneTest, AWorkerThatWaitsForItsFirstAssignmentIsShownNoShardBefore) {
  auto options = Options();
  options.first_assignment = hours(1);
  ClusterControlPlane plane(std::move(options));
  Configure(plane, {{"main", {.url = "mysql://u@h/tasks"}}});
  EXPECT_THAT(plane.Shards(), IsEmpty());
  EXPECT_THAT(plane.Opened(), SizeIs(1));  // a leader plans with them all the same
  view_.generation = 1;
  plane.Publish(view_);
  EXPECT_THAT(plane.Shards(), SizeIs(1));
}

TEST_F(ClusterControlPlaneTest, NothingIsScannedWithoutASessionWhereTheConfigurationSaysSo) {
  ClusterControlPlane plane(Options());
  view_.slices = std::make_shared<const SlicesByShard>(SlicesByShard{{"main", {{"tasks", false, {3}}}}});
  plane.Publish(view_);
  lost_ = true;
  EXPECT_THAT(plane.Slices("main"), SizeIs(1));
  EXPECT_THAT(plane.Slices("other"), IsEmpty());
  Config config;
  config.engine.on_zookeeper_loss = OnZooKeeperLoss::Stop;
  view_.config = std::make_shared<const Config>(std::move(config));
  plane.Publish(view_);
  EXPECT_THAT(plane.Slices("main"), IsEmpty());
  lost_ = false;
  EXPECT_THAT(plane.Slices("main"), SizeIs(1));
}

TEST_F(ClusterControlPlaneTest, ABreakerThatWasOpenedByHandIsNoneThatOpenedByItself) {
  ClusterControlPlane plane(Options());
  Pauses pauses;
  ASSERT_TRUE(pauses.Add("breaker:mail:open"));
  view_.pauses = std::make_shared<const Pauses>(pauses);
  plane.Publish(view_);
  BreakerWords words;
  words["call"].why = "20 of 20 calls failed";
  plane.Publish(words);
  EXPECT_EQ(plane.OpenBreakers(), (std::map<std::string, std::string>{{"call", "20 of 20 calls failed"}}));
}

}  // namespace
}  // namespace millrace::engine

// Three servers, of which one or two go.
#include <gmock/gmock.h>

#include "tests/integration/zookeeper/zookeeper_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using Kind = TreeEvent::Kind;

class EnsembleTest : public ZookeeperTest {
 protected:
  EnsembleTest() { timeout_ = seconds(10); }

  std::size_t Leader() const {
    for (std::size_t i = 0; i < ensemble_.size(); ++i) {
      if (ensemble_.Mode(i) == "leader") return i;
    }
    return ensemble_.size();
  }

  PrivateZookeeper ensemble_{3};
};

TEST_F(EnsembleTest, ASessionOutlivesItsServerAndTheLeader) {
  auto session = Connect(Options(ensemble_.servers()));
  ASSERT_EQ(session->Perform(Write({CreateEphemeral("/e", "0")})).status, TreeStatus::Ok);
  const std::int64_t number = session->Perform(Get("/e")).node.owner;

  const std::size_t mine = ensemble_.ServerOf(number);
  ASSERT_LT(mine, ensemble_.size());
  ensemble_.Kill(mine);
  const auto connected = AwaitEvent(*session, Kind::Connected, kSoon);
  ASSERT_TRUE(connected);
  EXPECT_EQ(connected->session, number);
  EXPECT_EQ(Persist(*session, Write({Set("/e", "1", 0)})).status, TreeStatus::Ok);
  ensemble_.Start(mine);
  ensemble_.WaitServing();

  ensemble_.Kill(Leader());
  EXPECT_EQ(Persist(*session, Write({Check("/e", 1), Create("/after")})).status, TreeStatus::Ok);
  const TreeNode node = Persist(*session, Get("/e")).node;
  EXPECT_EQ(node.owner, number);
  EXPECT_EQ(node.data, "1");
}

TEST_F(EnsembleTest, WithoutAMajorityNothingIsReadOrWrittenUntilThereIsOneAgain) {
  auto session = Connect(Options(ensemble_.servers()));
  ASSERT_EQ(session->Perform(Write({Create("/a", "0")})).status, TreeStatus::Ok);
  ensemble_.Kill(0);
  ensemble_.Kill(1);
  // A leader without followers takes a moment to notice that it is none.
  while (!ensemble_.Mode(2).empty()) (void)session->WaitEvent(std::chrono::milliseconds(20));
  (void)AwaitEvent(*session, Kind::Connected, seconds(1));
  EXPECT_EQ(session->Perform(Get("/a")).status, TreeStatus::Lost);
  EXPECT_EQ(session->Perform(Write({Set("/a", "1")})).status, TreeStatus::Lost);
  ensemble_.Start(0);
  EXPECT_EQ(Persist(*session, Get("/a")).node.data, "0");
  EXPECT_EQ(Persist(*session, Write({Set("/a", "1")})).status, TreeStatus::Ok);
}

}  // namespace
}  // namespace millrace::engine

// One server that stands still, goes and comes back; a client that stands still and goes.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "tests/integration/zookeeper/held_session.h"
#include "tests/integration/zookeeper/zookeeper_fixture.h"
#include "tests/support/tcp_proxy.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = TreeEvent::Kind;

PrivateZookeeper& Ensemble() {
  static PrivateZookeeper ensemble;
  return ensemble;
}

class OutageTest : public ZookeeperTest {
 protected:
  ZookeeperOptions Here() const { return Options(Ensemble().servers()); }
};

TEST_F(OutageTest, NoCallOutlastsTheSessionsTime) {
  auto session = Connect(Here());
  Ensemble().Pause(0);
  BootTime start = BootClock::now();
  EXPECT_EQ(session->Perform(Get("/")).status, TreeStatus::Lost);
  EXPECT_LE(BootClock::now() - start, timeout_ + milliseconds(200));
  ASSERT_TRUE(AwaitEvent(*session, Kind::Disconnected, kSoon));
  start = BootClock::now();
  EXPECT_EQ(session->Perform(Write({Create("/a")})).status, TreeStatus::Lost);
  EXPECT_LE(BootClock::now() - start, milliseconds(200)) << "what can't be sent need not be waited for";
  Ensemble().Resume(0);
  EXPECT_EQ(Persist(*session, Get("/")).status, TreeStatus::Ok);
}

TEST_F(OutageTest, APauseOfTheServersBeyondTheSessionsTimeIsSeenByTheAgeOfTheContactAlone) {
  auto session = Connect(Here());
  Ensemble().Pause(0);
  const BootTime start = BootClock::now();
  while (BootClock::now() - start < timeout_ + milliseconds(500)) {
    const auto event = session->WaitEvent(milliseconds(50));
    EXPECT_TRUE(!event || event->kind == Kind::Disconnected);
  }
  EXPECT_GT(BootClock::now() - session->LastContact(), session->Timeout());
  Ensemble().Resume(0);
  EXPECT_EQ(Persist(*session, Get("/")).status, TreeStatus::Ok);
  EXPECT_LT(BootClock::now() - session->LastContact(), session->Timeout());
}

TEST_F(OutageTest, ARestartedServerKnowsTheSessionAndItsNodes) {
  timeout_ = seconds(20);
  auto session = Connect(Here());
  ASSERT_EQ(session->Perform(Write({CreateEphemeral("/e")})).status, TreeStatus::Ok);
  const TreeNode before = session->Perform(Get("/e")).node;
  Ensemble().Kill(0);
  ASSERT_TRUE(AwaitEvent(*session, Kind::Disconnected, kSoon));
  EXPECT_EQ(session->Perform(Get("/e")).status, TreeStatus::Lost);
  Ensemble().Start(0);
  const auto connected = AwaitEvent(*session, Kind::Connected, 2 * kSoon);
  ASSERT_TRUE(connected);
  EXPECT_EQ(connected->session, before.owner);
  EXPECT_EQ(session->Perform(Get("/e")).node, before);
}

TEST_F(OutageTest, AServerThatTakesAConnectionAndForgetsItDoesNotHoldUpTheSessionForLong) {
  timeout_ = seconds(8);
  TcpProxy proxy(Ensemble().port(), TcpProxy::Protocol::Zookeeper);
  auto session = Connect(Options("127.0.0.1:" + std::to_string(proxy.port())));
  ASSERT_EQ(session->Perform(Write({CreateEphemeral("/e")})).status, TreeStatus::Ok);
  const TreeNode before = session->Perform(Get("/e")).node;
  proxy.Close();
  ASSERT_TRUE(AwaitEvent(*session, Kind::Disconnected, kSoon));
  proxy.Arm(TcpProxy::Evil::Delay, "");  // the request for the session, which comes first
  const BootTime start = BootClock::now();
  proxy.Reopen();
  const auto connected = AwaitEvent(*session, Kind::Connected, kSoon);
  ASSERT_TRUE(connected);
  EXPECT_EQ(proxy.done(), 1);
  EXPECT_LT(BootClock::now() - start, timeout_ / 2);
  EXPECT_EQ(connected->session, before.owner);
  EXPECT_EQ(session->Perform(Get("/e")).node, before);
}

TEST_F(OutageTest, AnEnsembleThatIsAwayAtTheStartIsTriedUntilItIsThere) {
  ASSERT_TRUE(PrepareZookeeper(Here(), kSoon));
  Ensemble().Kill(0);
  auto session = Open(Here());
  EXPECT_FALSE(AwaitEvent(*session, Kind::Connected, milliseconds(300)));
  Ensemble().Start(0);
  EXPECT_TRUE(AwaitEvent(*session, Kind::Connected, 2 * kSoon));
  EXPECT_EQ(session->Perform(Get("/epoch")).status, TreeStatus::Ok);
}

TEST_F(OutageTest, TheDigestGoesWithEveryNewConnectionAndSession) {
  const std::string file = testing::TempDir() + "zk-auth-" + cluster_;
  std::ofstream(file) << "millrace:secret";
  chmod(file.c_str(), 0600);
  TcpProxy proxy(Ensemble().port(), TcpProxy::Protocol::Zookeeper);
  timeout_ = seconds(1);
  ZookeeperOptions options = Options("127.0.0.1:" + std::to_string(proxy.port()));
  options.auth_file = file;
  auto session = Connect(options);
  std::remove(file.c_str());
  ASSERT_EQ(session->Perform(Write({Create("/private")})).status, TreeStatus::Ok);
  proxy.CutAll();
  ASSERT_TRUE(AwaitEvent(*session, Kind::Connected, kSoon));
  EXPECT_EQ(session->Perform(Get("/private")).status, TreeStatus::Ok);
  proxy.Close();
  std::this_thread::sleep_for(session->Timeout() + milliseconds(600));
  proxy.Reopen();
  ASSERT_TRUE(AwaitEvent(*session, Kind::Expired, kSoon));
  ASSERT_TRUE(AwaitEvent(*session, Kind::Connected, kSoon));
  EXPECT_EQ(session->Perform(Get("/private")).status, TreeStatus::Ok);
}

TEST_F(OutageTest, AClientThatWasPausedFindsItsContactOldBeforeItDoesAnything) {
  auto session = Connect(Here());
  HeldSession held(Ensemble().servers(), cluster_, seconds(1), "/held");
  ASSERT_EQ(session->Perform(Get("/held", true)).status, TreeStatus::Ok);
  held.Pause();
  ASSERT_TRUE(AwaitEvent(*session, Kind::Changed, kSoon)) << "its session never ended";
  held.Ask();
  held.Resume();
  const std::string report = held.ReadLine();
  EXPECT_GE(std::stol(report), 1000) << report;
  EXPECT_THAT(report, testing::AnyOf(testing::HasSubstr(ToString(TreeStatus::Lost)),
                                     testing::HasSubstr(ToString(TreeStatus::Expired))));
}

TEST_F(OutageTest, AKilledClientIsMissedSoonAfterItsTime) {
  auto session = Connect(Here());
  HeldSession held(Ensemble().servers(), cluster_, seconds(1), "/held");
  ASSERT_EQ(session->Perform(Get("/held", true)).status, TreeStatus::Ok);
  const BootTime start = BootClock::now();
  held.Kill();
  ASSERT_TRUE(AwaitEvent(*session, Kind::Changed, kSoon));
  EXPECT_LE(BootClock::now() - start, seconds(2));
  EXPECT_EQ(session->Perform(Get("/held")).status, TreeStatus::NotFound);
}

}  // namespace
}  // namespace millrace::engine

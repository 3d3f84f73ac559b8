// The driver on a real ensemble: a machine that keeps a node of its own, whatever becomes of the session.
#include "coordinator/coordination/driver.h"

#include <gmock/gmock.h>

#include "tests/integration/zookeeper/zookeeper_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Makes an ephemeral node in every session, and asks for nothing else.
class KeepingMachine final : public TreeMachine {
 public:
  void Event(const TreeEvent& event, BootTime) override {
    if (event.kind == TreeEvent::Kind::Connected) wanted_ = true;
  }
  std::optional<TreeRequest> Next(BootTime) override {
    if (!wanted_) return std::nullopt;
    return Write({CreateEphemeral("/workers/w1")});
  }
  void Replied(const TreeRequest&, const TreeReply& reply, BootTime) override {
    wanted_ = reply.status != TreeStatus::Ok && reply.status != TreeStatus::Exists;
  }
  BootTime WakeAt(BootTime now) const override { return now + seconds(60); }

 private:
  bool wanted_ = false;
};

class DriverOnZookeeperTest : public CutZookeeperTest {
 protected:
  // Until the node's owner is the driver's present session.
  static void ExpectKept(TreeSession& eyes, const Driver& driver) {
    const BootTime end = BootClock::now() + kSoon;
    while (BootClock::now() < end) {
      const TreeReply reply = eyes.Perform(Get("/workers/w1", true));
      const SessionView view = driver.View();
      if (reply.status == TreeStatus::Ok && view.connected && reply.node.owner == view.session) return;
      (void)eyes.WaitEvent(milliseconds(50));
    }
    ADD_FAILURE() << "the node is not kept";
  }

  KeepingMachine machine_;
};

TEST_F(DriverOnZookeeperTest, AMachineKeepsItsNodeThroughCutsAndExpiriesUntilTheStop) {
  timeout_ = seconds(1);
  auto eyes = Eyes();
  Driver driver = Drive(machine_);
  ASSERT_TRUE(driver.Start());
  ExpectKept(*eyes, driver);
  const std::int64_t first = driver.View().session;

  proxy_.CutAll();
  ExpectKept(*eyes, driver);
  EXPECT_EQ(driver.View().session, first);

  proxy_.Close();
  while (eyes->Perform(Get("/workers/w1")).status == TreeStatus::Ok) (void)eyes->WaitEvent(milliseconds(50));
  EXPECT_GT(BootClock::now() - driver.View().last_contact, driver.View().timeout);
  proxy_.Reopen();
  ExpectKept(*eyes, driver);
  EXPECT_NE(driver.View().session, first);

  driver.Stop();
  EXPECT_EQ(eyes->Perform(Get("/workers/w1")).status, TreeStatus::NotFound);
}

}  // namespace
}  // namespace millrace::engine

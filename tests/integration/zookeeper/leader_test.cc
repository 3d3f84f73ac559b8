// A leader amid thousands of workers on a real server: what the unit tests show on the modelled one.
#include "coordinator/leader/leader.h"

#include <gmock/gmock.h>

#include "tests/integration/zookeeper/zookeeper_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kWorkers = 3000;
#ifdef __SANITIZE_THREAD__
constexpr seconds kSoon(30);
#else
constexpr seconds kSoon(10);
#endif

class LeaderOnZookeeperTest : public CutZookeeperTest {
 protected:
  static std::string Name(int worker) { return "w" + std::to_string(10'000 + worker); }

  // Workers that are there, each with a slice of its own already.
  static void Populate(TreeSession& session) {
    std::vector<TreeRequest> requests;
    for (int worker = 0; worker < kWorkers; ++worker) {
      const AssignDocument assigned{1, 1, {"main/tasks/" + std::to_string(worker)}};
      const WorkerDocument document{.host = "h", .pid = 1, .incarnation = Name(worker) + ".a"};
      if (worker % 50 == 0) requests.push_back(Write({}));
      requests.back().writes.push_back(Create("/assign/" + Name(worker), ToText(assigned)));
      requests.back().writes.push_back(Create("/workers/" + Name(worker), ToText(document)));
    }
    for (const TreeReply& reply : session.PerformAll(requests)) ASSERT_EQ(reply.status, TreeStatus::Ok);
  }
  // How long it takes until a worker that has just gone has no slices; twenty seconds: too long.
  static Micros UntilTaken(TreeSession& eyes, int worker) {
    const BootTime begin = BootClock::now();
    EXPECT_EQ(eyes.Perform(Write({Remove("/workers/" + Name(worker))})).status, TreeStatus::Ok);
    while (BootClock::now() - begin < seconds(20)) {
      const TreeReply page = eyes.Perform(Get("/assign/" + Name(worker), true));
      if (page.status == TreeStatus::NotFound) break;  // and tidied away
      const auto document = ReadAssign(page.node.data);
      if (page.status == TreeStatus::Ok && document && document->slices.empty()) break;
      (void)eyes.WaitEvent(milliseconds(50));
    }
    return BootClock::now() - begin;
  }

  LeaderFacts facts_;
};

TEST_F(LeaderOnZookeeperTest, ALeaderOfThreeThousandPlansWithinSecondsAlsoAfterACut) {
  timeout_ = seconds(3);
  auto eyes = Eyes();
  Populate(*eyes);
  facts_.catalog = std::make_shared<const TableCatalog>(TableCatalog{{{"main", "tasks", kWorkers}}, {}});
  Leader leader({"leader", "leader.a", {.session_timeout = timeout_}}, {[this] { return facts_; }, {}});
  Driver driver = Drive(leader);
  const BootTime begin = BootClock::now();
  ASSERT_TRUE(driver.Start());
  // The node `plan` is written with the first decision.
  while (eyes->Perform(Get("/plan", true)).status != TreeStatus::Ok && BootClock::now() - begin < seconds(20))
    (void)eyes->WaitEvent(milliseconds(50));
  const Micros read = BootClock::now() - begin;
  EXPECT_LT(read, kSoon);
  const Micros first = UntilTaken(*eyes, 7);
  EXPECT_LT(first, kSoon);
  proxy_.CutAll();
  const Micros second = UntilTaken(*eyes, 8);
  EXPECT_LT(second, kSoon);
  driver.Stop();
  RecordProperty("read_ms", static_cast<int>(read.count() / 1000));
  RecordProperty("first_ms", static_cast<int>(first.count() / 1000));
  RecordProperty("after_cut_ms", static_cast<int>(second.count() / 1000));
}

}  // namespace
}  // namespace millrace::engine

#include "framework/worker/tender.h"

#include <gtest/gtest.h>

#include "framework/exec/hand_over.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/memory_incarnation_store.h"

namespace millrace::engine {
namespace {

constexpr Micros kLongest = std::chrono::seconds(2);  // between two sweeps

// A shard without tasks: of it only the map of all slices is asked, for which it takes its time.
class EmptyStore final : public TaskStore {
 public:
  EmptyStore(ManualClock& clock, std::atomic<int>& asked, const Micros& takes)
      : clock_(clock), asked_(asked), takes_(takes) {}

  Result<DueMap> Due(std::span<const TableSlices>) override {
    ++asked_;
    clock_.Advance(takes_);
    return DueMap{};
  }

  Result<std::vector<ScanRow>> Scan(const ScanRequest&) override { return None(); }
  Result<std::vector<Task>> Claim(const ClaimRequest&) override { return None(); }
  Result<std::vector<Task>> Resolve(const ClaimRequest&) override { return None(); }
  Result<std::vector<Task>> Adopt(const ClaimRequest&) override { return None(); }
  Result<std::vector<std::uint64_t>> Rescue(const RescueRequest&) override { return None(); }
  Result<std::vector<KeyVerdict>> ConfirmKeys(const std::string&, std::span<const Task>) override {
    return None();
  }
  Result<std::vector<std::uint64_t>> FailUnclaimed(const ClaimRequest&, const std::string&) override {
    return None();
  }
  Result<std::vector<TaskKey>> Cancelled(const std::string&, std::span<const TaskKey>) override {
    return None();
  }
  Result<std::vector<TaskKey>> SaveProgress(const std::string&, std::span<const TaskProgress>) override {
    return None();
  }
  Result<SettleReport> Settle(const std::string&, std::span<const Settlement>) override { return None(); }
  Result<std::vector<bool>> StillRunning(const std::string&, std::span<const Settlement>) override {
    return None();
  }

 private:
  static tl::unexpected<Error> None() { return Fail(ErrorCode::Internal, "not asked for in this test"); }

  ManualClock& clock_;
  std::atomic<int>& asked_;
  const Micros& takes_;
};

// Each sweep ends with a look at the newest map: it is told.
class Host final : public TenderHost {
 public:
  explicit Host(std::shared_ptr<Lease> life) : life_(std::move(life)) {}

  std::shared_ptr<Lease> Life() const override { return life_; }
  std::shared_ptr<const std::set<std::string>> LivePeers() const override {
    return std::make_shared<const std::set<std::string>>();
  }
  std::shared_ptr<const DueMap> LatestMap() const override {
    swept_.Push(true);
    return nullptr;
  }
  std::vector<Incarnation> Peers() const override { return {}; }
  void Buried(const std::string&) override {}
  void Adopted(std::vector<Task>, const std::shared_ptr<Lease>&) override {}
  void Rescued(std::size_t) override {}

  void AwaitSweep() {
    EXPECT_EQ(swept_.Take(1, std::chrono::seconds(20)).size(), 1U) << "the tender did not sweep";
  }

 private:
  const std::shared_ptr<Lease> life_;
  mutable HandOver<bool> swept_;
};

class TenderTest : public testing::Test {
 protected:
  TenderTest() { in_flight_.Leave("tasks", in_flight_.Enter("tasks", std::vector<std::uint64_t>{1})); }

  // The first sweep is due, and doubted.
  void Begin() {
    life_->DoubtWhatRuns();
    EXPECT_TRUE(tender_.Start());
    Wake();
    EXPECT_EQ(asked_, 1);
    Wake();  // what came before has ended, and has read the clock
  }

  // Somebody was marked dead.
  void Wake() {
    tender_.Wake();
    host_.AwaitSweep();
  }

  ManualClock clock_;
  std::atomic<int> asked_{0};
  Micros takes_{0};
  const std::string shard_ = "main";
  const std::shared_ptr<Lease> life_ = std::make_shared<Lease>("w.1", std::chrono::hours(1), clock_.Now());
  Host host_{life_};
  MemoryBudget memory_;
  InFlight in_flight_{memory_};
  DeadRecorders recorders_{testing::TempDir() + "no_such_folder", ""};
  const LiveEngine engine_{EngineConfig{}};
  MemoryShard database_{clock_};
  Tender tender_{{clock_, shard_, "memory", host_, in_flight_, recorders_, engine_},
                 std::make_unique<EmptyStore>(clock_, asked_, takes_),
                 std::make_unique<MemoryIncarnationStore>(database_)};
};

TEST_F(TenderTest, DoubtsThatComeOneByOneWaitForTheSweepThatIsDue) {
  Begin();
  for (int i = 0; i < 10; ++i) {
    life_->DoubtWhatRuns();
    Wake();
  }
  EXPECT_EQ(asked_, 1);
  clock_.Advance(kLongest);
  Wake();
  EXPECT_EQ(asked_, 2);
}

TEST_F(TenderTest, ALookAtAllSlicesTakesATenthOfTheTimeAtMost) {
  takes_ = std::chrono::seconds(3);
  Begin();
  life_->DoubtWhatRuns();
  clock_.Advance(std::chrono::seconds(26));
  Wake();
  EXPECT_EQ(asked_, 1);
  clock_.Advance(std::chrono::seconds(1));
  Wake();
  EXPECT_EQ(asked_, 2);
}

}  // namespace
}  // namespace millrace::engine

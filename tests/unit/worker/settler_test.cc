#include "framework/worker/settler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>

#include "no_host.h"

namespace millrace::engine {
namespace {

constexpr std::uint64_t kLockedRow = 7;

// Gives a row the verdicts of a list, one for each settle, then Settled; kLockedRow is Busy as long as
// `locked` says so. The settler asks nothing else of it.
class ScriptedStore final : public TaskStore {
 public:
  ScriptedStore(std::map<std::uint64_t, std::vector<SettleVerdict>> script, const std::atomic<bool>& locked)
      : locked_(locked), script_(std::move(script)) {}

  Result<SettleReport> Settle(const std::string&, std::span<const Settlement> batch) override {
    SettleReport report;
    report.errors.resize(batch.size());
    for (const Settlement& one : batch) {
      auto& left = script_[one.key.id];
      if (one.key.id == kLockedRow && locked_) left = {SettleVerdict::Busy};
      report.verdicts.push_back(left.empty() ? SettleVerdict::Settled : left.front());
      if (!left.empty()) left.erase(left.begin());
    }
    return report;
  }
  Result<std::vector<bool>> StillRunning(const std::string&, std::span<const Settlement> batch) override {
    return std::vector<bool>(batch.size(), false);
  }
  Result<DueMap> Due(std::span<const TableSlices>) override { return None(); }
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

 private:
  static tl::unexpected<Error> None() { return Fail(ErrorCode::Internal, "not asked for in this test"); }

  const std::atomic<bool>& locked_;
  std::map<std::uint64_t, std::vector<SettleVerdict>> script_;
};

class SettlerTest : public testing::Test {
 protected:
  void Open(std::map<std::uint64_t, std::vector<SettleVerdict>> script) {
    settler_ = std::make_unique<Settler>(std::make_unique<ScriptedStore>(std::move(script), locked_), engine_,
                                         [this](const Landing& landing, SettleVerdict verdict) {
                                           known_.Push({landing, verdict});
                                         });
    EXPECT_TRUE(settler_->Start());
  }
  void Land(std::uint64_t id) {
    Task task;
    task.key = {"tasks", id};
    const auto life = std::make_shared<Standing>("w.1", std::chrono::seconds(10), BootClock::now());
    settler_->Land({std::make_shared<Flight>(host_, "main", task, life, false), {.key = task.key}});
  }
  struct Told {
    Landing landing;
    SettleVerdict verdict;
  };
  // What the settler tells next.
  Told Next() {
    auto told = known_.Take(1, std::chrono::seconds(20));
    EXPECT_EQ(told.size(), 1U) << "the settler told nothing";
    return told.empty() ? Told{} : std::move(told[0]);
  }

  const LiveEngine engine_{EngineConfig{}};
  const std::shared_ptr<NoHost> host_ = std::make_shared<NoHost>();
  std::atomic<bool> locked_{true};
  HandOver<Told> known_;
  std::unique_ptr<Settler> settler_;
};

TEST_F(SettlerTest, ALockedRowHoldsUpNobodyAndIsTriedAgain) {
  Open({});
  Land(kLockedRow);
  Land(2);
  EXPECT_EQ(Next().landing.settlement.key.id, 2U);
  Land(3);
  EXPECT_EQ(Next().landing.settlement.key.id, 3U);
  locked_ = false;
  const Told last = Next();
  EXPECT_EQ(last.landing.settlement.key.id, kLockedRow);
  EXPECT_EQ(last.verdict, SettleVerdict::Settled);
}

TEST_F(SettlerTest, ACommitThatTookEffectThoughItsReplyWasLostCountsAsWhatItWas) {
  Open({});
  Task task;
  task.key = {"tasks", 1};
  const auto life = std::make_shared<Standing>("w.1", std::chrono::seconds(10), BootClock::now());
  Settlement given_back{.key = task.key, .to = Settlement::To::Waiting};
  Settlement sent{.key = task.key, .to = Settlement::To::Succeeded};
  settler_->Land({std::make_shared<Flight>(host_, "main", task, life, false), given_back, true, sent});
  EXPECT_EQ(Next().landing.settlement.to, Settlement::To::Succeeded);
}

TEST_F(SettlerTest, ARefusedRowIsToldAsSuch) {
  Open({{1, {SettleVerdict::Refused}}});
  Land(1);
  EXPECT_EQ(Next().verdict, SettleVerdict::Refused);
}

TEST_F(SettlerTest, AnOutcomeThatCannotBeStoredFailsTheTaskAlsoWhereItIsLockedThen) {
  Open({{1, {SettleVerdict::Broken, SettleVerdict::Busy}}});
  Land(1);
  const Told told = Next();
  EXPECT_EQ(told.verdict, SettleVerdict::Settled);
  EXPECT_EQ(told.landing.settlement.to, Settlement::To::Failed);
  EXPECT_EQ(told.landing.settlement.error_class, "bad_outcome");
}

TEST_F(SettlerTest, ATaskThatTheDatabaseRefusesWhateverComesOfItHoldsUpNobodyAndIsTriedAgain) {
  Open({{1, {SettleVerdict::Broken, SettleVerdict::Broken, SettleVerdict::Broken}}});
  Land(1);
  Land(2);
  EXPECT_EQ(Next().landing.settlement.key.id, 2U);
  const Told told = Next();
  EXPECT_EQ(told.landing.settlement.key.id, 1U);
  EXPECT_EQ(told.verdict, SettleVerdict::Settled);
  EXPECT_EQ(told.landing.settlement.to, Settlement::To::Failed);
}

}  // namespace
}  // namespace millrace::engine

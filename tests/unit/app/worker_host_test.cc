// How a worker and what it works in end together.
#include "coordinator/app/process/worker_host.h"

#include <atomic>
#include <thread>

#include "framework/store/sqlite/store.h"
#include "tests/unit/worker/worker_fixture.h"

namespace millrace::engine {
namespace {

// Its thread asks the worker from Join until End, as that of a cluster's member does; then Join fails.
class HalfJoined final : public WorkerEnvironment {
 public:
  explicit HalfJoined(bool quiet) : quiet_(quiet) {
    control_.config.Set(std::make_shared<const Config>());
    control_.Pause({});
  }
  ~HalfJoined() override {
    EXPECT_TRUE(ended) << "the thread was left with a worker that is gone";
    Leave();
  }

  ControlPlane& control() override { return control_; }
  Registry& metrics() override { return metrics_; }
  Status Join(const Worker& worker) override {
    asking_ = std::thread([this, &worker] {
      while (!ended) (void)worker.Status();
    });
    return Fail(ErrorCode::Unavailable, "the system gives no thread");
  }
  Status Update(const Worker&) override { return Fail(ErrorCode::Internal, "it has not joined"); }
  void Leave() override {
    ended = true;
    if (asking_.joinable()) asking_.join();
  }
  bool End() override {
    Leave();
    return quiet_;
  }
  Result<TaskSummary> Summary(const WorkerStatus&, WorkerEnd) override { return TaskSummary(); }

  std::atomic<bool> ended = false;

 private:
  const bool quiet_;
  SettableControlPlane control_;
  Registry metrics_;
  std::thread asking_;
};

// Ends the process with 98 where it was not left before its end.
class LeftFirst final : public WorkerEnvironment {
 public:
  explicit LeftFirst(ControlPlane& control) : control_(control) {}
  ControlPlane& control() override { return control_; }
  Registry& metrics() override { return metrics_; }
  Status Update(const Worker&) override { return {}; }
  void Leave() override { left = true; }
  bool End() override {
    if (!left) std::_Exit(98);
    return true;
  }
  Result<TaskSummary> Summary(const WorkerStatus&, WorkerEnd) override { return TaskSummary(); }

  std::atomic<bool> left = false;

 private:
  ControlPlane& control_;
  Registry metrics_;
};

class WorkerHostTest : public WorkerFixture {
 protected:
  Result<ExitCode> Host(WorkerEnvironment& environment) {
    const auto supervision = *Supervision::Begin({}, {});
    WorkerOptions options;
    options.id = "w";
    options.state_dir = folder_;
    return HostWorker({}, std::move(options), plugins_, environment, *supervision);
  }
};

TEST_F(WorkerHostTest, WhereItCannotJoinItsEnvironmentEndsBeforeIt) {
  HalfJoined environment(true);
  testing::internal::CaptureStderr();
  const auto code = Host(environment);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("the system gives no thread"));
  ASSERT_TRUE(code);
  EXPECT_EQ(*code, ExitCode::Unreachable);
  EXPECT_TRUE(environment.ended);
}

TEST_F(WorkerHostTest, AThreadThatIsHeldUpThenIsLeftToTheEndOfTheProcess) {
  const auto in_child = [this] {
    HalfJoined environment(false);
    (void)Host(environment);
    std::_Exit(99);
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(3), "the system gives no thread");
}

TEST_F(WorkerHostTest, AWorkerThatIsToBeReplacedLeavesAndFinishesWhatRunsThen) {
  const auto in_child = [this] {
    const std::shared_ptr<Store> store =
        *sqlite::OpenStore(*ParseStoreUrl("sqlite:" + folder_ + "/tasks.db"), {});
    (void)store->OpenSchema()->Apply({});
    control_.shards.Set({{"main", store}});
    LeftFirst environment(control_);
    plugins_.behaviours["stuck"] = [](auto, auto&) -> std::vector<Outcome> {
      while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    };
    plugins_.behaviours["last"] = [&](auto, auto&) {
      while (!environment.left) std::this_thread::yield();
      return std::vector<Outcome>(1);
    };
    config_.handlers["stuck"].timeout = std::chrono::milliseconds(50);
    config_.engine.max_lost_threads = 0;
    control_.config.Set(std::make_shared<const Config>(config_));
    for (const char* type : {"stuck", "last"}) SubmitTo(*store, type);
    (void)Host(environment);
    std::_Exit(99);
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(1), "too many threads are lost");
}

}  // namespace
}  // namespace millrace::engine

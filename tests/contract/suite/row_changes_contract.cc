// Rows that change while the worker scans them: none is left behind, none is run twice. Random interleavings
// of producers and operators with the product's own worker, whose scan pages through groups far larger than a
// page.
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "framework/base/random.h"
#include "framework/threads/signal.h"
#include "tests/contract/suite/store_contract.h"
#include "tests/unit/worker/worker_fixture.h"

namespace millrace::engine {
namespace {

constexpr const char* kHandler = "counted";
constexpr std::size_t kBacklog = 500;  // rows at the start: several pages in each of the four slices

// One step of an interleaving. `pick` chooses among the rows there are, so that it stays a step of the same
// sort while RapidCheck makes the interleaving shorter.
struct Step {
  enum class Kind { Insert, Hold, Release, Move, Late, Commit, Pause };
  Kind kind = Kind::Insert;
  int pick = 0;
  int minutes = 1;  // how long the row is due: few times, so that ties are common
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  static constexpr const char* kKinds[] = {"insert", "hold", "release", "move", "late", "commit", "pause"};
  return out << kKinds[static_cast<int>(step.kind)] << "(pick " << step.pick << ", " << step.minutes
             << " min)";
}

rc::Gen<Step> AnyStep() {
  using Kind = Step::Kind;
  const auto kind = rc::gen::weightedElement<Kind>({{3, Kind::Insert},
                                                    {2, Kind::Hold},
                                                    {1, Kind::Release},
                                                    {2, Kind::Move},
                                                    {3, Kind::Late},
                                                    {2, Kind::Commit},
                                                    {3, Kind::Pause}});
  return rc::gen::build<Step>(rc::gen::set(&Step::kind, kind),
                              rc::gen::set(&Step::pick, rc::gen::inRange(0, 1000)),
                              rc::gen::set(&Step::minutes, rc::gen::inRange(1, 7)));
}

// How often each task was run; told by the handler's threads.
class Runs {
 public:
  void Add(std::uint64_t id) {
    MutexLock lock(mutex_);
    ++runs_[id];
    changed_.Notify();
  }
  std::map<std::uint64_t, int> Get() const {
    MutexLock lock(mutex_);
    return runs_;
  }
  Signal& changed() { return changed_; }

 private:
  mutable Mutex mutex_;
  std::map<std::uint64_t, int> runs_ MILLRACE_GUARDED_BY(mutex_);
  Signal changed_;
};

// The product's worker on the store under test. Small batches and a small queue: the scan is still under way
// while rows change.
class CountingWorker {
 public:
  explicit CountingWorker(Store& store) {
    char pattern[] = "/tmp/row_changes_XXXXXX";
    folder_ = mkdtemp(pattern);
    Config config;
    config.engine.poll = std::chrono::milliseconds(5);
    config.engine.rewind = std::chrono::milliseconds(100);
    config.engine.batch = 50;
    config.handlers[kHandler].queue = 50;
    config.handlers[kHandler].concurrency = 2;
    plugins_.behaviours[kHandler] = [this](std::span<const Task> tasks, CallContext&) {
      for (const Task& task : tasks) runs_.Add(task.key.id);
      return std::vector<Outcome>(tasks.size());
    };
    control_.config.Set(std::make_shared<const Config>(config));
    control_.slices.Set({{"tasks", true, {}}});
    control_.Pause({});
    // The fixture keeps the store, and outlives the worker.
    control_.shards.Set({{"main", std::shared_ptr<Store>(std::shared_ptr<void>(), &store)}});
    WorkerOptions options;
    options.id = "counting";
    options.state_dir = folder_;
    worker_.emplace(Worker::Parts{clock_, control_, plugins_, metrics_}, options);
    const Status started = worker_->Start();
    EXPECT_TRUE(started) << started.error().message;
  }
  ~CountingWorker() {
    worker_.reset();
    std::filesystem::remove_all(folder_);
  }

  Runs& runs() { return runs_; }
  // Whatever it had still to run it has run afterwards, or given back.
  void Stop() { worker_.reset(); }

 private:
  const SystemClock clock_{};
  std::string folder_;
  Runs runs_;
  SettableControlPlane control_;
  FunctionPlugins plugins_;
  Registry metrics_;
  std::optional<Worker> worker_;
};

class Interleaving {
 public:
  Interleaving(StoreTest& test, CountingWorker& worker) : test_(test), worker_(worker), start_(test.Now()) {}

  void Run(const std::vector<Step>& steps) {
    InsertBacklog();
    for (const Step& step : steps) Take(step);
    while (!late_.empty()) CommitLate();
    for (const std::uint64_t id : held_) Apply(TaskAction::Release, id);
    RC_LOG() << "waiting for " << ids_.size() << " tasks\n";
    RC_ASSERT(EachRanOnce());
  }

 private:
  template <class T>
  static void Expect(const Result<T>& result) {
    if (!result) RC_FAIL(result.error().message);
  }
  // What a person does; again where the worker is in the way.
  template <class Act>
  void Do(Act act) {
    auto done = act();
    for (int again = 0; again < 10 && !done && done.error().code == ErrorCode::Conflict; ++again)
      done = act();
    Expect(done);
  }
  void Apply(TaskAction action, std::uint64_t id) {
    Do([&] { return test_.operations().Apply(action, "tasks", std::span(&id, 1), "test"); });
  }
  void Move(std::uint64_t id, WallTime due) {
    Do([&] { return test_.operations().Edit({.run_at = due}, "tasks", std::span(&id, 1), "test"); });
  }
  WallTime TimeOf(const Step& step) const { return start_ - std::chrono::minutes(step.minutes); }
  PlainRow RowOf(const Step& step) const {
    return {.handler = kHandler, .slice = static_cast<std::uint32_t>(step.pick % 4), .run_at = TimeOf(step)};
  }
  std::uint64_t IdOf(const Step& step) const {
    return ids_.at(static_cast<std::size_t>(step.pick) % ids_.size());
  }

  void InsertBacklog() {
    std::vector<NewTask> tasks(kBacklog);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      tasks[i].handler = kHandler;
      tasks[i].run_at = start_ - std::chrono::minutes(1 + i % 6);
    }
    const auto report = test_.operations().Submit("tasks", tasks);
    Expect(report);
    ids_ = report->ids;
  }

  void Take(const Step& step) {
    switch (step.kind) {
      case Step::Kind::Insert:
        ids_.push_back(test_.Add(RowOf(step)));
        return;
      case Step::Kind::Hold:
        held_.insert(IdOf(step));
        return Apply(TaskAction::Hold, IdOf(step));
      case Step::Kind::Release:
        return Apply(TaskAction::Release, IdOf(step));
      case Step::Kind::Move:
        return Move(IdOf(step), TimeOf(step));
      case Step::Kind::Late:
        return InsertLate(step);
      case Step::Kind::Commit:
        if (!late_.empty()) CommitLate();
        return;
      case Step::Kind::Pause:
        worker_.runs().changed().WaitFor(std::chrono::milliseconds(step.minutes));
    }
  }

  void InsertLate(const Step& step) {
    if (!test_.fixture().late_commits()) return;
    if (late_.size() > 4) CommitLate();
    auto row = test_.fixture().InsertLate("tasks", RowOf(step));
    RC_ASSERT(row != nullptr);
    late_.push_back(std::move(row));
  }

  // The oldest first: by then the scan has passed its place.
  void CommitLate() {
    Expect(late_.front()->Commit());
    ids_.push_back(late_.front()->id());
    late_.erase(late_.begin());
  }

  std::size_t Succeeded() {
    std::size_t succeeded = 0;
    for (std::size_t at = 0; at < ids_.size(); at += kMaxBatchRows) {
      const auto part = std::span(ids_).subspan(at, std::min(kMaxBatchRows, ids_.size() - at));
      const auto outcomes = test_.operations().Outcomes("tasks", part);
      Expect(outcomes);
      succeeded +=
          static_cast<std::size_t>(std::ranges::count(*outcomes, TaskState::Succeeded, &TaskOutcome::state));
    }
    return succeeded;
  }

  // Once all have succeeded nothing is left that could run again.
  bool EachRanOnce() {
    const BootTime deadline = BootClock::now() + std::chrono::seconds(5);
    for (std::size_t succeeded = Succeeded(); succeeded < ids_.size(); succeeded = Succeeded()) {
      if (BootClock::now() > deadline) {
        RC_LOG() << ids_.size() - succeeded << " tasks have not succeeded\n";
        return false;
      }
      worker_.runs().changed().WaitFor(std::chrono::milliseconds(20));
    }
    const auto runs = worker_.runs().Get();
    for (const std::uint64_t id : ids_) {
      const auto found = runs.find(id);
      if (found != runs.end() && found->second == 1) continue;
      RC_LOG() << "task " << id << " was run " << (found == runs.end() ? 0 : found->second) << " times\n";
      return false;
    }
    return true;
  }

  StoreTest& test_;
  CountingWorker& worker_;
  const WallTime start_;
  std::vector<std::uint64_t> ids_;
  std::set<std::uint64_t> held_;
  std::vector<std::unique_ptr<StoreFixture::LateRow>> late_;
};

TEST_P(StoreContract, RowsThatChangeWhileTheWorkerScansThemRunExactlyOnce) {
  CountingWorker worker(store());
  const auto property = [&] {
    const auto steps = *rc::gen::container<std::vector<Step>>(AnyStep());
    Interleaving(*this, worker).Run(steps);
  };
  // The sizes grow over the runs, up to 80 steps: as many as a database under load takes in a few seconds.
  rc::detail::TestParams params;
  params.seed = Random::FromSystem().Next();
  params.maxSuccess = 40;
  params.maxSize = 80;
  params.disableShrinking = true;  // the worker's threads take part: a shorter list of steps is another run
  const auto result = rc::detail::checkTestable(property, rc::detail::TestMetadata(), params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << message.str() << "\nseed " << params.seed;
  worker.Stop();
  for (const auto& [id, count] : worker.runs().Get()) EXPECT_EQ(count, 1) << "task " << id;
}

}  // namespace
}  // namespace millrace::engine

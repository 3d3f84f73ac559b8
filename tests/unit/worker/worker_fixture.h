// A worker in a test: ports that the test sets, and handlers that are functions of the test.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/worker/worker.h"

namespace millrace::engine {

using Behaviour = std::function<std::vector<Outcome>(std::span<const Task>, CallContext&)>;

inline Outcome Make(OutcomeKind kind, std::string text = {}, std::optional<Micros> delay = {}) {
  Outcome outcome;
  outcome.kind = kind;
  outcome.text = std::move(text);
  outcome.delay = delay;
  return outcome;
}

class FunctionHandler final : public HandlerInstance {
 public:
  FunctionHandler(Behaviour behaviour, std::uint32_t batch, CodeDefaults defaults)
      : behaviour_(std::move(behaviour)), batch_(batch), defaults_(std::move(defaults)) {}
  const CodeDefaults& Defaults() const override { return defaults_; }
  // Not again, where it is asked.
  Outcome NextRetry(const std::string&, const Task&, Outcome failed, std::uint32_t, Micros) override {
    failed.kind = OutcomeKind::Fail;
    return failed;
  }
  std::uint32_t MaxBatch() const override { return batch_; }
  std::vector<Outcome> Run(const std::string&, std::span<const Task* const> tasks,
                           CallContext& context) override {
    std::vector<Task> copies;
    for (const Task* task : tasks) copies.push_back(*task);
    return behaviour_(copies, context);
  }

 private:
  const Behaviour behaviour_;
  const std::uint32_t batch_;
  const CodeDefaults defaults_;
};

// Refuses options that speak of "refused".
class FunctionPlugins final : public PluginSet {
 public:
  std::map<std::string, Behaviour> behaviours;
  std::uint32_t batch = 1;
  CodeDefaults defaults;
  std::string refused = "refused";  // options with this in them are; empty: all

  std::vector<HandlerInfo> Handlers() const override { return {}; }
  Result<std::unique_ptr<HandlerInstance>> Open(const std::string& uses, const std::string&,
                                                const std::string& options, const Secrets&) const override {
    asked.fetch_add(1);
    const auto found = behaviours.find(uses);
    if (found == behaviours.end()) return Fail(ErrorCode::NotFound, "no handler " + uses);
    if (options.find(refused) != options.npos) return Fail(ErrorCode::Invalid, "it refuses these options");
    opened.fetch_add(1);
    return std::make_unique<FunctionHandler>(found->second, batch, defaults);
  }

  mutable std::atomic<int> asked{0};
  mutable std::atomic<int> opened{0};
};

// What a control plane answers until the test says otherwise.
template <class T>
class Settable {
 public:
  T Get() const {
    MutexLock lock(mutex_);
    return value_;
  }
  void Set(T value) {
    MutexLock lock(mutex_);
    value_ = std::move(value);
  }

 private:
  mutable Mutex mutex_;
  T value_ MILLRACE_GUARDED_BY(mutex_){};
};

struct SettableControlPlane final : public ControlPlane {
  StoresByShard Shards() override {
    looks.fetch_add(1);
    return shards.Get();
  }
  std::vector<TableSlices> Slices(const std::string&) override { return slices.Get(); }
  std::shared_ptr<const Pauses> Paused() override { return pauses.Get(); }
  std::shared_ptr<const Config> CurrentConfig() override { return config.Get(); }
  void FollowShares(SharesTold told) override {
    if (const auto now = shares.Get(); now && told) told(now);
  }

  void FollowChanges(std::vector<Signal*> now) override { wakes.Set(std::move(now)); }
  void TellChange() {
    for (Signal* const wake : wakes.Get()) wake->Notify();
  }

  void Pause(const std::vector<std::string>& names) {
    auto parsed = Pauses::Parse(names);
    ASSERT_TRUE(parsed) << parsed.error().message;
    pauses.Set(std::make_shared<const Pauses>(*parsed));
  }

  Settable<std::vector<TableSlices>> slices;
  Settable<std::shared_ptr<const Config>> config;
  Settable<std::shared_ptr<const Pauses>> pauses;
  Settable<StoresByShard> shards;
  Settable<std::shared_ptr<const LimitShares>> shares;  // null: nobody divides limits
  Settable<std::vector<Signal*>> wakes;                 // whom to tell of changes
  std::atomic<int> looks{0};
};

// Every slice of the table `tasks` is the worker's own, and nothing paused.
class WorkerFixture : public ::testing::Test {
 protected:
  WorkerFixture() {
    char pattern[] = "/tmp/worker_XXXXXX";
    folder_ = mkdtemp(pattern);
    config_.engine.poll = std::chrono::milliseconds(10);
    config_.engine.rewind = std::chrono::milliseconds(50);
    config_.engine.stop_timeout = std::chrono::seconds(3);
    control_.slices.Set({{"tasks", true, {}}});
    control_.Pause({});
  }
  ~WorkerFixture() override { std::filesystem::remove_all(folder_); }

  static std::uint64_t SubmitTo(Store& store, const std::string& handler, const std::string& key = {}) {
    NewTask task;
    task.handler = handler;
    task.biz_key = key;
    const auto report = store.OpenOperations()->Submit("tasks", std::span(&task, 1));
    EXPECT_TRUE(report) << report.error().message;
    return report->ids[0];
  }

  static void SubmitMany(Store& store, const std::string& handler, int count,
                         const std::string& params = "{}") {
    NewTask task;
    task.handler = handler;
    task.params = params;
    for (; count > 0; count -= 999) {
      const auto now = static_cast<std::size_t>(std::min(count, 999));
      ASSERT_TRUE(store.OpenOperations()->Submit("tasks", std::vector<NewTask>(now, task)));
    }
  }

  std::unique_ptr<Worker> Start(bool until_idle) {
    control_.config.Set(std::make_shared<const Config>(config_));
    WorkerOptions options;
    options.id = "w";
    options.state_dir = folder_;
    options.until_idle = until_idle;
    options.partial = partial_;
    options.concurrency = concurrency_;
    options.doorbell_address = doorbell_address_;
    auto worker = std::make_unique<Worker>(Worker::Parts{clock_, control_, plugins_, metrics_}, options);
    const Status started = worker->Start();
    EXPECT_TRUE(started) << started.error().message;
    return worker;
  }

  // Waits for what the worker brings about; false: it did not within a minute.
  template <class Condition>
  static bool Eventually(Worker& worker, Condition condition) {
    const BootTime deadline = BootClock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (BootClock::now() >= deadline) return false;
      worker.WaitFor(std::chrono::milliseconds(5));
    }
    return true;
  }

  static TaskRecord Get(Store& store, std::uint64_t id) {
    const auto record = store.OpenOperations()->Get({"tasks", id});
    EXPECT_TRUE(record) << record.error().message;
    return record ? *record : TaskRecord{};
  }

  bool partial_ = false;
  std::optional<std::uint32_t> concurrency_;
  std::string doorbell_address_;
  const SystemClock clock_{};
  std::string folder_;
  Config config_;  // in force from Start on; later ones by control_.config
  SettableControlPlane control_;
  FunctionPlugins plugins_;
  Registry metrics_;
};

}  // namespace millrace::engine

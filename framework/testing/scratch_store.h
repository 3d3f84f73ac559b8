// A store for tests of what stands above the stores: SQLite, whose files are in memory where the system has a
// folder for that, and go with it. With the clock that it is given, which a test may move.
#pragma once

#include <memory>
#include <string>

#include "framework/base/clock.h"
#include "framework/store/store.h"

namespace millrace::engine {

// Thread-safe. The clock must outlive it. Dies with a message where it can't be made.
class ScratchStore final : public Store {
 public:
  explicit ScratchStore(const Clock& clock, const SchemaSpec& spec = {});
  // Without a schema.
  struct Bare {};
  ScratchStore(const Clock& clock, Bare);
  ~ScratchStore() override;

  std::string Describe() const override { return store_->Describe(); }
  Status Ping() override { return store_->Ping(); }
  std::unique_ptr<TaskStore> OpenTasks() override { return store_->OpenTasks(); }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override { return store_->OpenIncarnations(); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return store_->OpenTransaction(limit);
  }
  std::unique_ptr<TaskOperations> OpenOperations() override { return store_->OpenOperations(); }
  std::unique_ptr<SchemaStore> OpenSchema() override { return store_->OpenSchema(); }
  std::unique_ptr<PruneStore> OpenPruning() override { return store_->OpenPruning(); }
  std::unique_ptr<OverviewStore> OpenOverview() override { return store_->OpenOverview(); }
  std::unique_ptr<AlertStore> OpenAlerts() override { return store_->OpenAlerts(); }
  std::unique_ptr<ScheduleStore> OpenSchedules() override { return store_->OpenSchedules(); }
  std::unique_ptr<FanOutStore> OpenFanOuts() override { return store_->OpenFanOuts(); }
  std::unique_ptr<BatchStore> OpenBatches() override { return store_->OpenBatches(); }
  std::unique_ptr<PermitStore> OpenPermits() override { return store_->OpenPermits(); }
  std::unique_ptr<ChangeFeed> OpenChanges(IsWatched watched) override {
    return store_->OpenChanges(std::move(watched));
  }
  const HeardWrites& Heard() const override { return heard; }

  HeardWrites heard;  // as a test has it

  // Statements behind the store's back, as a producer or a person with the database's own client sends them.
  // They die with a message where the database refuses them.
  void Run(const std::string& script);
  // The one number that the statement answers with.
  std::int64_t Ask(const std::string& sql);

 private:
  const std::string folder_;
  std::unique_ptr<Store> store_;
};

}  // namespace millrace::engine

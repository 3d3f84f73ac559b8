// A store in memory for tests of what stands above the stores: quick, and with a clock that tests move. It
// keeps the contract of TaskStore, and says nothing about how a database behaves.
#pragma once

#include "framework/store/store.h"
#include "framework/testing/memory_shard.h"

namespace millrace::engine {

// Thread-safe. The clock must outlive it.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(const Clock& clock) : shard_(clock) {}

  std::string Describe() const override { return "memory:"; }
  Status Ping() override { return {}; }
  std::unique_ptr<TaskStore> OpenTasks() override;
  std::unique_ptr<IncarnationStore> OpenIncarnations() override;
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override;
  std::unique_ptr<TaskDesk> OpenDesk() override;
  std::unique_ptr<SchemaStore> OpenSchema() override;
  std::unique_ptr<PruneStore> OpenPruning() override;

  // Looks at the rows, or changes them, behind the store's back, as a producer with the database's own client
  // would.
  template <class Change>
  auto Edit(Change change) {
    MutexLock lock(shard_.mutex);
    return change(shard_.state);
  }

 private:
  MemoryShard shard_;
};

}  // namespace millrace::engine

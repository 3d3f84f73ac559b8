#include "framework/testing/memory_store.h"

#include "framework/testing/memory_incarnation_store.h"
#include "framework/testing/memory_prune_store.h"
#include "framework/testing/memory_schema_store.h"
#include "framework/testing/memory_task_desk.h"
#include "framework/testing/memory_task_store.h"
#include "framework/testing/memory_task_transaction.h"

namespace millrace::engine {

std::unique_ptr<TaskStore> MemoryStore::OpenTasks() { return std::make_unique<MemoryTaskStore>(shard_); }
std::unique_ptr<IncarnationStore> MemoryStore::OpenIncarnations() {
  return std::make_unique<MemoryIncarnationStore>(shard_);
}
std::unique_ptr<TaskTransaction> MemoryStore::OpenTransaction(Micros) {
  return std::make_unique<MemoryTaskTransaction>(shard_);
}
std::unique_ptr<TaskDesk> MemoryStore::OpenDesk() { return std::make_unique<MemoryTaskDesk>(shard_); }
std::unique_ptr<SchemaStore> MemoryStore::OpenSchema() { return std::make_unique<MemorySchemaStore>(shard_); }
std::unique_ptr<PruneStore> MemoryStore::OpenPruning() { return std::make_unique<MemoryPruneStore>(shard_); }

}  // namespace millrace::engine

#include "framework/testing/memory_schema_store.h"

#include <set>

namespace millrace::engine {

std::string MemorySchemaStore::Print(const SchemaSpec& spec) const {
  std::string text;
  for (const TableName& table : TableNames(spec)) text += table + " " + std::to_string(spec.slices) + "\n";
  return text;
}

Status MemorySchemaStore::Apply(const SchemaSpec& spec) {
  MutexLock lock(shard_.mutex);
  for (const TableName& name : TableNames(spec)) {
    MemoryTable& table = shard_.state.tables[name];
    if (table.slices != 0 && table.slices != spec.slices) {
      return Fail(ErrorCode::Conflict,
                  "the table " + name + " has " + std::to_string(table.slices) + " slices");
    }
    table.slices = spec.slices;
  }
  return {};
}

Result<std::uint32_t> MemorySchemaStore::Upgrade() { return kSchemaVersion; }

Result<std::vector<TableInfo>> MemorySchemaStore::Tables() {
  MutexLock lock(shard_.mutex);
  if (shard_.state.tables.empty()) return Fail(ErrorCode::NotFound, "the memory store has no task tables");
  std::vector<TableInfo> tables;
  for (const auto& [name, table] : shard_.state.tables) {
    std::set<std::uint32_t> beyond;
    for (const auto& [id, row] : table.tasks) {
      if (row.task.slice >= table.slices) beyond.insert(row.task.slice);
    }
    tables.push_back({name, table.slices, {beyond.begin(), beyond.end()}});
  }
  return tables;
}

Status MemorySchemaStore::Resize(const TableName& name, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(CheckSlices(slices));
  MutexLock lock(shard_.mutex);
  const auto table = shard_.state.tables.find(name);
  if (table == shard_.state.tables.end()) return Fail(ErrorCode::NotFound, "there is no table " + name);
  table->second.slices = slices;
  return {};
}

Result<std::size_t> MemorySchemaStore::RenumberStep(const TableName& name, std::size_t limit) {
  MutexLock lock(shard_.mutex);
  const auto table = shard_.state.tables.find(name);
  if (table == shard_.state.tables.end()) return Fail(ErrorCode::NotFound, "there is no table " + name);
  std::size_t moved = 0;
  for (auto& [id, row] : table->second.tasks) {
    if (moved == limit) break;
    if (row.task.slice < table->second.slices || row.task.state == TaskState::Running) continue;
    row.task.slice = static_cast<std::uint32_t>(id % table->second.slices);
    ++moved;
  }
  return moved;
}

Result<std::vector<SchemaFinding>> MemorySchemaStore::Check() { return std::vector<SchemaFinding>(); }

}  // namespace millrace::engine

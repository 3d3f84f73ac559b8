#include "framework/testing/memory_schema_store.h"

namespace millrace {

std::string MemorySchemaStore::Print(const SchemaSpec& spec) const {
  std::string text;
  for (const std::string& table : TableNames(spec)) text += table + " " + std::to_string(spec.slices) + "\n";
  return text;
}

Status MemorySchemaStore::Apply(const SchemaSpec& spec) {
  MutexLock lock(shard_.mutex);
  for (const std::string& name : TableNames(spec)) {
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
  for (const auto& [name, table] : shard_.state.tables) tables.push_back({name, table.slices});
  return tables;
}

Result<std::vector<SchemaFinding>> MemorySchemaStore::Check() { return std::vector<SchemaFinding>(); }

}  // namespace millrace

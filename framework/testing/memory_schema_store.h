// The schema of a memory shard: which task tables there are. Thread-safe.
#pragma once

#include "framework/store/schema_store.h"
#include "framework/testing/memory_shard.h"

namespace millrace::engine {

class MemorySchemaStore final : public SchemaStore {
 public:
  explicit MemorySchemaStore(MemoryShard& shard) : shard_(shard) {}

  std::string Print(const SchemaSpec& spec) const override;
  Status Apply(const SchemaSpec& spec) override;
  Result<std::uint32_t> Upgrade() override;
  Result<std::vector<TableInfo>> Tables() override;
  Status Resize(const TableName& table, std::uint32_t slices) override;
  Result<std::size_t> RenumberStep(const TableName& table, std::size_t limit) override;
  Result<std::vector<SchemaFinding>> Check() override;

 private:
  MemoryShard& shard_;
};

}  // namespace millrace::engine

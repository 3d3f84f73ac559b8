// A duty of the leader in one shard: as many slices a table as the configuration wants, and no row beyond
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/store/schema_store.h"

namespace millrace::engine {

// One thread.
class SlicesDuty {
 public:
  explicit SlicesDuty(std::string shard) : shard_(std::move(shard)) {}

  // `wanted` slices a table; 0: as they are. `tables` as they were read; true if that should be done anew,
  // since something was changed. Renumbers a bounded number of rows.
  bool Do(SchemaStore& schema, const std::vector<TableInfo>& tables, std::uint32_t wanted);

 private:
  bool Resize(SchemaStore& schema, const TableInfo& table, std::uint32_t wanted);
  void Renumber(SchemaStore& schema, const TableInfo& table);

  const std::string shard_;
  std::map<TableName, std::string> trouble_;  // by table: what was logged last
};

}  // namespace millrace::engine

// The task tables of a cluster, as a plan sees them.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "framework/store/schema_store.h"

namespace millrace::engine {

// A task table whose slices are to be owned.
struct PlannedTable {
  std::string shard;
  TableInfo info;
  auto operator<=>(const PlannedTable&) const = default;
};

struct TableCatalog {
  std::vector<PlannedTable> tables;  // sorted
  // Shards whose tables are not known, since they could not be read yet: what is assigned of them stays
  // planned.
  std::set<std::string> unread;
  bool others = false;  // so may be shards that are not named here
  // What a shard has, as its schema tells; nullptr: it could not be read.
  void Add(const std::string& shard, const std::vector<TableInfo>* infos) {
    if (infos == nullptr) {
      unread.insert(shard);
      return;
    }
    for (const TableInfo& info : *infos) tables.push_back({shard, info});
    if (!std::is_sorted(tables.begin(), tables.end())) std::sort(tables.begin(), tables.end());
  }
  bool operator==(const TableCatalog&) const = default;
};

}  // namespace millrace::engine

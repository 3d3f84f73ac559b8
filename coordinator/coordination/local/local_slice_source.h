// The slices of a worker without a coordinator: all of its shards, or those of given load-balance numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/schema_store.h"
#include "framework/worker/ports.h"

namespace millrace::engine {

// Immutable, so thread-safe.
class LocalSliceSource final : public SliceSource {
 public:
  using Tables = std::map<std::string, std::vector<TableInfo>>;  // by shard

  // `numbers` are sorted load-balance numbers, `handlers` task types; empty: all. Invalid where no table has
  // a slice of these numbers.
  static Result<LocalSliceSource> Make(const Tables& tables, const std::vector<std::uint32_t>& numbers,
                                       std::vector<std::string> handlers = {});

  // Empty for a shard that it was not made with.
  std::vector<TableSlices> Slices(const std::string& shard) override;

 private:
  std::map<std::string, std::vector<TableSlices>> slices_;
};

}  // namespace millrace::engine

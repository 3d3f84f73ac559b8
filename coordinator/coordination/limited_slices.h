// Slices for a worker that runs some task types alone. Where all workers are limited to the same types the
// plan has no need to name them, so each worker keeps to its own limit by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/worker/ports.h"

namespace millrace {

// Leaves of each list the task types that are among these, which are sorted; a list without any goes.
std::vector<TableSlices> LimitedTo(std::vector<TableSlices> slices, const std::vector<std::string>& types);

// Leaves of each list the load-balance numbers that are among these, which are sorted; a list without any
// goes.
std::vector<TableSlices> LimitedToNumbers(std::vector<TableSlices> slices,
                                          const std::vector<std::uint32_t>& numbers);

// Thread-safe.
class LimitedSliceSource final : public SliceSource {
 public:
  // `types` empty: no limit. `source` must outlive this.
  LimitedSliceSource(SliceSource& source, std::vector<std::string> types);
  std::vector<TableSlices> Slices(const std::string& shard) override;

 private:
  SliceSource& source_;
  const std::vector<std::string> types_;
};

}  // namespace millrace

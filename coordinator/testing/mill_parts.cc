#include "coordinator/testing/mill_parts.h"

#include <algorithm>

namespace millrace::engine {

bool MillRemit::Owns(std::uint32_t slice, const std::string& handler) const {
  const std::vector<TableSlices> owned = slices();
  return std::any_of(owned.begin(), owned.end(), [&](const TableSlices& each) {
    const bool taken =
        !each.handlers || std::binary_search(each.handlers->begin(), each.handlers->end(), handler);
    return taken && (each.all || std::binary_search(each.slices.begin(), each.slices.end(), slice));
  });
}

}  // namespace millrace::engine

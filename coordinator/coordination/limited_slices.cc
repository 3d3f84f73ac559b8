#include "coordinator/coordination/limited_slices.h"

#include <algorithm>
#include <iterator>

namespace millrace {
namespace {

std::vector<std::string> Sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<TableSlices> LimitedTo(std::vector<TableSlices> slices, const std::vector<std::string>& types) {
  for (TableSlices& table : slices) {
    std::vector<std::string> both;
    if (table.handlers) {
      std::set_intersection(table.handlers->begin(), table.handlers->end(), types.begin(), types.end(),
                            std::back_inserter(both));
    } else {
      both = types;
    }
    table.handlers = std::move(both);
  }
  std::erase_if(slices, [](const TableSlices& table) { return table.handlers->empty(); });
  return slices;
}

std::vector<TableSlices> LimitedToNumbers(std::vector<TableSlices> slices,
                                          const std::vector<std::uint32_t>& numbers) {
  for (TableSlices& table : slices) {
    std::vector<std::uint32_t> both;
    if (table.all) {
      both = numbers;
    } else {
      std::set_intersection(table.slices.begin(), table.slices.end(), numbers.begin(), numbers.end(),
                            std::back_inserter(both));
    }
    table.all = false;
    table.slices = std::move(both);
  }
  std::erase_if(slices, [](const TableSlices& table) { return table.slices.empty(); });
  return slices;
}

LimitedSliceSource::LimitedSliceSource(SliceSource& source, std::vector<std::string> types)
    : source_(source), types_(Sorted(std::move(types))) {}

std::vector<TableSlices> LimitedSliceSource::Slices(const std::string& shard) {
  auto slices = source_.Slices(shard);
  return types_.empty() ? slices : LimitedTo(std::move(slices), types_);
}

}  // namespace millrace

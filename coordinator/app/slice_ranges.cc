#include "coordinator/app/slice_ranges.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "framework/policy/load_balance.h"
#include "framework/task/slice_name.h"

namespace millrace::engine {
namespace {

struct Range {
  SliceName first;
  std::vector<std::uint32_t> numbers;
};

std::string ToText(Range range) {
  std::sort(range.numbers.begin(), range.numbers.end());
  range.numbers.erase(std::unique(range.numbers.begin(), range.numbers.end()), range.numbers.end());
  const std::string group = range.first.group == kDefaultGroup ? "" : "@" + range.first.group;
  return range.first.shard + "/" + range.first.table + "/" + FormatLoadBalance(range.numbers) + group;
}

}  // namespace

std::vector<std::string> SliceRanges(const std::vector<std::string>& slices) {
  std::vector<Range> ranges;
  std::vector<std::string> others;
  for (const std::string& text : slices) {
    const auto name = ParseSliceName(text);
    if (!name) {
      others.push_back(text);
      continue;
    }
    const auto same = [&](const Range& range) {
      return range.first.shard == name->shard && range.first.table == name->table &&
             range.first.group == name->group;
    };
    // Sorted names of one table follow one another: it is looked for from the end.
    auto found = std::find_if(ranges.rbegin(), ranges.rend(), same);
    if (found == ranges.rend()) {
      ranges.push_back({*name, {}});
      found = ranges.rbegin();
    }
    found->numbers.push_back(name->number);
  }
  std::vector<std::string> texts;
  for (Range& range : ranges) texts.push_back(ToText(std::move(range)));
  texts.insert(texts.end(), others.begin(), others.end());
  return texts;
}

}  // namespace millrace::engine

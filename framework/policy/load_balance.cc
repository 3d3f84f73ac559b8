#include "framework/policy/load_balance.h"

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <utility>

#include "framework/task/slice_name.h"
#include "framework/task/task.h"

namespace millrace::engine {

Result<std::vector<std::uint32_t>> ParseLoadBalance(std::string_view text) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  std::vector<std::string> items;
  for (std::string& item : boost::split(items, text, boost::is_any_of(","))) {
    boost::trim_if(item, boost::is_any_of(" "));
    const std::size_t dash = item.find('-');
    const auto first = ReadSliceNumber(std::string_view(item).substr(0, dash));
    const auto last = dash == item.npos ? first : ReadSliceNumber(std::string_view(item).substr(dash + 1));
    if (!first || !last || *first > *last) {
      return Fail(ErrorCode::Invalid,
                  "'" + Shorten(item, 40) +
                      "' is not a load-balance number or range; write numbers from 0 to 16383, "
                      "such as 0-31,40");
    }
    ranges.emplace_back(*first, *last);
  }
  // However often a short text from elsewhere names them: no number more than once.
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::uint32_t> numbers;
  for (const auto& [first, last] : ranges) {
    const std::uint32_t next = numbers.empty() ? 0 : numbers.back() + 1;
    for (std::uint32_t number = std::max(first, next); number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

std::string FormatLoadBalance(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (end - i > 1) text += '-' + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace millrace::engine

#include "framework/policy/load_balance.h"

#include <algorithm>
#include <charconv>

#include "framework/task/task.h"

namespace millrace::engine {
namespace {

bool ReadNumber(std::string_view text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number < kMaxSlices;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::vector<std::uint32_t>> ParseLoadBalance(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = Trim(rest.substr(0, comma));
    const std::size_t dash = item.find('-');
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    const bool good = dash == std::string_view::npos ? ReadNumber(item, first) && ReadNumber(item, last)
                                                     : ReadNumber(item.substr(0, dash), first) &&
                                                           ReadNumber(item.substr(dash + 1), last);
    if (!good || first > last) {
      return Fail(ErrorCode::Invalid,
                  "'" + Shorten(item, 40) +
                      "' is not a load-balance number or range; write numbers from 0 to 16383, "
                      "such as 0-31,40");
    }
    for (std::uint32_t number = first; number <= last; ++number) numbers.push_back(number);
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
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

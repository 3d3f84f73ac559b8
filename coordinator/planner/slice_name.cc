#include "coordinator/planner/slice_name.h"

#include <charconv>

namespace millrace::engine {

std::string ToString(const SliceName& name) {
  std::string text = name.shard + "/" + name.table + "/" + std::to_string(name.number);
  if (name.group != kDefaultGroup) text += "@" + name.group;
  return text;
}

std::optional<SliceName> ParseSliceName(std::string_view text) {
  const std::size_t first = text.find('/');
  const std::size_t second = first == text.npos ? text.npos : text.find('/', first + 1);
  if (second == text.npos) return std::nullopt;
  const std::string_view rest = text.substr(second + 1);
  const std::size_t at = rest.find('@');
  const std::string_view digits = rest.substr(0, at);
  SliceName name{std::string(text.substr(0, first)), std::string(text.substr(first + 1, second - first - 1))};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), name.number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (at != rest.npos) name.group = std::string(rest.substr(at + 1));
  if (name.shard.empty() || name.table.empty() || name.group.empty() || ToString(name) != text) {
    return std::nullopt;
  }
  return name;
}

}  // namespace millrace::engine

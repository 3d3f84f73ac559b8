#include "framework/task/slice_name.h"

#include <charconv>

#include "framework/task/task.h"

namespace millrace::engine {

std::string ToString(const SliceName& name) {
  std::string text = name.shard + "/" + name.table + "/" + std::to_string(name.number);
  if (name.group != kDefaultGroup) text += "@" + name.group;
  return text;
}

std::optional<std::uint32_t> ReadSliceNumber(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number >= kMaxSlices) return std::nullopt;
  return number;
}

std::optional<std::uint32_t> ReadSliceNumberOfName(std::string_view text) {
  const auto number = ReadSliceNumber(text);
  return number && std::to_string(*number) == text ? number : std::nullopt;
}

bool IsShardName(std::string_view name) {
  return !name.empty() && name.size() <= 48 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

Result<SliceName> ParseSliceName(std::string_view text) {
  const auto fail = [&](const char* why) {
    return Fail(ErrorCode::Invalid, "'" + Shorten(text, 200) + "' " + why);
  };
  constexpr const char* kNoSlice = "is not a slice: write shard/table/N or shard/table/N@group, N to 16383";
  const std::size_t first = text.find('/');
  const std::size_t second = first == text.npos ? text.npos : text.find('/', first + 1);
  if (second == text.npos) return fail(kNoSlice);
  const std::string_view rest = text.substr(second + 1);
  const std::size_t at = rest.find('@');
  const std::string_view digits = rest.substr(0, at);
  const std::string_view shard = text.substr(0, first);
  const std::string_view table = text.substr(first + 1, second - first - 1);
  const auto number = ReadSliceNumberOfName(digits);
  const bool group = at != rest.npos;
  const std::string_view its = group ? rest.substr(at + 1) : kDefaultGroup;
  if (!number || shard.empty() || table.empty() || its.empty() || (group && its == kDefaultGroup)) {
    return fail(kNoSlice);
  }
  const auto name = ParseTableName(table);
  if (!name) {
    return fail("names no task table: lower-case letters, digits and '_', a letter first, at most 48");
  }
  return SliceName{std::string(shard), *name, *number, std::string(its)};
}

}  // namespace millrace::engine

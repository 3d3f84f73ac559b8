#include "coordinator/coordination/slice_name.h"

#include <algorithm>
#include <charconv>

#include "framework/task/task.h"

namespace millrace {
namespace {

bool IsNamePart(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

tl::unexpected<Error> Bad(std::string_view text) {
  return Fail(ErrorCode::Invalid,
              "'" + std::string(text) + "' is not a slice: write shard/table/17 or shard/table/17@group");
}

}  // namespace

std::string ToString(const SliceName& name) {
  std::string text = name.shard + "/" + name.table + "/" + std::to_string(name.number);
  if (name.group != kDefaultGroup) text += "@" + name.group;
  return text;
}

Result<SliceName> ParseSliceName(std::string_view text) {
  SliceName name;
  std::string_view rest = text;
  if (const std::size_t at = rest.find('@'); at != rest.npos) {
    name.group = rest.substr(at + 1);
    if (!IsNamePart(name.group)) return Bad(text);
    rest = rest.substr(0, at);
  }
  const std::size_t first = rest.find('/');
  const std::size_t last = rest.rfind('/');
  if (first == rest.npos || first == last) return Bad(text);
  name.shard = rest.substr(0, first);
  name.table = rest.substr(first + 1, last - first - 1);
  const std::string_view number = rest.substr(last + 1);
  const auto read = std::from_chars(number.data(), number.data() + number.size(), name.number);
  const bool whole = read.ec == std::errc{} && read.ptr == number.data() + number.size();
  if (!whole || name.number >= kMaxSlices || !IsNamePart(name.shard) || !IsNamePart(name.table))
    return Bad(text);
  return name;
}

}  // namespace millrace

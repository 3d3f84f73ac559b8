// How a slice is called in plans, assign nodes, commands and logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/result.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// The group whose slices are called by shard, table and number alone.
inline constexpr const char* kDefaultGroup = "default";

struct SliceName {
  std::string shard;
  TableName table;
  std::uint32_t number = 0;  // the load-balance number
  std::string group = kDefaultGroup;
  auto operator<=>(const SliceName&) const = default;
};

// `shard/table/17`, or `shard/table/17@group`.
std::string ToString(const SliceName& name);

// Invalid, with what to write, for what ToString does not write: empty parts, a table that can't be one of
// tasks, a number with a sign or leading zeros, `@default`.
Result<SliceName> ParseSliceName(std::string_view text);

// Below kMaxSlices; nullopt: anything else.
std::optional<std::uint32_t> ReadSliceNumber(std::string_view text);
// The same in a name, of which there is one for each slice: without leading zeros.
std::optional<std::uint32_t> ReadSliceNumberOfName(std::string_view text);
// Lower-case letters, digits, `_` and `-`, at most 48.
bool IsShardName(std::string_view name);

}  // namespace millrace::engine

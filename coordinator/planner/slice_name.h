// How a slice is called in plans, assign nodes, commands and logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::engine {

// The group whose slices are called by shard, table and number alone.
inline constexpr const char* kDefaultGroup = "default";

struct SliceName {
  std::string shard;
  std::string table;
  std::uint32_t number = 0;  // the load-balance number
  std::string group = kDefaultGroup;
  auto operator<=>(const SliceName&) const = default;
};

// `shard/table/17`, or `shard/table/17@group`.
std::string ToString(const SliceName& name);

// nullopt for what ToString does not write: empty parts, a number with a sign or leading zeros, `@default`.
std::optional<SliceName> ParseSliceName(std::string_view text);

}  // namespace millrace::engine

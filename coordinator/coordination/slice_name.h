// The name of a slice in plans, nodes and commands: `shard/table/17`, or `shard/table/17@group`. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/result.h"

namespace millrace {

inline constexpr const char* kDefaultGroup = "default";

struct SliceName {
  std::string shard;
  std::string table;
  std::uint32_t number = 0;           // the load-balance number
  std::string group = kDefaultGroup;  // the handler group
  auto operator<=>(const SliceName&) const = default;
};

// The default group is left out.
std::string ToString(const SliceName& name);
// Invalid for anything else than ToString makes.
Result<SliceName> ParseSliceName(std::string_view text);

}  // namespace millrace

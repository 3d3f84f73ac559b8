// Load-balance numbers as people write them: `0-31,40`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/result.h"

namespace millrace::engine {

// The numbers, sorted and without doubles. Invalid for anything but numbers and ranges between 0 and
// kMaxSlices-1 with commas between, and for an empty text.
Result<std::vector<std::uint32_t>> ParseLoadBalance(std::string_view text);

// The shortest text that ParseLoadBalance reads back. `numbers` are sorted and without doubles.
std::string FormatLoadBalance(const std::vector<std::uint32_t>& numbers);

}  // namespace millrace::engine

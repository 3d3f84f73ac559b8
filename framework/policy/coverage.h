// Without a coordinator: which load-balance numbers a worker serves by what its incarnation says it owns,
// `0-31,40`. An empty text is everything; so is one that can't be read, since whoever wrote it may serve any.
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::engine {

bool Covers(std::string_view owned, std::uint32_t number);

// Of the numbers 0 … slices-1 those that none of the texts covers, sorted.
std::vector<std::uint32_t> Uncovered(std::span<const std::string> owned, std::uint32_t slices);

}  // namespace millrace::engine

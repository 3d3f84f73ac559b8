// Without a coordinator: which load-balance numbers nobody alive serves. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace::engine {

// Of the numbers 0 … slices-1 those that stand in none of the texts, sorted. A text is what an incarnation
// says it owns, `0-31,40`; an empty one is everything, and one that can't be read is nothing.
std::vector<std::uint32_t> Uncovered(std::span<const std::string> owned, std::uint32_t slices);

}  // namespace millrace::engine

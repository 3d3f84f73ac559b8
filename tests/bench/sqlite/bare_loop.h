// The ceiling: what the statements of a drain cost without a framework around them.
#pragma once

#include <cstddef>
#include <string>

namespace millrace::engine {

// So many rows of a slice, then of the next, and again from the first.
inline constexpr std::size_t kRowsOfTurn = 125;

// Claims and settles all waiting tasks of `tasks` in the file, `batch` a transaction, on one connection: the
// store's own statements in a loop, each prepared once. Returns how many; dies with a message on any error.
std::size_t DrainBare(const std::string& path, std::size_t batch);

}  // namespace millrace::engine

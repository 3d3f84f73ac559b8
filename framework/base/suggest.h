// "Did you mean …?" for names that people type.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace::engine {

// Insertions, deletions, substitutions and swaps of neighbours that turn one into the other.
std::size_t EditDistance(std::string_view a, std::string_view b);

// The known name nearest to `wrong`, the first of equals; empty where none is near: more than a third of the
// longer one's letters, at least one, would have to change.
std::string Nearest(std::string_view wrong, std::span<const std::string> known);

// ` (did you mean 'noop'?)`, or nothing where no known name is near: to be appended to a message.
std::string DidYouMean(std::string_view wrong, std::span<const std::string> known);

}  // namespace millrace::engine

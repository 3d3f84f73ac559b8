// The slices of a worker as people read them. Pure.
#pragma once

#include <string>
#include <vector>

namespace millrace::engine {

// `main/tasks/0-31,40`, with `@group` behind where they have one: a text for each table and group, in the
// order of their first slices. What is no name of a slice stands by itself.
std::vector<std::string> SliceRanges(const std::vector<std::string>& slices);

}  // namespace millrace::engine

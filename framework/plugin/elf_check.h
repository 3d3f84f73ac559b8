// Whether bytes are a whole shared library of this machine. Pure.
#pragma once

#include <string>
#include <string_view>

namespace millrace::engine {

// Empty if so; otherwise what is wrong ("is truncated: …"). The loader of the system maps a truncated file
// and is killed by SIGBUS when it touches the missing part; so its tables and extents are checked before.
std::string ElfProblem(std::string_view bytes);

}  // namespace millrace::engine

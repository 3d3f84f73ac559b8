// A plugin's file on disk: whom it may belong to, and the copy that is loaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/result.h"

namespace millrace::engine {

// Whether bytes are a whole shared library of this machine. Pure.
// Empty if so; otherwise what is wrong ("is truncated: …"). The loader of the system maps a truncated file
// and is killed by SIGBUS when it touches the missing part; so its tables and extents are checked before.
std::string ElfProblem(std::string_view bytes);

// The `*.so` files of a folder, by name. Invalid where the folder is missing or can be changed by others; see
// framework/files/trust.h.
Result<std::vector<std::string>> ListPlugins(const std::string& folder);

// Reads the file, checks that nobody else can change it and that it is a whole shared library, and puts a
// copy under a name made of its content into `cache`, a trusted folder (made where it is missing). Returns
// the copy's path. The copy is never written again, so that a mapped library can't change under the process.
Result<std::string> StagePlugin(const std::string& file, const std::string& cache);

}  // namespace millrace::engine

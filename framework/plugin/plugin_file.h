// A plugin's file on disk: whom it may belong to, and the copy that is loaded.
#pragma once

#include <string>
#include <vector>

#include "framework/base/result.h"

namespace millrace::engine {

// The `*.so` files of a folder, by name. Invalid where the folder is missing or can be changed by others; see
// framework/files/trust.h.
Result<std::vector<std::string>> ListPlugins(const std::string& folder);

// The bytes of a file that nobody else can change and that is a whole shared library of this machine: the
// system's loader maps a truncated one and is killed by SIGBUS when it touches the missing part.
Result<std::string> ReadPlugin(const std::string& file);

// Puts a copy of what ReadPlugin reads under a name made of its content into `cache`, a trusted folder (made
// where it is missing). Returns the copy's path. The copy is never written again, so that a mapped library
// can't change under the process.
Result<std::string> StagePlugin(const std::string& file, const std::string& cache);

}  // namespace millrace::engine

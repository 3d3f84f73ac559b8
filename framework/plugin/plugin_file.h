// A plugin's file on disk: whom it may belong to, and the copy that is loaded.
#pragma once

#include <string>
#include <vector>

#include "framework/base/result.h"

namespace millrace {

// The `*.so` files of a folder, by name. Invalid where the folder is missing or can be changed by others: it
// must belong to this user or root, and be writable by its owner alone; so must the folders above it, unless
// sticky.
Result<std::vector<std::string>> ListPlugins(const std::string& folder);

// Reads the file, checks that nobody else can change it and that it is a whole shared library, and puts a
// copy under a name made of its content into `cache` (made with mode 0700 where it is missing). Returns the
// copy's path. The copy is never written again, so that a mapped library can't change under the process.
Result<std::string> StagePlugin(const std::string& file, const std::string& cache);

}  // namespace millrace

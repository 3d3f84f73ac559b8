// Whom a file or folder of this host may belong to before its content is run or believed: plugins, their
// loaded copies, flight recorders, locks. One rule: the owner is this user or root, and nobody else can write
// it; of a folder, that holds for all folders above it too, which may also be sticky (in /tmp nobody moves
// what is another's). Every error is Invalid, names the path and says what to do.
#pragma once

#include <sys/stat.h>

#include <string>

#include "framework/base/result.h"

namespace millrace::engine {

// Who else could change it; empty if nobody. For a file that is open: what was checked is what is read.
std::string TrustProblem(const struct stat& info);

// The folder's real path, in which no link is left that could be turned elsewhere after the check. `what` is
// how messages call it: "plugin folder".
Result<std::string> TrustedFolder(const std::string& folder, const std::string& what);

// Makes the folder and those above it where they are missing, for this user alone; then the same.
Result<std::string> MakeTrustedFolder(const std::string& folder, const std::string& what);

}  // namespace millrace::engine

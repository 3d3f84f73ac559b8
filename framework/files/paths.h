// What is where on this host, and what it holds. The one folder that includes <filesystem>: nothing here
// throws, and every error names its path. Invalid where a path can't be looked at at all: no rights, too
// long, a loop of links.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/result.h"

namespace millrace::engine {

// Links are followed. False where there is nothing, or a folder on the way is none.
Result<bool> PathExists(const std::string& path);
Result<bool> IsFolder(const std::string& path);
Result<bool> IsPlainFile(const std::string& path);

// A file by its one name, whatever links lead there, and also where it is yet to be made. The error is why it
// can't be told.
Result<std::string> RealPath(const std::string& path);

// The entries of a folder whose names end so, as paths below it, sorted.
Result<std::vector<std::string>> FilesIn(const std::string& folder, std::string_view ending);

// What a file holds; it may be empty. Invalid: `PATH can't be read: why`.
Result<std::string> ReadFileText(const std::string& path);

// The name without its folder and its last ending: `noop` of `plugins/noop.so`.
std::string StemOf(const std::string& path);

// Where this process's program lies; empty where the system does not say.
std::string FolderOfProgram();
// $TMPDIR, or /tmp.
std::string TemporaryFolder();

}  // namespace millrace::engine

// Where things are by default on this machine.
#pragma once

#include <string>

#include "framework/base/result.h"

namespace millrace::engine {

// A variable of the environment; empty where it is not set.
std::string Variable(const char* name);

// The folder of the shipped plugins: beside the binary in a build tree; where it is installed, the folder
// that the build was configured for, found from the binary's own.
std::string DefaultPluginFolder();

// $XDG_STATE_HOME/millrace, or ~/.local/state/millrace; a folder of its own under /tmp for a user without a
// home.
std::string DefaultStateFolder();

// The folder's real path; it is made where it is missing. Invalid where it can't be used, or where others
// could change what is in it (framework/files/trust.h): recorders and loaded plugins stand there.
Result<std::string> MakeStateFolder(const std::string& folder);

// user@host, for the audit.
std::string Actor();

}  // namespace millrace::engine

// Where things are by default on this machine.
#pragma once

#include <string>

#include "framework/base/result.h"

namespace millrace {

// A variable of the environment; empty where it is not set.
std::string Variable(const char* name);

// The folder of the shipped plugins: beside the binary in a build tree, <prefix>/lib/millrace/plugins where
// it is installed.
std::string DefaultPluginFolder();

// $XDG_STATE_HOME/millrace, or ~/.local/state/millrace; a folder of its own under /tmp for a user without a
// home.
std::string DefaultStateFolder();

// Makes the folder, and those above it, for its owner alone. Unavailable where that can't be done.
Status MakeStateFolder(const std::string& folder);

// user@host, for the audit.
std::string Actor();

}  // namespace millrace

// One plugin in the process: opened, its descriptor checked.
#pragma once

#include <millrace/plugin.h>

#include <string>

#include "framework/base/result.h"

namespace millrace::engine {

// Loads the copy (never unloaded) and returns its descriptor, checked to the last pointer. Messages name
// `file`, where the copy came from. Invalid with what is wrong and the remedy.
Result<const millrace_plugin*> LoadLibrary(const std::string& copy, const std::string& file);

// Empty if the descriptor may be used; otherwise what is wrong with it. Pure.
std::string DescriptorProblem(const millrace_plugin* plugin);

}  // namespace millrace::engine

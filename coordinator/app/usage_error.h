// What is said to somebody who mistyped a command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace millrace {

// What is wrong, with the nearest command or option that there is, and whose help to look at.
std::string UsageErrorText(const CLI::App& root, const CLI::ParseError& error);

}  // namespace millrace

// What is said to somebody who mistyped a command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace millrace::engine {

// What is wrong, with the nearest command or option that there is, and whose help to look at.
std::string UsageErrorText(const CLI::App& root, const CLI::ParseError& error);

// An option that was given an empty value, such as that of a variable that is not set: leaving it out means
// something else, most often everything. Empty text where there is none.
std::string EmptyOptionText(const CLI::App& root);

}  // namespace millrace::engine

// What is left when a command throws, which is a defect: an error that a person can report, and no core dump.
#pragma once

#include <functional>

namespace millrace::engine {

// The command's exit status; 1, with what was thrown on standard error, where it ends by an exception.
int WithLastResort(const std::function<int()>& command);

}  // namespace millrace::engine

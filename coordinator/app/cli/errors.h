// How a command ends: its exit status, a contract with scripts (see ../README.md), and what is left where it
// throws.
#pragma once

#include <functional>

#include "framework/base/result.h"

namespace millrace::engine {

enum class ExitCode {
  Done = 0,
  SomethingFailed = 1,  // bad rows among good ones, a task that does not exist, a defect
  Usage = 2,            // usage or invalid input
  Unreachable = 3,      // a server cannot be reached
  Refused = 4,          // an id in use, a lock held, a guard that said no
};

ExitCode ExitCodeOf(ErrorCode code);

// The command's exit status. An exception is a defect: it ends with 1 and an error that a person can report,
// and with no core dump.
int ReportExceptions(const std::function<int()>& command);

}  // namespace millrace::engine

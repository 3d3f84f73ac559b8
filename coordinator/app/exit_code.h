// What the command's exit status says. A contract with scripts: see README.md beside it.
#pragma once

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

}  // namespace millrace::engine

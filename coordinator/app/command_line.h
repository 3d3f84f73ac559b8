// From the arguments of the process to a command and its exit status. The only part that knows the library
// for command lines.
#pragma once

namespace millrace::engine {

int RunCommandLine(int argc, char** argv);

}  // namespace millrace::engine

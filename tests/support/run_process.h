// Runs a program to its end and keeps what it printed.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace millrace::engine::testing {

struct ProcessResult {
  int exit_code = -1;  // -1: it did not exit by itself
  std::string output;  // standard output and standard error, as they came
};

// `command` is for the shell. It is killed after `limit_seconds`, and then exits with 124 or 137.
inline ProcessResult RunProcess(const std::string& command, int limit_seconds = 30) {
  ProcessResult result;
  std::string limited = "timeout -k 5 " + std::to_string(limit_seconds) + " sh -c '";
  for (const char c : command) c == '\'' ? limited += "'\\''" : limited += c;
  limited += "' 2>&1";
  std::FILE* pipe = popen(limited.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    result.output.append(buffer, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace millrace::engine::testing

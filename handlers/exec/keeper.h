// The child's side of running a program: a keeper process that outlives nobody. It starts the program in a
// process group of its own, passes signals on to the group, and kills the group when the program ends or the
// worker dies. It reaps all that the program leaves behind.
#pragma once

#include <sys/types.h>
#include <unistd.h>
#include <csignal>

namespace exec_handler {

// Made before the fork; everything the child needs, since it may not allocate.
struct Launch {
  const char* program = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;  // null: the worker's
  int in = -1;
  int out = -1;
  int err = -1;
  pid_t worker = 0;
};

// To the keeper: SIGTERM is passed on to the group; this one kills it.
inline constexpr int kKillSignal = SIGUSR2;
inline constexpr int kCannotRun = 127;

// Takes no lock and runs nobody's code in the child. The thread sanitizer has locks of its own, which it
// frees in the child of a fork that it sees.
inline pid_t Fork() {
#ifdef __SANITIZE_THREAD__
  return ::fork();
#else
  return ::_Fork();
#endif
}

// Never returns. Async-signal-safe throughout: it runs between fork and exec of a process with threads. All
// signals must be blocked.
[[noreturn]] void Keep(const Launch& launch);

}  // namespace exec_handler

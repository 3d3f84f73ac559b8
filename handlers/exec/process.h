// One run of a program: its input written, its output read, its end awaited.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace exec_handler {

struct Program {
  std::string path;
  std::vector<std::string> arguments;    // without the program's own name
  std::vector<std::string> environment;  // NAME=value
  std::string directory;                 // empty: the worker's
};

struct ProgramEnd {
  std::string problem;   // why it could not be started; empty: it was
  int code = 0;          // exit code
  int signal = 0;        // that killed it; 0: it exited
  bool reaped = false;   // by others: how it ended is not known
  bool stopped = false;  // it was told to stop before it ended
  std::string output;    // kKeptOutput of it
  std::string errors;    // kKeptErrors of standard error
};

// What is kept of a stream; a `…` stands for what is lost between the two. The head is that of the last line
// that begins with `{`, up to where the last bytes begin; where there is none, of the line in which they do.
struct Kept {
  std::size_t last;  // bytes of it
  std::size_t head;  // bytes
};
inline constexpr Kept kKeptOutput{64 * 1024, 4 * 1024};
inline constexpr Kept kKeptErrors{3584, 0};  // what is told in front of it finds room in 4 KiB, too

// Blocks until the program has ended. When `should_stop` gives true its process group gets SIGTERM, and
// SIGKILL after `grace`, though not later than at `kill_by`. Neither the program nor its children outlive
// this call or the death of this process.
ProgramEnd RunProgram(const Program& program, const std::string& input,
                      const std::function<bool()>& should_stop, std::chrono::milliseconds grace,
                      std::chrono::steady_clock::time_point kill_by);

// A program that never pauses in its output must be heard, not listened to for ever: reads what there is of a
// stream, `at_once` bytes of it or a little more.
// `read(buffer, size)` is as read(2) on a non-blocking descriptor, `take` gets what it gives. False at the
// end of the stream.
template <typename Read, typename Take>
bool Drain(const Read& read, std::size_t at_once, const Take& take) {
  char buffer[16 * 1024];
  std::size_t taken = 0;
  while (taken < at_once) {
    const ssize_t got = read(buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    taken += static_cast<std::size_t>(got);
    take(std::string_view(buffer, static_cast<std::size_t>(got)));
  }
  return true;
}

}  // namespace exec_handler

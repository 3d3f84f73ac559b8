#include "coordinator/app/command/stop_signals.h"

#include <poll.h>

#include <algorithm>
#include <csignal>

namespace millrace::engine {
namespace {

volatile std::sig_atomic_t seen = 0;

void Note(int) { seen = seen + 1; }

}  // namespace

void CatchStopSignals() {
  struct sigaction action {};
  action.sa_handler = Note;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  struct sigaction inherited {};
  sigaction(SIGHUP, nullptr, &inherited);
  if (inherited.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

int StopSignalsSeen() { return seen; }

void RestUnlessStopped(Micros time) {
  const BootTime end = BootClock::now() + time;
  while (StopSignalsSeen() == 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - BootClock::now());
    if (left.count() <= 0) return;
    poll(nullptr, 0, static_cast<int>(std::min<std::int64_t>(left.count(), 50)));
  }
}

}  // namespace millrace::engine

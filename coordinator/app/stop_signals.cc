#include "coordinator/app/stop_signals.h"

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
}

int StopSignalsSeen() { return seen; }

}  // namespace millrace::engine

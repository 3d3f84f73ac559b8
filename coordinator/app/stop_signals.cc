#include "coordinator/app/stop_signals.h"

#include <csignal>

#include "coordinator/app/cli/terminal.h"

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

bool StopOnSignals::Look() {
  const int seen = StopSignalsSeen();
  if (seen > 0 && asked_ == 0) {
    asked_ = 1;
    worker_.Stop();
    PrintNote("stopping: what runs is finished or given back; once more to give everything back now");
  }
  if (seen > 1 && asked_ == 1) {
    asked_ = 2;
    worker_.StopNow();
    PrintNote("giving everything back now");
  }
  return asked_ > 0;
}

}  // namespace millrace::engine

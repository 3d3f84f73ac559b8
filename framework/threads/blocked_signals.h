// Signals belong to the main thread: every other one is born with all of them blocked. Threads that a library
// starts, too, if it starts them while one of these lives.
#pragma once

#include <signal.h>

namespace millrace::engine {

// Blocks all signals for the thread that makes it, until it goes. One scope, one thread.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace millrace::engine

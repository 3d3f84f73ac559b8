#include "framework/exec/thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace millrace {

Thread::Thread(const std::string& name, std::function<void()> body) {
  // Signals belong to the main thread: every other one is born with all of them blocked.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([name = name.substr(0, 15), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    body();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Thread& Thread::operator=(Thread&& other) noexcept {
  Join();
  thread_ = std::move(other.thread_);
  return *this;
}

void Thread::Join() {
  if (thread_.joinable()) thread_.join();
}

void Thread::Abandon() {
  if (thread_.joinable()) thread_.detach();
}

}  // namespace millrace

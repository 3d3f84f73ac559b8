#include "framework/exec/thread.h"

#include <pthread.h>

#include <utility>

#include "framework/exec/blocked_signals.h"

namespace millrace {

Thread::Thread(const std::string& name, std::function<void()> body) {
  const BlockedSignals born_without_signals;
  thread_ = std::thread([name = name.substr(0, 15), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    body();
  });
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

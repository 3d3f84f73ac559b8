#include "framework/threads/thread.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "framework/threads/blocked_signals.h"

namespace millrace::engine {

Status Thread::Start(const std::string& name, std::function<void()> body) {
  Join();
  const BlockedSignals born_without_signals;
  try {
    thread_ = std::thread([name = name.substr(0, 15), body = std::move(body)] {
      pthread_setname_np(pthread_self(), name.c_str());
      body();
    });
  } catch (const std::system_error& refused) {
    return Fail(
        ErrorCode::Unavailable,
        "the system gives no thread for `" + name + "` (" + refused.code().message() +
            "): look at `ulimit -u`, at pids.max of the control group and at the memory that is left, "
            "or run with a smaller --concurrency");
  }
  return {};
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

}  // namespace millrace::engine

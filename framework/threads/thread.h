// The only place of the product that starts threads.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "framework/base/result.h"

namespace millrace::engine {

// A named thread, joined at destruction unless it was abandoned. Not thread-safe: one owner.
class Thread {
 public:
  Thread() = default;
  // Begins; one that was started is joined first. The name is shown by ps and top, cut to 15 bytes. `body`
  // must not throw. Unavailable, with what to look at, where the system gives no more threads: nothing has
  // begun, and it may be tried again.
  Status Start(const std::string& name, std::function<void()> body);
  ~Thread() { Join(); }
  Thread(Thread&& other) noexcept = default;
  Thread& operator=(Thread&& other) noexcept;

  // It was started, and neither joined nor abandoned since.
  bool Started() const { return thread_.joinable(); }
  void Join();
  // Lets it run on its own: for a thread that foreign code will not give back. What it uses must outlive it.
  void Abandon();

 private:
  std::thread thread_;
};

}  // namespace millrace::engine

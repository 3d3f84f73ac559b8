// The only place of the product that starts threads.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace millrace {

// A named thread, joined at destruction unless it was abandoned. Not thread-safe: one owner.
class Thread {
 public:
  Thread() = default;
  // The name is shown by ps and top, cut to 15 bytes. `body` must not throw.
  Thread(const std::string& name, std::function<void()> body);
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

}  // namespace millrace

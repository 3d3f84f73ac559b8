// An open file, pipe or the like, closed with its owner.
#pragma once

#include <string_view>

namespace millrace::engine {

// Not thread-safe.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}  // below 0: nothing is open
  ~Descriptor() { Reset(-1); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void Reset(int fd);
  int get() const { return fd_; }

 private:
  int fd_;
};

// False, with errno, where not all of it could be written.
bool WriteAll(int fd, std::string_view bytes);

}  // namespace millrace::engine

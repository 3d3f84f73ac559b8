// While one of these lives the system gives this process no thread: each would need a
// stack for which no address space has room.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace millrace::engine {

class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t greedy;
    pthread_attr_init(&greedy);
    pthread_attr_setstacksize(&greedy, std::size_t{1} << 47);
    pthread_setattr_default_np(&greedy);
    pthread_attr_destroy(&greedy);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace millrace::engine

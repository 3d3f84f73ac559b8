// std::mutex with the annotations of Clang's thread-safety analysis (no effect under GCC).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define MILLRACE_ANNOTATE(x) __attribute__((x))
#else
#define MILLRACE_ANNOTATE(x)
#endif
#define MILLRACE_GUARDED_BY(x) MILLRACE_ANNOTATE(guarded_by(x))
#define MILLRACE_REQUIRES(...) MILLRACE_ANNOTATE(requires_capability(__VA_ARGS__))

namespace millrace::engine {

class MILLRACE_ANNOTATE(capability("mutex")) Mutex {
 public:
  void Lock() MILLRACE_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  bool TryLock() MILLRACE_ANNOTATE(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void Unlock() MILLRACE_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class MILLRACE_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MILLRACE_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() MILLRACE_ANNOTATE(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits need the mutex held; every wait has a deadline.
class CondVar {
 public:
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }
  // False on time-out. May wake spuriously: check the condition in a loop.
  template <class Rep, class Period>
  bool WaitFor(Mutex& mutex, std::chrono::duration<Rep, Period> duration) MILLRACE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const bool told = condition_.wait_for(held, duration) == std::cv_status::no_timeout;
    held.release();
    return told;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace millrace::engine

// One worker process at a time on an SQLite file: flock on PATH.lock, held for life, is its lease; PATH is
// the file itself, whatever links lead to it. A file of its own, since opening and closing the database file
// in the process would drop SQLite's own locks. Producers and commands beside the worker need no lock.
#pragma once

#include <string>

#include "framework/base/result.h"

namespace millrace::engine::sqlite {

// Not copied; the lock goes with the object, and with the process however it ends.
class Lock {
 public:
  // Conflict with the holder's process id where another worker has it. Unavailable where the lock file can't
  // be made. The database may be yet to be made.
  static Result<Lock> Take(const std::string& database_path);
  Lock(Lock&& other) noexcept;
  Lock& operator=(Lock&& other) noexcept;
  ~Lock();

 private:
  explicit Lock(int file) : file_(file) {}
  int file_;
};

}  // namespace millrace::engine::sqlite

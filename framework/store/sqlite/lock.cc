#include "framework/store/sqlite/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "framework/files/paths.h"

namespace millrace::engine::sqlite {
namespace {

std::string ReadHolder(int file) {
  char buffer[32] = {};
  const ssize_t count = pread(file, buffer, sizeof buffer - 1, 0);
  std::string holder(buffer, count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!holder.empty() && (holder.back() < '0' || holder.back() > '9')) holder.pop_back();
  return holder.empty() ? "unknown" : holder;
}

}  // namespace

Result<Lock> Lock::Take(const std::string& database_path) {
  const auto cannot_open = [](const std::string& path, const std::string& why) {
    return Fail(ErrorCode::Unavailable, "the lock file " + path + ".lock can't be opened: " + why);
  };
  const auto real = RealPath(database_path);
  if (!real) return cannot_open(database_path, real.error().message);
  const std::string path = *real + ".lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return cannot_open(*real, std::strerror(errno));
  Lock lock(file);
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return Fail(ErrorCode::Unavailable,
                  "the lock file " + path + " can't be locked: " + std::strerror(errno));
    }
    return Fail(ErrorCode::Conflict,
                "another worker, process " + ReadHolder(file) + ", works on " + database_path +
                    ": an SQLite store takes one worker process at a time; stop it, or wait "
                    "until it has ended");
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(file, 0) != 0 || pwrite(file, pid.data(), pid.size(), 0) < 0) {
    return Fail(ErrorCode::Unavailable,
                "the lock file " + path + " can't be written: " + std::strerror(errno));
  }
  return lock;
}

Lock::Lock(Lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
Lock& Lock::operator=(Lock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}
Lock::~Lock() {
  if (file_ >= 0) close(file_);
}

}  // namespace millrace::engine::sqlite

#include "framework/store/sqlite/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace millrace::engine::sqlite {
namespace {

std::string ReadHolder(int file) {
  char buffer[32] = {};
  const ssize_t count = pread(file, buffer, sizeof buffer - 1, 0);
  std::string holder(buffer, count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!holder.empty() && (holder.back() < '0' || holder.back() > '9')) holder.pop_back();
  return holder.empty() ? "unknown" : holder;
}

// The file by its one name, whatever links lead there, and also where it is yet to be made: SQLite follows
// the links too.
Result<std::string> RealPath(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;
  std::error_code error;
  fs::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path real = fs::canonical(at, error);
    if (!error) return real.string();
    if (error != std::errc::no_such_file_or_directory) break;
    std::error_code no_link;
    const fs::path folder = at.has_parent_path() ? at.parent_path() : fs::path(".");
    const fs::path target = fs::read_symlink(at, no_link);
    if (no_link) {
      const fs::path there = fs::canonical(folder, error);
      if (error) break;
      return (there / at.filename()).string();
    }
    at = folder / target;  // which is the target alone where that begins at the root
  }
  return Fail(ErrorCode::Unavailable, "where " + path + " is can't be told: " +
                                          (error ? error.message() : std::string("too many links")));
}

}  // namespace

Result<Lock> Lock::Take(const std::string& database_path) {
  BOOST_OUTCOME_TRY(real, RealPath(database_path));
  const std::string path = real + ".lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) {
    return Fail(ErrorCode::Unavailable,
                "the lock file " + path + " can't be opened: " + std::strerror(errno));
  }
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

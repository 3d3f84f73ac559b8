#include "coordinator/app/process/followed_file.h"

#include <sys/stat.h>

#include <utility>

namespace millrace::engine {
namespace {

constexpr Micros kBetweenLooks = std::chrono::seconds(1);

}  // namespace

FollowedFile::FollowedFile(std::string path) : path_(std::move(path)) {
  read_ = seen_ = Now();
  if (!read_) path_.clear();
}

bool FollowedFile::Changed(BootTime now) {
  if (path_.empty() || now < next_) return false;
  next_ = now + kBetweenLooks;
  const std::optional<Version> version = Now();
  const bool settled = std::exchange(seen_, version) == version;
  if (!version || !settled || version == read_) return false;
  read_ = version;
  return true;
}

std::optional<FollowedFile::Version> FollowedFile::Now() const {
  struct stat file {};
  if (path_.empty() || stat(path_.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  return Version(file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

}  // namespace millrace::engine

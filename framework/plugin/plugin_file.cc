#include "framework/plugin/plugin_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "framework/plugin/elf_check.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargestPlugin = std::int64_t{1} << 30;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string ErrnoText() { return std::strerror(errno); }

// Who else could change it; empty if nobody.
std::string TrustProblem(const struct stat& info, bool sticky_is_fine) {
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return "belongs to another user (uid " + std::to_string(info.st_uid) +
           "); chown it to the user that runs millrace, or to root";
  }
  const bool sticky = (info.st_mode & S_ISVTX) != 0;
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(sticky_is_fine && sticky)) {
    return "can be written by others, who could so run code here; chmod go-w it";
  }
  return {};
}

Status CheckFolders(const std::string& folder) {
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  if (error)
    return Fail(ErrorCode::Invalid, "the plugin folder '" + folder + "' can't be opened: " + error.message());
  bool above = false;
  for (fs::path path = whole;; path = path.parent_path(), above = true) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      return Fail(ErrorCode::Invalid,
                  "the plugin folder '" + path.string() + "' can't be examined: " + ErrnoText());
    }
    if (!S_ISDIR(info.st_mode))
      return Fail(ErrorCode::Invalid,
                  "'" + path.string() + "' is not a folder; name the folder that holds the plugins");
    const std::string problem = TrustProblem(info, above);
    if (!problem.empty()) {
      return Fail(ErrorCode::Invalid, (above ? "the folder '" + path.string() + "', above the plugins, "
                                             : "the plugin folder '" + path.string() + "' ") +
                                          problem);
    }
    if (path == path.root_path()) return {};
  }
}

Result<std::string> ReadAll(int fd, const std::string& file) {
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrorCode::Invalid, "the plugin '" + file + "' can't be read: " + ErrnoText());
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<std::string> ReadTrusted(const std::string& file) {
  const FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0)
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' can't be opened: " + ErrnoText());
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' is not a regular file");
  }
  if (const std::string problem = TrustProblem(info, false); !problem.empty()) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' " + problem);
  }
  if (info.st_size > kLargestPlugin)
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' is larger than 1 GiB");
  return ReadAll(fd.get(), file);
}

// FNV-1a, twice from different starts. It only names the copy, whose content is compared before it is used.
std::string ContentName(std::string_view bytes) {
  std::string name;
  for (std::uint64_t hash : {0xcbf29ce484222325ULL, 0x9e3779b97f4a7c15ULL}) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    name += text;
  }
  return name;
}

Status MakeCache(const std::string& cache) {
  if (::mkdir(cache.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(ErrorCode::Invalid, "the folder '" + cache + "' for loaded plugins can't be made: " +
                                        ErrnoText() + "; name a --state-dir that exists and can be written");
  }
  struct stat info {};
  if (::stat(cache.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Fail(ErrorCode::Invalid,
                "'" + cache + "' is not a folder; move it away or name another --state-dir");
  }
  if (const std::string problem = TrustProblem(info, false); !problem.empty()) {
    return Fail(ErrorCode::Invalid, "the folder '" + cache + "' for loaded plugins " + problem);
  }
  return {};
}

bool IsSame(const std::string& path, std::string_view bytes) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0) return false;
  const auto present = ReadAll(fd.get(), path);
  return present && *present == bytes;
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// By a new file and a rename: a process that has the old one mapped keeps it.
Status WriteCopy(const std::string& path, std::string_view bytes) {
  std::string temporary = path + ".XXXXXX";
  const FileDescriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() >= 0 && WriteAll(fd.get(), bytes) && ::fchmod(fd.get(), 0500) == 0 &&
      ::rename(temporary.c_str(), path.c_str()) == 0) {
    return {};
  }
  const std::string reason = ErrnoText();
  if (fd.get() >= 0) ::unlink(temporary.c_str());
  return Fail(ErrorCode::Unavailable, "the copy '" + path + "' of a plugin can't be written: " + reason +
                                          "; make room there, or name another --state-dir");
}

}  // namespace

Result<std::vector<std::string>> ListPlugins(const std::string& folder) {
  if (Status trusted = CheckFolders(folder); !trusted) return Fail(trusted.error());
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".so") files.push_back(entry->path().string());
  }
  if (error)
    return Fail(ErrorCode::Invalid, "the plugin folder '" + folder + "' can't be read: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> StagePlugin(const std::string& file, const std::string& cache) {
  const auto bytes = ReadTrusted(file);
  if (!bytes) return Fail(bytes.error());
  if (const std::string problem = ElfProblem(*bytes); !problem.empty()) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' " + problem +
                                        "; build or copy it again, or take it out of the folder");
  }
  if (Status made = MakeCache(cache); !made) return Fail(made.error());
  const std::string copy = cache + "/" + fs::path(file).stem().string() + "-" + ContentName(*bytes) + ".so";
  if (!IsSame(copy, *bytes)) {
    if (Status written = WriteCopy(copy, *bytes); !written) return Fail(written.error());
  }
  return copy;
}

}  // namespace millrace

#include "framework/plugin/plugin_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "framework/files/paths.h"
#include "framework/files/trust.h"
#include "framework/plugin/elf_check.h"

namespace millrace::engine {
namespace {

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
  if (const std::string problem = TrustProblem(info); !problem.empty()) {
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

// False also for a copy that others could still change.
bool IsSame(const std::string& path, std::string_view bytes) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (!TrustProblem(info).empty()) return false;
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
  BOOST_OUTCOME_TRY(trusted, TrustedFolder(folder, "plugin folder"));
  return FilesIn(trusted, ".so");
}

Result<std::string> StagePlugin(const std::string& file, const std::string& cache) {
  BOOST_OUTCOME_TRY(bytes, ReadTrusted(file));
  if (const std::string problem = ElfProblem(bytes); !problem.empty()) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' " + problem +
                                        "; build or copy it again, or take it out of the folder");
  }
  BOOST_OUTCOME_TRY(trusted, MakeTrustedFolder(cache, "folder for loaded plugins"));
  const std::string copy = trusted + "/" + StemOf(file) + "-" + ContentName(bytes) + ".so";
  if (!IsSame(copy, bytes)) {
    BOOST_OUTCOME_TRYV(WriteCopy(copy, bytes));
  }
  return copy;
}

}  // namespace millrace::engine

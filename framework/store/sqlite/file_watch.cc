// Hears that the database file or its write-ahead log was written, by whomever.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "framework/files/descriptor.h"
#include "framework/store/sqlite/sessions.h"

namespace millrace::engine::sqlite {
namespace {

constexpr int kOneWaitMs = 10'000;
// After a ring the writes of so long are heard as one, or each page of a batch would wake the thread.
constexpr int kPauseMs = 2;

class FileWatch final : public ChangeFeed {
 public:
  explicit FileWatch(std::string path)
      : path_(std::move(path)), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Status Open() override {
    inotify_.Reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (inotify_.get() < 0) return Wrong("inotify can't be used");
    // SQLite keeps the log beside the file that a link leads to.
    char real[PATH_MAX];
    if (realpath(path_.c_str(), real) == nullptr) return Wrong(path_);
    file_ = real;
    const auto slash = file_.rfind('/');
    base_ = file_.substr(slash + 1);
    const std::string folder = slash == 0 ? "/" : file_.substr(0, slash);
    // The log comes and goes with the connections.
    if (inotify_add_watch(inotify_.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
      return Wrong(folder);
    return WatchFiles();
  }

  Result<std::vector<Ring>> Next() override {
    if (rang_ && Waits(stop_.get(), kPauseMs)) return Interrupted();
    rang_ = false;
    std::array<pollfd, 2> ready{{{inotify_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), kOneWaitMs) <= 0) return std::vector<Ring>{};
    if (ready[1].revents != 0) return Interrupted();
    alignas(inotify_event) char buffer[64 * (sizeof(inotify_event) + NAME_MAX + 1)];
    while (true) {
      const ssize_t size = read(inotify_.get(), buffer, sizeof buffer);
      if (size <= 0) break;
      BOOST_OUTCOME_TRYV(Take(buffer, static_cast<std::size_t>(size)));
    }
    if (!rang_) return std::vector<Ring>{};
    return std::vector<Ring>{Ring{}};
  }

  void Interrupt() override { (void)eventfd_write(stop_.get(), 1); }

 private:
  static bool Waits(int fd, int limit_ms) {
    pollfd ready{fd, POLLIN, 0};
    return poll(&ready, 1, limit_ms) > 0;
  }
  static Result<std::vector<Ring>> Interrupted() { return Fail(ErrorCode::Cancelled, "it is stopped"); }
  Status Wrong(const std::string& what) const {
    const int code = errno;
    // The user's watches or instances are used up: a person may raise fs.inotify's limits.
    const bool for_people = code == ENOSPC || code == EMFILE;
    return Fail(for_people ? ErrorCode::Invalid : ErrorCode::Unavailable,
                "the file can't be watched: " + what + ": " + std::strerror(code) +
                    (for_people ? " (see the limits under /proc/sys/fs/inotify)" : ""));
  }

  Status WatchFiles() {
    for (const std::string& file : {file_, file_ + "-wal"}) {
      const bool watched = inotify_add_watch(inotify_.get(), file.c_str(), IN_MODIFY) >= 0;
      if (!watched && errno != ENOENT) return Wrong(file);
    }
    return {};
  }

  Status Take(const char* events, std::size_t size) {
    bool anew = false;
    for (std::size_t at = 0; at + sizeof(inotify_event) <= size;) {
      inotify_event event;
      std::memcpy(&event, events + at, sizeof event);
      const char* name = events + at + sizeof event;
      at += sizeof event + event.len;
      if ((event.mask & (IN_MODIFY | IN_Q_OVERFLOW)) != 0) rang_ = true;
      if ((event.mask & (IN_CREATE | IN_MOVED_TO)) == 0) continue;
      if (base_ != name && base_ + "-wal" != name) continue;
      rang_ = anew = true;
    }
    return anew ? WatchFiles() : Status();
  }

  const std::string path_;
  const Descriptor stop_;
  Descriptor inotify_;
  std::string file_;
  std::string base_;
  bool rang_ = false;
};

}  // namespace

std::unique_ptr<ChangeFeed> OpenFileWatch(const std::string& path) {
  return std::make_unique<FileWatch>(path);
}

}  // namespace millrace::engine::sqlite

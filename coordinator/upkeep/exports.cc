#include "coordinator/upkeep/exports.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "coordinator/upkeep/task_json.h"
#include "framework/base/log.h"
#include "framework/base/time_text.h"
#include "framework/files/descriptor.h"

namespace millrace::engine {
namespace {

constexpr int kLockTries = 50;
constexpr int kBetweenTriesMs = 20;

Failure Refused(const std::string& path) {
  return Fail(ErrorCode::Invalid, "can't write " + path + ": " + std::strerror(errno));
}

// Whoever takes back what it could not write whole must not cut off what another has appended meanwhile: a
// thread for another shard, or another process of this host. The lock goes with the file's descriptor. A
// file system without locks has none to wait for.
bool Lock(int fd) {
  for (int tries = 1; flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++tries) {
    if (tries == kLockTries) return false;
    poll(nullptr, 0, kBetweenTriesMs);
  }
  return true;
}

// A writer that was killed in the middle has left a part of a line: it stays one by itself.
Result<bool> EndsInALine(int fd, off_t size) {
  char last = '\n';
  if (size > 0 && pread(fd, &last, 1, size - 1) != 1) return Fail(ErrorCode::Invalid, std::strerror(errno));
  return last == '\n';
}

// A new file's name is on the disk once its folder is.
bool SyncFolder(const std::string& path) {
  const std::string name = path.substr(0, path.rfind('/') + 1);
  const Descriptor folder(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && fsync(folder.get()) == 0;
}

}  // namespace

Status AppendLines(const std::string& path, const std::string& lines) {
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  if (file.get() < 0) return Refused(path);
  if (!Lock(file.get()))
    return Fail(ErrorCode::Invalid, "can't write " + path + ": another process keeps it locked");
  struct stat before {};
  if (fstat(file.get(), &before) != 0) return Refused(path);
  if (!S_ISREG(before.st_mode)) return Fail(ErrorCode::Invalid, "can't write " + path + ": it is no file");
  const auto whole = EndsInALine(file.get(), before.st_size);
  if (!whole) return Fail(ErrorCode::Invalid, "can't read " + path + ": " + whole.error().message);
  if (!WriteAll(file.get(), *whole ? lines : "\n" + lines)) {
    const Failure refused = Refused(path);
    (void)!ftruncate(file.get(), before.st_size);
    return refused;
  }
  if (fsync(file.get()) != 0) return Refused(path);
  if (before.st_size == 0 && !SyncFolder(path)) return Refused(path);
  return {};
}

bool Exports::Write(const std::string& type, const std::string& folder, std::span<const TaskRecord> tasks,
                    WallTime now) {
  asked_.insert(type);
  std::string lines;
  for (const TaskRecord& task : tasks) lines += TaskLine(shard_, task) + "\n";
  const Status written =
      AppendLines(folder + "/" + FormatTime(now).substr(0, 10) + "." + host_ + ".jsonl", lines);
  std::string trouble;
  if (!written) {
    trouble = "finished tasks of " + type +
              " are not pruned, since they can't be exported: " + written.error().message;
  }
  if (trouble != troubles_[type] && !trouble.empty()) LogWarning(trouble, {{"shard", shard_}});
  if (trouble.empty() && !troubles_[type].empty())
    LogInfo("finished tasks are exported and pruned again", {{"shard", shard_}, {"handler", type}});
  troubles_[type] = std::move(trouble);
  return static_cast<bool>(written);
}

void Exports::KeepTroubles(const std::set<std::string>& types) {
  std::erase_if(troubles_, [&](const auto& one) { return !types.contains(one.first); });
}

void Exports::EndWalk() { KeepTroubles(std::exchange(asked_, {})); }

std::vector<std::string> Exports::Troubles() const {
  std::vector<std::string> troubles;
  for (const auto& [type, trouble] : troubles_) {
    if (!trouble.empty()) troubles.push_back(trouble);
  }
  return troubles;
}

}  // namespace millrace::engine

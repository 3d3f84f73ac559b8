#include "framework/worker/worker_id.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "framework/files/trust.h"
#include "framework/policy/pauses.h"

namespace millrace::engine {
namespace {

constexpr int kMostWorkers = 1000;  // on one host

// The locked file, -1 if another process has it, or an error.
Result<int> TryLock(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return Fail(ErrorCode::Invalid,
                path + " can't be opened: " + std::strerror(errno) + "; choose another --state-dir");
  }
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  close(file);
  return -1;
}

}  // namespace

std::string HostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name;
}

Status CheckWorkerId(const std::string& name) {
  if (IsWorkerName(name)) return {};
  return Fail(ErrorCode::Invalid, "'" + name +
                                      "' is not a worker id: letters, digits, '.', '_' and '-', at most 48, "
                                      "and no '.' at the beginning");
}

Result<std::unique_ptr<WorkerId>> WorkerId::Take(const std::string& state_dir, const std::string& wanted) {
  const auto trusted = MakeTrustedFolder(state_dir + "/workers", "folder of worker locks");
  if (!trusted)
    return Fail(trusted.error().code, trusted.error().message + "; or choose another --state-dir");
  const std::string& folder = *trusted;
  if (!wanted.empty()) {
    BOOST_OUTCOME_TRYV(CheckWorkerId(wanted));
    BOOST_OUTCOME_TRY(file, TryLock(folder + "/" + wanted + ".lock"));
    if (file < 0) {
      return Fail(ErrorCode::Conflict, "the worker id '" + wanted +
                                           "' is in use on this host (by its lock in " + folder +
                                           "): stop that worker, or choose another --id");
    }
    return std::unique_ptr<WorkerId>(new WorkerId(wanted, file));
  }
  std::string host = HostName();
  host = host.substr(0, std::min(host.find('.'), kMaxWorkerName - 5));
  for (int number = 1; number <= kMostWorkers; ++number) {
    const std::string name = host + "-" + std::to_string(number);
    BOOST_OUTCOME_TRY(file, TryLock(folder + "/" + name + ".lock"));
    if (file >= 0) return std::unique_ptr<WorkerId>(new WorkerId(name, file));
  }
  return Fail(ErrorCode::Conflict, "a thousand workers run on this host: name one by --id");
}

WorkerId::~WorkerId() { close(file_); }

}  // namespace millrace::engine

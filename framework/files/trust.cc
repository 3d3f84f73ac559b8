#include "framework/files/trust.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;

std::string ProblemOf(const struct stat& info, bool sticky_is_fine) {
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return "belongs to another user (uid " + std::to_string(info.st_uid) +
           "); chown it to the user that runs millrace, or to root";
  }
  const bool sticky = (info.st_mode & S_ISVTX) != 0;
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(sticky_is_fine && sticky)) {
    return "can be written by others, who could put files of their own there; chmod go-w it";
  }
  return {};
}

// 0, or the error that stands in the way. Of folders that are there already only the trust is of interest.
int MakeFolders(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return 0;
  const fs::path above = folder.parent_path();
  if (errno != ENOENT || above.empty() || above == folder) return errno;
  if (const int error = MakeFolders(above); error != 0) return error;
  return ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

Status CheckAbove(const fs::path& whole, const std::string& name) {
  for (fs::path path = whole; path != path.root_path();) {
    path = path.parent_path();
    struct stat info {};
    const std::string above = "the folder '" + path.string() + "', above " + name + ", ";
    if (::stat(path.c_str(), &info) != 0)
      return Fail(ErrorCode::Invalid, above + "can't be examined: " + std::strerror(errno));
    if (const std::string problem = ProblemOf(info, true); !problem.empty())
      return Fail(ErrorCode::Invalid, above + problem);
  }
  return {};
}

}  // namespace

std::string TrustProblem(const struct stat& info) { return ProblemOf(info, false); }

Result<std::string> TrustedFolder(const std::string& folder, const std::string& what) {
  const std::string name = "the " + what + " '" + folder + "'";
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  if (error) return Fail(ErrorCode::Invalid, name + " can't be opened: " + error.message());
  struct stat info {};
  if (::stat(whole.c_str(), &info) != 0)
    return Fail(ErrorCode::Invalid, name + " can't be examined: " + std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return Fail(ErrorCode::Invalid, name + " is not a folder");
  if (const std::string problem = TrustProblem(info); !problem.empty())
    return Fail(ErrorCode::Invalid, name + " " + problem);
  BOOST_OUTCOME_TRYV(CheckAbove(whole, name));
  return whole.string();
}

Result<std::string> MakeTrustedFolder(const std::string& folder, const std::string& what) {
  if (const int error = MakeFolders(folder); error != 0) {
    return Fail(ErrorCode::Invalid,
                "the " + what + " '" + folder + "' can't be made: " + std::strerror(error));
  }
  return TrustedFolder(folder, what);
}

}  // namespace millrace::engine

#include "framework/files/paths.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;

Result<fs::file_status> Look(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!error || status.type() == fs::file_type::not_found) return status;
  return Fail(ErrorCode::Invalid, "'" + path + "' can't be examined: " + error.message());
}

}  // namespace

Result<bool> PathExists(const std::string& path) {
  BOOST_OUTCOME_TRY(status, Look(path));
  return fs::exists(status);
}

Result<bool> IsFolder(const std::string& path) {
  BOOST_OUTCOME_TRY(status, Look(path));
  return fs::is_directory(status);
}

Result<bool> IsPlainFile(const std::string& path) {
  BOOST_OUTCOME_TRY(status, Look(path));
  return fs::is_regular_file(status);
}

Result<std::string> RealPath(const std::string& path) {
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
  return Fail(ErrorCode::Invalid, error ? error.message() : std::string("too many links"));
}

Result<std::vector<std::string>> FilesIn(const std::string& folder, std::string_view ending) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string path = entry->path().string();
    if (path.ends_with(ending)) files.push_back(std::move(path));
  }
  if (error) return Fail(ErrorCode::Invalid, "'" + folder + "' can't be read: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

// A folder opens, too: only reading says that it is none. Streams of C++ don't say why they failed.
Result<std::string> ReadFileText(const std::string& path) {
  const auto cannot = [&path](int error) {
    return Fail(ErrorCode::Invalid, path + " can't be read: " + std::strerror(error));
  };
  const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return cannot(errno);
  std::string text;
  char part[16384];
  while (const std::size_t read = std::fread(part, 1, sizeof part, file.get())) text.append(part, read);
  if (std::ferror(file.get()) != 0) return cannot(errno == 0 ? EIO : errno);
  return text;
}

std::string StemOf(const std::string& path) { return fs::path(path).stem().string(); }

std::string FolderOfProgram() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::string TemporaryFolder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return error ? "/tmp" : folder.string();
}

}  // namespace millrace::engine

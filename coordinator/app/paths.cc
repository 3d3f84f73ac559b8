#include "coordinator/app/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace millrace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultPluginFolder() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (fs::is_directory(folder / "plugins", error)) return (folder / "plugins").string();
  return (folder.parent_path() / "lib" / "millrace" / "plugins").string();
}

std::string DefaultStateFolder() {
  if (const std::string state = Variable("XDG_STATE_HOME"); !state.empty()) return state + "/millrace";
  if (const std::string home = Variable("HOME"); !home.empty()) return home + "/.local/state/millrace";
  return "/tmp/millrace-" + std::to_string(getuid());
}

Status MakeStateFolder(const std::string& folder) {
  std::error_code error;
  const bool fresh = fs::create_directories(folder, error);
  if (!error && fresh) fs::permissions(folder, fs::perms::owner_all, error);
  if (error || !fs::is_directory(folder) || access(folder.c_str(), W_OK | X_OK) != 0) {
    return Fail(ErrorCode::Invalid, "the state folder " + folder + " can't be used: " +
                                        (error ? error.message() : "it is not a folder that you can write") +
                                        "; name another with --state-dir");
  }
  return {};
}

std::string Actor() {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  const passwd* user = getpwuid(getuid());
  return (user == nullptr ? std::to_string(getuid()) : std::string(user->pw_name)) + "@" + host;
}

}  // namespace millrace

#include "coordinator/app/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "framework/files/paths.h"
#include "framework/files/trust.h"

namespace millrace::engine {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultPluginFolder() {
  const std::string folder = FolderOfProgram();
  const std::string built = folder + "/plugins";
  if (IsFolder(built).value_or(false)) return built;
  return folder + "/" MILLRACE_INSTALLED_PLUGINS;
}

std::string DefaultStateFolder() {
  if (const std::string state = Variable("XDG_STATE_HOME"); !state.empty()) return state + "/millrace";
  if (const std::string home = Variable("HOME"); !home.empty()) return home + "/.local/state/millrace";
  return "/tmp/millrace-" + std::to_string(getuid());
}

Result<std::string> MakeStateFolder(const std::string& folder) {
  auto trusted = MakeTrustedFolder(folder, "state folder");
  if (!trusted)
    return Fail(trusted.error().code, trusted.error().message + ", or name another with --state-dir");
  if (access(trusted->c_str(), W_OK | X_OK) == 0) return trusted;
  return Fail(ErrorCode::Invalid, "the state folder '" + folder + "' can't be written: " +
                                      std::strerror(errno) + "; name another with --state-dir");
}

std::string Actor() {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  const passwd* user = getpwuid(getuid());
  return (user == nullptr ? std::to_string(getuid()) : std::string(user->pw_name)) + "@" + host;
}

}  // namespace millrace::engine

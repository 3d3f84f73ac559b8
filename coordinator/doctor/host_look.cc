#include "coordinator/doctor/host_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "framework/plugin/library.h"
#include "framework/plugin/plugin_file.h"
#include "framework/plugin/plugin_set.h"
#include "framework/schedule/time_zone.h"
#include "framework/store/url.h"

namespace millrace::engine::doctor {
namespace {

// The kernel's numbers for file systems of other machines.
constexpr long kNetwork[] = {0x6969 /* NFS */,      0x517b /* SMB */,
                             0xff534d42 /* CIFS */, static_cast<long>(0xfe534d42) /* SMB 2 */,
                             0x00c36400 /* Ceph */, 0x5346414f /* AFS */};

Result<const millrace_plugin*> LoadPlugin(const std::string& file) {
  BOOST_OUTCOME_TRYV(ReadPlugin(file));
  return LoadLibrary(file, file);
}

}  // namespace

std::string ZonesTrouble() {
  const auto known = TimeZone::Find("America/New_York");
  return known ? "" : known.error().message;
}

void LookAtPlugins(const std::string& folder, const millrace_plugin* built_in, HostFacts& facts) {
  facts.plugin_folder = folder;
  const auto files = ListPlugins(folder);
  if (!files) {
    facts.plugin_trouble = files.error().message;
    return;
  }
  HandlerProviders providers;
  if (built_in != nullptr) providers.AddProgram(*built_in);
  for (const std::string& file : *files) {
    const auto plugin = LoadPlugin(file);
    if (plugin) providers.Add(file, **plugin);
    facts.plugins.push_back({file, plugin ? "" : plugin.error().message});
  }
  for (const HandlerProviders::Shared& shared : providers.Find())
    facts.plugins.push_back({shared.files.back(), shared.why});
}

SecretFacts LookAtSecret(const std::string& file, const std::string& use) {
  SecretFacts facts{file, use, ""};
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    facts.problem =
        errno == ENOENT ? "does not exist" : std::string("can't be examined: ") + std::strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    facts.problem = "is not a plain file";
  } else if (IsOpenToOthers(file, info.st_mode)) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777));
    facts.problem = std::string("may be read or written by others (mode ") + mode + ")";
  } else if (::access(file.c_str(), R_OK) != 0) {
    facts.problem = "can't be read by this user";
  }
  return facts;
}

SpaceFacts LookAtSpace(const std::string& folder, const std::string& use) {
  SpaceFacts facts{folder, use, ""};
  std::string there = folder.empty() ? "." : folder;
  while (::access(there.c_str(), F_OK) != 0 && errno == ENOENT) {
    const std::size_t slash = there.rfind('/');
    if (slash == std::string::npos) {
      there = ".";
    } else {
      there = slash == 0 ? "/" : there.substr(0, slash);
    }
  }
  struct statvfs space {};
  struct statfs kind {};
  if (::statvfs(there.c_str(), &space) != 0 || ::statfs(there.c_str(), &kind) != 0) {
    facts.problem = std::string("can't be examined: ") + std::strerror(errno);
    return facts;
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0)
    facts.problem =
        there == folder ? "can't be written by this user" : "can't be made by this user in " + there;
  facts.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  facts.free_files = space.f_favail;
  facts.counts_files = space.f_files > 0;
  facts.network = std::find(std::begin(kNetwork), std::end(kNetwork), static_cast<long>(kind.f_type)) !=
                  std::end(kNetwork);
  return facts;
}

std::optional<FileFacts> LookAtFile(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  FileFacts facts{.file = file, .others_write = (info.st_mode & S_IWOTH) != 0};
  // In the header of the file: 2 where its writers keep a WAL. Read by itself only where no worker has the
  // file, since closing it in a process drops that process's locks; this one has none yet.
  char header[20] = {};
  std::ifstream in(file, std::ios::binary);
  if (in.read(header, sizeof header)) facts.wal = header[18] == 2;
  return facts;
}

}  // namespace millrace::engine::doctor

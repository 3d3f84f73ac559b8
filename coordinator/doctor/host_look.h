// Looks at this host: plugins, secrets, folders, the clock. Reads alone; a plugin is loaded, as a worker
// would, but not copied.
#pragma once

#include <string>

#include "coordinator/doctor/facts.h"
#include "framework/base/clock.h"

struct millrace_plugin;

namespace millrace::engine::doctor {

// Every `*.so` of the folder by itself, since one that is broken hides no other; and those that share a
// handler's name, with each other or with the program (`built_in`; null: it has none).
void LookAtPlugins(const std::string& folder, const millrace_plugin* built_in, HostFacts& facts);
// Why this machine knows no time zones; empty: it does.
std::string ZonesTrouble();
SecretFacts LookAtSecret(const std::string& file, const std::string& use);
// The folder, or what there is of the way to it: a worker makes the rest.
SpaceFacts LookAtSpace(const std::string& folder, const std::string& use);
// nullopt: there is no such file. Touches no lock of SQLite's.
std::optional<FileFacts> LookAtFile(const std::string& file);

// Whether the wall clock goes as the steady one does.
class ClockWatch {
 public:
  explicit ClockWatch(const Clock& clock) : clock_(clock), began_(clock.Now()), wall_(clock.WallNow()) {}
  // By how much it was set forward (back: negative) since the watch began.
  Micros Step() const { return (clock_.WallNow() - wall_) - (clock_.Now() - began_); }

 private:
  const Clock& clock_;
  const BootTime began_;
  const WallTime wall_;
};

}  // namespace millrace::engine::doctor

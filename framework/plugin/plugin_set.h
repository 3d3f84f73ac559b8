// The plugins of a process, loaded once and never unloaded: an upgrade is a new process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/plugin/handler_instance.h"

namespace millrace::engine {

struct HandlerInfo {
  std::string name;
  std::string summary;
  std::uint32_t max_batch = 1;
  std::string plugin;  // name and version
  std::string file;
  CodeDefaults defaults = {};
};

// Immutable after Load; thread-safe.
class PluginSet {
 public:
  // Loads every `*.so` of the folder, in name order. Each file is copied under a content-addressed name into
  // `state_dir` first and loaded from there, so that overwriting the original while the process runs is
  // harmless. Refused with a message that names the file and the remedy: a folder or file that others can
  // write, a truncated or foreign file, a missing entry point, a wrong magic or ABI version, a bad or doubled
  // handler name. One refused plugin refuses the set.
  static Result<std::unique_ptr<PluginSet>> Load(const std::string& folder, const std::string& state_dir);
  virtual ~PluginSet() = default;

  virtual std::vector<HandlerInfo> Handlers() const = 0;
  // Opens the handler `uses` for tasks of type `type`. `options` is a JSON object. NotFound with a
  // suggestion; Invalid with what the handler said when it refused its options.
  virtual Result<std::unique_ptr<HandlerInstance>> Open(const std::string& uses, const std::string& type,
                                                        const std::string& options,
                                                        const Secrets& secrets) const = 0;
};

}  // namespace millrace::engine

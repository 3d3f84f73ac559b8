// The plugins of a process, loaded once and never unloaded: an upgrade is a new process.
#pragma once

#include <millrace/plugin.h>

#include <map>
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

// Which files have which handlers: of those that share a handler's name none is taken. Not thread-safe.
class HandlerProviders {
 public:
  struct Shared {
    std::vector<std::string> files;
    std::string why;  // with the remedy
  };

  // The handlers of the program itself.
  void AddProgram(const millrace_plugin& plugin);
  void Add(const std::string& file, const millrace_plugin& plugin);
  // Of each handler that there is twice, by its name.
  std::vector<Shared> Find() const;

 private:
  std::map<std::string, std::vector<std::string>> files_;  // by the name of a handler
};

// Immutable after Load; thread-safe.
class PluginSet {
 public:
  // Loads every `*.so` of the folder, in name order. Each file is copied under a content-addressed name into
  // `state_dir` first and loaded from there, so that overwriting the original while the process runs is
  // harmless. A file that is refused leaves the others in force and stands in Refused: one that others can
  // write, a truncated or foreign one, a missing entry point, a wrong magic or ABI version, a bad handler
  // name, or one that `built_in` has, which is a part of the program and always there. Of files that share a
  // handler's name none is taken, since nobody can say which is meant. The set is refused where the folder or
  // the copies can't be trusted.
  static Result<std::unique_ptr<PluginSet>> Load(const std::string& folder, const std::string& state_dir,
                                                 const millrace_plugin* built_in = nullptr);
  virtual ~PluginSet() = default;

  virtual std::vector<HandlerInfo> Handlers() const = 0;
  // Why files of the folder were not taken, each with its name and the remedy, in name order.
  virtual std::vector<std::string> Refused() const { return {}; }
  // Opens the handler `uses` for tasks of type `type`. `options` is a JSON object. NotFound with a
  // suggestion; Invalid with what the handler said when it refused its options.
  virtual Result<std::unique_ptr<HandlerInstance>> Open(const std::string& uses, const std::string& type,
                                                        const std::string& options,
                                                        const Secrets& secrets) const = 0;
};

}  // namespace millrace::engine

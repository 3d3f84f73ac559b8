// The plugins at hand, and which handlers they have: for processes that run them and for commands that only
// ask.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "coordinator/app/command/settings.h"
#include "framework/plugin/plugin_set.h"

struct millrace_plugin;

namespace millrace::engine {

// --plugins, or the default folder.
std::string PluginFolder(const CommonFlags& flags);
// --state-dir, or the default one; made where it is missing.
Result<std::string> StateFolder(const CommonFlags& flags);

// The handlers that are a part of the program.
const millrace_plugin* BuiltInPlugin();
// What of its files is not taken stands in its Refused.
Result<std::unique_ptr<PluginSet>> LoadPlugins(const CommonFlags& flags);
// For a process that runs tasks: what is refused is logged. Invalid where nothing is left to run.
Result<std::unique_ptr<PluginSet>> LoadPluginsToWork(const CommonFlags& flags);
// `; not loaded: …`, behind a sentence about a handler that nobody has; empty where every file was taken.
std::string RefusedText(const PluginSet& plugins);

// For a command that only asks; null where there is no folder of plugins, or it is refused, which is said.
std::unique_ptr<PluginSet> PluginsAtHand(const CommonFlags& flags);
// What the type's handler says where it does not open with this configuration; empty where it opens, where no
// plugin has it, and where its secrets can't be read here: a worker may have an account that can.
std::string WhyNotOpened(const PluginSet& plugins, const Config& config, const std::string& type);

using HandlersByName = std::map<std::string, HandlerInfo>;
// Of no plugins nullopt.
std::optional<HandlersByName> HandlersOf(const PluginSet* plugins);
// The handlers at hand.
std::optional<HandlersByName> HandlersAtHand(const CommonFlags& flags);
// Their names.
std::optional<std::set<std::string>> HandlerNamesAtHand(const CommonFlags& flags);
// The configuration of a task type over what its handler brings, where that is at hand.
HandlerConfig InForce(const Config& config, const std::string& type,
                      const std::optional<HandlersByName>& at_hand);

// Invalid, with the nearest known name, where no plugin at hand serves tasks of this type.
Status CheckHandlerKnown(const std::string& type, const Config& config,
                         const std::optional<HandlersByName>& at_hand);

}  // namespace millrace::engine

// Which handlers the plugins at hand have, for commands that only ask.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/settings.h"
#include "framework/plugin/plugin_set.h"

namespace millrace::engine {

// --plugins, or the default folder.
std::string PluginFolder(const CommonFlags& flags);
// --state-dir, or the default one; made where it is missing.
Result<std::string> StateFolder(const CommonFlags& flags);

Result<std::unique_ptr<PluginSet>> LoadPlugins(const CommonFlags& flags);

// The names of the handlers at hand; nullopt where there is no folder of plugins, or it is refused.
std::optional<std::vector<std::string>> HandlersAtHand(const CommonFlags& flags);

// Invalid, with the nearest known name, where no plugin at hand serves tasks of this type.
Status CheckHandlerKnown(const std::string& type, const Config& config,
                         const std::optional<std::vector<std::string>>& at_hand);

}  // namespace millrace::engine

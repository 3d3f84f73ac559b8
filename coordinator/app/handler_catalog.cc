#include "coordinator/app/handler_catalog.h"

#include <algorithm>

#include "coordinator/app/paths.h"
#include "coordinator/app/terminal.h"
#include "framework/base/suggest.h"
#include "framework/files/paths.h"

namespace millrace::engine {

std::string PluginFolder(const CommonFlags& flags) {
  return flags.plugins.empty() ? DefaultPluginFolder() : flags.plugins;
}

Result<std::string> StateFolder(const CommonFlags& flags) {
  return MakeStateFolder(flags.state_dir.empty() ? DefaultStateFolder() : flags.state_dir);
}

Result<std::unique_ptr<PluginSet>> LoadPlugins(const CommonFlags& flags) {
  auto state = StateFolder(flags);
  if (!state) return Fail(state.error());
  return PluginSet::Load(PluginFolder(flags), *state);
}

std::optional<std::vector<std::string>> HandlersAtHand(const CommonFlags& flags) {
  const auto folder = IsFolder(PluginFolder(flags));
  if (folder && !*folder) return std::nullopt;
  const auto plugins = LoadPlugins(flags);
  if (!plugins) {
    PrintNote("note: the plugins can't be asked which handlers they have: " + plugins.error().message);
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const HandlerInfo& info : (*plugins)->Handlers()) names.push_back(info.name);
  return names;
}

Status CheckHandlerKnown(const std::string& type, const Config& config,
                         const std::optional<std::vector<std::string>>& at_hand) {
  if (!at_hand) return {};
  const auto configured = config.handlers.find(type);
  const bool renamed = configured != config.handlers.end() && !configured->second.uses.empty();
  const std::string& name = renamed ? configured->second.uses : type;
  if (std::find(at_hand->begin(), at_hand->end(), name) != at_hand->end()) return {};
  std::string all;
  for (const std::string& known : *at_hand) all += (all.empty() ? "" : ", ") + known;
  const std::string hint = DidYouMean(name, *at_hand);
  return Fail(ErrorCode::Invalid, "no plugin has a handler '" + name + "'" +
                                      (hint.empty() ? "; there are " + all : hint) +
                                      "; name their folder with --plugins, or submit anyway with --force");
}

}  // namespace millrace::engine

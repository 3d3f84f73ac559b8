#include "coordinator/app/handler_catalog.h"

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "framework/files/paths.h"

namespace millrace::engine {

std::string PluginFolder(const CommonFlags& flags) {
  return flags.plugins.empty() ? DefaultPluginFolder() : flags.plugins;
}

Result<std::string> StateFolder(const CommonFlags& flags) {
  return MakeStateFolder(flags.state_dir.empty() ? DefaultStateFolder() : flags.state_dir);
}

Result<std::unique_ptr<PluginSet>> LoadPlugins(const CommonFlags& flags) {
  BOOST_OUTCOME_TRY(state, StateFolder(flags));
  return PluginSet::Load(PluginFolder(flags), state);
}

std::optional<HandlersByName> HandlersAtHand(const CommonFlags& flags) {
  const auto folder = IsFolder(PluginFolder(flags));
  if (folder && !*folder) return std::nullopt;
  const auto plugins = LoadPlugins(flags);
  if (!plugins) {
    PrintNote("note: the plugins can't be asked which handlers they have: " + plugins.error().message);
    return std::nullopt;
  }
  HandlersByName handlers;
  for (HandlerInfo& info : (*plugins)->Handlers()) handlers.emplace(info.name, std::move(info));
  return handlers;
}

HandlerConfig InForce(const Config& config, const std::string& type,
                      const std::optional<HandlersByName>& at_hand) {
  const HandlerConfig& configured = config.HandlerFor(type);
  if (!at_hand) return configured;
  const auto found = at_hand->find(configured.uses.empty() ? type : configured.uses);
  return found == at_hand->end() ? configured : Over(found->second.defaults, configured);
}

Status CheckHandlerKnown(const std::string& type, const Config& config,
                         const std::optional<HandlersByName>& at_hand) {
  if (!at_hand) return {};
  const std::string& uses = config.HandlerFor(type).uses;
  const std::string& name = uses.empty() ? type : uses;
  if (at_hand->contains(name)) return {};
  std::vector<std::string> names;
  for (const auto& [known, info] : *at_hand) names.push_back(known);
  return Fail(ErrorCode::Invalid, "no plugin has a handler '" + name + "'" +
                                      NearestOf(name, names, "; there are ") +
                                      "; name their folder with --plugins, or submit anyway with --force");
}

}  // namespace millrace::engine

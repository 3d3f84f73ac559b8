#include "coordinator/app/command/plugins_at_hand.h"

#include <algorithm>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "framework/base/log.h"
#include "framework/files/paths.h"
#include "framework/worker/handler_secrets.h"
#include "handlers/built_in/built_in.h"

namespace millrace::engine {

std::string PluginFolder(const CommonFlags& flags) {
  return flags.plugins.empty() ? DefaultPluginFolder() : flags.plugins;
}

Result<std::string> StateFolder(const CommonFlags& flags) {
  return MakeStateFolder(flags.state_dir.empty() ? DefaultStateFolder() : flags.state_dir);
}

const millrace_plugin* BuiltInPlugin() { return built_in::Plugin(); }

Result<std::unique_ptr<PluginSet>> LoadPlugins(const CommonFlags& flags) {
  BOOST_OUTCOME_TRY(state, StateFolder(flags));
  return PluginSet::Load(PluginFolder(flags), state, BuiltInPlugin());
}

Result<std::unique_ptr<PluginSet>> LoadPluginsToWork(const CommonFlags& flags) {
  BOOST_OUTCOME_TRY(plugins, LoadPlugins(flags));
  for (const std::string& why : plugins->Refused())
    LogError("a plugin is not loaded; the others are", {{"why", why}});
  const auto handlers = plugins->Handlers();
  const bool own_alone = std::all_of(handlers.begin(), handlers.end(),
                                     [](const HandlerInfo& info) { return IsBuiltIn(info.name); });
  if (!plugins->Refused().empty() && own_alone)
    return Fail(ErrorCode::Invalid, "no plugin can be loaded: " + Joined(plugins->Refused(), "; "));
  return plugins;
}

std::string RefusedText(const PluginSet& plugins) {
  const std::vector<std::string> refused = plugins.Refused();
  return refused.empty() ? "" : "; not loaded: " + Joined(refused, "; ");
}

std::unique_ptr<PluginSet> PluginsAtHand(const CommonFlags& flags) {
  const auto folder = IsFolder(PluginFolder(flags));
  if (folder && !*folder) return nullptr;
  auto plugins = LoadPlugins(flags);
  if (!plugins) {
    PrintNote("note: the plugins can't be asked which handlers they have: " + plugins.error().message);
    return nullptr;
  }
  for (const std::string& why : (*plugins)->Refused()) PrintNote("note: not loaded: " + why);
  return std::move(*plugins);
}

std::string WhyNotOpened(const PluginSet& plugins, const Config& config, const std::string& type) {
  const HandlerConfig& own = config.HandlerFor(type);
  const auto secrets = ReadSecrets(type, own);
  if (!secrets) return "";
  const auto opened = plugins.Open(own.ServedBy(type), type, own.options, *secrets);
  return opened || opened.error().code == ErrorCode::NotFound ? "" : opened.error().message;
}

std::optional<HandlersByName> HandlersOf(const PluginSet* plugins) {
  if (plugins == nullptr) return std::nullopt;
  HandlersByName handlers;
  for (HandlerInfo& info : plugins->Handlers()) handlers.emplace(info.name, std::move(info));
  return handlers;
}

std::optional<HandlersByName> HandlersAtHand(const CommonFlags& flags) {
  return HandlersOf(PluginsAtHand(flags).get());
}

std::optional<std::set<std::string>> HandlerNamesAtHand(const CommonFlags& flags) {
  const auto at_hand = HandlersAtHand(flags);
  if (!at_hand) return std::nullopt;
  std::set<std::string> names;
  for (const auto& [name, info] : *at_hand) names.insert(name);
  return names;
}

HandlerConfig InForce(const Config& config, const std::string& type,
                      const std::optional<HandlersByName>& at_hand) {
  const HandlerConfig& configured = config.HandlerFor(type);
  if (!at_hand) return configured;
  const auto found = at_hand->find(configured.ServedBy(type));
  return found == at_hand->end() ? configured : Over(found->second.defaults, configured);
}

Status CheckHandlerKnown(const std::string& type, const Config& config,
                         const std::optional<HandlersByName>& at_hand) {
  if (!at_hand) return {};
  const HandlerConfig& own = config.HandlerFor(type);
  const std::string name = own.ServedBy(type);
  if (at_hand->contains(name)) return {};
  std::set<std::string> names;
  for (const auto& [known, info] : *at_hand) names.insert(known);
  for (const auto& [known, handler] : config.handlers) {
    if (own.uses.empty() && at_hand->contains(handler.uses)) names.insert(known);
  }
  return Fail(ErrorCode::Invalid, "no plugin has a handler '" + name + "'" +
                                      NearestOf(name, {names.begin(), names.end()}, "; there are ") +
                                      "; name their folder with --plugins, or submit anyway with --force");
}

}  // namespace millrace::engine

#include "framework/plugin/plugin_set.h"

#include <map>
#include <utility>

#include "framework/base/suggest.h"
#include "framework/plugin/handler_instance.h"
#include "framework/plugin/library.h"
#include "framework/plugin/plugin_file.h"

namespace millrace::engine {
namespace {

struct LoadedHandler {
  HandlerInfo info;
  const millrace_handler* descriptor = nullptr;
};

class LoadedPluginSet final : public PluginSet {
 public:
  // Invalid where a name is taken.
  Status Add(const millrace_plugin& plugin, const std::string& file);

  std::vector<HandlerInfo> Handlers() const override;
  Result<std::unique_ptr<HandlerInstance>> Open(const std::string& uses, const std::string& type,
                                                const std::string& options,
                                                const Secrets& secrets) const override;

 private:
  std::map<std::string, LoadedHandler> handlers_;
};

Status LoadedPluginSet::Add(const millrace_plugin& plugin, const std::string& file) {
  for (std::size_t i = 0; i < plugin.handler_count; ++i) {
    const millrace_handler& handler = *plugin.handlers[i];
    const std::string summary = handler.summary == nullptr ? "" : Shorten(handler.summary, 200);
    const HandlerInfo info{handler.name,
                           summary,
                           handler.max_batch,
                           plugin.name + std::string(" ") + plugin.version,
                           file,
                           ReadDefaults(handler)};
    const auto [place, added] = handlers_.try_emplace(info.name, LoadedHandler{info, &handler});
    if (!added) {
      return Fail(ErrorCode::Invalid, "the handler '" + info.name + "' of the plugin '" + file +
                                          "' is already provided by '" + place->second.info.file +
                                          "'; take one of them out of the folder");
    }
  }
  return {};
}

std::vector<HandlerInfo> LoadedPluginSet::Handlers() const {
  std::vector<HandlerInfo> infos;
  for (const auto& [name, handler] : handlers_) infos.push_back(handler.info);
  return infos;
}

Result<std::unique_ptr<HandlerInstance>> LoadedPluginSet::Open(const std::string& uses,
                                                               const std::string& type,
                                                               const std::string& options,
                                                               const Secrets& secrets) const {
  const auto found = handlers_.find(uses);
  if (found == handlers_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, handler] : handlers_) names.push_back(name);
    return Fail(ErrorCode::NotFound, "no loaded plugin has a handler '" + uses + "'" +
                                         DidYouMean(uses, names) +
                                         "; `millrace handler list` shows those there are");
  }
  return OpenHandler(*found->second.descriptor, type, options, secrets);
}

}  // namespace

Result<std::unique_ptr<PluginSet>> PluginSet::Load(const std::string& folder, const std::string& state_dir) {
  BOOST_OUTCOME_TRY(files, ListPlugins(folder));
  auto set = std::make_unique<LoadedPluginSet>();
  for (const std::string& file : files) {
    BOOST_OUTCOME_TRY(copy, StagePlugin(file, state_dir + "/plugins"));
    BOOST_OUTCOME_TRY(plugin, LoadLibrary(copy, file));
    BOOST_OUTCOME_TRYV(set->Add(*plugin, file));
  }
  return std::unique_ptr<PluginSet>(std::move(set));
}

}  // namespace millrace::engine

#include "framework/plugin/plugin_set.h"

#include <set>
#include <utility>

#include "framework/base/suggest.h"
#include "framework/files/trust.h"
#include "framework/plugin/handler_instance.h"
#include "framework/plugin/library.h"
#include "framework/plugin/plugin_file.h"

namespace millrace::engine {
namespace {

constexpr const char* kTheProgram = "the program itself";

struct LoadedHandler {
  HandlerInfo info;
  const millrace_handler* descriptor = nullptr;
};

struct LoadedFile {
  std::string file;
  const millrace_plugin* plugin = nullptr;
};

std::string SharedText(const std::string& handler, const std::vector<std::string>& files) {
  if (files.front() == kTheProgram)
    return "the plugin '" + files.back() + "' has the handler '" + handler +
           "', which is the program's own; rename it";
  if (files.front() == files.back())
    return "the plugin '" + files.front() + "' has the handler '" + handler + "' twice; rename one of them";
  std::string text = "the handler '" + handler + "' is in several plugins, so none of them is loaded:";
  for (const std::string& file : files) text += " '" + file + "'";
  return text + "; take all but one out of the folder";
}

Result<const millrace_plugin*> LoadOne(const std::string& file, const std::string& cache) {
  BOOST_OUTCOME_TRY(copy, StagePlugin(file, cache));
  return LoadLibrary(copy, file);
}

class LoadedPluginSet final : public PluginSet {
 public:
  void Add(const LoadedFile& loaded);
  void Refuse(std::string why) { refused_.push_back(std::move(why)); }

  std::vector<HandlerInfo> Handlers() const override;
  std::vector<std::string> Refused() const override { return refused_; }
  Result<std::unique_ptr<HandlerInstance>> Open(const std::string& uses, const std::string& type,
                                                const std::string& options,
                                                const Secrets& secrets) const override;

 private:
  std::map<std::string, LoadedHandler> handlers_;
  std::vector<std::string> refused_;
};

void LoadedPluginSet::Add(const LoadedFile& loaded) {
  const millrace_plugin& plugin = *loaded.plugin;
  for (std::size_t i = 0; i < plugin.handler_count; ++i) {
    const millrace_handler& handler = *plugin.handlers[i];
    const std::string summary = handler.summary == nullptr ? "" : Shorten(handler.summary, 200);
    HandlerInfo info{handler.name,      summary,
                     handler.max_batch, plugin.name + std::string(" ") + plugin.version,
                     loaded.file,       ReadDefaults(handler)};
    const std::string name = info.name;
    handlers_.try_emplace(name, LoadedHandler{std::move(info), &handler});
  }
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

void HandlerProviders::AddProgram(const millrace_plugin& plugin) { Add(kTheProgram, plugin); }

void HandlerProviders::Add(const std::string& file, const millrace_plugin& plugin) {
  for (std::size_t i = 0; i < plugin.handler_count; ++i) files_[plugin.handlers[i]->name].push_back(file);
}

std::vector<HandlerProviders::Shared> HandlerProviders::Find() const {
  std::vector<Shared> shared;
  for (const auto& [handler, files] : files_) {
    if (files.size() > 1) shared.push_back({files, SharedText(handler, files)});
  }
  return shared;
}

Result<std::unique_ptr<PluginSet>> PluginSet::Load(const std::string& folder, const std::string& state_dir,
                                                   const millrace_plugin* built_in) {
  BOOST_OUTCOME_TRY(files, ListPlugins(folder));
  auto set = std::make_unique<LoadedPluginSet>();
  std::vector<LoadedFile> loaded;
  HandlerProviders providers;
  if (built_in != nullptr) {
    set->Add({kTheProgram, built_in});
    providers.AddProgram(*built_in);
  }
  const std::string cache = state_dir + "/plugins";
  if (!files.empty()) {
    BOOST_OUTCOME_TRYV(MakeTrustedFolder(cache, "folder for loaded plugins"));
  }
  for (const std::string& file : files) {
    const auto plugin = LoadOne(file, cache);
    if (!plugin && plugin.error().code != ErrorCode::Invalid) return Fail(plugin.error());
    if (!plugin) {
      set->Refuse(plugin.error().message);
      continue;
    }
    loaded.push_back({file, *plugin});
    providers.Add(file, **plugin);
  }
  std::set<std::string> left_out;
  for (const HandlerProviders::Shared& shared : providers.Find()) {
    set->Refuse(shared.why);
    left_out.insert(shared.files.begin(), shared.files.end());
  }
  for (const LoadedFile& one : loaded) {
    if (!left_out.contains(one.file)) set->Add(one);
  }
  return std::unique_ptr<PluginSet>(std::move(set));
}

}  // namespace millrace::engine

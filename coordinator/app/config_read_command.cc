// millrace config get, validate and history: what is read and checked, and changes nothing.
#include <map>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/config_document.h"
#include "coordinator/app/config_key.h"
#include "coordinator/app/handler_catalog.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/text_table.h"
#include "coordinator/coordination/json_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

// `handlers.mail.monthly`, as the path of a value in force begins.
std::string PathOf(const ConfigKey& key, const ordered_json& handlers) {
  std::string path = key.part();
  for (const std::string& step : key.Keys(handlers)) path += "." + step;
  return path;
}

// `below`: of these values alone; empty: all.
void PrintEffective(const std::map<std::string, ConfigLayers::Value>& values, const std::string& below,
                    bool json) {
  ordered_json out = ordered_json::object();
  TextTable table{{{"key"}, {"value"}, {"from"}}, {}};
  for (const auto& [key, value] : values) {
    if (!below.empty() && key != below && !key.starts_with(below + ".")) continue;
    out[key] = {{"value", ordered_json::parse(value.json)}, {"from", value.source}};
    table.rows.push_back({key, value.json, value.source});
  }
  if (json) {
    PrintLine(JsonText(out));
  } else if (table.rows.empty()) {
    PrintLine(below + " has no value");
  } else {
    PrintLine(table.Text(OutputIsTerminal() ? TerminalWidth() : 0));
  }
}

// What the handlers of this host's plugins bring: of a worker with other plugins it may be another.
std::map<std::string, ConfigLayers::Brought> BroughtAtHand(const CommonFlags& flags) {
  std::map<std::string, ConfigLayers::Brought> brought;
  const auto at_hand = HandlersAtHand(flags);
  if (!at_hand) PrintNote("note: no plugins are at hand; what handlers bring in code is not shown");
  if (!at_hand) return brought;
  for (const auto& [name, info] : *at_hand) brought[name] = {info.plugin, info.defaults};
  return brought;
}

Result<ExitCode> GetEffective(ClusterConnection& cluster, const std::optional<ConfigKey>& key,
                              const CommonFlags& flags) {
  BOOST_OUTCOME_TRY(layers, ReadLayers(*cluster.client, cluster.settings));
  const ordered_json document = AsJson(ConfigText(*layers.Effective()));
  const std::string below =
      key ? PathOf(*key, document.value(key->part(), ordered_json::object())) : std::string();
  PrintEffective(layers.Values(BroughtAtHand(flags)), below, flags.json);
  for (const auto& [part, why] : layers.Refusals()) PrintError("not in force: " + why);
  return layers.Refusals().empty() ? ExitCode::Done : ExitCode::SomethingFailed;
}

// Beside the document, which goes into a file as it is.
std::string VersionOf(const ConfigNode& node) {
  return "config/" + node.part +
         (node.version ? " is version " + std::to_string(*node.version) : std::string(" is not there"));
}

Result<ExitCode> GetAll(ClusterClient& client) {
  ordered_json all = ordered_json::object();
  std::string versions;
  for (const char* part : kConfigParts) {
    BOOST_OUTCOME_TRY(node, CurrentNode(client, part));
    all[part] = AsJson(node.text);
    versions += (versions.empty() ? "" : ", ") + VersionOf(node);
  }
  PrintLine(JsonText(all, 2));
  PrintNote(versions);
  return ExitCode::Done;
}

}  // namespace

Result<ExitCode> RunConfigGet(const ConfigOptions& options) {
  std::optional<ConfigKey> key;
  if (!options.part.empty()) {
    BOOST_OUTCOME_TRY(read, ConfigKey::Read(options.part));
    key = std::move(read);
  }
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  if (options.effective) return GetEffective(cluster, key, options.common);
  if (!key) return GetAll(*cluster.client);
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, key->part()));
  const ordered_json document = AsJson(node.text);
  const auto pointer = PointerTo(key->Keys(document));
  if (!document.contains(pointer) && !key->whole()) {
    return Fail(ErrorCode::NotFound, options.part + " is not set; millrace config get --effective " +
                                         key->part() + " shows what is in force");
  }
  PrintLine(JsonText(document[pointer], 2));
  if (key->whole()) PrintNote(VersionOf(node));
  return ExitCode::Done;
}

Result<ExitCode> RunConfigValidate(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(part, ConfigKey::ReadPart(options.part));
  BOOST_OUTCOME_TRY(value, ReadValue(options.value));
  BOOST_OUTCOME_TRYV(ValidateConfigPart(part, value));
  PrintLine(options.common.json ? "{\"valid\":true}" : "it is good");
  return ExitCode::Done;
}

Result<ExitCode> RunConfigHistory(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(part, ConfigKey::ReadPart(options.part));
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(entries, ReadHistory(*cluster.client, part));
  if (options.common.json) {
    ordered_json out = ordered_json::array();
    for (const ConfigChange& change : entries) {
      ordered_json entry{{"version", change.version}, {"at", change.at}, {"by", change.by}};
      if (change.restores) entry["restores"] = *change.restores;
      entry["document"] = AsJson(change.text);
      out.push_back(std::move(entry));
    }
    PrintLine(JsonText(out));
    return ExitCode::Done;
  }
  TextTable table{{{"version", true}, {"at"}, {"by"}, {"document"}}, {}};
  for (const ConfigChange& change : entries) {
    const std::string what = change.restores ? " (back to " + std::to_string(*change.restores) + ")" : "";
    table.rows.push_back(
        {std::to_string(change.version), change.at, change.by + what, JsonText(AsJson(change.text))});
  }
  PrintLine(table.Text(OutputIsTerminal() ? TerminalWidth() : 0));
  return ExitCode::Done;
}

}  // namespace millrace::engine

#include <map>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/app/config/config_document.h"
#include "coordinator/app/config/config_history.h"
#include "coordinator/app/config/config_shards.h"
#include "coordinator/app/process/worker_flags.h"
#include "coordinator/coordination/json_text.h"
#include "framework/worker/handler_secrets.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

struct ConfigOptions {
  CommonFlags common;
  std::string part;                // `handlers`, or a key in it: `handlers.noop.concurrency`
  std::string value;               // JSON, @FILE, -
  std::vector<std::string> sides;  // of diff: versions, or such a value
  bool effective = false;
  bool offline = false;
  bool full = false;  // of history: the documents
};

// `handlers.mail.monthly`, as the path of a value in force begins.
std::string PathOf(const ConfigKey& key, const ordered_json& handlers) {
  std::string path = key.part();
  for (const std::string& step : key.Keys(handlers)) path += "." + step;
  return path;
}

// `below`: of these values alone; empty: all.
void PrintEffective(const std::map<std::string, ConfigLayers::Value>& values, const std::string& below,
                    const CommonFlags& flags) {
  ordered_json out = ordered_json::array();
  TextTable table{{{"key"}, {"value"}, {"from"}}, {}};
  for (const auto& [key, value] : values) {
    if (!below.empty() && key != below && !key.starts_with(below + ".")) continue;
    out.push_back({{"key", key}, {"value", ordered_json::parse(value.json)}, {"from", value.source}});
    table.rows.push_back({key, value.json, value.source});
  }
  PrintAnswer(flags, {{"values", out}}, table, below + " has no value");
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

// The cluster's, with what this command line names over it; without a cluster a file is all there is.
Result<ConfigLayers> LayersInForce(const CommonFlags& flags) {
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags, Variable, kDefaultStore));
  if (!settings.cluster && !settings.config_file.empty())
    return ConfigLayers(settings.config_text, settings.config_file, settings.own_store);
  BOOST_OUTCOME_TRY(cluster, Connect(flags));
  return ReadLayers(*cluster.client, cluster.settings);
}

Result<ExitCode> GetEffective(const std::optional<ConfigKey>& key, const CommonFlags& flags) {
  BOOST_OUTCOME_TRY(layers, LayersInForce(flags));
  const auto brought = BroughtAtHand(flags);
  ordered_json document = AsJson(ConfigText(*layers.Effective()));
  for (const auto& [type, plugin] : brought) document["handlers"].emplace(type, ordered_json::object());
  std::string below;
  std::string type;
  if (key) {
    const ordered_json part = document.value(key->part(), ordered_json::object());
    below = PathOf(*key, part);
    // A type without an entry has the defaults.
    if (key->part() == "handlers" && !key->whole() && IsHandlerName(key->Keys(part).front()))
      type = key->Keys(part).front();
  }
  PrintEffective(layers.Values(brought, type), below, flags);
  for (const auto& [part, why] : layers.Refusals()) PrintError("not in force: " + why);
  return layers.Refusals().empty() ? ExitCode::Done : ExitCode::SomethingFailed;
}

// With --json a part with its version; without it the document alone, which goes into a file as it is.
ordered_json PartJson(const ConfigNode& node) {
  return {{"part", node.part},
          {"version", node.version ? ordered_json(*node.version) : ordered_json()},
          {"document", AsJson(node.text)}};
}

// Beside the document.
std::string VersionOf(const ConfigNode& node) {
  return "config/" + node.part +
         (node.version ? " is version " + std::to_string(*node.version) : std::string(" is not there"));
}

Result<ExitCode> GetAll(ClusterClient& client, bool json) {
  ordered_json all = ordered_json::object();
  ordered_json parts = ordered_json::array();
  std::string versions;
  for (const char* part : kConfigParts) {
    BOOST_OUTCOME_TRY(node, CurrentNode(client, part));
    all[part] = AsJson(node.text);
    parts.push_back(PartJson(node));
    versions += (versions.empty() ? "" : ", ") + VersionOf(node);
  }
  if (json) {
    PrintJson({{"parts", parts}});
  } else {
    PrintJson(all, 2);
    PrintNote(versions);
  }
  return ExitCode::Done;
}

Result<ExitCode> RunConfigGet(const ConfigOptions& options) {
  std::optional<ConfigKey> key;
  if (!options.part.empty()) {
    BOOST_OUTCOME_TRY(read, ConfigKey::Read(options.part));
    key = std::move(read);
  }
  if (options.effective) return GetEffective(key, options.common);
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  if (!key) return GetAll(*cluster.client, options.common.json);
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, key->part()));
  const ordered_json document = AsJson(node.text);
  const auto pointer = PointerTo(key->Keys(document));
  if (!document.contains(pointer) && !key->whole()) {
    return Fail(ErrorCode::NotFound, options.part + " is not set; millrace config get --effective " +
                                         key->part() + " shows what is in force");
  }
  if (options.common.json) {
    if (key->whole()) {
      PrintJson({{"parts", ordered_json::array({PartJson(node)})}});
    } else {
      const ordered_json value{{"key", options.part}, {"value", document[pointer]}};
      PrintJson({{"values", ordered_json::array({value})}});
    }
    return ExitCode::Done;
  }
  PrintJson(document[pointer], 2);
  if (key->whole()) PrintNote(VersionOf(node));
  return ExitCode::Done;
}

// A line for each task type of the file that could not be run as it stands there.
std::vector<std::string> UnopenedTypes(const Settings& settings, const PluginSet& plugins) {
  std::vector<std::string> lines;
  const auto note = [&](const std::string& type, const char* key, const Error& error) {
    lines.push_back(PlaceInFile(settings, {"handlers", type, key}) + ": " + error.message);
  };
  for (const auto& [type, config] : settings.config.handlers) {
    const auto secrets = ReadSecrets(type, config);
    if (!secrets) {
      note(type, "secrets", secrets.error());
      continue;
    }
    const auto opened = plugins.Open(config.ServedBy(type), type, config.options, *secrets);
    if (!opened && opened.error().code != ErrorCode::NotFound) note(type, "options", opened.error());
  }
  return lines;
}

// The whole file, as `run` looks at it when it begins: the handlers that it names are opened, too.
Status ValidateFile(const CommonFlags& flags) {
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags, Variable, kDefaultStore));
  if (settings.config_file.empty())
    return Fail(ErrorCode::Invalid, "give a part and its value, or a whole file with --config FILE");
  BOOST_OUTCOME_TRY(plugins, LoadPlugins(flags));
  std::vector<std::string> lines = UnopenedTypes(settings, *plugins);
  if (const Status uses = CheckUses(settings, *plugins); !uses)
    lines.insert(lines.begin(), uses.error().message);
  for (const std::string& trouble : AlertTroubles(settings.config)) PrintNote("note: " + trouble);
  return lines.empty() ? Status() : Fail(ErrorCode::Invalid, Joined(lines, "\n"));
}

Status ValidatePart(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(part, ConfigKey::ReadPart(options.part));
  if (options.value.empty()) return Fail(ErrorCode::Invalid, "value is required: JSON, @FILE or -");
  BOOST_OUTCOME_TRY(value, ReadValue(options.value));
  BOOST_OUTCOME_TRYV(CheckSize(part, value));
  BOOST_OUTCOME_TRYV(ValidateConfigPart(part, value));
  if (part != "shards" || options.offline) return {};
  BOOST_OUTCOME_TRY(settings, ResolveSettings(options.common, Variable, kDefaultStore));
  return TryShards(value, "{}", settings);
}

Result<ExitCode> RunConfigValidate(const ConfigOptions& options) {
  BOOST_OUTCOME_TRYV(options.part.empty() ? ValidateFile(options.common) : ValidatePart(options));
  PrintLine(options.common.json ? "{\"valid\":true}" : "it is good");
  return ExitCode::Done;
}

// What a version changed of the one before, in one line.
std::string ChangedText(const std::string& part, const ConfigChange* before, const ConfigChange& change) {
  constexpr std::size_t kWidth = 80;
  if (before == nullptr && change.version > 0) return "the oldest that is kept";
  const auto changes = Changes(part, before == nullptr ? "{}" : before->text, change.text);
  if (changes.empty()) return "nothing";
  if (changes.size() == 1) return Fit(ToText(changes), kWidth);
  std::vector<std::string> keys;
  for (const KeyChange& one : changes) keys.push_back(one.key);
  return Fit(Count(keys.size(), "key", "keys") + ": " + Joined(keys), kWidth);
}

Result<ExitCode> RunConfigHistory(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(part, ConfigKey::ReadPart(options.part));
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(entries, ReadHistory(*cluster.client, part));
  ordered_json out = ordered_json::array();
  TextTable table{{{"version", true}, {"at"}, {"by"}, {options.full ? "document" : "changed"}}, {}};
  const ConfigChange* before = nullptr;
  for (const ConfigChange& change : entries) {
    out.push_back({{"version", change.version}, {"at", change.at}, {"by", change.by}});
    if (change.restores) out.back()["restores"] = *change.restores;
    out.back()["document"] = AsJson(change.text);
    const std::string what = change.restores ? " (back to " + std::to_string(*change.restores) + ")" : "";
    table.rows.push_back({std::to_string(change.version), change.at, change.by + what,
                          options.full ? JsonText(AsJson(change.text)) : ChangedText(part, before, change)});
    before = &change;
  }
  PrintAnswer(options.common, {{"part", part}, {"versions", out}}, table, table.Text(0));
  return ExitCode::Done;
}

// One side of a comparison: a version of the history by its number, or a text as `set` takes it.
struct Side {
  std::string name;
  std::string text;
};

Result<Side> ReadSide(const std::string& word, const std::string& part,
                      const std::vector<ConfigChange>& history) {
  const bool number =
      !word.empty() && word.size() < 10 && word.find_first_not_of("0123456789") == std::string::npos;
  if (!number) {
    BOOST_OUTCOME_TRY(text, ReadValue(word));
    BOOST_OUTCOME_TRYV(ValidateConfigPart(part, text));
    return Side{word.starts_with('@') ? word.substr(1) : "the text given", text};
  }
  const ConfigChange* change = FindVersion(history, static_cast<std::int32_t>(std::stol(word)));
  if (change != nullptr) return Side{"version " + word, change->text};
  return Fail(ErrorCode::NotFound,
              "config/" + part + " has no version " + word + "; see millrace config history " + part);
}

// Without sides the version before and the present one; with one, that of the past and the present one, or
// the present one and what would take its place.
Result<std::pair<Side, Side>> ReadSides(const ConfigOptions& options, const ConfigNode& node,
                                        const std::vector<ConfigChange>& history) {
  const Side now{node.version ? "version " + std::to_string(*node.version) : "nothing", node.text};
  if (options.sides.empty()) {
    const ConfigChange* before = ChangeJustBefore(history, node.version, node.text);
    if (before == nullptr) return std::pair(Side{"nothing", "{}"}, now);
    return std::pair(Side{"version " + std::to_string(before->version), before->text}, now);
  }
  BOOST_OUTCOME_TRY(first, ReadSide(options.sides[0], node.part, history));
  if (options.sides.size() == 1)
    return first.name.starts_with("version ") ? std::pair(first, now) : std::pair(now, first);
  BOOST_OUTCOME_TRY(second, ReadSide(options.sides[1], node.part, history));
  return std::pair(first, second);
}

Result<ExitCode> RunConfigDiff(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(part, ConfigKey::ReadPart(options.part));
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, part));
  BOOST_OUTCOME_TRY(history, ReadHistory(*cluster.client, part));
  BOOST_OUTCOME_TRY(sides, ReadSides(options, node, history));
  const auto changes = Changes(part, sides.first.text, sides.second.text);
  const ordered_json json{{"part", part},
                          {"before", sides.first.name},
                          {"after", sides.second.name},
                          {"changes", ToJson(changes)}};
  PrintAnswer(options.common, json, changes.empty() ? "no difference" : ToText(changes));
  if (!options.common.json) PrintNote("from " + sides.first.name + " to " + sides.second.name);
  return ExitCode::Done;
}

Command<ConfigOptions> Add(CLI::App& config, Chosen& chosen, const char* name, const char* what,
                           const char* example, Result<ExitCode> (*run)(const ConfigOptions&),
                           const char* part = kConfigPart) {
  const auto command = AddCommand(config, chosen, name, what, example, run);
  command.Add("part", command->part, part, "PART")->required();
  return command;
}

}  // namespace

void AddConfigCommands(CLI::App& config, Chosen& chosen) {
  const auto get = Add(config, chosen, "get", "Print it",
                       "  millrace config get handlers\n  millrace config get --effective engine\n"
                       "  millrace config get --effective --config millrace.json",
                       RunConfigGet, kConfigPartOrKey);
  get.app->get_option("part")->required(false);
  get.app->add_flag("--effective", get->effective,
                    "each value in force, and where it is from; without a cluster, of --config");
  AddFolders(*get.app, get->common);

  AddConfigChanges(config, chosen);

  const auto validate =
      Add(config, chosen, "validate", "Check a part before it is set, or a whole file, with --config alone",
          "  millrace config validate handlers @handlers.json\n"
          "  millrace config validate --config millrace.json\n"
          "  millrace config validate shards @shards.json --offline",
          RunConfigValidate);
  validate.app->get_option("part")->required(false);
  validate.Add("value", validate->value, "JSON, @FILE, or - for standard input", "VALUE");
  AddFolders(*validate.app, validate->common);
  validate.app->add_flag("--offline", validate->offline, "do not try to connect to shards");

  const auto diff =
      Add(config, chosen, "diff", "Show what the last change of a part was, or what another would be",
          "  millrace config diff handlers\n  millrace config diff handlers 3\n"
          "  millrace config diff handlers @handlers.json",
          RunConfigDiff);
  diff.Add("sides", diff->sides, "a version, two of them, or JSON, @FILE, -", "FROM TO")->expected(0, 2);
  const auto history =
      Add(config, chosen, "history", "Show who changed what of a part, and when",
          "  millrace config history handlers\n  millrace config history handlers --full", RunConfigHistory);
  history.app->add_flag("--full", history->full, "whole documents, as --json has them");
}

}  // namespace millrace::engine

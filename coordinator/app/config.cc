#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/command.h"
#include "coordinator/app/config_history.h"
#include "coordinator/app/config_key.h"
#include "coordinator/app/handler.h"
#include "coordinator/coordination/json_text.h"
#include "framework/files/paths.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

struct ConfigOptions {
  CommonFlags common;
  std::string part;   // `handlers`, or a key in it: `handlers.noop.concurrency`
  std::string value;  // JSON, @FILE, -
  bool effective = false;
  std::optional<std::int32_t> version;
  std::optional<std::int32_t> if_version;  // of set: as the part was when it was looked at
};

constexpr const char* kPart = "engine, handlers, shards, schedules or alerts";
constexpr const char* kPartOrKey = "engine, handlers, shards, schedules or alerts; or a key in it";

// A text that is no JSON by itself is meant as a string: `config set engine.poll 100ms`.
ordered_json AsJson(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, false, true);
  return value.is_discarded() ? ordered_json(text) : value;
}

ordered_json::json_pointer PointerTo(const std::vector<std::string>& keys) {
  ordered_json::json_pointer pointer;
  for (const std::string& key : keys) pointer /= key;
  return pointer;
}

// What stands for a value on a command line: JSON itself, @FILE, or - for standard input. Invalid for a file
// that can't be read, and for one that is named without @.
Result<std::string> ReadValue(const std::string& value) {
  if (value == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  if (IsPlainFile(value).value_or(false)) {
    return Fail(ErrorCode::Invalid, "'" + value + "' is a file: write @" + value + " for what it holds");
  }
  if (!value.starts_with('@')) return value;
  std::ifstream file(value.substr(1), std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file) return text;
  return Fail(ErrorCode::Invalid, value.substr(1) + " can't be read; give JSON, @FILE or -");
}

// `handlers.mail.monthly`, as the path of a value in force begins.
std::string PathOf(const ConfigKey& key, const ordered_json& handlers) {
  std::string path = key.part();
  for (const std::string& step : key.Keys(handlers)) path += "." + step;
  return path;
}

// `below`: of these values alone; empty: all.
void PrintEffective(const std::map<std::string, ConfigLayers::Value>& values, const std::string& below,
                    const CommonFlags& flags) {
  ordered_json out = ordered_json::object();
  TextTable table{{{"key"}, {"value"}, {"from"}}, {}};
  for (const auto& [key, value] : values) {
    if (!below.empty() && key != below && !key.starts_with(below + ".")) continue;
    out[key] = {{"value", ordered_json::parse(value.json)}, {"from", value.source}};
    table.rows.push_back({key, value.json, value.source});
  }
  PrintAnswer(flags, out, table, below + " has no value");
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
  PrintEffective(layers.Values(BroughtAtHand(flags)), below, flags);
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
  PrintJson(all, 2);
  PrintNote(versions);
  return ExitCode::Done;
}

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
  PrintJson(document[pointer], 2);
  if (key->whole()) PrintNote(VersionOf(node));
  return ExitCode::Done;
}

// Checked as each worker will check it: by itself, and together with the other parts.
Status CheckWhole(ClusterConnection& cluster, const std::string& part, const std::string& text) {
  BOOST_OUTCOME_TRY(layers, ReadLayers(*cluster.client, cluster.settings));
  layers.SetPart(part, text);
  const auto refusal = layers.Refusals().find(part);
  return refusal == layers.Refusals().end() ? Status() : Fail(ErrorCode::Invalid, refusal->second);
}

Result<ExitCode> Set(ClusterConnection& cluster, const ConfigNode& node, const std::string& text,
                     const CommonFlags& flags, std::optional<std::int32_t> restores = {}) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    return Fail(ErrorCode::Invalid, "config/" + node.part + ": there is no text; write {} to set nothing");
  }
  BOOST_OUTCOME_TRYV(CheckWhole(cluster, node.part, text));
  BOOST_OUTCOME_TRY(version, SetConfig(*cluster.client, node, text, Actor(), restores));
  const std::string words =
      "config/" + node.part + " is now version " + std::to_string(version) +
      (restores ? ", with the text of version " + std::to_string(*restores) : std::string()) +
      "; it is in force on every worker within 2 s";
  PrintAnswer(flags, {{"part", node.part}, {"version", version}}, words);
  if (node.part == "shards")
    PrintNote("all workers serve these shards, whatever store they were started with");
  return ExitCode::Done;
}

// Whether the part is still as its reader saw it.
Status CheckVersion(const ConfigNode& node, const std::optional<std::int32_t>& wanted) {
  if (!wanted || node.version == wanted) return {};
  return Fail(ErrorCode::Conflict,
              "config/" + node.part + " is " +
                  (node.version ? "version " + std::to_string(*node.version) : std::string("not there")) +
                  " and not version " + std::to_string(*wanted) +
                  ": somebody else has changed it; look at it with millrace config get " + node.part +
                  ", and try again");
}

// The part's text with this value at the key.
Result<std::string> WithValue(const ConfigNode& node, const ConfigKey& key, const ConfigOptions& options,
                              const std::string& value) {
  ordered_json document = AsJson(node.text);
  if (!document.is_object()) {
    return Fail(ErrorCode::Invalid, "config/" + node.part + " holds no JSON object now: set it whole, or " +
                                        "millrace config rollback " + node.part);
  }
  try {
    document[PointerTo(key.Keys(document))] = AsJson(value);
  } catch (const ordered_json::exception&) {
    return Fail(ErrorCode::Invalid, options.part + " lies under a value that is no object");
  }
  return JsonText(document, 2);
}

Result<ExitCode> RunConfigSet(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(key, ConfigKey::Read(options.part));
  BOOST_OUTCOME_TRY(value, ReadValue(options.value));
  BOOST_OUTCOME_TRY(cluster, Connect(options.common, true));
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, key.part()));
  BOOST_OUTCOME_TRYV(CheckVersion(node, options.if_version));
  if (key.whole()) return Set(cluster, node, value, options.common);
  BOOST_OUTCOME_TRY(text, WithValue(node, key, options, value));
  return Set(cluster, node, text, options.common);
}

// A file of this user's own with the text in it; its path.
Result<std::string> WriteTemporary(const std::string& text) {
  std::string path = TemporaryFolder() + "/millrace-config-XXXXXX";
  const int file = mkstemp(path.data());
  std::FILE* stream = file < 0 ? nullptr : fdopen(file, "w");
  if (stream == nullptr) return Fail(ErrorCode::Unavailable, "no temporary file can be made at " + path);
  std::fputs((text + "\n").c_str(), stream);
  if (std::fclose(stream) != 0) return Fail(ErrorCode::Unavailable, path + " can't be written");
  return path;
}

Result<std::string> EditorOfUser() {
  for (const char* name : {"VISUAL", "EDITOR"}) {
    if (std::string editor = Variable(name); !editor.empty()) return editor;
  }
  return Fail(ErrorCode::Invalid, "set EDITOR to the editor that you want");
}

Result<ExitCode> RunConfigEdit(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(part, ConfigKey::ReadPart(options.part));
  BOOST_OUTCOME_TRY(editor, EditorOfUser());
  BOOST_OUTCOME_TRY(cluster, Connect(options.common, true));
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, part));
  BOOST_OUTCOME_TRY(path, WriteTemporary(JsonText(AsJson(node.text), 2)));
  const int status = std::system((editor + " '" + path + "'").c_str());
  auto text = ReadValue("@" + path);
  if (status != 0 || !text) {
    return Fail(ErrorCode::Cancelled, "the editor failed; nothing was changed, your text is in " + path);
  }
  auto set = Set(cluster, node, *text, options.common);
  if (!set)
    return Fail(set.error().code, set.error().message + "\nnothing was changed; your text is in " + path);
  unlink(path.c_str());  // a text left behind is the user's own
  return set;
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
  ordered_json out = ordered_json::array();
  TextTable table{{{"version", true}, {"at"}, {"by"}, {"document"}}, {}};
  for (const ConfigChange& change : entries) {
    out.push_back({{"version", change.version}, {"at", change.at}, {"by", change.by}});
    if (change.restores) out.back()["restores"] = *change.restores;
    out.back()["document"] = AsJson(change.text);
    const std::string what = change.restores ? " (back to " + std::to_string(*change.restores) + ")" : "";
    table.rows.push_back(
        {std::to_string(change.version), change.at, change.by + what, JsonText(AsJson(change.text))});
  }
  PrintAnswer(options.common, out, table, table.Text(0));
  return ExitCode::Done;
}

const ConfigChange* FindVersion(const std::vector<ConfigChange>& history, std::int32_t version) {
  for (const ConfigChange& change : history) {
    if (change.version == version) return &change;
  }
  return nullptr;
}

Result<ExitCode> RunConfigRollback(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(part, ConfigKey::ReadPart(options.part));
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, part));
  BOOST_OUTCOME_TRY(entries, ReadHistory(*cluster.client, part));
  const ConfigChange* chosen = options.version ? FindVersion(entries, *options.version)
                                               : ChangeBefore(entries, node.version, node.text);
  if (chosen == nullptr) {
    return Fail(ErrorCode::NotFound, "config/" + part + " has no " + (options.version ? "such" : "earlier") +
                                         " version; see millrace config history " + part);
  }
  return Set(cluster, node, chosen->text, options.common, chosen->version);
}

Command<ConfigOptions> Add(CLI::App& config, Chosen& chosen, const char* name, const char* what,
                           const char* example, Result<ExitCode> (*run)(const ConfigOptions&),
                           const char* part = kPart) {
  const auto command = AddCommand(config, chosen, name, what, example, run);
  command.Add("part", command->part, part, "PART")->required();
  return command;
}

void AddValue(const Command<ConfigOptions>& command) {
  command.Add("value", command->value, "JSON, @FILE, or - for standard input", "VALUE")->required();
}

}  // namespace

void AddConfigCommands(CLI::App& config, Chosen& chosen) {
  const auto get = Add(config, chosen, "get", "Print it",
                       "  millrace config get handlers\n  millrace config get --effective engine",
                       RunConfigGet, kPartOrKey);
  get.app->get_option("part")->required(false);
  get.app->add_flag("--effective", get->effective, "each value in force, and where it is from");
  AddFolders(*get.app, get->common);

  const auto set = Add(config, chosen, "set", "Set a part, or one key of it",
                       "  millrace config set handlers @handlers.json --if-version 7\n"
                       "  millrace config set handlers.noop.concurrency 8\n"
                       "  millrace config set engine.poll 100ms\n"
                       "  millrace config set 'handlers[\"mail.monthly\"].timeout' 5m",
                       RunConfigSet, kPartOrKey);
  AddValue(set);
  set.Add("--if-version", set->if_version, "only if the part still is this version, as `config get` told",
          "N");

  Add(config, chosen, "edit", "Change a part in $EDITOR", "  millrace config edit handlers", RunConfigEdit);
  AddValue(Add(config, chosen, "validate", "Check a part before it is set",
               "  millrace config validate handlers @handlers.json", RunConfigValidate));
  Add(config, chosen, "history", "Show who changed a part, and when", "  millrace config history handlers",
      RunConfigHistory);
  const auto rollback = Add(config, chosen, "rollback", "Set a part as it was",
                            "  millrace config rollback handlers 3", RunConfigRollback);
  rollback.Add("version", rollback->version, "as `config history` names it; default: the one before", "N");
}

}  // namespace millrace::engine

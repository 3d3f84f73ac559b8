#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/config_history.h"
#include "coordinator/app/paths.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/text_table.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

// `handlers.noop.concurrency`: the part, and the keys within it.
struct PartKey {
  std::string part;
  std::string pointer;  // JSON pointer within the part; empty: all of it
};

// As one step of a JSON pointer.
std::string Escaped(const std::string& key) {
  std::string step;
  for (const char c : key) step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return step;
}

Result<PartKey> ReadPartKey(const std::string& text) {
  PartKey key;
  std::size_t dot = text.find('.');
  key.part = text.substr(0, dot);
  if (!IsConfigPart(key.part)) {
    const std::vector<std::string> known(kConfigParts.begin(), kConfigParts.end());
    return Fail(ErrorCode::Invalid, "there is no part '" + key.part + "'" + DidYouMean(key.part, known) +
                                        "; the parts are engine, handlers, shards, schedules and alerts");
  }
  while (dot != std::string::npos) {
    const std::size_t end = text.find('.', dot + 1);
    key.pointer += "/" + Escaped(text.substr(dot + 1, end == std::string::npos ? end : end - dot - 1));
    dot = end;
  }
  return key;
}

Result<std::string> ReadValue(const std::string& value) {
  if (value == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code ignored;
  if (std::filesystem::is_regular_file(value, ignored)) {
    return Fail(ErrorCode::Invalid, "'" + value + "' is a file: write @" + value + " for what it holds");
  }
  if (!value.starts_with('@')) return value;
  std::ifstream file(value.substr(1), std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file) return text;
  return Fail(ErrorCode::Invalid, value.substr(1) + " can't be read; give JSON, @FILE or -");
}

// A text that is no JSON by itself is meant as a string: `config set engine.poll 100ms`.
ordered_json AsJson(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, false, true);
  return value.is_discarded() ? ordered_json(text) : value;
}

Result<ConfigNode> CurrentNode(ClusterClient& client, const std::string& part) {
  auto node = client.Get("/config/" + part);
  if (!node) return Fail(node.error());
  if (!*node) return ConfigNode{part, "{}", std::nullopt};
  return ConfigNode{part, (*node)->data.empty() ? "{}" : (*node)->data, (*node)->version, SetAt(**node)};
}

// Checked as each worker will check it: by itself, and together with the other parts.
Status CheckWhole(ClusterClient& client, const Settings& settings, const std::string& part,
                  const std::string& text) {
  auto layers = ReadLayers(client, settings);
  if (!layers) return Fail(layers.error());
  layers->SetPart(part, text);
  const auto refusal = layers->Refusals().find(part);
  if (refusal != layers->Refusals().end()) return Fail(ErrorCode::Invalid, refusal->second);
  for (const auto& [name, shard] : layers->Effective()->shards) {
    if (!shard.url.starts_with("sqlite:")) continue;
    return Fail(
        ErrorCode::Invalid,
        "shards." + name + ".url: a cluster's shard is on a server; SQLite files are for millrace run");
  }
  return {};
}

Result<ExitCode> Set(ClusterConnection& connection, const ConfigNode& node, const std::string& text,
                     bool json) {
  if (Status good = CheckWhole(*connection.client, connection.settings, node.part, text); !good) {
    return Fail(good.error());
  }
  auto version = SetConfig(*connection.client, node, text, Actor());
  if (!version) return Fail(version.error());
  const std::string words = "config/" + node.part + " is now version " + std::to_string(*version) +
                            "; it is in force on every worker within 2 s";
  PrintLine(json ? ordered_json{{"part", node.part}, {"version", *version}}.dump() : words);
  if (node.part == "shards")
    PrintNote("workers that were started with --store or MILLRACE_STORE serve that store alone");
  return ExitCode::Done;
}

void PrintEffective(const ConfigLayers& layers, bool json) {
  ordered_json out = ordered_json::object();
  TextTable table{{{"key"}, {"value"}, {"from"}}, {}};
  for (const auto& [key, value] : layers.Values()) {
    out[key] = {{"value", ordered_json::parse(value.json)}, {"from", value.source}};
    table.rows.push_back({key, value.json, value.source});
  }
  PrintLine(json ? JsonText(out) : table.Text(OutputIsTerminal() ? TerminalWidth() : 0));
}

}  // namespace

Result<ExitCode> RunConfigGet(const ConfigOptions& options) {
  std::optional<PartKey> key;
  if (!options.part.empty()) {
    auto read = ReadPartKey(options.part);
    if (!read) return Fail(read.error());
    key = std::move(*read);
  }
  auto connection = Connect(options.common);
  if (!connection) return Fail(connection.error());
  if (options.effective) {
    const auto layers = ReadLayers(*connection->client, connection->settings);
    if (!layers) return Fail(layers.error());
    PrintEffective(*layers, options.common.json);
    for (const auto& [part, why] : layers->Refusals()) PrintError("not in force: " + why);
    return layers->Refusals().empty() ? ExitCode::Done : ExitCode::SomethingFailed;
  }
  ordered_json all = ordered_json::object();
  for (const char* part : kConfigParts) {
    if (key && key->part != part) continue;
    auto node = CurrentNode(*connection->client, part);
    if (!node) return Fail(node.error());
    all[part] = AsJson(node->text);
  }
  if (!key) {
    PrintLine(JsonText(all, 2));
    return ExitCode::Done;
  }
  const ordered_json::json_pointer pointer(key->pointer);
  const ordered_json& part = all[key->part];
  if (!part.contains(pointer) && !key->pointer.empty()) {
    return Fail(ErrorCode::NotFound,
                options.part + " is not set; millrace config get --effective shows what is");
  }
  PrintLine(JsonText(part[pointer], 2));
  return ExitCode::Done;
}

Result<ExitCode> RunConfigSet(const ConfigOptions& options) {
  auto key = ReadPartKey(options.part);
  if (!key) return Fail(key.error());
  auto value = ReadValue(options.value);
  if (!value) return Fail(value.error());
  auto connection = Connect(options.common);
  if (!connection) return Fail(connection.error());
  auto node = CurrentNode(*connection->client, key->part);
  if (!node) return Fail(node.error());
  std::string text = *value;
  if (!key->pointer.empty()) {
    ordered_json document = AsJson(node->text);
    if (!document.is_object())
      return Fail(ErrorCode::Invalid, "config/" + key->part + " holds no JSON object now: set it whole, or " +
                                          "millrace config rollback " + key->part);
    try {
      document[ordered_json::json_pointer(key->pointer)] = AsJson(*value);
    } catch (const ordered_json::exception&) {
      return Fail(ErrorCode::Invalid, options.part + " lies under a value that is no object");
    }
    text = JsonText(document, 2);
  }
  return Set(*connection, *node, text, options.common.json);
}

Result<ExitCode> RunConfigEdit(const ConfigOptions& options) {
  auto key = ReadPartKey(options.part);
  if (!key) return Fail(key.error());
  std::string editor = Variable("VISUAL");
  if (editor.empty()) editor = Variable("EDITOR");
  if (editor.empty()) return Fail(ErrorCode::Invalid, "set EDITOR to the editor that you want");
  auto connection = Connect(options.common);
  if (!connection) return Fail(connection.error());
  auto node = CurrentNode(*connection->client, key->part);
  if (!node) return Fail(node.error());
  std::string path = (std::filesystem::temp_directory_path() / "millrace-config-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) return Fail(ErrorCode::Unavailable, "no temporary file can be made at " + path);
  std::FILE* stream = fdopen(file, "w");
  std::fputs(JsonText(AsJson(node->text), 2).c_str(), stream);
  std::fputs("\n", stream);
  std::fclose(stream);
  const int status = std::system((editor + " '" + path + "'").c_str());
  auto text = ReadValue("@" + path);
  if (status != 0 || !text) {
    return Fail(ErrorCode::Cancelled, "the editor failed; nothing was changed, your text is in " + path);
  }
  auto set = Set(*connection, *node, *text, options.common.json);
  if (!set)
    return Fail(set.error().code, set.error().message + "\nnothing was changed; your text is in " + path);
  std::filesystem::remove(path);
  return set;
}

Result<ExitCode> RunConfigValidate(const ConfigOptions& options) {
  auto key = ReadPartKey(options.part);
  if (!key) return Fail(key.error());
  if (!key->pointer.empty()) return Fail(ErrorCode::Invalid, "give a whole part, such as " + key->part);
  auto value = ReadValue(options.value);
  if (!value) return Fail(value.error());
  if (Status valid = ValidateConfigPart(key->part, *value); !valid) return Fail(valid.error());
  PrintLine(options.common.json ? "{\"valid\":true}" : "it is good");
  return ExitCode::Done;
}

Result<ExitCode> RunConfigHistory(const ConfigOptions& options) {
  auto key = ReadPartKey(options.part);
  if (!key) return Fail(key.error());
  auto connection = Connect(options.common);
  if (!connection) return Fail(connection.error());
  auto entries = ReadHistory(*connection->client, key->part);
  if (!entries) return Fail(entries.error());
  if (options.common.json) {
    ordered_json out = ordered_json::array();
    for (const ConfigChange& change : *entries) {
      out.push_back({{"version", change.version},
                     {"at", change.at},
                     {"by", change.by},
                     {"document", AsJson(change.text)}});
    }
    PrintLine(JsonText(out));
    return ExitCode::Done;
  }
  TextTable table{{{"version", true}, {"at"}, {"by"}, {"document"}}, {}};
  for (const ConfigChange& change : *entries) {
    table.rows.push_back(
        {std::to_string(change.version), change.at, change.by, JsonText(AsJson(change.text))});
  }
  PrintLine(table.Text(OutputIsTerminal() ? TerminalWidth() : 0));
  return ExitCode::Done;
}

Result<ExitCode> RunConfigRollback(const ConfigOptions& options) {
  auto key = ReadPartKey(options.part);
  if (!key) return Fail(key.error());
  auto connection = Connect(options.common);
  if (!connection) return Fail(connection.error());
  auto node = CurrentNode(*connection->client, key->part);
  if (!node) return Fail(node.error());
  auto entries = ReadHistory(*connection->client, key->part);
  if (!entries) return Fail(entries.error());
  const ConfigChange* chosen = nullptr;
  for (const ConfigChange& change : *entries) {
    const bool wanted = options.version ? change.version == *options.version
                                        : node->version && change.version < *node->version;
    if (wanted) chosen = &change;
  }
  if (chosen == nullptr) {
    return Fail(ErrorCode::NotFound,
                "config/" + key->part + " has no such version; see millrace config history " + key->part);
  }
  return Set(*connection, *node, chosen->text, options.common.json);
}

}  // namespace millrace

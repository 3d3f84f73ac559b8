// millrace config set, edit and rollback: each change is checked as a whole, and noted in the history.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/config_document.h"
#include "coordinator/app/config_key.h"
#include "coordinator/app/paths.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"
#include "framework/files/paths.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

// Checked as each worker will check it: by itself, and together with the other parts.
Status CheckWhole(ClusterConnection& cluster, const std::string& part, const std::string& text) {
  BOOST_OUTCOME_TRY(layers, ReadLayers(*cluster.client, cluster.settings));
  layers.SetPart(part, text);
  const auto refusal = layers.Refusals().find(part);
  return refusal == layers.Refusals().end() ? Status() : Fail(ErrorCode::Invalid, refusal->second);
}

Result<ExitCode> Set(ClusterConnection& cluster, const ConfigNode& node, const std::string& text, bool json,
                     std::optional<std::int32_t> restores = {}) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    return Fail(ErrorCode::Invalid, "config/" + node.part + ": there is no text; write {} to set nothing");
  }
  BOOST_OUTCOME_TRYV(CheckWhole(cluster, node.part, text));
  BOOST_OUTCOME_TRY(version, SetConfig(*cluster.client, node, text, Actor(), restores));
  const std::string words =
      "config/" + node.part + " is now version " + std::to_string(version) +
      (restores ? ", with the text of version " + std::to_string(*restores) : std::string()) +
      "; it is in force on every worker within 2 s";
  PrintLine(json ? JsonText({{"part", node.part}, {"version", version}}) : words);
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

const ConfigChange* FindVersion(const std::vector<ConfigChange>& history, std::int32_t version) {
  for (const ConfigChange& change : history) {
    if (change.version == version) return &change;
  }
  return nullptr;
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

}  // namespace

Result<ExitCode> RunConfigSet(const ConfigOptions& options) {
  BOOST_OUTCOME_TRY(key, ConfigKey::Read(options.part));
  BOOST_OUTCOME_TRY(value, ReadValue(options.value));
  BOOST_OUTCOME_TRY(cluster, Connect(options.common, true));
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, key.part()));
  BOOST_OUTCOME_TRYV(CheckVersion(node, options.if_version));
  if (key.whole()) return Set(cluster, node, value, options.common.json);
  BOOST_OUTCOME_TRY(text, WithValue(node, key, options, value));
  return Set(cluster, node, text, options.common.json);
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
  auto set = Set(cluster, node, *text, options.common.json);
  if (!set)
    return Fail(set.error().code, set.error().message + "\nnothing was changed; your text is in " + path);
  unlink(path.c_str());  // a text left behind is the user's own
  return set;
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
  return Set(cluster, node, chosen->text, options.common.json, chosen->version);
}

}  // namespace millrace::engine

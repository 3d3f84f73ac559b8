#include "coordinator/app/config/config_set.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/config/config_document.h"
#include "coordinator/app/config/config_shards.h"
#include "coordinator/app/config/config_word.h"
#include "framework/base/suggest.h"
#include "framework/files/paths.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

struct ConfigSetOptions {
  CommonFlags common;
  std::string part;   // `handlers`, or a key in it: `handlers.noop.concurrency`
  std::string value;  // JSON, @FILE, -
  std::optional<std::int32_t> version;
  std::optional<std::int32_t> if_version;  // of set: as the part was when it was looked at
  PartChange change;
};

constexpr std::size_t kLinesShown = 20;

// A schedule in a shard that there is not, or in a table that its shard does not serve, would never fire.
Status CheckSchedules(const Config& config) {
  for (const auto& [name, schedule] : config.schedules) {
    const auto shard = schedule.shard.empty() ? config.shards.begin() : config.shards.find(schedule.shard);
    if (config.shards.empty()) break;  // what each process is started with is not known here
    const std::string key = "config/schedules: schedules." + name;
    if (shard == config.shards.end()) {
      return Fail(ErrorCode::Invalid,
                  key + ".shard: config/shards has no shard " + schedule.shard + ": name one that it has");
    }
    const std::vector<TableName>& tables = shard->second.tables;
    if (!schedule.table || tables.empty()) continue;
    if (std::find(tables.begin(), tables.end(), *schedule.table) != tables.end()) continue;
    return Fail(ErrorCode::Invalid, key + ".table: shard " + shard->first + " has no table " +
                                        std::string(schedule.table->text()) + " in config/shards");
  }
  return {};
}

// Checked as each worker will check it: by itself, and together with the other parts.
Status CheckWhole(ClusterConnection& cluster, const std::string& part, const std::string& text,
                  LineNumbers lines) {
  BOOST_OUTCOME_TRYV(ValidateConfigPart(part, text, UnknownZones::Refused, lines));
  BOOST_OUTCOME_TRY(layers, ReadLayers(*cluster.client, cluster.settings));
  layers.SetPart(part, text);
  const auto refusal = layers.Refusals().find(part);
  if (refusal != layers.Refusals().end()) return Fail(ErrorCode::Invalid, refusal->second);
  return part == "schedules" || part == "shards" ? CheckSchedules(*layers.Effective()) : Status();
}

// Who serves a type by this configuration.
std::string ServerOf(const std::string& type, const ordered_json& handler) {
  const auto uses = handler.is_object() ? handler.find("uses") : handler.end();
  return handler.is_object() && uses != handler.end() && uses->is_string() ? uses->get<std::string>() : type;
}

// Of the types that are new, or are served by another now, those whose handler no worker has: a line each. A
// mistyped name would be a good configuration that means nobody. Workers tell task types, and those that use
// another's handler are among them, though nobody can use them.
Result<std::vector<std::string>> Strangers(ClusterClient& client, const ConfigNode& node,
                                           const std::string& text) {
  std::vector<std::string> lines;
  const ordered_json before = AsJson(node.text);
  const ordered_json after = AsJson(text);
  if (node.part != "handlers" || !after.is_object()) return lines;
  BOOST_OUTCOME_TRY(of_workers, TypesOfWorkers(client));
  if (!of_workers) return lines;
  const std::vector<std::string> types(of_workers->begin(), of_workers->end());
  for (const auto& [type, handler] : after.items()) {
    const std::string server = ServerOf(type, handler);
    if (before.contains(type) && ServerOf(type, before[type]) == server) continue;
    const std::string key = "handlers." + type + (server == type ? "" : ".uses");
    const std::string named = after.contains(server) ? ServerOf(server, after[server]) : server;
    if (!of_workers->contains(server)) {
      lines.push_back(key + ": no worker has a handler '" + server + "'" +
                      NearestOf(server, types, "; there are "));
    } else if (server != type && named != server) {
      lines.push_back(key + ": '" + server + "' is a task type that uses '" + named + "' itself: name that");
    }
  }
  return lines;
}

void PrintLines(const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size() && i < kLinesShown; ++i) PrintError(lines[i]);
  if (lines.size() > kLinesShown) PrintError("… and " + std::to_string(lines.size() - kLinesShown) + " more");
}

void PrintChanges(std::vector<KeyChange> changes) {
  const std::size_t all = changes.size();
  if (all > kLinesShown) changes.resize(kLinesShown);
  if (all > 0) PrintLine(ToText(changes));
  if (all > kLinesShown) PrintLine("… and " + std::to_string(all - kLinesShown) + " more");
}

// Beside what every change is answered with.
void PrintAnswerWith(const PartChange& change, ordered_json answer) {
  answer.update(change.answer);
  PrintJson(answer);
}

Result<ExitCode> TryOut(const ConfigNode& node, const std::string& text, const CommonFlags& flags,
                        const PartChange& change) {
  const auto changes = Changes(node.part, node.text, text);
  if (flags.json) {
    PrintAnswerWith(change, {{"part", node.part}, {"dry_run", true}, {"changes", ToJson(changes)}});
    return ExitCode::Done;
  }
  PrintChanges(changes);
  PrintLine(changes.empty() ? "nothing would change" : "it is good; --dry-run has set nothing");
  for (const std::string& line : change.lines) PrintLine(line);
  return ExitCode::Done;
}

// A key is changed in the document, which has none. Whoever takes out all keys knows that.
void NoteLostComments(const ConfigNode& node, const std::string& text) {
  if (!HasComments(node.text) || AsJson(text).empty()) return;
  PrintNote("note: the comments of config/" + node.part + " are not kept; millrace config set " + node.part +
            " @FILE keeps them");
}

// The task types whose configuration differs.
std::set<std::string> ChangedTypes(const ConfigNode& before, const std::string& text) {
  std::set<std::string> types;
  const ordered_json old = AsJson(before.text);
  const ordered_json now = AsJson(text);
  if (before.part != "handlers" || !now.is_object()) return types;
  for (const auto& [type, handler] : now.items()) {
    if (!old.contains(type) || old[type] != handler) types.insert(type);
  }
  return types;
}

Result<std::vector<ConfigWord>> AskAbout(ClusterClient& client, const ConfigNode& before,
                                         const std::string& text, std::int32_t version) {
  ConfigVersion wanted{before.part, version, before.made, ChangedTypes(before, text)};
  if (!before.version) {
    BOOST_OUTCOME_TRY(now, CurrentNode(client, before.part));
    wanted.made = now.made;
  }
  return AskWorkers(client, wanted);
}

// What came of version `version`, whose text is `text`.
Result<ExitCode> TellOutcome(ClusterConnection& cluster, const ConfigNode& before, const std::string& text,
                             std::int32_t version, const CommonFlags& flags, const PartChange& change,
                             const std::string& restored) {
  const auto changes = Changes(before.part, before.text, text);
  if (!flags.json) {
    PrintChanges(changes);
    PrintLine("config/" + before.part + " is now version " + std::to_string(version) + restored);
  }
  auto words = AskAbout(*cluster.client, before, text, version);
  if (!words) {
    return Fail(words.error().code, "config/" + before.part +
                                        " is set; what the workers make of it can't be "
                                        "asked: " +
                                        words.error().message);
  }
  const ExitCode code = AllFollow(*words) ? ExitCode::Done : ExitCode::SomethingFailed;
  const std::string later = words->empty() ? "" : HoldsLater(changes);
  if (!later.empty()) PrintNote("note: " + later);
  if (flags.json) {
    PrintAnswerWith(change, {{"part", before.part},
                             {"version", version},
                             {"changes", ToJson(changes)},
                             {"workers", ToJson(*words)}});
    return code;
  }
  PrintLine(InForceText(*words));
  PrintLines(Complaints(*words));
  if (before.part == "shards")
    PrintNote("all workers serve these shards, whatever store they were started with");
  for (const std::string& line : change.lines) PrintLine(line);
  if (before.part != "alerts" && before.part != "handlers") return code;
  const auto layers = ReadLayers(*cluster.client, cluster.settings);
  for (const std::string& trouble : layers ? AlertTroubles(*layers->Effective()) : std::vector<std::string>())
    PrintNote("note: " + trouble);
  return code;
}

}  // namespace

Result<ExitCode> SetPart(ClusterConnection& cluster, const ConfigNode& node, const std::string& text,
                         const CommonFlags& flags, const PartChange& change, const ConfigChange* restores) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    return Fail(ErrorCode::Invalid, "config/" + node.part + ": there is no text; write {} to set nothing");
  }
  BOOST_OUTCOME_TRYV(CheckSize(node.part, text));
  BOOST_OUTCOME_TRYV(
      CheckWhole(cluster, node.part, text, change.assembled ? LineNumbers::Untold : LineNumbers::Told));
  if (node.part == "shards" && !change.offline) {
    BOOST_OUTCOME_TRYV(TryShards(text, node.text, cluster.settings));
  }
  BOOST_OUTCOME_TRY(strangers, Strangers(*cluster.client, node, text));
  if (!change.yes) PrintLines(strangers);
  if (change.assembled && restores == nullptr) NoteLostComments(node, text);
  if (change.dry_run) return TryOut(node, text, flags, change);
  if (!strangers.empty()) {
    BOOST_OUTCOME_TRYV(Confirm("set it all the same?", change.yes));
  }
  const auto restored = restores == nullptr ? std::nullopt : std::optional(restores->version);
  BOOST_OUTCOME_TRY(version, SetConfig(*cluster.client, node, text, Actor(), restored));
  std::string words;
  if (restores != nullptr) {
    words = ", with the text of version " + std::to_string(restores->version) + " (" + restores->by + ", " +
            restores->at + ")";
  }
  return TellOutcome(cluster, node, text, version, flags, change, words);
}

namespace {

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

Result<ExitCode> RunConfigSet(const ConfigSetOptions& options) {
  BOOST_OUTCOME_TRY(key, ConfigKey::Read(options.part));
  BOOST_OUTCOME_TRY(value, ReadValue(options.value));
  BOOST_OUTCOME_TRY(cluster, Connect(options.common, !options.change.dry_run));
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, key.part()));
  BOOST_OUTCOME_TRYV(CheckVersion(node, options.if_version));
  BOOST_OUTCOME_TRY(text, WithValue(node.text, key, value));
  PartChange change = options.change;
  change.assembled = !key.whole();
  return SetPart(cluster, node, text, options.common, change);
}

Result<ExitCode> RunConfigUnset(const ConfigSetOptions& options) {
  BOOST_OUTCOME_TRY(key, ConfigKey::Read(options.part));
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, key.part()));
  BOOST_OUTCOME_TRYV(CheckVersion(node, options.if_version));
  BOOST_OUTCOME_TRY(text, WithoutValue(node.text, key));
  PartChange change = options.change;
  change.assembled = true;
  return SetPart(cluster, node, text, options.common, change);
}

// A file of this user's own with the text in it; its path.
Result<std::string> WriteTemporary(const std::string& text) {
  std::string path = TemporaryFolder() + "/millrace-config-XXXXXX";
  const int file = mkstemp(path.data());
  std::FILE* stream = file < 0 ? nullptr : fdopen(file, "w");
  if (stream == nullptr) return Fail(ErrorCode::Unavailable, "no temporary file can be made at " + path);
  std::fputs(text.c_str(), stream);
  if (std::fclose(stream) != 0) return Fail(ErrorCode::Unavailable, path + " can't be written");
  return path;
}

Result<std::string> EditorOfUser() {
  for (const char* name : {"VISUAL", "EDITOR"}) {
    if (std::string editor = Variable(name); !editor.empty()) return editor;
  }
  return Fail(ErrorCode::Invalid, "set EDITOR to the editor that you want");
}

Result<ExitCode> RunConfigEdit(const ConfigSetOptions& options) {
  BOOST_OUTCOME_TRY(part, ConfigKey::ReadPart(options.part));
  BOOST_OUTCOME_TRY(editor, EditorOfUser());
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(node, CurrentNode(*cluster.client, part));
  const std::string shown = TextToEdit(node.text);
  BOOST_OUTCOME_TRY(path, WriteTemporary(shown));
  const int status = std::system((editor + " '" + path + "'").c_str());
  auto text = ReadValue("@" + path);
  if (status != 0 || !text) {
    return Fail(ErrorCode::Cancelled, "the editor failed; nothing was changed, your text is in " + path);
  }
  if (*text == shown) {
    unlink(path.c_str());
    PrintAnswer(options.common, {{"part", part}, {"changes", ordered_json::array()}}, "nothing was changed");
    return ExitCode::Done;
  }
  auto set = SetPart(cluster, node, *text, options.common, options.change);
  // Whether it is set the message says.
  if (!set) return Fail(set.error().code, set.error().message + "\nyour text is in " + path);
  if (options.change.dry_run) {
    PrintNote("your text is in " + path);
    return set;
  }
  unlink(path.c_str());  // a text left behind is the user's own
  return set;
}

Result<ExitCode> RunConfigRollback(const ConfigSetOptions& options) {
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
  PartChange known = options.change;
  known.yes = known.offline = known.assembled = true;  // it was in force before
  return SetPart(cluster, node, chosen->text, options.common, known, chosen);
}

Command<ConfigSetOptions> Add(CLI::App& config, Chosen& chosen, const char* name, const char* what,
                              const char* example, Result<ExitCode> (*run)(const ConfigSetOptions&),
                              const char* part) {
  const auto command = AddCommand(config, chosen, name, what, example, run);
  command.Add("part", command->part, part, "PART")->required();
  command.app->add_flag("--dry-run", command->change.dry_run,
                        "check it and show what would change, and set nothing");
  return command;
}

void AddGuards(const Command<ConfigSetOptions>& command) {
  command.Add("--if-version", command->if_version,
              "only if the part still is this version, as `config get` told", "N");
}

void AddQuestions(const Command<ConfigSetOptions>& command) {
  command.app->add_flag("--offline", command->change.offline, "do not try to connect to shards");
  AddYes(*command.app, command->change.yes);
}

}  // namespace

void AddConfigChanges(CLI::App& config, Chosen& chosen) {
  const auto set = Add(config, chosen, "set", "Set a part, or one key of it",
                       "  millrace config set handlers @handlers.json --if-version 7\n"
                       "  millrace config set handlers.noop.concurrency 8\n"
                       "  millrace config set engine.poll 100ms --dry-run\n"
                       "  millrace config set 'handlers[\"mail.monthly\"].timeout' 5m",
                       RunConfigSet, kConfigPartOrKey);
  set.Add("value", set->value, "JSON, @FILE, or - for standard input", "VALUE")->required();
  AddGuards(set);
  AddQuestions(set);
  const auto unset =
      Add(config, chosen, "unset", "Take out a key, so that its default holds; of a part all keys",
          "  millrace config unset handlers.noop.concurrency", RunConfigUnset, kConfigPartOrKey);
  AddGuards(unset);
  AddQuestions(unset);
  AddQuestions(Add(config, chosen, "edit", "Change a part in $EDITOR", "  millrace config edit handlers",
                   RunConfigEdit, kConfigPart));
  const auto rollback = Add(config, chosen, "rollback", "Set a part as it was",
                            "  millrace config rollback handlers 3", RunConfigRollback, kConfigPart);
  rollback.Add("version", rollback->version, "as `config history` names it; default: the one before", "N");
}

}  // namespace millrace::engine

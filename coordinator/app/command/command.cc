#include "coordinator/app/command/command.h"

#include "coordinator/app/cli/terminal.h"
#include "coordinator/coordination/json_text.h"

namespace millrace::engine {

CLI::App* AddFamily(CLI::App& parent, const char* name, const char* what, const char* examples) {
  CLI::App* app = parent.add_subcommand(name, what);
  app->footer(std::string("Example:\n") + examples);
  app->require_subcommand(1);
  return app;
}

void AddCommon(CLI::App& app, CommonFlags& flags, bool json) {
  app.add_option("--store", flags.store, "sqlite:PATH or mysql://user@host:port/database (MILLRACE_STORE)")
      ->type_name("URL");
  app.add_option("--config", flags.config, "configuration file (MILLRACE_CONFIG)")->type_name("FILE");
  app.add_option("--zk", flags.zk, "ZooKeeper: host:port,…/chroot (MILLRACE_ZK)")->type_name("SERVERS");
  app.add_option("--zk-auth-file", flags.zk_auth_file, "file with user:password for its digest")
      ->type_name("FILE");
  app.add_option("--cluster", flags.cluster, "which cluster there; default `default` (MILLRACE_CLUSTER)")
      ->type_name("NAME");
  app.add_flag("-v,--verbose", flags.verbose, "log what happens");
  app.add_option("--log", flags.log, "how the log is written: text or json, an object a line")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
  if (json) app.add_flag("--json", flags.json, "print JSON, errors too");
}

void AddFolders(CLI::App& app, CommonFlags& flags) {
  app.add_option("--plugins", flags.plugins, "folder of plugins (default: the shipped ones)")
      ->type_name("DIR");
  app.add_option("--state-dir", flags.state_dir,
                 "folder for this host's state (default: ~/.local/state/millrace)")
      ->type_name("DIR");
}

void AddYes(CLI::App& app, bool& yes, const char* what) { app.add_flag("-y,--yes", yes, what); }

void AddList(CLI::App& app, const char* name, std::vector<std::string>& values, const char* what) {
  app.add_option(name, values, what)->type_name("A,B")->delimiter(',');
}

// The parser itself says of an empty one that it is none.
std::string DecimalTrouble(const std::string& text) {
  const std::string digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() ? !text.empty() : digits.find_first_not_of("0123456789") != std::string::npos)
    return "'" + text + "' is no whole number; write it in decimal digits";
  if (digits.size() > 1 && digits.front() == '0')
    return "'" + text + "' begins with a zero; write the number without zeros in front of it";
  return "";
}

void PrintJson(const nlohmann::ordered_json& json, std::optional<int> indent) {
  PrintLine(JsonText(json, indent.value_or(OutputIsTerminal() ? 2 : -1)));
}

nlohmann::ordered_json AwayJson(const std::map<std::string, Error>& away) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [shard, error] : away) json[shard] = error.message;
  return json;
}

ExitCode TellAway(const std::map<std::string, Error>& away, const char* before, const char* after) {
  for (const auto& [shard, error] : away) PrintError(before + shard + after + ": " + error.message);
  return away.empty() ? ExitCode::Done : ExitCodeOf(away.begin()->second.code);
}

void PrintAnswer(const CommonFlags& flags, const nlohmann::ordered_json& json, const std::string& text) {
  if (flags.json) return PrintJson(json);
  PrintLine(text);
}

void PrintAnswer(const CommonFlags& flags, const nlohmann::ordered_json& json, const TextTable& table,
                 const std::string& none) {
  if (flags.json) return PrintJson(json);
  if (table.rows.empty()) return PrintLine(none);
  PrintTable(table);
}

}  // namespace millrace::engine

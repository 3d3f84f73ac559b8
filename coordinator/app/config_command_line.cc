#include "coordinator/app/command_parts.h"
#include "coordinator/app/commands.h"

namespace millrace::engine {
namespace {

struct ConfigCommand {
  CLI::App* app;
  std::shared_ptr<ConfigOptions> options;
};

ConfigCommand Add(CLI::App& config, Chosen& chosen, const char* name, const char* what, const char* example,
                  Result<ExitCode> (*run)(const ConfigOptions&)) {
  ConfigCommand command{AddCommand(config, name, what, example), std::make_shared<ConfigOptions>()};
  AddCommon(*command.app, command.options->common, true);
  Choose(command.app, chosen, command.options, run);
  return command;
}

CLI::Option* AddPart(const ConfigCommand& command, const char* what) {
  return command.app->add_option("part", command.options->part, what)->type_name("PART");
}

void AddValue(const ConfigCommand& command) {
  command.app->add_option("value", command.options->value, "JSON, @FILE, or - for standard input")
      ->type_name("VALUE")
      ->required();
}

constexpr const char* kPart = "engine, handlers, shards, schedules or alerts";
constexpr const char* kPartOrKey = "engine, handlers, shards, schedules or alerts; or a key in it";

}  // namespace

void AddConfigCommands(CLI::App& root, Chosen& chosen) {
  CLI::App* config = AddFamily(root, "config", "Look at the cluster's configuration and change it live",
                               "  millrace config set handlers.send_mail.concurrency 8");
  const ConfigCommand get =
      Add(*config, chosen, "get", "Print it",
          "  millrace config get handlers\n  millrace config get --effective engine", RunConfigGet);
  AddPart(get, kPartOrKey);
  get.app->add_flag("--effective", get.options->effective, "each value in force, and where it is from");
  AddFolders(*get.app, get.options->common);

  const ConfigCommand set = Add(*config, chosen, "set", "Set a part, or one key of it",
                                "  millrace config set handlers @handlers.json --if-version 7\n"
                                "  millrace config set handlers.noop.concurrency 8\n"
                                "  millrace config set engine.poll 100ms\n"
                                "  millrace config set 'handlers[\"mail.monthly\"].timeout' 5m",
                                RunConfigSet);
  AddPart(set, kPartOrKey)->required();
  AddValue(set);
  set.app
      ->add_option("--if-version", set.options->if_version,
                   "only if the part still is this version, as `config get` told")
      ->type_name("N");

  AddPart(Add(*config, chosen, "edit", "Change a part in $EDITOR", "  millrace config edit handlers",
              RunConfigEdit),
          kPart)
      ->required();

  const ConfigCommand validate = Add(*config, chosen, "validate", "Check a part before it is set",
                                     "  millrace config validate handlers @handlers.json", RunConfigValidate);
  AddPart(validate, kPart)->required();
  AddValue(validate);

  AddPart(Add(*config, chosen, "history", "Show who changed a part, and when",
              "  millrace config history handlers", RunConfigHistory),
          kPart)
      ->required();

  const ConfigCommand rollback = Add(*config, chosen, "rollback", "Set a part as it was",
                                     "  millrace config rollback handlers 3", RunConfigRollback);
  AddPart(rollback, kPart)->required();
  rollback.app
      ->add_option("version", rollback.options->version,
                   "as `config history` names it; default: the one before")
      ->type_name("N");
}

}  // namespace millrace::engine

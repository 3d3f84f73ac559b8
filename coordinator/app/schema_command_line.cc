#include "coordinator/app/command_parts.h"
#include "coordinator/app/commands.h"

namespace millrace::engine {
namespace {

constexpr const char* kSlices = "load-balance numbers a table; 64 for new ones";

struct SchemaCommand {
  CLI::App* app;
  std::shared_ptr<SchemaOptions> options;
};

SchemaCommand Add(CLI::App& schema, Chosen& chosen, const char* name, const char* what, const char* example,
                  bool reads, Result<ExitCode> (*run)(const SchemaOptions&)) {
  SchemaCommand command{AddCommand(schema, name, what, example), std::make_shared<SchemaOptions>()};
  AddCommon(*command.app, command.options->common, reads);
  command.app->add_option("--shard", command.options->shard, "this shard alone")->type_name("NAME");
  Choose(command.app, chosen, command.options, run);
  return command;
}

void AddSlices(const SchemaCommand& command) {
  command.app->add_option("--slices", command.options->slices, kSlices)->type_name("N");
}

void AddSpec(const SchemaCommand& command) {
  command.app->add_option("--tables", command.options->tables, "task tables")
      ->type_name("N")
      ->capture_default_str();
  AddSlices(command);
}

}  // namespace

void AddSchemaCommands(CLI::App& root, Chosen& chosen) {
  CLI::App* schema = AddFamily(root, "schema", "Make and check the task tables",
                               "  millrace schema apply --store mysql://millrace@db1/work");
  AddSpec(Add(*schema, chosen, "print", "Print the DDL",
              "  millrace schema print --store mysql://u@h/d > schema.sql", false, RunSchemaPrint));
  AddSpec(Add(*schema, chosen, "apply", "Make what is missing",
              "  millrace schema apply --store mysql://millrace@db1/work --slices 64", false,
              RunSchemaApply));
  const SchemaCommand resize =
      Add(*schema, chosen, "resize",
          "Change the number of slices a table under load; a cluster's leader sees to the rows",
          "  millrace schema resize --slices 96", false, RunSchemaResize);
  AddSlices(resize);
  resize.app->add_option("--table", resize.options->table, "this table alone")->type_name("NAME");
  Add(*schema, chosen, "upgrade", "Bring older tables to this version", "  millrace schema upgrade", false,
      RunSchemaUpgrade);
  Add(*schema, chosen, "check", "Compare the live tables and the plans of the hot statements",
      "  millrace schema check --json", true, RunSchemaCheck);
}

}  // namespace millrace::engine

#include "coordinator/app/command_parts.h"
#include "coordinator/app/commands.h"

namespace millrace::engine {
namespace {

void AddOne(CLI::App& app, SubmitOptions& o) {
  app.add_option("--handler", o.handler, "the task type")->type_name("NAME");
  app.add_option("--params", o.params, "JSON for the handler, up to 64 KiB")->type_name("JSON");
  app.add_option("--key", o.key, "of all tasks of a handler with one key only one takes effect")
      ->type_name("KEY");
  app.add_option("--at", o.at, "when it is due, such as 2026-11-20T18:00:00Z")->type_name("TIME");
  app.add_option("--in", o.in, "or how long from now, such as 1h30m")->type_name("TIME");
  app.add_option("--priority", o.priority, "0 (most urgent) to 9; default 5")
      ->type_name("N")
      ->check(CLI::Range(0, 9));
  app.add_option("--batch", o.batch, "name under which progress is counted")->type_name("NAME");
  app.add_option("--count", o.count, "so many of the same")->type_name("N");
  app.add_flag("--held", o.held, "hold it until it is released");
}

void AddMany(CLI::App& app, SubmitOptions& o) {
  app.add_option("--from", o.from,
                 "a task for each row of a .csv or .jsonl file; - is JSONL from standard input")
      ->type_name("FILE");
  app.add_option("--from-query", o.from_query, "a task for each row of a query on the store's own database")
      ->type_name("SQL");
  app.add_option("--key-column", o.key_column, "the column with the key: the same row is never added twice")
      ->type_name("COLUMN");
  app.add_flag("--all-or-nothing", o.all_or_nothing,
               "all rows in one transaction; with a bad row none goes in");
}

}  // namespace

void AddSubmitCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* app = AddCommand(
      root, "submit", "Add tasks",
      "  millrace submit --handler award_points --params '{\"customer_id\":1,\"amount\":2.99}' --key p-1\n"
      "  millrace submit --handler award_points --from payments.csv --key-column payment_id\n"
      "  millrace submit --handler send_mail --from-query 'SELECT id, email FROM customers' --key-column id");
  auto o = std::make_shared<SubmitOptions>();
  AddCommon(*app, o->common, true);
  AddFolders(*app, o->common);
  app->add_option("--shard", o->shard, "which shard, where there are several")->type_name("NAME");
  app->add_option("--table", o->table, "which task table, where there are several")->type_name("NAME");
  AddOne(*app, *o);
  AddMany(*app, *o);
  app->add_flag("--force", o->force, "also for a handler that no plugin here has");
  Choose(app, chosen, o, RunSubmit);
}

}  // namespace millrace::engine

#include "coordinator/app/command_parts.h"
#include "coordinator/app/commands.h"

namespace millrace::engine {

void AddHandlerCommands(CLI::App& root, Chosen& chosen) {
  CLI::App* handler = AddFamily(root, "handler", "Look at handlers and try them", "  millrace handler list");
  CLI::App* app = AddCommand(*handler, "list", "List the handlers of the plugins at hand",
                             "  millrace handler list --plugins ./build/plugins");
  auto list = std::make_shared<CommonFlags>();
  AddCommon(*app, *list, true);
  AddFolders(*app, *list);
  Choose(app, chosen, list, RunHandlerList);

  app =
      AddCommand(*handler, "run", "Run one handler here and now, without a task",
                 "  millrace handler run award_points --params '{\"customer_id\":1,\"amount\":2.99}' --store "
                 "sqlite:points.db");
  auto o = std::make_shared<HandlerRunOptions>();
  AddCommon(*app, o->common, true);
  AddFolders(*app, o->common);
  app->add_option("handler,--handler", o->handler, "the task type")->type_name("NAME")->required();
  app->add_option("--params", o->params, "JSON for the handler")->type_name("JSON");
  app->add_option("--shard", o->shard, "which shard, where there are several")->type_name("NAME");
  app->add_flag("--commit", o->commit, "keep what it writes; otherwise it is rolled back");
  Choose(app, chosen, o, RunHandlerRun);
}

}  // namespace millrace::engine

#include "coordinator/app/command_parts.h"
#include "coordinator/app/commands.h"

namespace millrace::engine {
namespace {

void AddStatus(CLI::App& cluster, Chosen& chosen) {
  CLI::App* app = AddCommand(cluster, "status", "Show the leader, the workers, the shards and what is wrong",
                             "  millrace cluster status --zk zk1:2181");
  auto flags = std::make_shared<CommonFlags>();
  AddCommon(*app, *flags, true);
  Choose(app, chosen, flags, RunClusterStatus);
}

void AddSlices(CLI::App& cluster, Chosen& chosen) {
  CLI::App* app = AddCommand(cluster, "slices", "Show who owns which slice",
                             "  millrace cluster slices\n  millrace cluster slices --why main/tasks/17");
  auto o = std::make_shared<ClusterSlicesOptions>();
  AddCommon(*app, o->common, true);
  app->add_option("--why", o->why, "say why this slice is where it is")->type_name("SLICE");
  Choose(app, chosen, o, RunClusterSlices);
}

void AddPlan(CLI::App& cluster, Chosen& chosen) {
  CLI::App* app = AddCommand(cluster, "plan", "Show who would own which slice, and how many would move",
                             "  millrace cluster plan --dry-run\n"
                             "  millrace cluster plan --simulate cluster.json");
  auto o = std::make_shared<ClusterPlanOptions>();
  AddCommon(*app, o->common, true);
  CLI::Option* simulate = app->add_option("--simulate", o->simulate,
                                          "plan for the cluster in this JSON file; - is standard input")
                              ->type_name("FILE");
  app->add_flag("--dry-run", o->dry_run, "plan for the live cluster, and change nothing")->excludes(simulate);
  app->add_option("--without", o->without, "as if these workers were drained")
      ->type_name("ID")
      ->delimiter(',');
  Choose(app, chosen, o, RunClusterPlan);
}

struct Control {
  CLI::App* app;
  std::shared_ptr<ClusterControlOptions> options;
};

// `target`: what it is done to; nullptr: it takes none.
Control AddControl(CLI::App& cluster, Chosen& chosen, const char* name, const char* what, const char* example,
                   const char* target, Result<ExitCode> (*run)(const ClusterControlOptions&)) {
  Control control{AddCommand(cluster, name, what, example), std::make_shared<ClusterControlOptions>()};
  AddCommon(*control.app, control.options->common, true);
  if (target != nullptr)
    control.app->add_option("target", control.options->targets, target)->type_name("NAME")->required();
  Choose(control.app, chosen, control.options, run);
  return control;
}

void AddRestarts(CLI::App& cluster, Chosen& chosen) {
  AddControl(cluster, chosen, "drain", "Give the slices of workers to others", "  millrace cluster drain w1",
             "the worker's id", RunClusterDrain);
  AddControl(cluster, chosen, "undrain", "Let drained workers have slices again",
             "  millrace cluster undrain w1", "the worker's id", RunClusterUndrain);
  const Control expect =
      AddControl(cluster, chosen, "expect", "Announce a restart: a worker's slices are kept for it",
                 "  millrace cluster expect w1 --for 60s && systemctl restart millrace", "the worker's id",
                 RunClusterExpect);
  expect.app->add_option("--for", expect.options->duration, "how long they are kept")
      ->type_name("TIME")
      ->capture_default_str();
  AddControl(cluster, chosen, "proceed", "After a mass loss: do not wait, place the slices now",
             "  millrace cluster proceed", nullptr, RunClusterProceed);
}

void AddProtect(CLI::App& cluster, Chosen& chosen) {
  AddControl(cluster, chosen, "protect", "Close a cluster that was made without --zk-auth-file",
             "  millrace cluster protect --zk-auth-file /etc/millrace/zk", nullptr, RunClusterProtect);
}

void AddPauses(CLI::App& cluster, Chosen& chosen) {
  const Control pause =
      AddControl(cluster, chosen, "pause", "The red button: start nothing more of this, on any worker",
                 "  millrace cluster pause cluster\n  millrace cluster pause handler:send_mail shard:east "
                 "slice:main:tasks:17",
                 "cluster, shard:S, handler:H or slice:S:T:N", RunClusterPause);
  pause.app->add_flag("--force", pause.options->force, "also what is not there yet");
  AddControl(cluster, chosen, "resume", "Take a pause back", "  millrace cluster resume cluster",
             "what was paused", RunClusterResume);
}

void AddLimit(CLI::App& cluster, Chosen& chosen) {
  CLI::App* app =
      AddCommand(cluster, "limit", "Limit a worker while it runs; what its flags allow goes before",
                 "  millrace cluster limit w1 --handlers send_mail,http_call\n"
                 "  millrace cluster limit w1 --none");
  auto o = std::make_shared<ClusterLimitOptions>();
  AddCommon(*app, o->common, true);
  app->add_option("worker", o->id, "the worker's id")->type_name("ID")->required();
  AddList(*app, "--handlers", o->handlers, "to these task types");
  app->add_option("--load-balance", o->load_balance, "to these load-balance numbers")->type_name("LIST");
  AddList(*app, "--shards", o->shards, "to these shards");
  AddList(*app, "--tables", o->tables, "to these tables; table or shard/table");
  app->add_flag("--none", o->none, "take its limits back");
  Choose(app, chosen, o, RunClusterLimit);
}

}  // namespace

void AddClusterCommands(CLI::App& root, Chosen& chosen) {
  CLI::App* cluster = AddFamily(root, "cluster", "Look at the cluster and steer it",
                                "  millrace cluster status --zk zk1:2181");
  AddStatus(*cluster, chosen);
  AddSlices(*cluster, chosen);
  AddPlan(*cluster, chosen);
  AddRestarts(*cluster, chosen);
  AddPauses(*cluster, chosen);
  AddLimit(*cluster, chosen);
  AddProtect(*cluster, chosen);
}

}  // namespace millrace::engine

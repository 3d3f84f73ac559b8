#include "coordinator/app/command_parts.h"
#include "coordinator/app/commands.h"

namespace millrace {

struct ClusterCommands::Flags {
  CommonFlags status;
  ClusterSlicesOptions slices;
  ClusterPlanOptions plan;
  ClusterLimitOptions limit;
  ClusterControlOptions drain, undrain, expect, pause, resume, proceed;
  ConfigOptions get, set, edit, validate, history, rollback;
};

namespace {

void AddPlan(CLI::App& cluster, Chosen& chosen, ClusterPlanOptions& o) {
  CLI::App* app = AddCommand(cluster, "plan", "Show who would own which slice, and how many would move",
                             "  millrace cluster plan --dry-run\n"
                             "  millrace cluster plan --simulate cluster.json");
  AddCommon(*app, o.common, true);
  CLI::Option* simulate =
      app->add_option("--simulate", o.simulate, "plan for the cluster in this JSON file; - is standard input")
          ->type_name("FILE");
  app->add_flag("--dry-run", o.dry_run, "plan for the live cluster, and change nothing")->excludes(simulate);
  app->add_option("--without", o.without, "as if these workers were drained")
      ->type_name("ID")
      ->delimiter(',');
  Choose(app, chosen, o.common, false, [&o] { return RunClusterPlan(o); });
}

void AddControl(CLI::App& cluster, Chosen& chosen, ClusterControlOptions& o, const char* name,
                const char* what, const char* example, const char* target,
                Result<ExitCode> (*run)(const ClusterControlOptions&)) {
  CLI::App* app = AddCommand(cluster, name, what, example);
  AddCommon(*app, o.common, true);
  if (target != nullptr) app->add_option("target", o.targets, target)->type_name("NAME")->required();
  Choose(app, chosen, o.common, false, [&o, run] { return run(o); });
}

void AddCluster(CLI::App& root, Chosen& chosen, CommonFlags& status, ClusterSlicesOptions& slices,
                ClusterPlanOptions& plan, ClusterControlOptions& drain, ClusterControlOptions& undrain,
                ClusterControlOptions& expect, ClusterControlOptions& pause, ClusterControlOptions& resume,
                ClusterControlOptions& proceed) {
  CLI::App* cluster = AddCommand(root, "cluster", "Look at the cluster and steer it",
                                 "  millrace cluster status --zk zk1:2181");
  cluster->require_subcommand(1);
  CLI::App* app = AddCommand(*cluster, "status", "Show the leader, the workers, the shards and what is wrong",
                             "  millrace cluster status --zk zk1:2181");
  AddCommon(*app, status, true);
  Choose(app, chosen, status, false, [&status] { return RunClusterStatus(status); });

  app = AddCommand(*cluster, "slices", "Show who owns which slice",
                   "  millrace cluster slices\n  millrace cluster slices --why main/tasks/17");
  AddCommon(*app, slices.common, true);
  app->add_option("--why", slices.why, "say why this slice is where it is")->type_name("SLICE");
  Choose(app, chosen, slices.common, false, [&slices] { return RunClusterSlices(slices); });

  AddPlan(*cluster, chosen, plan);
  AddControl(*cluster, chosen, drain, "drain", "Give the slices of workers to others",
             "  millrace cluster drain w1", "the worker's id", RunClusterDrain);
  AddControl(*cluster, chosen, undrain, "undrain", "Let drained workers have slices again",
             "  millrace cluster undrain w1", "the worker's id", RunClusterUndrain);
  AddControl(*cluster, chosen, expect, "expect", "Announce a restart: a worker's slices are kept for it",
             "  millrace cluster expect w1 --for 60s && systemctl restart millrace", "the worker's id",
             RunClusterExpect);
  cluster->get_subcommand("expect")
      ->add_option("--for", expect.duration, "how long they are kept")
      ->type_name("TIME")
      ->capture_default_str();
  AddControl(*cluster, chosen, pause, "pause", "The red button: start nothing more of this, on any worker",
             "  millrace cluster pause cluster\n  millrace cluster pause handler:send_mail shard:east "
             "slice:main:tasks:17",
             "cluster, shard:S, handler:H or slice:S:T:N", RunClusterPause);
  AddControl(*cluster, chosen, resume, "resume", "Take a pause back", "  millrace cluster resume cluster",
             "what was paused", RunClusterResume);
  AddControl(*cluster, chosen, proceed, "proceed", "After a mass loss: do not wait, place the slices now",
             "  millrace cluster proceed", nullptr, RunClusterProceed);
}

void AddLimit(CLI::App& cluster, Chosen& chosen, ClusterLimitOptions& o) {
  CLI::App* app =
      AddCommand(cluster, "limit", "Limit a worker while it runs; what its flags allow goes before",
                 "  millrace cluster limit w1 --handlers send_mail,http_call\n"
                 "  millrace cluster limit w1 --none");
  AddCommon(*app, o.common, true);
  app->add_option("worker", o.id, "the worker's id")->type_name("ID")->required();
  app->add_option("--handlers", o.handlers, "to these task types")->type_name("A,B")->delimiter(',');
  app->add_option("--load-balance", o.load_balance, "to these load-balance numbers")->type_name("LIST");
  app->add_option("--shards", o.shards, "to these shards")->type_name("A,B")->delimiter(',');
  app->add_option("--tables", o.tables, "to these tables; table or shard/table")
      ->type_name("A,B")
      ->delimiter(',');
  app->add_flag("--none", o.none, "take its limits back");
  Choose(app, chosen, o.common, false, [&o] { return RunClusterLimit(o); });
}

CLI::App* AddConfigCommand(CLI::App& config, Chosen& chosen, ConfigOptions& o, const char* name,
                           const char* what, const char* example, bool part_needed,
                           Result<ExitCode> (*run)(const ConfigOptions&)) {
  CLI::App* app = AddCommand(config, name, what, example);
  AddCommon(*app, o.common, true);
  CLI::Option* part =
      app->add_option("part", o.part, "engine, handlers, shards, schedules or alerts; or a key in it")
          ->type_name("PART");
  if (part_needed) part->required();
  Choose(app, chosen, o.common, false, [&o, run] { return run(o); });
  return app;
}

void AddConfig(CLI::App& root, Chosen& chosen, ConfigOptions& get, ConfigOptions& set, ConfigOptions& edit,
               ConfigOptions& validate, ConfigOptions& history, ConfigOptions& rollback) {
  CLI::App* config = AddCommand(root, "config", "Look at the cluster's configuration and change it live",
                                "  millrace config set handlers.send_mail.concurrency 8");
  config->require_subcommand(1);
  CLI::App* app = AddConfigCommand(*config, chosen, get, "get", "Print it",
                                   "  millrace config get handlers\n  millrace config get --effective", false,
                                   RunConfigGet);
  app->add_flag("--effective", get.effective, "each value in force, and where it is from");
  app = AddConfigCommand(*config, chosen, set, "set", "Set a part, or one key of it",
                         "  millrace config set handlers @handlers.json\n"
                         "  millrace config set handlers.noop.concurrency 8\n"
                         "  millrace config set engine.poll 100ms\n"
                         "  millrace config set 'handlers[\"mail.monthly\"].timeout' 5m",
                         true, RunConfigSet);
  app->add_option("value", set.value, "JSON, @FILE, or - for standard input")->type_name("VALUE")->required();
  AddConfigCommand(*config, chosen, edit, "edit", "Change a part in $EDITOR",
                   "  millrace config edit handlers", true, RunConfigEdit);
  app = AddConfigCommand(*config, chosen, validate, "validate", "Check a part before it is set",
                         "  millrace config validate handlers @handlers.json", true, RunConfigValidate);
  app->add_option("value", validate.value, "JSON, @FILE, or - for standard input")
      ->type_name("VALUE")
      ->required();
  AddConfigCommand(*config, chosen, history, "history", "Show who changed a part, and when",
                   "  millrace config history handlers", true, RunConfigHistory);
  app = AddConfigCommand(*config, chosen, rollback, "rollback", "Set a part as it was",
                         "  millrace config rollback handlers 3", true, RunConfigRollback);
  app->add_option("version", rollback.version, "as history shows it; default: the one before the last")
      ->type_name("N");
}

}  // namespace

ClusterCommands::ClusterCommands(CLI::App& root, Chosen& chosen) : flags_(std::make_unique<Flags>()) {
  Flags& f = *flags_;
  AddCluster(root, chosen, f.status, f.slices, f.plan, f.drain, f.undrain, f.expect, f.pause, f.resume,
             f.proceed);
  AddLimit(*root.get_subcommand("cluster"), chosen, f.limit);
  AddConfig(root, chosen, f.get, f.set, f.edit, f.validate, f.history, f.rollback);
}

ClusterCommands::~ClusterCommands() = default;

}  // namespace millrace

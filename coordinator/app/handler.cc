#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "framework/base/escape.h"
#include "framework/base/time_text.h"
#include "framework/handler_kit/local_run.h"
#include "framework/worker/handler_secrets.h"

namespace millrace::engine {
namespace {

struct HandlerRunOptions {
  CommonFlags common;
  std::string shard;
  std::string handler;
  std::string params = "{}";
  std::string key;
  bool commit = false;
};

using nlohmann::ordered_json;

const char* WordOf(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::Done:
      return "done";
    case OutcomeKind::Retry:
      return "retry";
    case OutcomeKind::Fail:
      return "fail";
    case OutcomeKind::Snooze:
      return "snooze";
    case OutcomeKind::Skip:
      return "skip";
    case OutcomeKind::GiveBack:
      return "given back";
    case OutcomeKind::Cancel:
      return "cancelled";
    case OutcomeKind::Hold:
      return "held";
  }
  return "";
}

Ink OutcomeInk(OutcomeKind kind) {
  if (kind == OutcomeKind::Done) return Ink::Good;
  return kind == OutcomeKind::Fail ? Ink::Bad : Ink::Caution;
}

// What a worker would make of it, where that is not what the handler said.
std::string Objection(const LocalEnd& end) {
  return end.end.text == Storable(end.said.text) ? "" : ": " + end.end.text;
}

// Whether a worker takes what the handler said: it does not where the transaction has failed, or the time is
// over.
bool IsTaken(const LocalEnd& end) {
  return end.said.kind != OutcomeKind::Done || end.end.to == Settlement::To::Succeeded;
}

// What goes with its transaction; what else a handler does, to files or by calls, nobody takes back.
std::string WrittenText(const LocalReport& report) {
  if (report.submitted.empty()) return report.statements.empty() ? "" : "its SQL";
  return report.statements.empty() ? "what it submits" : "its SQL and what it submits";
}

std::string EffectText(const LocalEnd& end, const std::string& written, bool commit) {
  switch (end.effect) {
    case LocalEffect::None:
      return "";
    case LocalEffect::Committed:
      return written + " was committed";
    case LocalEffect::RolledBack:
      if (commit) return written + " was rolled back" + Objection(end);
      return written + " was rolled back" +
             (end.said.kind == OutcomeKind::Done && IsTaken(end) ? "; --commit keeps it" : "");
    case LocalEffect::InDoubt:
      return "parts of " + written + " may have taken effect" + Objection(end);
  }
  return "";
}

void PrintReport(const LocalReport& report, bool commit) {
  for (const LocalLogLine& line : report.log) PrintNote("log: " + Escape(line.message));
  for (const LocalStatement& statement : report.statements) {
    const std::string effect =
        statement.error.empty() ? Count(statement.affected + statement.rows, "row", "rows") : statement.error;
    PrintNote("sql: " + Escape(statement.sql) + "  → " + Escape(effect));
  }
  for (const LocalSubmission& submission : report.submitted)
    PrintNote("submits: " + submission.task.handler + " " + Escape(submission.task.params));
  for (const LocalEnd& end : report.ends) {
    for (const std::string& text : end.progress) PrintNote("progress: " + Escape(text));
    const Outcome& outcome = end.said;
    const std::string why = outcome.text.empty() ? "" : ": " + Escape(outcome.text);
    const std::string error_class =
        outcome.error_class.empty() ? "" : " [" + Escape(outcome.error_class) + "]";
    PrintLine(ForOutput(OutcomeInk(outcome.kind), WordOf(outcome.kind)) + error_class + why + " (" +
              ElapsedText(report.took) + ")");
    if (!IsTaken(end)) PrintNote("a worker does not take it as done" + Objection(end));
    const std::string written = WrittenText(report);
    const std::string effect = written.empty() ? "" : EffectText(end, written, commit);
    if (!effect.empty()) PrintNote(effect);
  }
}

ordered_json ToJson(const LocalReport& report) {
  ordered_json out;
  out["outcomes"] = ordered_json::array();
  bool committed = false;
  for (const LocalEnd& end : report.ends) {
    const Outcome& said = end.said;
    out["outcomes"].push_back(
        {{"outcome", WordOf(said.kind)}, {"text", said.text}, {"error_class", said.error_class}});
    if (!IsTaken(end)) out["outcomes"].back()["refused"] = end.end.text;
    committed = committed || end.effect == LocalEffect::Committed;
  }
  out["took_ms"] = static_cast<double>(report.took.count()) / 1000;
  out["committed"] = committed;
  out["log"] = ordered_json::array();
  for (const LocalLogLine& line : report.log) out["log"].push_back(line.message);
  out["sql"] = ordered_json::array();
  for (const LocalStatement& s : report.statements) {
    out["sql"].push_back(
        {{"statement", s.sql}, {"affected", s.affected}, {"rows", s.rows}, {"error", s.error}});
  }
  out["submitted"] = ordered_json::array();
  for (const LocalSubmission& submission : report.submitted) {
    const NewTask& task = submission.task;
    out["submitted"].push_back(
        {{"handler", task.handler}, {"params", task.params}, {"key", task.biz_key}, {"batch", task.batch}});
  }
  return out;
}

// `timeout 5s, retry after 1s 10s, 3 failures, concurrency 2`
std::string BringsText(const CodeDefaults& code) {
  std::vector<std::string> parts;
  if (code.timeout) parts.push_back("timeout " + FormatDuration(*code.timeout));
  std::string ladder;
  for (const Micros delay : code.delays) ladder += " " + FormatDuration(delay);
  if (!ladder.empty()) parts.push_back("retry after" + ladder);
  if (code.next_retry) parts.push_back("retry by NextRetry");
  if (code.max_failures) parts.push_back(Count(*code.max_failures, "failure", "failures"));
  if (code.concurrency) parts.push_back("concurrency " + std::to_string(*code.concurrency));
  return parts.empty() ? "-" : Joined(parts);
}

// With the configuration that is in force in the cluster, where one is named.
Result<Settings> SettingsToRun(const CommonFlags& flags) {
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags, Variable, kDefaultStore));
  if (!settings.cluster) return settings;
  BOOST_OUTCOME_TRY(client, ClusterClient::Open(*settings.cluster));
  BOOST_OUTCOME_TRY(layers, ReadLayers(*client, settings));
  for (const auto& [part, why] : layers.Refusals()) PrintNote("note: not in force: " + why);
  settings.config = *layers.Effective();
  if (flags.store.empty()) settings.shards = settings.config.shards;
  return settings;
}

// The store is optional: a handler without SQL needs none.
Result<Shards> StoreIfNamed(const Settings& settings) {
  if (settings.store_from == "the default") return Shards{};
  return OpenShards(settings);
}

Result<ExitCode> RunHandlerList(const CommonFlags& common) {
  // It needs neither a store nor a cluster; but what was given must be right, as it is for every command.
  BOOST_OUTCOME_TRYV(ResolveSettings(common, Variable, kDefaultStore));
  BOOST_OUTCOME_TRY(plugins, LoadPlugins(common));
  const std::vector<HandlerInfo> handlers = plugins->Handlers();
  ordered_json out = ordered_json::array();
  TextTable table{
      {{"handler"}, {"plugin", false, 1}, {"batch", true, 3}, {"brings", false, 2}, {"what it does"}}, {}};
  for (const HandlerInfo& info : handlers) {
    out.push_back({{"name", info.name},
                   {"summary", info.summary},
                   {"max_batch", info.max_batch},
                   {"plugin", info.plugin},
                   {"file", info.file},
                   {"defaults", ordered_json::parse(DefaultsText(info.defaults))},
                   {"next_retry", info.defaults.next_retry}});
    table.rows.push_back(
        {info.name, info.plugin, std::to_string(info.max_batch), BringsText(info.defaults), info.summary});
  }
  const std::vector<std::string> refused = plugins->Refused();
  PrintAnswer(common, {{"handlers", out}, {"refused", refused}}, table,
              "no handlers in " + PluginFolder(common));
  for (const std::string& why : refused) PrintError(why);
  return refused.empty() ? ExitCode::Done : ExitCode::SomethingFailed;
}

Result<ExitCode> RunHandlerRun(const HandlerRunOptions& options) {
  if (options.handler.empty()) return Fail(ErrorCode::Invalid, "name a task type: millrace handler run NAME");
  BOOST_OUTCOME_TRYV(CheckParamsFlag(options.params));
  BOOST_OUTCOME_TRY(settings, SettingsToRun(options.common));
  BOOST_OUTCOME_TRY(plugins, LoadPlugins(options.common));
  BOOST_OUTCOME_TRY(shards, StoreIfNamed(settings));
  const HandlerConfig& config = settings.config.HandlerFor(options.handler);
  BOOST_OUTCOME_TRY(secrets, ReadSecrets(options.handler, config));
  LocalRunOptions run;
  run.type = options.handler;
  run.config = config;
  run.secrets = secrets;
  run.params = {options.params};
  run.commit = options.commit;
  if (!shards.empty()) {
    BOOST_OUTCOME_TRY(shard, PickShard(shards, options.shard));
    BOOST_OUTCOME_TRYV(Prepare(*shard, Missing::Refuse));
    run.store = shard->store.get();
    run.table = shard->tables.empty() ? kDefaultTable : shard->tables.front().table;
  }
  auto report = RunLocally(*plugins, run, SystemClock());
  if (!report) {
    const bool unknown = report.error().code == ErrorCode::NotFound;
    return Fail(unknown ? ErrorCode::Invalid : report.error().code,
                report.error().message + (unknown ? RefusedText(*plugins) : ""));
  }
  if (options.common.json) {
    PrintJson(ToJson(*report));
  } else {
    PrintReport(*report, options.commit);
  }
  const bool bad = std::any_of(report->ends.begin(), report->ends.end(), [](const LocalEnd& end) {
    return end.said.kind == OutcomeKind::Retry || end.said.kind == OutcomeKind::Fail || !IsTaken(end);
  });
  return bad ? ExitCode::SomethingFailed : ExitCode::Done;
}

}  // namespace

void AddHandlerCommands(CLI::App& handler, Chosen& chosen) {
  const auto list = AddCommand(handler, chosen, "list", "List the handlers of the plugins at hand",
                               "  millrace handler list --plugins ./build/plugins", RunHandlerList);
  AddFolders(*list.app, *list.options);
  const auto run =
      AddCommand(handler, chosen, "run", "Run one handler here and now, without a task",
                 "  millrace handler run award_points --params '{\"customer_id\":1,\"amount\":2.99}' --store "
                 "sqlite:points.db",
                 RunHandlerRun);
  AddFolders(*run.app, run->common);
  run.Add("handler,--handler", run->handler, "the task type: as a word, or by --handler", "NAME");
  run.Add("--params", run->params, "JSON for the handler", "JSON");
  run.Add("--shard", run->shard, "which shard, where there are several", "NAME");
  run.app->add_flag("--commit", run->commit,
                    "keep what its SQL wrote and what it submits; otherwise that alone is rolled back");
  AddHandlerBreaker(handler, chosen);
}

}  // namespace millrace::engine

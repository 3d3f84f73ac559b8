#include "framework/handler_kit/local_run.h"

#include <millrace/json.h>

#include <algorithm>

namespace millrace {
namespace {

Result<std::vector<Task>> MakeTasks(const LocalRunOptions& options, const Clock& clock) {
  std::vector<Task> tasks;
  for (const std::string& params : options.params) {
    try {
      Json::Parse(params);
    } catch (const BadInput& error) {
      return Fail(ErrorCode::Invalid, std::string("the parameters are ") + error.what());
    }
    if (params.size() > kMaxParams) return Fail(ErrorCode::Invalid, "the parameters are longer than 64 KiB");
    Task task;
    task.key = {options.table, tasks.size() + 1};
    task.state = TaskState::Running;
    task.handler = options.type;
    task.params = params;
    task.attempt = options.attempt;
    task.progress = options.progress;
    task.run_at = task.created_at = clock.WallNow();
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Status CheckCount(const HandlerInstance& handler, const LocalRunOptions& options) {
  if (!options.params.empty() && options.params.size() <= handler.MaxBatch()) return {};
  return Fail(ErrorCode::Invalid, "the handler takes 1 to " + std::to_string(handler.MaxBatch()) +
                                      " tasks a call, not " + std::to_string(options.params.size()));
}

// Why nothing may be committed; empty if it may.
std::string Objection(const LocalReport& report, const TaskTransaction& transaction) {
  const bool all_done = std::all_of(report.outcomes.begin(), report.outcomes.end(),
                                    [](const Outcome& outcome) { return outcome.kind == OutcomeKind::Done; });
  if (!all_done) return "not every task is done";
  if (transaction.state() != TransactionState::Open) return "a statement failed";
  return {};
}

void End(const LocalRunOptions& options, TaskTransaction& transaction, LocalReport& report) {
  if (transaction.state() == TransactionState::Idle) return;
  report.effect = LocalEffect::RolledBack;
  if (options.commit) report.effect_note = Objection(report, transaction);
  if (options.commit && report.effect_note.empty()) {
    const CommitReport committed = transaction.Commit("", {});
    if (committed.verdict == CommitVerdict::Committed) {
      report.effect = LocalEffect::Committed;
      return;
    }
    report.effect_note = committed.message;
  }
  transaction.Rollback();
}

}  // namespace

Result<LocalReport> RunLocally(const PluginSet& plugins, const LocalRunOptions& options, const Clock& clock) {
  const auto tasks = MakeTasks(options, clock);
  if (!tasks) return Fail(tasks.error());
  const auto handler = plugins.Open(options.uses.empty() ? options.type : options.uses, options.type,
                                    options.options, options.secrets);
  if (!handler) return Fail(handler.error());
  if (Status counted = CheckCount(**handler, options); !counted) return Fail(counted.error());

  std::unique_ptr<TaskTransaction> transaction;
  if (options.store != nullptr) transaction = options.store->OpenTransaction(options.timeout);
  LocalContext context(clock, options.timeout, transaction.get(), options.table);
  LocalReport report;
  const BootTime started = clock.Now();
  report.outcomes = (*handler)->Run("local", PointersTo(*tasks), context);
  report.took = clock.Now() - started;
  if (transaction) End(options, *transaction, report);
  report.log = context.log();
  report.statements = context.statements();
  report.submitted = context.submitted();
  report.progress = context.progress();
  return report;
}

}  // namespace millrace

#include "framework/handler_kit/local_run.h"

#include <millrace/json.h>

namespace millrace::engine {
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

// Why nothing is committed, and what a worker would do.
std::string Objection(const CallEnd& end, const Decision& decision) {
  switch (decision.next) {
    case Next::RunAgain:
      return "its transaction met a lock of somebody else, or lost its connection: a worker runs it again";
    case Next::Halve:
      return "the call failed as a whole: a worker runs its tasks again in smaller calls, in the end alone";
    case Next::OneByOne:
      return "a worker runs the tasks again, each alone";
    case Next::Settle:
      break;
  }
  if (end.state == TransactionState::NoConnection) return "the database could not be had";
  if (end.state == TransactionState::Open) return "no task that has sent SQL is done";
  return "a statement failed";
}

// The transaction has begun: commits it where a worker would, and that was asked for.
void End(const LocalRunOptions& options, TaskTransaction& transaction, CallEnd end, LocalReport& report) {
  Decision decision = Decide(end);
  report.effect = LocalEffect::RolledBack;
  if (decision.commit && options.commit) {
    const CommitReport committed = transaction.Commit("", {});
    report.effect_note = committed.message;
    if (committed.verdict == CommitVerdict::Committed) report.effect = LocalEffect::Committed;
    if (committed.verdict == CommitVerdict::Unknown) report.effect = LocalEffect::InDoubt;
    if (committed.verdict == CommitVerdict::Escaped) end.state = TransactionState::Escaped;
  } else if (options.commit) {
    report.effect_note = Objection(end, decision);
  }
  if (end.state == TransactionState::Escaped) {
    report.effect = LocalEffect::InDoubt;
    report.effect_note = "its transaction was ended behind the context's back";
  }
  transaction.Rollback();
}

}  // namespace

Result<LocalReport> RunLocally(const PluginSet& plugins, const LocalRunOptions& options, const Clock& clock) {
  const auto tasks = MakeTasks(options, clock);
  if (!tasks) return Fail(tasks.error());
  const std::string& uses = options.config.uses;
  const auto handler =
      plugins.Open(uses.empty() ? options.type : uses, options.type, options.config.options, options.secrets);
  if (!handler) return Fail(handler.error());
  const HandlerConfig config = Over((*handler)->Defaults(), options.config);
  if (Status counted = CheckCount(**handler, options); !counted) return Fail(counted.error());

  std::unique_ptr<TaskTransaction> transaction;
  if (options.store != nullptr) transaction = options.store->OpenTransaction(config.timeout);
  LocalContext context(clock, config.timeout, tasks->size(), transaction.get(), options.table);
  LocalReport report;
  const BootTime started = clock.Now();
  report.outcomes = (*handler)->Run("local", PointersTo(*tasks), context);
  report.took = clock.Now() - started;
  if (transaction && transaction->state() != TransactionState::Idle) {
    End(options, *transaction, context.transaction()->End(report.outcomes), report);
  }
  report.log = context.log();
  report.statements = context.statements();
  report.submitted = context.submitted();
  report.progress = context.progress();
  return report;
}

}  // namespace millrace::engine

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/progress.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster_client.h"
#include "coordinator/app/command.h"
#include "coordinator/app/handler.h"
#include "coordinator/app/input/json_row.h"
#include "coordinator/app/input/query_check.h"
#include "coordinator/app/outcome_watch.h"
#include "coordinator/app/submitter.h"
#include "framework/base/time_text.h"
#include "framework/files/paths.h"

namespace millrace::engine {
namespace {

struct SubmitOptions {
  CommonFlags common;
  std::string shard;
  std::string table;
  std::string handler;
  std::string params = "{}";
  std::string key;
  std::string at;
  std::string in;
  std::string batch;
  std::optional<std::uint32_t> priority;
  std::uint64_t count = 1;
  bool held = false;
  std::string from;
  std::string from_query;
  std::string key_column;
  bool all_or_nothing = false;
  bool force = false;
  bool wait = false;
};

constexpr Micros kLongestTransaction = std::chrono::minutes(30);
constexpr std::size_t kProblemsShown = 20;

Failure Wrong(std::string what) { return Fail(ErrorCode::Invalid, std::move(what)); }

Status CheckCombination(const SubmitOptions& options) {
  const bool file = !options.from.empty();
  const bool query = !options.from_query.empty();
  if (file && query) return Wrong("give either --from or --from-query");
  if (options.handler.empty())
    return Wrong("which handler? give --handler NAME; millrace handler list shows them");
  if (!options.at.empty() && !options.in.empty()) return Wrong("give either --at or --in");
  if (file || query) {
    const char* source = file ? "--from" : "--from-query";
    if (options.params != "{}")
      return Wrong(std::string("--params does not go with ") + source + ": a row has its own");
    if (!options.key.empty())
      return Wrong(std::string("with ") + source + " give --key-column instead of --key");
    if (options.count != 1) return Wrong(std::string("--count does not go with ") + source);
    return {};
  }
  if (!options.key_column.empty())
    return Wrong("--key-column goes with --from or --from-query; for one task give --key");
  if (options.all_or_nothing) return Wrong("--all-or-nothing goes with --from or --from-query");
  if (options.count == 0) return Wrong("--count must be 1 or more");
  if (options.count > 1 && !options.key.empty()) {
    return Wrong("--count with --key would add one task: of one key only one takes effect");
  }
  return {};
}

// What every task has in common.
Result<NewTask> Template(const SubmitOptions& options) {
  NewTask task;
  task.handler = options.handler;
  task.params = options.params;
  task.biz_key = options.key;
  task.batch = options.batch;
  task.priority = options.priority;
  task.held = options.held;
  if (!options.at.empty()) {
    auto at = ParseTime(options.at);
    if (!at) return Wrong("--at: " + at.error().message);
    task.run_at = *at;
  }
  if (!options.in.empty()) {
    BOOST_OUTCOME_TRY(delay, ReadDuration("--in", options.in));
    task.delay = delay;
  }
  BOOST_OUTCOME_TRYV(Validate(task));
  if (auto json = CheckJson(task.params); !json) return Wrong("--params: " + json.error().message);
  return task;
}

// The same task, `count` times.
class Copies final : public InputRows {
 public:
  Copies(NewTask task, std::uint64_t count) : task_(std::move(task)), count_(count) {}
  std::optional<InputRow> Next() override {
    if (next_ == count_) return std::nullopt;
    return InputRow{static_cast<std::size_t>(++next_), task_};
  }

 private:
  NewTask task_;
  std::uint64_t count_;
  std::uint64_t next_ = 0;
};

Result<std::unique_ptr<InputRows>> RunQuery(Shard& shard, const std::string& sql, const NewTask& task,
                                            const std::string& key_column) {
  auto transaction = shard.store->OpenTransaction(kLongestTransaction);
  auto result = transaction->Execute(sql, {});
  transaction->Rollback();
  if (!result) return Fail(QueryError(result.error()));
  if (result->columns.empty()) return Wrong("--from-query: the statement gives no rows; write a SELECT");
  return RowsOfQuery(std::move(*result), task, key_column);
}

Result<std::unique_ptr<InputRows>> OpenRows(const SubmitOptions& options, Shard& shard, const NewTask& task) {
  if (!options.from.empty()) {
    BOOST_OUTCOME_TRY(file, OpenInputFile(options.from, task, options.key_column));
    return ReadAhead(std::move(file));
  }
  if (!options.from_query.empty()) return RunQuery(shard, options.from_query, task, options.key_column);
  return std::unique_ptr<InputRows>(std::make_unique<Copies>(task, options.count));
}

// By word of the cluster's configuration a type may be served by another's handler. Where the store is named
// the cluster is asked only before a type is refused.
Status CheckType(const SubmitOptions& options, const Settings& settings) {
  BOOST_OUTCOME_TRYV(IsFolder(PluginFolder(options.common)));
  const auto at_hand = HandlersAtHand(options.common);
  const Status known = CheckHandlerKnown(options.handler, settings.config, at_hand);
  if (known || !settings.cluster) return known;
  auto client = ClusterClient::Open(*settings.cluster, std::chrono::seconds(5));
  if (!client) return known;
  const auto layers = ReadLayers(**client, settings);
  return layers ? CheckHandlerKnown(options.handler, *layers->Effective(), at_hand) : known;
}

void PrintProblems(const SubmitOptions& options, const SubmitTotals& totals) {
  const std::string source = !options.from.empty() ? options.from + ":" : "row ";
  for (std::size_t i = 0; i < totals.problems.size() && i < kProblemsShown; ++i) {
    PrintError(source + std::to_string(totals.problems[i].first) + ": " + totals.problems[i].second);
  }
  if (totals.bad > kProblemsShown) {
    PrintError("… and " + WithCommas(totals.bad - kProblemsShown) +
               " more bad rows; --json lists up to 1,000");
  }
}

std::string Summary(const SubmitOptions& options, const SubmitTotals& totals) {
  if (options.all_or_nothing && totals.bad > 0) {
    return "nothing submitted: " + Count(totals.bad, "bad row", "bad rows") +
           "; without --all-or-nothing the good "
           "ones go in";
  }
  std::string text = WithCommas(totals.added) + " submitted";
  if (totals.duplicates > 0 || !options.key_column.empty())
    text += ", " + WithCommas(totals.duplicates) + " there already";
  if (totals.bad > 0) text += ", " + Count(totals.bad, "bad row", "bad rows");
  return text;
}

nlohmann::ordered_json ToJson(const std::string& shard, const TableName& table, const SubmitTotals& totals) {
  nlohmann::ordered_json out{
      {"submitted", totals.added}, {"duplicates", totals.duplicates}, {"bad", totals.bad}};
  out["names"] = nlohmann::ordered_json::array();
  for (const std::uint64_t id : totals.ids) out["names"].push_back(ToString(TaskName{shard, {table, id}}));
  out["duplicate_of"] = nlohmann::ordered_json::array();
  for (const std::string& holder : totals.holders) out["duplicate_of"].push_back(shard + "/" + holder);
  out["problems"] = nlohmann::ordered_json::array();
  for (const auto& [line, why] : totals.problems)
    out["problems"].push_back({{"line", line}, {"problem", why}});
  return out;
}

void Report(const SubmitOptions& options, const std::string& shard, const TableName& table,
            const SubmitTotals& totals) {
  PrintProblems(options, totals);
  const bool single = options.from.empty() && options.from_query.empty() && options.count == 1;
  if (single && totals.added == 1 && !totals.ids.empty()) {
    PrintLine("submitted " + ToString(TaskName{shard, {table, totals.ids[0]}}));
  } else if (single && totals.duplicates == 1 && !totals.holders.empty()) {
    PrintLine("there already: the key '" + options.key + "' belongs to " + shard + "/" + totals.holders[0]);
  } else {
    PrintLine(Summary(options, totals));
  }
}

Status SubmitRows(const SubmitOptions& options, Shard& shard, SubmitTarget& target, InputRows& rows,
                  SubmitTotals& totals) {
  ProgressLine line(ErrorIsTerminal() && !options.common.json);
  const auto progress = [&](const SubmitTotals& now) {
    line.Show(WithCommas(now.added + now.duplicates) + " rows in", BootClock::now());
  };
  if (!options.all_or_nothing) {
    auto operations = shard.store->OpenOperations();
    return SubmitBatches(*operations, target, rows, totals, progress);
  }
  auto transaction = shard.store->OpenTransaction(kLongestTransaction);
  return SubmitAtOnce(*transaction, target, rows, totals, progress);
}

// The table, and its slices as they suit the number of rows, where that is known.
Result<SubmitTarget> PickTarget(const SubmitOptions& options, const Shard& shard) {
  BOOST_OUTCOME_TRY(table, PickTable(shard, options.table));
  const auto info = std::find_if(shard.tables.begin(), shard.tables.end(),
                                 [&](const TableInfo& known) { return known.table == table; });
  const bool known = options.from.empty() && options.from_query.empty();
  return SubmitTarget{table, SliceRuns(info->slices, known ? options.count : 0, Random::FromSystem())};
}

// Tells what came of it, and with --wait also what becomes of the tasks.
Result<ExitCode> Conclude(const SubmitOptions& options, Settings settings, Shards shards,
                          const std::string& shard, const TableName& table, const SubmitTotals& totals) {
  const ExitCode submitted = totals.bad > 0 ? ExitCode::SomethingFailed : ExitCode::Done;
  if (!options.common.json) Report(options, shard, table, totals);
  if (!options.wait) {
    if (options.common.json) PrintJson(ToJson(shard, table, totals));
    return submitted;
  }
  TaskShards open{std::move(settings), std::move(shards), {}, {}};
  open.operations[shard] = open.shards.at(shard).store->OpenOperations();
  auto waited = WaitForOutcomes(open, options.common, shard, totals.tasks);
  if (options.common.json) {
    nlohmann::ordered_json out = ToJson(shard, table, totals);
    out.update(ToJson(shard, waited));
    PrintJson(out);
  } else {
    PrintOutcomes(shard, waited);
  }
  if (waited.error) return Fail(*waited.error);
  return waited.AllSucceeded() ? submitted : ExitCode::SomethingFailed;
}

Result<ExitCode> RunSubmit(const SubmitOptions& options) {
  BOOST_OUTCOME_TRYV(CheckCombination(options));
  if (!options.from_query.empty()) {
    BOOST_OUTCOME_TRYV(CheckQuery(options.from_query));
  }
  BOOST_OUTCOME_TRY(task, Template(options));
  WorkerBells bells;
  BOOST_OUTCOME_TRY(settings, ResolveShards(options.common, kDefaultStore, &bells));
  if (!options.force) {
    BOOST_OUTCOME_TRYV(CheckType(options, settings));
  }
  BOOST_OUTCOME_TRY(shards, OpenShards(settings));
  BOOST_OUTCOME_TRY(shard, PickShard(shards, options.shard));
  std::unique_ptr<InputRows> rows;
  if (options.from_query.empty()) {  // before a store is touched, or even made
    BOOST_OUTCOME_TRY(opened, OpenRows(options, *shard, task));
    rows = std::move(opened);
  }
  BOOST_OUTCOME_TRYV(Prepare(*shard, Missing::Make));
  BOOST_OUTCOME_TRY(target, PickTarget(options, *shard));
  if (rows == nullptr) {
    BOOST_OUTCOME_TRY(opened, OpenRows(options, *shard, task));
    rows = std::move(opened);
  }
  const bool many = !options.from.empty() || !options.from_query.empty();
  if (many && options.key_column.empty() && !options.common.json) {
    PrintNote("note: without --key-column the same rows submitted again are added again");
  }
  SubmitTotals totals;
  totals.keep_tasks = options.wait;
  auto done = SubmitRows(options, *shard, target, *rows, totals);
  if (totals.added > 0) bells.Ring({shard->name, {target.table, {}}});
  if (!done) {
    PrintProblems(options, totals);
    return Fail(done.error());
  }
  const std::string name = shard->name;
  return Conclude(options, std::move(settings), std::move(shards), name, target.table, totals);
}

}  // namespace

void AddSubmit(CLI::App& root, Chosen& chosen) {
  const auto submit = AddCommand(
      root, chosen, "submit", "Add tasks",
      "  millrace submit --handler award_points --params '{\"customer_id\":1,\"amount\":2.99}' --key p-1\n"
      "  millrace submit --handler award_points --from payments.csv --key-column payment_id\n"
      "  millrace submit --handler send_mail --from-query 'SELECT id, email FROM customers' --key-column id",
      RunSubmit);
  AddFolders(*submit.app, submit->common);
  submit.Add("--shard", submit->shard, "which shard, where there are several", "NAME");
  submit.Add("--table", submit->table, "which task table, where there are several", "NAME");
  submit.Add("--handler", submit->handler, "the task type", "NAME");
  submit.Add("--params", submit->params, "JSON for the handler, up to 64 KiB", "JSON");
  submit.Add("--key", submit->key, "of all tasks of a handler with one key only one takes effect", "KEY");
  submit.Add("--at", submit->at, "when it is due, such as 2026-11-20T18:00:00Z", "TIME");
  submit.Add("--in", submit->in, "or how long from now, such as 1h30m", "TIME");
  submit.Add("--priority", submit->priority, "0 (most urgent) to 9; default 5", "N")->check(CLI::Range(0, 9));
  submit.Add("--batch", submit->batch, "name under which progress is counted", "NAME");
  submit.Add("--count", submit->count, "so many of the same", "N");
  submit.app->add_flag("--held", submit->held, "hold it until it is released");
  submit.Add("--from", submit->from,
             "a task for each row of a .csv or .jsonl file; - is JSONL from standard input", "FILE");
  submit.Add("--from-query", submit->from_query, "a task for each row of a query on the store's own database",
             "SQL");
  submit.Add("--key-column", submit->key_column, "the column with the key: the same row is never added twice",
             "COLUMN");
  submit.app->add_flag("--all-or-nothing", submit->all_or_nothing,
                       "all rows in one transaction; with a bad row none goes in");
  submit.app->add_flag("--force", submit->force, "also for a handler that no plugin here has");
  submit.app->add_flag("--wait", submit->wait,
                       "wait for what becomes of the tasks; exit status 0 where all succeeded");
}

}  // namespace millrace::engine

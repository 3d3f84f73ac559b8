#include <algorithm>

#include "coordinator/app/cli/progress.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/submit/submit_batch.h"
#include "coordinator/app/submit/submit_report.h"
#include "coordinator/app/task/outcome_watch.h"
#include "framework/files/paths.h"
#include "framework/store/query_check.h"
#include "framework/task/expiry.h"

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
  std::string expires_in;
  BatchAsked batch;
  std::optional<std::uint32_t> priority;
  std::int64_t count = 1;
  bool yes = false;
  bool held = false;
  std::string from;
  std::string format;
  std::string from_query;
  std::string key_column;
  std::string key_prefix;
  std::vector<std::string> text_columns;
  std::string expires_column;
  bool all_or_nothing = false;
  bool force = false;
  bool wait = false;
};

constexpr Micros kLongestTransaction = std::chrono::minutes(30);
constexpr std::int64_t kMostCopies = 1'000'000'000;
constexpr std::int64_t kAskAbove = 1'000'000;  // copies: seconds of work, and a moment to think

bool HasRows(const SubmitOptions& options) { return !options.from.empty() || !options.from_query.empty(); }

Failure Wrong(std::string what) { return Fail(ErrorCode::Invalid, std::move(what)); }

Status CheckCount(const SubmitOptions& options) {
  if (options.count < 1) return Wrong("--count must be 1 or more");
  if (options.count > kMostCopies)
    return Wrong("--count is beyond the limit of " + WithCommas(kMostCopies) + " in one command");
  if (options.count > 1 && !options.key.empty())
    return Wrong("--count with --key would add one task: of one key only one takes effect");
  return {};
}

// What is said of a row's columns goes with rows.
Status CheckOptionsOfRows(const SubmitOptions& options) {
  const std::pair<const char*, bool> given[] = {{"--key-column", !options.key_column.empty()},
                                                {"--key-prefix", !options.key_prefix.empty()},
                                                {"--text-columns", !options.text_columns.empty()},
                                                {"--expires-column", !options.expires_column.empty()},
                                                {"--all-or-nothing", options.all_or_nothing}};
  for (const auto& [flag, is_given] : given) {
    if (is_given && !HasRows(options)) return Wrong(std::string(flag) + " goes with --from or --from-query");
  }
  if (!options.format.empty() && options.from.empty()) return Wrong("--format goes with --from");
  return {};
}

InputFormat FormatOf(const SubmitOptions& options) {
  if (options.format.empty()) return InputFormat::ByName;
  return options.format == "csv" ? InputFormat::Csv : InputFormat::Jsonl;
}

Status CheckCombination(const SubmitOptions& options) {
  const bool file = !options.from.empty();
  const bool query = !options.from_query.empty();
  if (file && query) return Wrong("give either --from or --from-query");
  if (options.handler.empty())
    return Wrong("which handler? give --handler NAME; millrace handler list shows them");
  if (!options.at.empty() && !options.in.empty()) return Wrong("give either --at or --in");
  BOOST_OUTCOME_TRYV(CheckOptionsOfRows(options));
  BOOST_OUTCOME_TRYV(CheckBatchAsked(options.batch));
  if (file || query) {
    const char* source = file ? "--from" : "--from-query";
    if (options.params != "{}")
      return Wrong(std::string("--params does not go with ") + source + ": a row has its own");
    if (!options.key.empty())
      return Wrong(std::string("with ") + source + " give --key-column instead of --key");
    if (options.count != 1) return Wrong(std::string("--count does not go with ") + source);
    return {};
  }
  return CheckCount(options);
}

// What every task has in common.
Result<NewTask> Template(const SubmitOptions& options) {
  NewTask task;
  task.handler = options.handler;
  task.params = options.params;
  task.biz_key = options.key;
  task.batch = options.batch.name;
  task.priority = options.priority;
  task.held = options.held;
  BOOST_OUTCOME_TRYV(ReadIfGiven("--at", options.at, ReadTime, task.run_at));
  BOOST_OUTCOME_TRYV(ReadIfGiven("--in", options.in, ReadDuration, task.delay));
  BOOST_OUTCOME_TRYV(ReadIfGiven("--expires-in", options.expires_in, ReadDuration, task.expires_in));
  BOOST_OUTCOME_TRYV(CheckParamsFlag(task.params));
  BOOST_OUTCOME_TRYV(Validate(task));
  BOOST_OUTCOME_TRYV(CheckExpiry(task, SystemClock().WallNow()));
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

// As `submit` reports what the check or the store says of the query.
Error QueryError(Error error) {
  // Both stores say so in these words.
  if (error.message.find("more than " + std::to_string(kMaxSqlRows) + " rows") != std::string::npos) {
    error.message = "the query gives more than " + WithCommas(kMaxSqlRows) +
                    " rows, and nothing was added: give --key-column, by which it is read in pages, without "
                    "--all-or-nothing, and from other tables than its tasks go to";
  }
  error.message = "--from-query: " + error.message;
  return error;
}

// Without a key there is nothing to go on from, one transaction is to see one state of the data, and what
// reads the table that it fills would go on for ever.
bool ReadsInPages(const SubmitOptions& options, const TableName& table) {
  return !options.key_column.empty() && !options.all_or_nothing && !MentionsTable(options.from_query, table);
}

bool StopAsked() { return StopSignalsSeen() > 0; }

Result<std::unique_ptr<InputRows>> RunInPages(Shard& shard, const std::string& sql, const InputRules& rules) {
  auto rows = RowsInPages(shard.store, sql, rules, kRowsOfTransaction);
  if (!rows) return Fail(QueryError(rows.error()));
  return ReadAhead(std::move(*rows), StopAsked);
}

Result<std::unique_ptr<InputRows>> RunQuery(Shard& shard, const std::string& sql, const InputRules& rules) {
  auto transaction = shard.store->OpenTransaction(kLongestTransaction);  // one read, of up to kMaxSqlRows
  auto result = transaction->Execute(sql, {});
  transaction->Rollback();
  if (!result) return Fail(QueryError(result.error()));
  if (result->columns.empty()) return Wrong("--from-query: the statement gives no rows; write a SELECT");
  return RowsOfQuery(std::move(*result), rules);
}

InputRules RulesOf(const SubmitOptions& options, const NewTask& task) {
  return {task, options.key_column, options.key_prefix, options.text_columns, options.expires_column};
}

Result<std::unique_ptr<InputRows>> OpenQuery(const SubmitOptions& options, Shard& shard,
                                             const TableName& table, const NewTask& task) {
  const InputRules rules = RulesOf(options, task);
  if (ReadsInPages(options, table)) return RunInPages(shard, options.from_query, rules);
  return RunQuery(shard, options.from_query, rules);
}

Result<std::unique_ptr<InputRows>> OpenRows(const SubmitOptions& options, const NewTask& task) {
  if (!options.from.empty()) {
    BOOST_OUTCOME_TRY(file, OpenInputFile(options.from, FormatOf(options), RulesOf(options, task)));
    return ReadAhead(std::move(file), StopAsked);
  }
  return std::unique_ptr<InputRows>(
      std::make_unique<Copies>(task, static_cast<std::uint64_t>(options.count)));
}

// Its tasks would wait without a word. The workers may have another configuration.
void NoteUnopened(const PluginSet& plugins, const Config& config, const std::string& type) {
  const std::string why = WhyNotOpened(plugins, config, type);
  if (!why.empty())
    PrintNote("note: tasks of " + type + " can't be run with the configuration at hand: " + why);
}

// By word of the cluster's configuration a type may be served by another's handler. Where the store is named
// the cluster is asked only before a type is refused.
Status CheckType(const SubmitOptions& options, const std::string& type, const Settings& settings) {
  BOOST_OUTCOME_TRYV(IsFolder(PluginFolder(options.common)));
  const auto plugins = PluginsAtHand(options.common);
  const auto at_hand = HandlersOf(plugins.get());
  const Status known = CheckHandlerKnown(type, settings.config, at_hand);
  if (known && !settings.cluster && plugins) NoteUnopened(*plugins, settings.config, type);
  if (known || !settings.cluster) return known;
  auto client = ClusterClient::Open(*settings.cluster, std::chrono::seconds(5));
  if (!client) return known;
  const auto layers = ReadLayers(**client, settings);
  return layers ? CheckHandlerKnown(type, *layers->Effective(), at_hand) : known;
}

SubmitAsked Asked(const SubmitOptions& options) {
  return {options.from,
          HasRows(options),
          static_cast<std::uint64_t>(options.count),
          options.key,
          !options.key_column.empty(),
          options.all_or_nothing};
}

Status SubmitRows(const SubmitOptions& options, Shard& shard, SubmitTarget& target, InputRows& rows,
                  SubmitTotals& totals, BatchIntake* batch) {
  ProgressLine line(ErrorIsTerminal() && !options.common.json);
  RateMeter meter;
  meter.Rate(0, BootClock::now());
  const auto all = HasRows(options) ? std::nullopt : std::optional<std::uint64_t>(options.count);
  const auto progress = [&](const SubmitTotals& now) {
    const BootTime at = BootClock::now();
    if (!line.Due(at)) return;
    const std::uint64_t in = now.added + now.duplicates;
    line.Show(IntakeText(in, all, meter.Rate(in, at)), at);
  };
  // Its batch may refuse what is to be added.
  const auto announce = [batch](std::int64_t count) {
    return batch == nullptr ? Status() : batch->Announce(count);
  };
  const auto announce_within = [batch](TaskTransaction& transaction, std::int64_t count) {
    return batch == nullptr ? Status() : batch->AnnounceWithin(transaction, count);
  };
  const SubmitCalls calls{progress, StopAsked, announce, announce_within};
  if (!options.all_or_nothing) {
    auto operations = shard.store->OpenOperations();
    return SubmitBatches(*operations, target, rows, totals, calls);
  }
  auto transaction = shard.store->OpenLongTransaction(kLongestTransaction);
  return SubmitAtOnce(*transaction, target, rows, totals, calls);
}

// The table, and its slices as they suit the number of rows, where that is known.
Result<SubmitTarget> PickTarget(const SubmitOptions& options, const Shard& shard) {
  BOOST_OUTCOME_TRY(table, PickTable(shard, options.table));
  const auto info = std::find_if(shard.tables.begin(), shard.tables.end(),
                                 [&](const TableInfo& known) { return known.table == table; });
  const std::uint64_t known = HasRows(options) ? 0 : static_cast<std::uint64_t>(options.count);
  return SubmitTarget{table, SliceRuns(info->slices, known, Random::FromSystem()), options.batch.name};
}

bool IsWhole(const SubmitTotals& totals) {
  return totals.bad == 0 && totals.differing == 0 && !totals.stopped;
}

// Tells what came of it, and with --wait also what becomes of the tasks.
Result<ExitCode> Conclude(const SubmitOptions& options, Settings settings, Shards shards,
                          const std::string& shard, const TableName& table, const SubmitTotals& totals) {
  const ExitCode submitted = IsWhole(totals) ? ExitCode::Done : ExitCode::SomethingFailed;
  if (!options.common.json) PrintSubmitted(Asked(options), shard, table, totals);
  if (!options.wait || totals.stopped) {
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

// Where the batch can't be closed that is told behind all else: whoever does not hear that the rows are in
// submits them once more.
Status FinishBatch(const SubmitOptions& options, BatchIntake& batch, SubmitTotals& totals) {
  Status finished = batch.Finish(IsWhole(totals), totals.added_to_batch, options.common.json);
  totals.batch = options.batch.name;
  totals.batch_state = batch.state();
  return finished;
}

Status AskAboutMany(const SubmitOptions& options, const Shard& shard) {
  if (options.count <= kAskAbove) return {};
  return Confirm("submit " + WithCommas(static_cast<std::uint64_t>(options.count)) + " tasks of " +
                     options.handler + " to " + shard.store->Describe() + "?",
                 options.yes);
}

Result<ExitCode> RunSubmit(const SubmitOptions& options) {
  BOOST_OUTCOME_TRYV(CheckCombination(options));
  if (!options.from_query.empty()) {
    if (const Status reads = CheckQuery(options.from_query); !reads) return Fail(QueryError(reads.error()));
  }
  BOOST_OUTCOME_TRY(task, Template(options));
  WorkerBells bells;
  BOOST_OUTCOME_TRY(settings, ResolveShards(options.common, kDefaultStore, &bells));
  if (!options.force) {
    BOOST_OUTCOME_TRYV(CheckType(options, options.handler, settings));
    for (const std::string& type : CallbackTypes(options.batch)) {
      BOOST_OUTCOME_TRYV(CheckType(options, type, settings));
    }
  }
  BOOST_OUTCOME_TRY(shards, OpenShards(settings));
  BOOST_OUTCOME_TRY(shard, PickShard(shards, options.shard));
  BOOST_OUTCOME_TRYV(AskAboutMany(options, *shard));
  std::unique_ptr<InputRows> rows;
  if (options.from_query.empty()) {  // before a store is touched, or even made
    BOOST_OUTCOME_TRY(opened, OpenRows(options, task));
    rows = std::move(opened);
  }
  BOOST_OUTCOME_TRYV(Prepare(*shard, Missing::Make));
  BOOST_OUTCOME_TRY(target, PickTarget(options, *shard));
  if (rows == nullptr) {
    BOOST_OUTCOME_TRY(opened, OpenQuery(options, *shard, target.table, task));
    rows = std::move(opened);
  }
  std::unique_ptr<BatchIntake> batch;
  if (!options.batch.name.empty()) {
    BOOST_OUTCOME_TRY(joined, BatchIntake::Join(shards, {shard->name, target.table}, options.batch));
    batch = std::move(joined);
  }
  SubmitTotals totals;
  totals.keep_tasks = options.wait;
  CatchStopSignals();  // from here on Ctrl-C says how far it came
  auto done = SubmitRows(options, *shard, target, *rows, totals, batch.get());
  if (totals.added > 0)
    bells.Ring({shard->name, {target.table, {totals.slices.begin(), totals.slices.end()}}});
  if (HasRows(options) && totals.without_key && !options.common.json)
    PrintNote("note: without --key-column the same rows submitted again are added again");
  if (!done) {
    PrintFaults(Asked(options), shard->name, totals);
    if (batch) (void)batch->Finish(false, totals.added_to_batch, options.common.json);
    return Fail(done.error());
  }
  const Status finished = batch ? FinishBatch(options, *batch, totals) : Status();
  SubmitOptions told = options;
  told.wait = told.wait && finished;
  const std::string name = shard->name;
  auto ended = Conclude(told, std::move(settings), std::move(shards), name, target.table, totals);
  return finished ? std::move(ended) : Fail(finished.error());
}

}  // namespace

void AddSubmit(CLI::App& root, Chosen& chosen) {
  const auto submit = AddCommand(
      root, chosen, "submit", "Add tasks",
      "  millrace submit --handler award_points --params '{\"customer_id\":1,\"amount\":2.99}' --key p-1\n"
      "  millrace submit --handler award_points --from payments.csv --key-column payment_id\n"
      "  zcat may.csv.gz | millrace submit --handler noop --from - --format csv --key-column id --key-prefix "
      "may-\n"
      "  millrace submit --handler noop --from june.jsonl --batch june --on-success "
      "'{\"handler\":\"noop\"}'\n"
      "  millrace submit --handler send_mail --from-query 'SELECT id, email FROM customers' --key-column id",
      RunSubmit);
  AddFolders(*submit.app, submit->common);
  submit.Add("--shard", submit->shard, "which shard, where there are several", "NAME");
  submit.Add("--table", submit->table, "which task table, where there are several", "NAME");
  submit.Add("--handler", submit->handler, "the task type", "NAME");
  submit.Add("--params", submit->params, "JSON object for the handler, up to 64 KiB", "JSON");
  submit.Add("--key", submit->key, "of all tasks of a handler with one key only one takes effect", "KEY");
  submit.Add("--at", submit->at, "when it is due, such as 2026-11-20T18:00:00Z", "TIME");
  submit.Add("--in", submit->in, "or how long from now, such as 1h30m", "TIME");
  submit.Add("--expires-in", submit->expires_in,
             "skip it where it has not started by then, so long from now, such as 1h30m", "TIME");
  submit.Add("--priority", submit->priority, "0 (most urgent) to 9; default 5", "N")->check(CLI::Range(0, 9));
  submit.Add("--batch", submit->batch.name, "name under which progress is counted: millrace batch watch NAME",
             "NAME");
  submit.Add("--on-success", submit->batch.on_success,
             "a task to be added, once, when all tasks of the batch have succeeded: "
             "{\"handler\",\"params\",\"priority\",\"in\"}",
             "TASK");
  submit.Add("--on-end", submit->batch.on_end, "the same when all have ended, whatever came of them", "TASK");
  submit.app->add_flag("--open", submit->batch.stays_open,
                       "the batch stays open, to grow until millrace batch close NAME");
  submit.Add("--count", submit->count, "so many of the same; more than a million ask", "N");
  AddYes(*submit.app, submit->yes);
  submit.app->add_flag("--held", submit->held, "hold it until it is released");
  submit.Add("--from", submit->from,
             "a task for each row of a .csv or .jsonl file; - is standard input, JSONL by default", "FILE");
  submit.Add("--format", submit->format, "what the file holds, whatever its name", "FORMAT")
      ->check(CLI::IsMember({"csv", "jsonl"}));
  submit.Add("--from-query", submit->from_query, "a task for each row of a query on the store's own database",
             "SQL");
  submit.Add("--key-column", submit->key_column,
             "the column with the key: no row is added twice within 30 days", "COLUMN");
  submit.Add("--key-prefix", submit->key_prefix,
             "goes before each key: two files with the same numbers are two sets of keys", "TEXT");
  AddList(*submit.app, "--text-columns", submit->text_columns,
          "columns of a CSV file or query that are texts: 12345 as well as 01234");
  submit.Add("--expires-column", submit->expires_column,
             "the column of a CSV file or query with the time by which its row must have started, such as "
             "2026-11-20T18:00:00Z; empty: --expires-in",
             "COLUMN");
  submit.app->add_flag(
      "--all-or-nothing", submit->all_or_nothing,
      "all rows in one transaction; with a bad row, or one whose key has other params, none goes in");
  submit.app->add_flag("--force", submit->force, "also for a handler that no plugin here has");
  submit.app->add_flag("--wait", submit->wait,
                       "wait for what becomes of the tasks; exit status 0 where all succeeded");
}

}  // namespace millrace::engine

// `millrace batch watch`, `close` and `cancel`.
#include <algorithm>

#include "coordinator/app/batch/batch_lookup.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/task/outcome_watch.h"
#include "coordinator/app/task/task_bulk.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

constexpr Micros kBetweenBatchLooks = std::chrono::milliseconds(300);  // at least
constexpr Micros kLongestBetweenLooks = std::chrono::seconds(10);
constexpr Micros kBetweenRowLooks = std::chrono::seconds(5);  // in the pools, of plain SQL's
constexpr Micros kLongestRowLook = std::chrono::seconds(2);   // for each table

struct BatchOptions {
  CommonFlags common;
  std::string name;
  bool yes = false;
};

std::string CountsText(const BatchView& batch) {
  std::string text =
      WithCommas(batch.sums.succeeded) + " succeeded, " + WithCommas(batch.sums.failed) + " failed";
  if (batch.sums.cancelled > 0) text += ", " + WithCommas(batch.sums.cancelled) + " cancelled";
  if (batch.Left() > 0) text += ", " + WithCommas(batch.Left()) + " left";
  return text;
}

void PrintBatch(const BatchOptions& options, const BatchView& batch, const std::string& text) {
  PrintAnswer(options.common, ToJson(batch), text);
}

// Looks at one batch again and again.
class BatchWatching {
 public:
  BatchWatching(TaskShards& open, BatchView batch) : open_(open), batch_(std::move(batch)) {}

  const BatchView& batch() const { return batch_; }

  // True: it has ended. Keeps asking while a store is away, for a while.
  Result<bool> Look() {
    auto ended = Ask();
    if (!ended && patience_.Bears(ended.error(), BootClock::now())) return false;
    patience_.Answered();
    return ended;
  }

 private:
  Result<bool> Ask() {
    if (batch_.HasRow()) {
      BOOST_OUTCOME_TRY(record, open_.shards.at(batch_.home).store->OpenBatches()->Find(batch_.record.name));
      if (!record)
        return Fail(ErrorCode::NotFound, QuotedBatch(batch_.record.name) + " is gone from " + batch_.home);
      batch_.record = std::move(*record);
    }
    BOOST_OUTCOME_TRYV(ReadBatchSums(open_, batch_));
    if (batch_.HasRow()) return batch_.record.state == BatchState::Ended;
    const BootTime now = BootClock::now();
    if (rows_looked_ && now - *rows_looked_ < kBetweenRowLooks) return false;
    rows_looked_ = now;
    const auto parts = static_cast<std::int64_t>(batch_.record.parts.size());
    BOOST_OUTCOME_TRY(rows, HasOpenRows(open_, batch_, now + parts * kLongestRowLook));
    if (!rows || *rows) return false;
    BOOST_OUTCOME_TRYV(ReadBatchSums(open_, batch_));  // some may have ended since they were read
    return true;
  }

  TaskShards& open_;
  BatchView batch_;
  StorePatience patience_;
  std::optional<BootTime> rows_looked_;
};

bool HasSucceeded(const BatchView& batch) {
  return batch.HasRow() ? batch.record.success : batch.sums.AllSucceeded();
}

Result<ExitCode> RunBatchWatch(const BatchOptions& options) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(options.common, ""));
  BOOST_OUTCOME_TRY(found, FindBatch(open, options.name));
  CatchStopSignals();
  if (found.HasRow() && found.record.state == BatchState::Open && !options.common.json)
    PrintNote(QuotedBatch(options.name) +
              " is open, and does not end before it is closed: " + BatchNote(found));
  BatchWatching watching(open, std::move(found));
  ProgressLine line(ErrorIsTerminal() && !options.common.json);
  RateMeter meter;
  bool ended = false;
  while (!ended && StopSignalsSeen() == 0) {
    const BootTime began = BootClock::now();
    BOOST_OUTCOME_TRY(now_ended, watching.Look());
    ended = now_ended;
    const BootTime now = BootClock::now();
    const double rate = meter.Rate(watching.batch().sums.Ended(), now);
    line.Show(ProgressText(ProgressOf(watching.batch(), rate), TerminalWidth()), now);
    // Of plain SQL's a look asks the counters of every table: little of the time is spent on it.
    if (!ended)
      RestUnlessStopped(std::clamp<Micros>(10 * (now - began), kBetweenBatchLooks, kLongestBetweenLooks));
  }
  line.Clear();
  const BatchView& batch = watching.batch();
  const std::string how = !ended                ? " has not ended: "
                          : HasSucceeded(batch) ? " has succeeded: "
                                                : " has ended without success: ";
  PrintBatch(options, batch, QuotedBatch(options.name) + how + CountsText(batch));
  return ended && HasSucceeded(batch) ? ExitCode::Done : ExitCode::SomethingFailed;
}

Failure NotToBeClosed(const BatchView& batch) {
  const BatchRecord& record = batch.record;
  std::string why = QuotedBatch(record.name);
  if (!batch.HasRow()) {
    why += " was made by plain SQL: it has no row in millrace_batches, and nothing is there to be closed";
  } else if (record.state == BatchState::Ended) {
    why += " has ended" + (record.ended_at ? ", at " + FormatTime(*record.ended_at) : std::string());
  } else {
    why += " is closed already" +
           (record.closed_at ? ", since " + FormatTime(*record.closed_at) : std::string()) +
           "; it ends with the last of its tasks: millrace batch watch " + record.name;
  }
  return Fail(ErrorCode::Conflict, why);
}

// Conflict where it is not open.
Status CloseBatch(TaskShards& open, BatchView& batch) {
  if (!batch.HasRow()) return NotToBeClosed(batch);
  auto batches = open.shards.at(batch.home).store->OpenBatches();
  BOOST_OUTCOME_TRY(closed, batches->Close(batch.record.name, Actor()));
  BOOST_OUTCOME_TRY(record, batches->Find(batch.record.name));
  if (record) batch.record = std::move(*record);
  return closed ? Status() : NotToBeClosed(batch);
}

Result<ExitCode> RunBatchClose(const BatchOptions& options) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(options.common, ""));
  BOOST_OUTCOME_TRY(batch, FindBatch(open, options.name));
  BOOST_OUTCOME_TRYV(CloseBatch(open, batch));
  PrintBatch(options, batch, QuotedBatch(options.name) + " is closed: " + CountsText(batch));
  return ExitCode::Done;
}

struct BatchCancelled {
  std::uint64_t cancelled = 0;
  std::uint64_t asked = 0;  // running ones, to stop
};

// One table, from end to end in bounded steps, each a transaction; what it yields after each is as long.
Status CancelIn(TaskShards& open, const BatchPart& part, const std::string& name, const Author& author,
                BatchCancelled& sum, ProgressLine& line) {
  const auto batches = open.shards.at(part.shard).store->OpenBatches();
  std::optional<std::uint64_t> after = 0;
  while (after && StopSignalsSeen() == 0) {
    const BootTime begun = BootClock::now();
    BOOST_OUTCOME_TRY(page, batches->Walk(part.table, *after, kMaxBatchRows));
    after = page.next;
    std::vector<std::uint64_t> ids;
    for (const BatchRow& row : page.rows) {
      if (row.batch == name) ids.push_back(row.id);
    }
    BOOST_OUTCOME_TRY(
        changed, ApplyStep(open.Operations(part.shard), TaskAction::Cancel, {}, part.table, ids, author));
    const std::uint64_t running = CountRunning(changed);
    sum.cancelled += changed.size() - running;
    sum.asked += running;
    line.Show(WithCommas(sum.cancelled) + " cancelled, " + WithCommas(sum.asked) + " asked to stop",
              BootClock::now());
    if (after && !page.rows.empty()) RestUnlessStopped(BootClock::now() - begun);
  }
  return {};
}

Result<ExitCode> RunBatchCancel(const BatchOptions& options) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(options.common, ""));
  BOOST_OUTCOME_TRYV(CheckAllThere(open));
  BOOST_OUTCOME_TRY(batch, FindBatch(open, options.name, true));  // every row is looked at, in any case
  if (batch.HasEnded()) return Fail(NotToBeClosed(batch).error());
  const std::string left = batch.HasRow() ? Count(batch.Left(), "task", "tasks") + " of " : "all tasks of ";
  BOOST_OUTCOME_TRYV(
      Confirm("cancel " + left + QuotedBatch(options.name) + " that have not ended?", options.yes));
  CatchStopSignals();
  // Nothing is added to it from now on.
  if (batch.HasRow() && batch.record.state == BatchState::Open) {
    const Status closed = CloseBatch(open, batch);
    if (!closed && closed.error().code != ErrorCode::Conflict) return Fail(closed.error());
  }
  const Author author(Actor(), ActText("all of " + QuotedBatch(options.name)));
  BatchCancelled sum;
  ProgressLine line(ErrorIsTerminal() && !options.common.json);
  for (const BatchPart& part : batch.record.parts) {
    if (!open.shards.contains(part.shard)) continue;
    Status done = CancelIn(open, part, options.name, author, sum, line);
    if (done) continue;
    return Fail(done.error().code, done.error().message + "; " + WithCommas(sum.cancelled) +
                                       " were cancelled before: the same again goes on");
  }
  line.Clear();
  const bool stopped = StopSignalsSeen() > 0;
  PrintAnswer(options.common,
              ordered_json{{"batch", options.name},
                           {"cancelled", sum.cancelled},
                           {"asked_to_stop", sum.asked},
                           {"stopped", stopped}},
              (stopped ? "stopped: " : "") + Count(sum.cancelled, "task", "tasks") + " cancelled, " +
                  WithCommas(sum.asked) + " running asked to stop");
  return stopped ? ExitCode::SomethingFailed : ExitCode::Done;
}

void AddBatchAction(CLI::App& batch, Chosen& chosen, const char* name, const char* what, const char* example,
                    Result<ExitCode> (*run)(const BatchOptions&), bool asks = false) {
  const auto command = AddCommand(batch, chosen, name, what, example, run);
  command.Add("batch", command->name, "its name", "NAME")->required();
  if (asks) AddYes(*command.app, command->yes);
}

}  // namespace

void AddBatchActions(CLI::App& batch, Chosen& chosen) {
  AddBatchAction(batch, chosen, "watch",
                 "Show its progress until it ends; exit status 0 where all tasks succeeded",
                 "  millrace batch watch june", RunBatchWatch);
  AddBatchAction(batch, chosen, "close", "Nothing more is added: it ends with the last of its tasks",
                 "  millrace batch close june", RunBatchClose);
  AddBatchAction(batch, chosen, "cancel", "Close it, cancel what waits, and ask what runs to stop",
                 "  millrace batch cancel june --yes", RunBatchCancel, true);
}

}  // namespace millrace::engine

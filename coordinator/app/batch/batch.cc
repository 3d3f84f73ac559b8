// `millrace batch list` and `show`: how batches stand.
#include <algorithm>

#include "coordinator/app/batch/batch_lookup.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostBatches = 100'000;  // with a row, in each shard

struct BatchListOptions {
  CommonFlags common;
  std::string shard;
  std::string state;
  std::size_t limit = 50;
};

struct BatchShowOptions {
  CommonFlags common;
  std::string name;
};

std::string StateWord(const BatchView& batch) {
  if (batch.unsure) return "unknown";
  if (!batch.HasRow()) return "plain";
  if (!batch.HasEnded()) return ToString(batch.record.state);
  return batch.record.success ? "succeeded" : "failed";
}

std::string EndedCell(const BatchView& batch) {
  const std::string ended = WithCommas(batch.sums.Ended());
  return batch.HasRow() ? ended + " of " + WithCommas(batch.Tasks()) : ended;
}

Ink BatchInk(const std::string& state) {
  if (state == "succeeded") return Ink::Good;
  return state == "failed" ? Ink::Bad : Ink::Plain;
}

Result<ExitCode> RunBatchList(const BatchListOptions& options) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(options.common, options.shard));
  BOOST_OUTCOME_TRY(batches, ListBatches(open, kMostBatches));
  if (!options.state.empty())
    std::erase_if(batches, [&](const BatchView& batch) { return StateWord(batch) != options.state; });
  // The newest first; those that plain SQL made have no time, and come last.
  std::stable_sort(batches.begin(), batches.end(), [](const BatchView& a, const BatchView& b) {
    return a.record.created_at > b.record.created_at;
  });
  const std::size_t all = batches.size();
  if (batches.size() > options.limit) batches.resize(options.limit);
  ordered_json json{{"batches", ordered_json::array()}, {"more", all > batches.size()}};
  TextTable table{{{"batch"},
                   {"state", false, 0, BatchInk},
                   {"ended", true},
                   {"failed", true},
                   {"created", false, 1},
                   {"note", false, 2}},
                  {}};
  for (const BatchView& batch : batches) {
    json["batches"].push_back(ToJson(batch));
    table.rows.push_back(
        {batch.record.name, StateWord(batch), EndedCell(batch), WithCommas(batch.sums.failed),
         batch.record.created_at ? FormatTime(*batch.record.created_at) : "", BatchNote(batch)});
  }
  PrintAnswer(options.common, json, table, "there are no batches: millrace submit --batch NAME makes one");
  if (all > batches.size() && !options.common.json)
    PrintNote(WithCommas(all - batches.size()) + " more; --limit N shows them");
  for (const auto& [shard, error] : open.away) PrintNote("shard " + shard + " is left out: " + error.message);
  return open.away.empty() ? ExitCode::Done : ExitCode::Unreachable;
}

std::string BatchTime(const std::optional<WallTime>& time) { return time ? FormatTime(*time) : ""; }

std::string CallbackCell(const BatchView& batch, const std::string& callback, const std::string& task) {
  if (callback.empty()) return "";
  if (!task.empty()) return batch.home + "/" + task + "  " + callback;
  return (batch.HasEnded() ? "not added  " : "to be added  ") + callback;
}

Result<ExitCode> RunBatchShow(const BatchShowOptions& options) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(options.common, ""));
  BOOST_OUTCOME_TRY(batch, FindBatch(open, options.name));
  const BatchRecord& record = batch.record;
  std::vector<std::string> parts;
  for (const BatchPart& part : record.parts) parts.push_back(ToString(part));
  const std::string state = StateWord(batch);
  PrintAnswer(options.common, ToJson(batch),
              FieldText({{"batch", record.name},
                         {"state", state, false, BatchInk(state)},
                         {"ended", EndedCell(batch)},
                         {"succeeded", WithCommas(batch.sums.succeeded)},
                         {"cancelled", WithCommas(batch.sums.cancelled)},
                         {"failed", WithCommas(batch.sums.failed)},
                         {"tables", Joined(parts)},
                         {"home", batch.home},
                         {"made by", record.made_by},
                         {"created", BatchTime(record.created_at)},
                         {"closed", BatchTime(record.closed_at)},
                         {"ended at", BatchTime(record.ended_at)},
                         {"on success", CallbackCell(batch, record.on_success, record.success_task)},
                         {"on end", CallbackCell(batch, record.on_end, record.end_task)},
                         {"note", BatchNote(batch)}}));
  return ExitCode::Done;
}

}  // namespace

void AddBatchReads(CLI::App& batch, Chosen& chosen) {
  const auto list = AddCommand(batch, chosen, "list", "Batches, the newest first, and how far they are",
                               "  millrace batch list --state open", RunBatchList);
  list.Add("--shard", list->shard, "only this shard", "NAME");
  list.Add("--state", list->state, "open, closed, succeeded, failed, plain or unknown", "STATE")
      ->check(CLI::IsMember({"open", "closed", "succeeded", "failed", "plain", "unknown"}));
  list.Add("--limit", list->limit, "at most so many; default 50", "N")->check(CLI::Range(1, 100'000));
  const auto show =
      AddCommand(batch, chosen, "show", "One batch: its counts, its callbacks, what it waits for",
                 "  millrace batch show june", RunBatchShow);
  show.Add("batch", show->name, "its name", "NAME")->required();
}

}  // namespace millrace::engine

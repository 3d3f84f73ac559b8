#include "coordinator/app/batch/batch_lookup.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "coordinator/app/cli/text.h"
#include "coordinator/upkeep/task_json.h"
#include "framework/base/escape.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

constexpr Micros kLookForRows = std::chrono::seconds(2);  // for rows of a batch without a row of its own

ordered_json CallbackOrNull(const std::string& text) {
  return text.empty() ? ordered_json() : JsonOrText(text);
}

ordered_json CallbackTaskOrNull(const std::string& home, const std::string& task) {
  return task.empty() ? ordered_json() : ordered_json(home + "/" + task);
}

// A batch of plain SQL may have tasks in any table that can be read.
std::vector<BatchPart> EveryPart(const TaskShards& open) {
  std::vector<BatchPart> parts;
  for (const auto& [name, shard] : open.shards) {
    for (const TableInfo& info : shard.tables) parts.push_back({name, info.table});
  }
  return parts;
}

// The counts of batches that have no row, by name.
Result<std::map<std::string, BatchSums>> PlainSums(TaskShards& open) {
  std::map<std::string, BatchSums> sums;
  for (auto& [name, shard] : open.shards) {
    if (open.away.contains(name)) continue;
    BOOST_OUTCOME_TRY(totals, open.Operations(name).Totals());
    for (const TaskTotals& group : totals) {
      if (!group.batch.empty()) sums[group.batch] += {group.succeeded, group.cancelled, group.failed};
    }
  }
  return sums;
}

BatchView PlainBatch(const TaskShards& open, const std::string& name, const BatchSums& sums) {
  BatchView batch;
  batch.record.name = name;
  batch.record.parts = EveryPart(open);
  batch.sums = sums;
  return batch;
}

}  // namespace

std::string QuotedBatch(const std::string& name) { return "the batch '" + Escape(name) + "'"; }

std::uint64_t BatchView::SinceEnd() const {
  if (!HasEnded() || sums.Ended() <= record.at_end.Ended()) return 0;
  return sums.Ended() - record.at_end.Ended();
}

Result<std::optional<BatchView>> FindBatchRow(TaskShards& open, const std::string& name) {
  for (auto& [shard, opened] : open.shards) {
    if (open.away.contains(shard)) continue;
    BOOST_OUTCOME_TRY(found, opened.store->OpenBatches()->Find(name));
    if (found) return std::optional(BatchView{shard, std::move(*found), {}, {}});
  }
  const Status all = CheckAllThere(open);
  if (all) return std::optional<BatchView>();
  return Fail(all.error().code, "whether there is a batch '" + Escape(name) +
                                    "' can't be told while not all shards can be read; " +
                                    all.error().message);
}

Status ReadBatchSums(TaskShards& open, BatchView& batch) {
  BatchSums sums;
  std::set<std::string> missing;
  for (const auto& [shard, its] : TablesByShard(batch.record.parts)) {
    const auto opened = open.shards.find(shard);
    if (opened == open.shards.end() || open.away.contains(shard)) {
      missing.insert(shard);
      continue;
    }
    BOOST_OUTCOME_TRY(by_name,
                      opened->second.store->OpenBatches()->Sums(its, std::span(&batch.record.name, 1)));
    for (const auto& [name, some] : by_name) sums += some;
  }
  batch.sums = sums;
  batch.missing.assign(missing.begin(), missing.end());
  return {};
}

Result<std::optional<bool>> HasOpenRows(TaskShards& open, const BatchView& batch, BootTime deadline) {
  bool unsure = false;
  for (const BatchPart& part : batch.record.parts) {
    if (open.away.contains(part.shard) || !open.shards.contains(part.shard)) continue;
    const TaskFilter filter{.batch = batch.record.name};
    BOOST_OUTCOME_TRY(count,
                      open.Operations(part.shard).Count(part.table, TaskPool::Hot, filter, 1, deadline));
    if (count.Sum() > 0) return std::optional(true);
    unsure = unsure || count.more;
  }
  return unsure ? std::optional<bool>() : std::optional(false);
}

Result<BatchView> FindBatch(TaskShards& open, const std::string& name, bool or_unseen) {
  BOOST_OUTCOME_TRY(found, FindBatchRow(open, name));
  if (found) {
    BOOST_OUTCOME_TRYV(ReadBatchSums(open, *found));
    return std::move(*found);
  }
  BOOST_OUTCOME_TRY(sums, PlainSums(open));
  BatchView plain = PlainBatch(open, name, sums[name]);
  if (plain.sums.Ended() > 0) return plain;
  BOOST_OUTCOME_TRY(rows, HasOpenRows(open, plain, BootClock::now() + kLookForRows));
  if (rows.value_or(or_unseen)) return plain;
  std::vector<std::string> known;
  for (const auto& [other, ended] : sums) {
    if (other != name) known.push_back(other);
  }
  const std::string nearest = NearestOf(name, known, "; there are ", 8);
  if (rows) return Fail(ErrorCode::NotFound, "there is no batch '" + Escape(name) + "'" + nearest);
  return Fail(ErrorCode::Unavailable,
              "whether there is a batch '" + Escape(name) + "' can't be told within " +
                  FormatDuration(kLookForRows) + ": no task of it has ended, and not all that wait were " +
                  "looked at; millrace task list --batch " + Escape(name) + " looks at all" + nearest);
}

Result<std::vector<BatchView>> ListBatches(TaskShards& open, std::size_t limit) {
  BOOST_OUTCOME_TRY(sums, PlainSums(open));
  std::map<std::string, BatchView> batches;
  for (auto& [shard, opened] : open.shards) {
    if (open.away.contains(shard)) continue;
    BOOST_OUTCOME_TRY(records, opened.store->OpenBatches()->List(BatchStore::Which::All, "", limit));
    for (BatchRecord& record : records) {
      BatchView batch{shard, std::move(record), {}, {}};
      batch.sums = sums[batch.record.name];
      for (const BatchPart& part : batch.record.parts) {
        if (open.away.contains(part.shard) || !open.shards.contains(part.shard))
          batch.missing.push_back(part.shard);
      }
      batches[batch.record.name] = std::move(batch);
    }
  }
  std::vector<BatchView> all;
  const bool unsure = !open.away.empty() || open.shards.size() < open.settings.shards.size();
  for (const auto& [name, ended] : sums) {
    const auto [batch, plain] = batches.try_emplace(name, PlainBatch(open, name, ended));
    if (plain) batch->second.unsure = unsure;
  }
  for (auto& [name, batch] : batches) all.push_back(std::move(batch));
  return all;
}

ProgressNumbers ProgressOf(const BatchView& batch, double per_second) {
  ProgressNumbers numbers;
  numbers.done = batch.sums.succeeded + batch.sums.cancelled;
  numbers.failed = batch.sums.failed;
  numbers.waiting = batch.Left();
  numbers.waiting_or_more = !batch.HasRow();
  numbers.per_second = per_second;
  return numbers;
}

std::string BatchNote(const BatchView& batch) {
  const std::string& name = batch.record.name;
  if (!batch.missing.empty()) return "shards of it can't be read: " + Joined(batch.missing);
  if (batch.unsure) return "its row may stand in a shard that was not looked at";
  if (!batch.HasRow()) return "made by plain SQL: it has no end and no callbacks";
  if (batch.SinceEnd() > 0) {
    return Count(batch.SinceEnd(), "task", "tasks") +
           " ended after its end: added by plain SQL, or retried; its outcome stays";
  }
  if (batch.HasEnded() && batch.sums != batch.record.at_end)
    return "tasks that had failed were retried or cancelled after its end; its outcome stays";
  if (batch.record.state == BatchState::Open && batch.record.stays_open)
    return "grows until millrace batch close " + name;
  if (batch.record.state == BatchState::Open)
    return "its submit still runs or was cut short: submit the same again, or millrace batch close " + name;
  if (batch.record.state == BatchState::Closed && batch.Left() == 0)
    return "no task is left; its end comes from the leader, or any worker without a cluster, within seconds";
  return "";
}

ordered_json ToJson(const BatchView& batch) {
  const BatchRecord& record = batch.record;
  ordered_json out{{"name", record.name},
                   {"home", batch.HasRow() ? ordered_json(batch.home) : ordered_json()},
                   {"state", batch.unsure     ? "unknown"
                             : batch.HasRow() ? ToString(record.state)
                                              : "plain"}};
  out["outcome"] = batch.HasEnded() ? ordered_json(record.success ? "succeeded" : "failed") : ordered_json();
  out["tasks"] = batch.Tasks();
  out["succeeded"] = batch.sums.succeeded;
  out["cancelled"] = batch.sums.cancelled;
  out["failed"] = batch.sums.failed;
  out["left"] = batch.HasRow() ? ordered_json(batch.Left()) : ordered_json();
  out["parts"] = ordered_json::array();
  for (const BatchPart& part : record.parts) out["parts"].push_back(ToString(part));
  if (batch.HasRow()) {
    out["stays_open"] = record.stays_open;
    out["made_by"] = record.made_by;
    out["created_at"] = TimeOrNull(record.created_at);
    out["closed_at"] = TimeOrNull(record.closed_at);
    out["ended_at"] = TimeOrNull(record.ended_at);
    out["on_success"] = CallbackOrNull(record.on_success);
    out["on_end"] = CallbackOrNull(record.on_end);
    out["success_task"] = CallbackTaskOrNull(batch.home, record.success_task);
    out["end_task"] = CallbackTaskOrNull(batch.home, record.end_task);
    out["ended_since"] = batch.SinceEnd();
  }
  if (!batch.missing.empty()) out["missing"] = batch.missing;
  out["note"] = BatchNote(batch);
  return out;
}

}  // namespace millrace::engine

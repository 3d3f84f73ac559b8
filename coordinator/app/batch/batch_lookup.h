// Batches by name, wherever their row stands, and how far they are: by the counters alone.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/cli/progress.h"
#include "coordinator/app/task/task_lookup.h"

namespace millrace::engine {

// A batch as it stands in the shards. One that plain SQL made has no row: only its name, its parts and its
// counts are known then.
struct BatchView {
  std::string home;  // the shard of its row; empty: it has none
  BatchRecord record;
  BatchSums sums;
  std::vector<std::string> missing;  // shards of it that can't be read: it is further than the sums say
  bool unsure = false;               // without a row here, but not all shards were looked at

  bool HasRow() const { return !home.empty(); }
  bool HasEnded() const { return HasRow() && record.state == BatchState::Ended; }
  // How many tasks it has, as far as is known; rows of plain SQL are known once they have ended. What was
  // announced and never came (a submit that was killed) is known not to be there once it has ended.
  std::uint64_t Tasks() const {
    return std::max(HasEnded() ? record.at_end.Ended() : record.added, sums.Ended());
  }
  std::uint64_t Left() const { return Tasks() - sums.Ended(); }
  // Those that were added or retried after its end, and have ended since.
  std::uint64_t SinceEnd() const;
};

// As it is called in a sentence: the batch 'june'.
std::string QuotedBatch(const std::string& name);

// The row, wherever it stands; nullopt where no shard has it. Unavailable where one that is away might.
Result<std::optional<BatchView>> FindBatchRow(TaskShards& open, const std::string& name);
// The same with its counts, and one of plain SQL too; NotFound with the nearest name. Unavailable where it
// can't be told in time whether there are rows of one of plain SQL, unless it is taken for one (`or_unseen`).
Result<BatchView> FindBatch(TaskShards& open, const std::string& name, bool or_unseen = false);
// All with a row, and those without that have ended tasks; by name. At most `limit` with a row in each shard.
Result<std::vector<BatchView>> ListBatches(TaskShards& open, std::size_t limit);
// The counts as they are now.
Status ReadBatchSums(TaskShards& open, BatchView& batch);
// Whether a row of a batch of plain SQL waits, runs or is held: by looks of bounded length; nullopt: they did
// not reach the end before the deadline.
Result<std::optional<bool>> HasOpenRows(TaskShards& open, const BatchView& batch, BootTime deadline);

ProgressNumbers ProgressOf(const BatchView& batch, double per_second);
// One sentence on how it stands, and what is to be done; empty: nothing.
std::string BatchNote(const BatchView& batch);
nlohmann::ordered_json ToJson(const BatchView& batch);

}  // namespace millrace::engine

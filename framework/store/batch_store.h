// Batches: the rows of millrace_batches in this shard, the sums of their tasks, and their waiting rows, step
// by step. What a batch is, and why this decides its end exactly once: README.md, "Batches".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/task/task.h"

namespace millrace::engine {

enum class BatchState { Open, Closed, Ended };
const char* ToString(BatchState state);

// A shard and one of its task tables, which the batch has tasks in.
struct BatchPart {
  std::string shard;
  TableName table;
  auto operator<=>(const BatchPart&) const = default;
};
// shard/table
std::string ToString(const BatchPart& part);
std::map<std::string, std::vector<TableName>> TablesByShard(const std::vector<BatchPart>& parts);

struct BatchSums {
  std::uint64_t succeeded = 0;
  std::uint64_t cancelled = 0;  // or skipped
  std::uint64_t failed = 0;     // in the failed pool now

  std::uint64_t Ended() const { return succeeded + cancelled + failed; }
  bool AllSucceeded() const { return cancelled == 0 && failed == 0; }
  BatchSums& operator+=(const BatchSums& other);
  bool operator==(const BatchSums&) const = default;
};

struct BatchRecord {
  std::string name;
  BatchState state = BatchState::Open;
  bool stays_open = false;       // until somebody closes it; otherwise it closes with the command that adds
  std::vector<BatchPart> parts;  // sorted; the home's first table is where the callbacks go
  TableName table = kDefaultTable;  // that table
  std::string on_success;           // JSON of a task; empty: none
  std::string on_end;
  std::string made_by;
  std::uint64_t added = 0;  // announced by our producers
  std::optional<WallTime> created_at;
  std::optional<WallTime> closed_at;
  // Of an ended one:
  std::optional<WallTime> ended_at;
  bool success = false;
  std::string success_task;  // table/id; empty: none
  std::string end_task;
  BatchSums at_end;
};

struct NewBatch {
  std::string name;
  bool stays_open = false;
  BatchPart home;
  std::string on_success;
  std::string on_end;
  std::string made_by;
};

struct BatchEnd {
  std::string name;
  TableName table;  // of the callbacks
  BatchSums sums;
  std::vector<NewTask> success;  // one or none: to be added where all succeeded
  std::vector<NewTask> end;      // one or none: to be added in any case
};

// The keys of the callbacks.
std::string SuccessKey(const std::string& batch);
std::string EndKey(const std::string& batch);

// A row of a batch that waits, runs or is held.
struct BatchRow {
  std::uint64_t id = 0;
  TaskState state = TaskState::Waiting;
  std::string batch;
};

struct BatchPage {
  std::vector<BatchRow> rows;         // those with a batch, by id
  std::optional<std::uint64_t> next;  // give it back as `after`; nullopt: the end of the pool
};

// One thread at a time; errors as in framework/store/store.h.
class BatchStore {
 public:
  virtual ~BatchStore() = default;

  // Makes an open batch. False: there is one of that name here.
  virtual Result<bool> Make(const NewBatch& batch) = 0;
  // Takes one away that was made and never announced anything. False: it is not there, or has.
  virtual Result<bool> Unmake(const std::string& name) = 0;
  virtual Result<std::optional<BatchRecord>> Find(const std::string& name) = 0;
  // By name, from behind `after`: at most `limit`; all of them, or those that are closed and have not ended.
  enum class Which { All, Closed };
  virtual Result<std::vector<BatchRecord>> List(Which which, const std::string& after, std::size_t limit) = 0;

  // To be called before `rows` are added to this part; a negative number takes back what was not added.
  // False: the batch is not open any more (or not there), and nothing may be added.
  virtual Result<bool> Announce(const std::string& name, const BatchPart& part, std::int64_t rows) = 0;
  // False: it is not open. `actor` goes into millrace_audit; an empty one, of the command that made it, not.
  virtual Result<bool> Close(const std::string& name, const std::string& actor) = 0;
  // All at once: the batch has ended, and its callbacks are added under their keys. False: it is not closed,
  // or has ended already, and nothing was added.
  virtual Result<bool> End(const BatchEnd& end) = 0;

  // What has ended of these batches in these tables, by name, from the counters. At most kMaxBatchRows names.
  virtual Result<std::map<std::string, BatchSums>> Sums(std::span<const TableName> tables,
                                                        std::span<const std::string> names) = 0;
  // Looks at `limit` rows of a table's waiting pool, by primary key from behind `after`.
  virtual Result<BatchPage> Walk(const TableName& table, std::uint64_t after, std::size_t limit) = 0;
  // Which of these rows (at most kMaxBatchRows) are in the waiting pool, in this batch.
  virtual Result<std::vector<BatchRow>> Still(const TableName& table, const std::string& batch,
                                              std::span<const std::uint64_t> ids) = 0;
};

}  // namespace millrace::engine

// The batch that a submit adds to: made by it, or joined while it is open.
#pragma once

#include <memory>
#include <string>

#include "coordinator/app/command/shards.h"
#include "framework/store/batch_store.h"

namespace millrace::engine {

struct BatchAsked {
  std::string name;        // empty: none
  std::string on_success;  // JSON; empty: none
  std::string on_end;
  bool stays_open = false;
};

// Invalid for callbacks that are no tasks, and for flags that want --batch.
Status CheckBatchAsked(const BatchAsked& asked);
// The types of its callbacks.
std::vector<std::string> CallbackTypes(const BatchAsked& asked);

// One thread.
class BatchIntake {
 public:
  // Makes the batch in the shard of `part`, its home from now on, or joins the one that is open; it is looked
  // for in all shards. Conflict, with what to do, where it is closed or has ended, has other callbacks, or is
  // one of plain SQL that has no row;
  // Unavailable where a shard that is away might have it.
  static Result<std::unique_ptr<BatchIntake>> Join(Shards& shards, const BatchPart& part,
                                                   const BatchAsked& asked);

  // Before so many rows are added; a negative number takes back what was not. Conflict: it was closed
  // meanwhile, and nothing may be added.
  Status Announce(std::int64_t rows);
  // The same for rows of a transaction, before it ends. Where the batch's row stands in the same shard it is
  // part of that: nothing is to be taken back.
  Status AnnounceWithin(TaskTransaction& transaction, std::int64_t rows);
  // The command has added all that it was to. Closes the batch, unless it stays open; one that this has made
  // and that nothing was added to is taken away. Tells people what stays, unless `quiet`.
  Status Finish(bool whole, std::uint64_t added, bool quiet);
  // open, closed, or none: there is no such batch, since nothing was added.
  const std::string& state() const { return state_; }

 private:
  BatchIntake(const Shard& home, BatchPart part, std::string name, bool made, bool stays_open)
      : home_(home.store),
        is_home_(home.name == part.shard),
        batches_(home_->OpenBatches()),
        part_(std::move(part)),
        name_(std::move(name)),
        made_(made),
        stays_open_(stays_open) {}

  // What is to be made of the answer to an announcement.
  Status Judge(Result<bool> open, std::int64_t rows);

  const std::shared_ptr<Store> home_;
  const bool is_home_;  // of the tasks, too
  const std::unique_ptr<BatchStore> batches_;
  const BatchPart part_;
  const std::string name_;
  const bool made_;
  const bool stays_open_;
  std::string state_ = "open";
};

}  // namespace millrace::engine

#include "coordinator/app/submit/submit_batch.h"

#include <poll.h>

#include <optional>
#include <utility>

#include "coordinator/app/batch/batch_lookup.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/input/json_row.h"
#include "coordinator/app/submit/submitter.h"
#include "coordinator/coordination/json_text.h"
#include "coordinator/upkeep/batch_decider.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr int kJoinTries = 20;

using HomeAndRecord = std::pair<Shard*, BatchRecord>;

Failure BatchRefused(std::string why) { return Fail(ErrorCode::Conflict, std::move(why)); }

Failure NotOpenBatch(const BatchRecord& batch, const char* added = "nothing was added") {
  const bool ended = batch.state == BatchState::Ended;
  const auto& at = ended ? batch.ended_at : batch.closed_at;
  return BatchRefused(QuotedBatch(batch.name) + (ended ? " has ended" : " is closed") +
                      (at ? ", at " + FormatTime(*at) : std::string()) + ": " + added +
                      "; take another name, and --open for one that is to grow");
}

Status CheckCallback(const char* flag, const std::string& text) {
  if (text.empty()) return {};
  Status json = CheckParams(text);
  if (json) {
    const auto task = ParseCallback(text, "");
    if (!task) json = Fail(task.error());
    if (task && IsTooDeep(task->params))
      json = Fail(ErrorCode::Invalid, "'params' is nested more than 32 levels deep");
  }
  return json ? json : Fail(ErrorCode::Invalid, std::string(flag) + ": " + json.error().message);
}

// Nullopt: one without its file, or without a schema, has no batch either.
Result<std::optional<std::vector<TableInfo>>> TablesWithBatches(Shard& shard) {
  const std::optional<std::vector<TableInfo>> none;
  Error error;
  if (auto reached = Reach(shard, Missing::Refuse); !reached) {
    error = reached.error();
    if (shard.url.kind == StoreUrl::Kind::Sqlite && error.code == ErrorCode::Invalid) return none;
  } else if (auto tables = shard.store->OpenSchema()->Tables(); !tables) {
    if (tables.error().code == ErrorCode::NotFound) return none;
    error = tables.error();
  } else {
    return std::optional(std::move(*tables));
  }
  return Fail(error.code, "a batch has one home among all shards, and shard " + shard.name +
                              " can't be asked: " + error.message);
}

// In which shard but `except` the batch has its row.
Result<std::optional<HomeAndRecord>> FindBatchRecord(Shards& shards, const std::string& name,
                                                     const std::string& except) {
  for (auto& [shard, opened] : shards) {
    if (shard == except) continue;
    BOOST_OUTCOME_TRY(infos, TablesWithBatches(opened));
    if (!infos) continue;
    BOOST_OUTCOME_TRY(found, opened.store->OpenBatches()->Find(name));
    if (found) return std::optional(HomeAndRecord{&opened, std::move(*found)});
  }
  return std::optional<HomeAndRecord>();
}

// Its counts stay for good, and would be taken for those of the new one.
Status CheckNameUnused(Shards& shards, const std::string& name) {
  for (auto& [shard, opened] : shards) {
    BOOST_OUTCOME_TRY(infos, TablesWithBatches(opened));
    if (!infos) continue;
    BOOST_OUTCOME_TRY(sums, opened.store->OpenBatches()->Sums(NamesOf(*infos), std::span(&name, 1)));
    for (const auto& [batch, ended] : sums) {
      if (ended.Ended() == 0) continue;
      return BatchRefused(
          QuotedBatch(name) + " has " + std::to_string(ended.Ended()) + " ended tasks in shard " + shard +
          ", of plain SQL or from before batches had a row: nothing was added; take another name");
    }
  }
  return {};
}

Status CheckSameCallback(const char* flag, const std::string& name, const std::string& given,
                         const std::string& standing) {
  if (given.empty() || (!standing.empty() && SaysTheSame(given, standing))) return {};
  return BatchRefused(QuotedBatch(name) + " was made " + (standing.empty() ? "without " : "with another ") +
                      flag + ": nothing was added; leave it out, or see millrace batch show " + name);
}

Status CheckMayJoin(const BatchRecord& standing, const BatchAsked& asked) {
  if (standing.state != BatchState::Open) return NotOpenBatch(standing);
  BOOST_OUTCOME_TRYV(CheckSameCallback("--on-success", asked.name, asked.on_success, standing.on_success));
  return CheckSameCallback("--on-end", asked.name, asked.on_end, standing.on_end);
}

}  // namespace

Status CheckBatchAsked(const BatchAsked& asked) {
  const std::pair<const char*, bool> given[] = {{"--on-success", !asked.on_success.empty()},
                                                {"--on-end", !asked.on_end.empty()},
                                                {"--open", asked.stays_open}};
  for (const auto& [flag, is_given] : given) {
    if (is_given && asked.name.empty())
      return Fail(ErrorCode::Invalid, std::string(flag) + " goes with --batch NAME");
  }
  if (Status valid = Validate(NewTask{.handler = "any", .batch = asked.name}); !valid)
    return Fail(ErrorCode::Invalid, "--batch: " + valid.error().message);
  BOOST_OUTCOME_TRYV(CheckCallback("--on-success", asked.on_success));
  return CheckCallback("--on-end", asked.on_end);
}

std::vector<std::string> CallbackTypes(const BatchAsked& asked) {
  std::vector<std::string> types;
  for (const std::string& text : {asked.on_success, asked.on_end}) {
    if (text.empty()) continue;
    if (auto task = ParseCallback(text, "")) types.push_back(task->handler);
  }
  return types;
}

// Two that make it at one moment in two shards see each other's row: both take theirs away and look anew.
Result<std::unique_ptr<BatchIntake>> BatchIntake::Join(Shards& shards, const BatchPart& part,
                                                       const BatchAsked& asked) {
  Shard& here = shards.at(part.shard);
  for (int tries = 0; tries < kJoinTries; ++tries) {
    BOOST_OUTCOME_TRY(standing, FindBatchRecord(shards, asked.name, ""));
    if (standing) {
      BOOST_OUTCOME_TRYV(CheckMayJoin(standing->second, asked));
      return std::unique_ptr<BatchIntake>(new BatchIntake(*standing->first, part, asked.name, false,
                                                          standing->second.stays_open || asked.stays_open));
    }
    BOOST_OUTCOME_TRYV(CheckNameUnused(shards, asked.name));
    auto batches = here.store->OpenBatches();
    BOOST_OUTCOME_TRY(
        made, batches->Make({asked.name, asked.stays_open, part, asked.on_success, asked.on_end, Actor()}));
    if (!made) continue;
    BOOST_OUTCOME_TRY(twin, FindBatchRecord(shards, asked.name, part.shard));
    if (!twin) {
      return std::unique_ptr<BatchIntake>(new BatchIntake(here, part, asked.name, true, asked.stays_open));
    }
    BOOST_OUTCOME_TRYV(batches->Unmake(asked.name));
    poll(nullptr, 0, 5 * (tries + 1) * (part.shard < twin->first->name ? 1 : 3));
  }
  return BatchRefused(QuotedBatch(asked.name) +
                      " is being made by others at this moment: submit the same again");
}

Status BatchIntake::Announce(std::int64_t rows) {
  return Judge(SendPatiently([&] { return batches_->Announce(name_, part_, rows); }), rows);
}

Status BatchIntake::AnnounceWithin(TaskTransaction& transaction, std::int64_t rows) {
  if (rows == 0 || (is_home_ && rows < 0)) return {};
  return is_home_ ? Judge(transaction.Announce(name_, part_, rows), rows) : Announce(rows);
}

Status BatchIntake::Judge(Result<bool> announced, std::int64_t rows) {
  BOOST_OUTCOME_TRY(open, std::move(announced));
  if (open || rows < 0) return {};
  BOOST_OUTCOME_TRY(standing, batches_->Find(name_));
  if (standing) {
    state_ = ToString(standing->state);
    return NotOpenBatch(*standing, "no more is added");
  }
  return BatchRefused(QuotedBatch(name_) + " is gone: nothing was added; submit the same again");
}

Status BatchIntake::Finish(bool whole, std::uint64_t added, bool quiet) {
  if (made_ && added == 0) {
    const auto gone = batches_->Unmake(name_);
    if (!gone) {
      return Fail(gone.error().code,
                  "no task of it was added, and the batch that was made for it could not be "
                  "taken away: " +
                      gone.error().message);
    }
    if (*gone) {
      state_ = "none";
      if (!quiet) PrintNote("no task of it was added, so there is no " + QuotedBatch(name_).substr(4));
      return {};
    }
  }
  if (!whole) {
    if (!quiet && state_ == ToString(BatchState::Open))
      PrintNote(QuotedBatch(name_) +
                " stays open: submit the rest, or the same again with keys, or millrace batch "
                "close " +
                name_);
    return {};
  }
  if (stays_open_) return {};
  if (const auto closed = batches_->Close(name_, ""); !closed) {
    return Fail(closed.error().code,
                "the rows are in, but their batch could not be closed: " + closed.error().message +
                    "; millrace batch close " + name_ + " does that");
  }
  state_ = "closed";
  return {};
}

}  // namespace millrace::engine

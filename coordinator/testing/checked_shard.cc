#include "coordinator/testing/checked_shard.h"

namespace millrace::engine {
namespace {

constexpr int kBeatsPerLease = 5;
// Who has not heard of its own beat for the time of two begins to watch anew; but a reply may be late.
constexpr int kUnnoticed = 4;
constexpr std::size_t kMostRescues = 5;  // the next gives a task up

// An attempt that runs, or none.
bool SameRun(const CompactRow& a, const CompactRow& b) {
  return a.state == b.state && a.attempt == b.attempt && a.claimed_by == b.claimed_by;
}

}  // namespace

struct CheckedShard::Copy {
  CompactShard::State rows;
  std::map<TaskKey, std::uint32_t> settled;
  std::map<std::pair<std::string, std::string>, TaskKey> effects;
};

std::shared_ptr<const CheckedShard::Copy> CheckedShard::Keep() const {
  return std::make_shared<const Copy>(Copy{shard_.state(), settled_, effects_});
}

void CheckedShard::GoBack(const Copy& copy) {
  for (const auto& [id, life] : shard_.state().lives) {
    if (!copy.rows.lives.contains(id)) lost_.insert(id);
  }
  for (std::size_t i = 0; i < copy.rows.tables.size(); ++i) NoteLost(shard_.tables()[i], copy.rows.tables[i]);
  for (const auto& [name, entry] : shard_.state().keys.entries()) {
    const auto kept = copy.rows.keys.entries().find(name);
    if (kept == copy.rows.keys.entries().end() || kept->second.task != entry.task)
      keyless_.emplace(name, entry.task);
  }
  failed_over_ = clock_.Now();
  shard_.Restore(copy.rows);
  settled_ = copy.settled;
  effects_ = copy.effects;
}

void CheckedShard::NoteLost(const CompactTable& now, const CompactTable& kept) {
  for (const std::uint64_t id : kept.open) {
    const CompactRow& before = kept.rows[id - 1];
    const CompactRow& after = now.rows[id - 1];
    if (before.state == TaskState::Running && !SameRun(before, after)) unsettled_.insert({now.name, id});
    if (after.cancel && !before.cancel) withdrawn_.insert({now.name, id});
  }
  for (const std::uint64_t id : now.open) {
    const CompactRow& row = now.rows[id - 1];
    const bool kept_too = id <= kept.rows.size() && SameRun(kept.rows[id - 1], row);
    if (row.state == TaskState::Running && !kept_too)
      unclaimed_.insert({{now.name, id}, row.attempt, row.claimed_by});
  }
}

std::string CheckedShard::NameOf(const Settlement& settlement) const {
  return "attempt " + std::to_string(settlement.attempt) + " of " + NameOf(settlement.key);
}

void CheckedShard::CheckTaken(const std::string& how, const ClaimRequest& request,
                              const Result<std::vector<Task>>& taken) {
  if (taken && journal_.Traces()) {
    for (const Task& task : *taken) {
      journal_.Trace(how + NameOf(task.key) + " under " + request.incarnation + ", attempt " +
                     std::to_string(task.attempt));
    }
  }
  if (!taken || taken->empty() || shard_.IsAlive(request.incarnation)) return;
  journal_.Violation(how + NameOf(taken->front().key) + " under " + request.incarnation +
                     ", which is marked dead");
}

Result<std::vector<Task>> CheckedShard::Claim(const ClaimRequest& request) {
  auto claimed = shard_.Claim(request);
  CheckTaken("a claim of ", request, claimed);
  return claimed;
}

Result<std::vector<Task>> CheckedShard::Adopt(const ClaimRequest& request) {
  auto adopted = shard_.Adopt(request);
  CheckTaken("an adoption of ", request, adopted);
  return adopted;
}

Result<std::vector<std::uint64_t>> CheckedShard::Rescue(const RescueRequest& request) {
  auto rescued = shard_.Rescue(request);
  if (!rescued || rescued->empty()) return rescued;
  rescued_ += rescued->size();
  if (shard_.IsAlive(request.claimed_by)) {
    journal_.Violation(NameOf(TaskKey{request.table, rescued->front()}) + " was taken from " +
                       request.claimed_by + ", which is alive");
  }
  return rescued;
}

Result<SettleReport> CheckedShard::Settle(const std::string& incarnation, std::span<const Settlement> batch) {
  std::vector<CompactRow> before;
  for (const Settlement& settlement : batch) {
    const CompactRow* row = shard_.Find(settlement.key);
    before.push_back(row == nullptr ? CompactRow() : *row);
  }
  BOOST_OUTCOME_TRY(report, shard_.Settle(incarnation, batch));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Settlement& settlement = batch[i];
    if (report.verdicts[i] == SettleVerdict::Refused) ++refused_;
    if (journal_.Traces()) {
      const char* verdict = report.verdicts[i] == SettleVerdict::Refused ? "is refused" : "takes effect";
      journal_.Trace("the settle of " + NameOf(settlement) + " by " + incarnation + " " + verdict);
    }
    if (report.verdicts[i] != SettleVerdict::Settled) continue;
    std::uint32_t& last = settled_[settlement.key];
    if (settlement.attempt <= last) {
      journal_.Violation(NameOf(settlement) + " was settled twice");
    }
    last = settlement.attempt;
    CheckKey(settlement);
    if (before[i].attempt != settlement.attempt || before[i].claimed_by != incarnation) {
      journal_.Violation(incarnation + " settled " + NameOf(settlement) + ", but attempt " +
                         std::to_string(before[i].attempt) + " was running under " + before[i].claimed_by);
    }
    CheckEnd(incarnation, before[i], settlement);
  }
  return report;
}

void CheckedShard::CheckEnd(const std::string& incarnation, const CompactRow& before,
                            const Settlement& settlement) {
  // Kept: a failover may lose this settle, and then it comes again.
  const auto said = said_.find({settlement.key, settlement.attempt, incarnation});
  const bool succeeded = said != said_.end() && said->second == OutcomeKind::Done;
  const bool failed = said != said_.end() && said->second == OutcomeKind::Retry;
  const TaskKey& key = settlement.key;
  if (settlement.to == Settlement::To::Succeeded && !succeeded)
    journal_.Violation(NameOf(settlement) + " succeeded, and its handler has not said so");
  const bool unwanted = before.cancel || withdrawn_.contains(key) || duplicates_.contains(key);
  if (settlement.to == Settlement::To::Cancelled && !unwanted)
    journal_.Violation(NameOf(settlement) + " was cancelled, and nobody has asked for it");
  const auto may_fail = may_fail_.find(before.handler);
  const std::uint32_t most = may_fail == may_fail_.end() ? 1 : may_fail->second;
  const bool spent = before.failures >= most || before.rescues > kMostRescues;
  if (settlement.failed_attempt && !failed && !spent)
    journal_.Violation(NameOf(settlement) + " is a failure, and its handler has not said so");
  if (settlement.to == Settlement::To::Failed && !spent && !(failed && before.failures + 1 >= most))
    journal_.Violation(NameOf(settlement) + " was given up after " + std::to_string(before.failures) +
                       " failures and " + std::to_string(before.rescues) + " rescues; it may fail " +
                       std::to_string(most) + " times");
}

Result<std::vector<std::uint64_t>> CheckedShard::FailUnclaimed(const ClaimRequest& request) {
  auto failed = shard_.FailUnclaimed(request);
  if (failed && !failed->empty() && request.attempt < kLastAttempt)
    journal_.Violation(NameOf(TaskKey{request.table, failed->front()}) +
                       " was failed unclaimed, and could be claimed");
  return failed;
}

Result<CommitVerdict> CheckedShard::Commit(const std::string& incarnation, const Settlement& settlement) {
  BOOST_OUTCOME_TRY(report, Settle(incarnation, std::span(&settlement, 1)));
  if (report.verdicts[0] != SettleVerdict::Settled) return CommitVerdict::Refused;
  if (settlement.to != Settlement::To::Succeeded) {
    journal_.Violation("the SQL of " + NameOf(settlement) + " took effect, and it did not succeed");
  }
  return CommitVerdict::Committed;
}

void CheckedShard::CheckKey(const Settlement& settlement) {
  if (settlement.to != Settlement::To::Succeeded || settlement.biz_key.empty()) return;
  const TaskKey& key = settlement.key;
  const CompactLedger::Name name(settlement.handler, settlement.biz_key);
  const TaskKey first = effects_.try_emplace(name, key).first->second;
  const auto keyless = [&](const TaskKey& task) { return keyless_.contains({name, task}); };
  if (first != key && !keyless(first) && !keyless(key))
    journal_.Violation(NameOf(key) + " took effect though its key is " + NameOf(first) + "'s");
}

Result<std::vector<KeyVerdict>> CheckedShard::ConfirmKeys(const std::string& incarnation,
                                                          std::span<const Task> tasks) {
  auto verdicts = shard_.ConfirmKeys(incarnation, tasks);
  if (verdicts) CheckHolders(*verdicts);
  return verdicts;
}

std::vector<KeyVerdict> CheckedShard::EnterKeys(std::span<const Task> tasks) {
  auto verdicts = shard_.EnterKeys(tasks);
  CheckHolders(verdicts);
  return verdicts;
}

Result<std::vector<PermitAnswer>> CheckedShard::Change(const std::string& incarnation,
                                                       std::span<const PermitChange> changes) {
  std::vector<std::string> before;
  for (const PermitChange& change : changes) {
    const auto row = shard_.state().permits.find({change.handler, change.number});
    before.push_back(row == shard_.state().permits.end() ? "" : row->second.holder);
  }
  auto answers = shard_.Change(incarnation, changes);
  for (std::size_t i = 0; answers && i < changes.size(); ++i) {
    if (answers->at(i) != PermitAnswer::Done) continue;
    const std::string name = "permit " + std::to_string(changes[i].number) + " of " + changes[i].handler;
    const bool held = changes[i].to == PermitChange::To::Held;
    if (journal_.Traces()) {
      journal_.Trace(name + (held ? " is held by " + incarnation + " for '" + changes[i].task + "'"
                                  : " is freed or voided by " + incarnation));
    }
    if (!held) continue;
    if (!shard_.IsAlive(incarnation))
      journal_.Violation(name + " was taken under " + incarnation + ", which is marked dead");
    if (before[i] != incarnation && shard_.IsAlive(before[i]))
      journal_.Violation(name + " was taken from " + before[i] + ", which is alive");
  }
  return answers;
}

void CheckedShard::CheckHolders(const std::vector<KeyVerdict>& verdicts) {
  for (const KeyVerdict& verdict : verdicts) {
    if (journal_.Traces()) {
      journal_.Trace("the key of " + NameOf(verdict.task) + " is " +
                     (verdict.mine ? "its own" : "that of " + verdict.holder));
    }
    if (verdict.mine) continue;
    duplicates_.insert(verdict.task);
    const CompactRow& row = *shard_.Find(verdict.task);
    const CompactLedger::Entry& entry = shard_.state().keys.At(row.handler, row.key);
    const CompactRow* holder = shard_.Find(entry.task);
    const bool by_right = holder != nullptr && (holder->state != TaskState::Cancelled || entry.ended);
    if (by_right) continue;
    journal_.Violation(NameOf(verdict.task) + " is told to be a duplicate of " + NameOf(entry.task) +
                       ", which was cancelled before it ever started");
  }
}

void CheckedShard::CheckNothingRuns(const std::string& incarnation) const {
  for (const CompactTable& table : shard_.tables()) {
    for (const std::uint64_t id : table.open) {
      const CompactRow& row = table.rows[id - 1];
      if (row.state != TaskState::Running || row.claimed_by != incarnation) continue;
      if (unsettled_.contains({table.name, id})) continue;  // it was settled
      journal_.Violation(incarnation + " has ended in good order, and left " +
                         NameOf(TaskKey{table.name, id}) + " running");
    }
  }
}

Result<bool> CheckedShard::MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) {
  auto marked = shard_.MarkDead(id, seen_beat);
  if (!marked || !*marked) return marked;
  ++marked_dead_;
  if (failed_over_ != BootTime{} && clock_.Now() - failed_over_ < 2 * shard_.LeaseOf(id)) return marked;
  const Micros lease = shard_.LeaseOf(id);
  if (clock_.Now() - shard_.BeatAt(id) < lease) {
    journal_.Violation(id + " was marked dead though its beat had moved within its lease");
  }
  for (const Outage& outage : outages_) {
    if (outage.span > kUnnoticed * lease / kBeatsPerLease && clock_.Now() - outage.end < lease)
      journal_.Violation(id + " was marked dead within a lease after an outage, in which it could not beat");
  }
  return marked;
}

}  // namespace millrace::engine

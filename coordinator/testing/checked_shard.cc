#include "coordinator/testing/checked_shard.h"

namespace millrace::engine {
namespace {

std::string NameOf(std::uint64_t task) { return "task " + std::to_string(task); }
std::string NameOf(const Settlement& settlement) {
  return "attempt " + std::to_string(settlement.attempt) + " of " + NameOf(settlement.key.id);
}

}  // namespace

void CheckedShard::CheckTaken(const std::string& how, const ClaimRequest& request,
                              const Result<std::vector<Task>>& taken) {
  if (taken && journal_.Traces()) {
    for (const Task& task : *taken) {
      journal_.Trace(how + NameOf(task.key.id) + " under " + request.incarnation + ", attempt " +
                     std::to_string(task.attempt));
    }
  }
  if (!taken || taken->empty() || shard_.IsAlive(request.incarnation)) return;
  journal_.Violation(how + NameOf(taken->front().key.id) + " under " + request.incarnation +
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
    journal_.Violation(NameOf(rescued->front()) + " was taken from " + request.claimed_by +
                       ", which is alive");
  }
  return rescued;
}

Result<SettleReport> CheckedShard::Settle(const std::string& incarnation, std::span<const Settlement> batch) {
  std::vector<std::pair<std::uint32_t, std::string>> before;
  for (const Settlement& settlement : batch) {
    const CompactRow& row = shard_.Row(settlement.key.id);
    before.emplace_back(row.attempt, row.claimed_by);
  }
  BOOST_OUTCOME_TRY(report, shard_.Settle(incarnation, batch));
  settled_.resize(shard_.rows().size() + 1);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Settlement& settlement = batch[i];
    if (report.verdicts[i] == SettleVerdict::Refused) ++refused_;
    if (journal_.Traces()) {
      const char* verdict = report.verdicts[i] == SettleVerdict::Refused ? "is refused" : "takes effect";
      journal_.Trace("the settle of " + NameOf(settlement) + " by " + incarnation + " " + verdict);
    }
    if (report.verdicts[i] != SettleVerdict::Settled) continue;
    std::uint32_t& last = settled_[settlement.key.id];
    if (settlement.attempt <= last) {
      journal_.Violation(NameOf(settlement) + " was settled twice");
    }
    last = settlement.attempt;
    CheckKey(settlement);
    if (before[i].first != settlement.attempt || before[i].second != incarnation) {
      journal_.Violation(incarnation + " settled " + NameOf(settlement) + ", but attempt " +
                         std::to_string(before[i].first) + " was running under " + before[i].second);
    }
  }
  return report;
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
  const std::uint64_t id = settlement.key.id;
  const std::uint64_t first =
      effects_.try_emplace({settlement.handler, settlement.biz_key}, id).first->second;
  if (first != id) journal_.Violation(NameOf(id) + " took effect though its key is " + NameOf(first) + "'s");
}

Result<bool> CheckedShard::MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) {
  auto marked = shard_.MarkDead(id, seen_beat);
  if (!marked || !*marked) return marked;
  ++marked_dead_;
  if (clock_.Now() - shard_.BeatAt(id) < shard_.LeaseOf(id)) {
    journal_.Violation(id + " was marked dead though its beat had moved within its lease");
  }
  return marked;
}

}  // namespace millrace::engine

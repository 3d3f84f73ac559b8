#include "framework/worker/claimer.h"

#include <map>

#include "framework/base/log.h"
#include "framework/mill/engine_outcome.h"

namespace millrace::engine {

Result<std::vector<Task>> Claimer::Send(ClaimRequest request, const std::shared_ptr<Lease>& life) {
  if (request.attempt >= kLastAttempt) {
    return FailUnclaimed(request, "its attempt number is " + std::to_string(request.attempt) +
                                      ", and the last that is claimed is " + std::to_string(kLastAttempt) +
                                      ": set a smaller one in the failed pool, then retry the task");
  }
  auto claimed = store_.Claim(request);
  if (claimed) {
    parts_.in_flight.LeaveMissed(request, *claimed);
  } else if (claimed.error().code == ErrorCode::Unknown) {
    unknown_.emplace_back(std::move(request), life);
  } else if (claimed.error().code == ErrorCode::Invalid && request.ids.size() == 1) {
    return FailUnclaimed(request, "it can't be claimed: " + claimed.error().message);
  } else if (claimed.error().code != ErrorCode::Invalid) {  // else the halves are tried
    parts_.in_flight.Leave(request.table, request.ids);
    if (claimed.error().code == ErrorCode::Cancelled) parts_.host.FoundDead();
  }
  return claimed;
}

// None of them is claimed.
Result<std::vector<Task>> Claimer::FailUnclaimed(const ClaimRequest& request, const std::string& why) {
  const auto failed = store_.FailUnclaimed(request, why);
  parts_.in_flight.Leave(request.table, request.ids);
  if (!failed && failed.error().code != ErrorCode::Invalid) return Fail(failed.error());
  if (!failed) {  // somebody has to mend the table; the others go on
    LogError("a task that can't be claimed can't be moved to the failed pool either",
             {{"shard", parts_.shard}, {"why", why}, {"error", failed.error().message}});
    return std::vector<Task>{};
  }
  for (const std::uint64_t id : *failed) {
    LogError("a task that can't be claimed is in the failed pool",
             {{"task", ToString(TaskName{parts_.shard, {request.table, id}})}, {"why", why}});
  }
  return std::vector<Task>{};
}

Status Claimer::Claim(ClaimRequest request, const std::shared_ptr<Lease>& life) {
  request.ids = parts_.in_flight.Enter(request.table, request.ids);
  const std::size_t count = request.ids.size();
  if (count == 0) return {};
  if (!parts_.gate.Enter(count)) {
    parts_.in_flight.Leave(request.table, request.ids);
    return {};
  }
  return ClaimEntered(std::move(request), life);
}

// One row that the database refuses keeps no other from being claimed: halves find it.
Status Claimer::ClaimEntered(ClaimRequest request, const std::shared_ptr<Lease>& life) {
  const std::size_t count = request.ids.size();
  auto claimed = Send(request, life);
  if (!claimed && claimed.error().code == ErrorCode::Invalid && count > 1) {
    const auto middle = request.ids.begin() + static_cast<std::ptrdiff_t>(count / 2);
    ClaimRequest second = request;
    second.ids.assign(middle, request.ids.end());
    request.ids.erase(middle, request.ids.end());
    const Status first = ClaimEntered(std::move(request), life);
    const Status rest = ClaimEntered(std::move(second), life);
    return first ? rest : first;
  }
  parts_.gate.Leave(count - (claimed ? claimed->size() : 0));
  if (!claimed) return Fail(claimed.error());
  return Accept(std::move(*claimed), life, false);
}

// One that was claimed, changed or ended since it was scanned leaves its turn to the next.
Status Claimer::ClaimSuspect(const std::shared_ptr<Lease>& life, const Suspects::MayClaim& may_claim) {
  while (std::optional<ClaimRequest> turn = suspects_.Turn(life->incarnation(), may_claim)) {
    const std::string name = ToString(TaskName{parts_.shard, {turn->table, turn->ids[0]}});
    turn->ids = parts_.in_flight.Enter(turn->table, turn->ids);
    auto claimed =
        turn->ids.empty() ? Result<std::vector<Task>>(std::vector<Task>{}) : Send(std::move(*turn), life);
    if (claimed && !claimed->empty()) {
      LogWarning("a task whose runs have killed its process is run alone", {{"task", name}});
      return Accept(std::move(*claimed), life, true);
    }
    parts_.gate.LeaveAlone();
    if (!claimed) return Fail(claimed.error());
  }
  return {};
}

Status Claimer::Resolve() {
  while (!unknown_.empty()) {
    auto& [request, life] = unknown_.back();
    if (!life->Alive()) {  // whoever marked it dead sees to its rows
      parts_.in_flight.Leave(request.table, request.ids);
      unknown_.pop_back();
      continue;
    }
    auto adopted = store_.Resolve(request);
    if (!adopted) return Fail(adopted.error());
    LogInfo("a claim whose reply was lost is resolved",
            {{"shard", parts_.shard}, {"sent", request.ids.size()}, {"adopted", adopted->size()}});
    parts_.in_flight.LeaveMissed(request, *adopted);
    const std::shared_ptr<Lease> claimer = life;
    unknown_.pop_back();
    AcceptResolved(std::move(*adopted), claimer);
  }
  return {};
}

// They are claimed already: while somebody runs alone they go back.
void Claimer::AcceptResolved(std::vector<Task> tasks, const std::shared_ptr<Lease>& life) {
  for (Task& task : tasks) {
    if (parts_.gate.EnterClaimed()) {
      (void)Accept({std::move(task)}, life, false);  // a key that can't be confirmed now gives its task back
    } else {
      parts_.host.EndAtOnce(task, life, GivenBack(), false);
    }
  }
}

// Claimed tasks, inside the gate and the in-flight set, on their way to the lanes.
Status Claimer::Accept(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo) {
  const Status confirmed = SkipDuplicates(tasks, life, solo);
  if (!solo) {
    std::erase_if(tasks, [&](const Task& task) {
      std::optional<Outcome> objection = suspects_.Objection(task);
      if (objection) parts_.host.EndAtOnce(task, life, std::move(*objection), false);
      return objection.has_value();
    });
  }
  if (!tasks.empty()) parts_.host.Dispatch(std::move(tasks), life, solo);
  return confirmed;
}

Status Claimer::SkipDuplicates(std::vector<Task>& tasks, const std::shared_ptr<Lease>& life, bool solo) {
  std::map<TableName, std::vector<Task>> keyed;
  for (const Task& task : tasks) {
    if (!task.biz_key.empty()) keyed[task.key.table].push_back(task);
  }
  Status status;
  std::map<TaskKey, KeyVerdict> verdicts;
  for (const auto& [table, of_table] : keyed) {
    const auto confirmed = store_.ConfirmKeys(life->incarnation(), of_table);
    if (!confirmed) {
      status = Fail(confirmed.error());
      continue;
    }
    for (const KeyVerdict& verdict : *confirmed) verdicts[verdict.task] = verdict;
  }
  if (keyed.empty()) return status;
  std::erase_if(tasks, [&](const Task& task) {
    if (task.biz_key.empty()) return false;
    const auto verdict = verdicts.find(task.key);
    if (verdict != verdicts.end() && verdict->second.mine) return false;
    // Where it is not known whether the key is its own it is tried again a little later.
    Outcome outcome = GivenBack({}, parts_.engine.Get().poll);
    if (verdict != verdicts.end()) {
      outcome = {};
      outcome.kind = OutcomeKind::Skip;
      outcome.text = "duplicate of " + parts_.shard + "/" + verdict->second.holder;
    }
    parts_.host.EndAtOnce(task, life, std::move(outcome), solo);
    return true;
  });
  return status;
}

}  // namespace millrace::engine

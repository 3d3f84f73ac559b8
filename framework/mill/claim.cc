#include "framework/mill/claim.h"

#include <algorithm>
#include <set>

#include "framework/base/log.h"
#include "framework/mill/attempt.h"

namespace millrace::engine {
namespace {

// Between two tries to resolve claims: so that those take a fifth of the time.
constexpr int kResolveShare = 4;
constexpr Micros kSoonestResolve = std::chrono::milliseconds(100);
constexpr Micros kLatestResolve = std::chrono::seconds(10);

}  // namespace

Step<Result<Claimer::Tasks>> Claimer::Send(ClaimRequest request, std::shared_ptr<Lease> life, bool ahead) {
  if (request.attempt >= kLastAttempt) {
    std::string why = "its attempt number is " + std::to_string(request.attempt) +
                      ", and the last that is claimed is " + std::to_string(kLastAttempt) +
                      ": set a smaller one in the failed pool, then retry the task";
    auto failed = co_await FailUnclaimed(std::move(request), std::move(why));
    co_return failed;
  }
  InFlight& in_flight = parts_.attempts.in_flight();
  Reply<Claimed> sent = port_.Claim(request, ahead);
  Claimed answer = co_await sent;
  work_.took += answer.took;
  work_.slowest = std::max(work_.slowest, answer.took);
  Result<Tasks> claimed = std::move(answer.tasks);
  if (claimed) {
    work_.claimed += claimed->size();
    if (claimed->size() < request.ids.size()) parts_.counters.claims_short.Add();
    const std::vector<std::uint64_t> missed = in_flight.LeaveMissed(request, *claimed);
    work_.missed.insert(work_.missed.end(), missed.begin(), missed.end());
  } else if (claimed.error().code == ErrorCode::Unknown) {
    work_.claimed += request.ids.size();
    unknown_.emplace_back(std::move(request), std::move(life));
  } else if (claimed.error().code == ErrorCode::Invalid && request.ids.size() == 1) {
    std::string why = "it can't be claimed: " + claimed.error().message;
    claimed = co_await FailUnclaimed(std::move(request), std::move(why));
  } else if (claimed.error().code != ErrorCode::Invalid) {  // else the halves are tried
    in_flight.Leave(request.table, request.ids);
    NoteLeft(request);
    work_.refused = claimed.error().code == ErrorCode::Conflict;
    if (claimed.error().code == ErrorCode::Cancelled) {
      parts_.counters.claims_refused.Add();
      parts_.beat.Wake();
    }
  }
  co_return claimed;
}

// None of them is claimed.
Step<Result<Claimer::Tasks>> Claimer::FailUnclaimed(ClaimRequest request, std::string why) {
  const auto failed = co_await port_.FailUnclaimed(request, why);
  parts_.attempts.in_flight().Leave(request.table, request.ids);
  Result<Tasks> none = Tasks{};
  if (failed) {
    for (const std::uint64_t id : *failed) {
      LogError("a task that can't be claimed is in the failed pool",
               {{"task", ToString(TaskName{parts_.shard, {request.table, id}})}, {"why", why}});
    }
  } else if (IsForPeople(failed.error().code)) {  // somebody has to mend the table; the others go on
    LogError("a task that can't be claimed can't be moved to the failed pool either",
             {{"shard", parts_.shard}, {"why", why}, {"error", failed.error().message}});
  } else {
    NoteLeft(request);
    none = Fail(failed.error());
  }
  co_return none;
}

void Claimer::NoteLeft(const ClaimRequest& request) {
  work_.left.insert(work_.left.end(), request.ids.begin(), request.ids.end());
}

Step<Status> Claimer::Claim(ClaimRequest request, std::shared_ptr<Lease> life, bool ahead) {
  request.ids = parts_.attempts.in_flight().Enter(request.table, request.ids);
  const std::size_t count = request.ids.size();
  if (count == 0) co_return Status{};
  if (!parts_.gate.Enter(count)) {
    parts_.attempts.in_flight().Leave(request.table, request.ids);
    NoteLeft(request);
    co_return Status{};
  }
  Status claimed = co_await ClaimEntered(std::move(request), std::move(life), ahead);
  co_return claimed;
}

// One row that the database refuses keeps no other from being claimed: halves find it.
Step<Status> Claimer::ClaimEntered(ClaimRequest request, std::shared_ptr<Lease> life, bool ahead) {
  const std::size_t count = request.ids.size();
  ClaimRequest first_half{request.table, request.incarnation, request.attempt, request.ids};
  auto claimed = co_await Send(std::move(request), life, ahead);
  if (!claimed && claimed.error().code == ErrorCode::Invalid && count > 1) {
    const auto middle = first_half.ids.begin() + static_cast<std::ptrdiff_t>(count / 2);
    ClaimRequest second_half = first_half;
    second_half.ids.assign(middle, first_half.ids.end());
    first_half.ids.erase(middle, first_half.ids.end());
    const Status first = co_await ClaimEntered(std::move(first_half), life, false);
    const Status rest = co_await ClaimEntered(std::move(second_half), life, false);
    co_return first ? rest : first;
  }
  parts_.gate.Leave(count - (claimed ? claimed->size() : 0));
  if (!claimed) co_return Fail(claimed.error());
  Status accepted = co_await Accept(std::move(*claimed), std::move(life), false);
  co_return accepted;
}

// One that was claimed, changed or ended since it was scanned leaves its turn to the next.
Step<Status> Claimer::ClaimSuspect(std::shared_ptr<Lease> life, Suspects::MayClaim may_claim,
                                   Micros others_take) {
  while (std::optional<ClaimRequest> turn = suspects_.Turn(life->incarnation(), may_claim, others_take)) {
    const std::string name = ToString(TaskName{parts_.shard, {turn->table, turn->ids[0]}});
    turn->ids = parts_.attempts.in_flight().Enter(turn->table, turn->ids);
    Result<Tasks> claimed = Tasks{};
    if (!turn->ids.empty()) claimed = co_await Send(std::move(*turn), life, false);
    if (claimed && !claimed->empty()) {
      LogWarning("a task whose runs have killed its process is run alone", {{"task", name}});
      Status accepted = co_await Accept(std::move(*claimed), std::move(life), true);
      co_return accepted;
    }
    parts_.gate.LeaveAlone();
    if (!claimed) co_return Fail(claimed.error());
  }
  co_return Status{};
}

void Claimer::LeaveDead() {
  std::erase_if(unknown_, [this](const Sent& sent) {
    const auto& [request, life] = sent;
    if (life->Alive()) return false;
    parts_.attempts.in_flight().Leave(request.table, request.ids);
    return true;
  });
}

// A failure is one of these rows, of which somebody may have locked the table: it is no reason to claim
// nothing else. A shard that is away fails what is asked of it next.
Step<> Claimer::Resolve(bool at_once) {
  LeaveDead();
  if (unknown_.empty()) resolves_again_ = {};
  const BootTime began = parts_.clock.Now();
  if (unknown_.empty() || (began < resolves_again_ && !at_once)) co_return;
  std::vector<Sent> kept;
  for (const Sent& sent : std::exchange(unknown_, {})) {
    const Status resolved = co_await ResolveOne(sent);
    if (resolved) continue;
    if (resolves_again_ == BootTime{}) {
      LogWarning("a claim whose reply was lost can't be resolved yet; it is tried again until it can",
                 {{"shard", parts_.shard},
                  {"table", std::string(sent.first.table)},
                  {"error", resolved.error().message}});
    }
    kept.push_back(sent);
  }
  unknown_ = std::move(kept);
  const BootTime now = parts_.clock.Now();
  const Micros pause = std::clamp(kResolveShare * (now - began), kSoonestResolve, kLatestResolve);
  resolves_again_ = unknown_.empty() ? BootTime{} : now + pause;
}

Step<Status> Claimer::ResolveOne(Sent sent) {
  const auto& [request, life] = sent;
  BOOST_OUTCOME_CO_TRY(adopted, co_await port_.Resolve(request));
  LogInfo("a claim whose reply was lost is resolved",
          {{"shard", parts_.shard}, {"sent", request.ids.size()}, {"adopted", adopted.size()}});
  parts_.attempts.in_flight().LeaveMissed(request, adopted);
  co_await AcceptResolved(std::move(adopted), life);
  co_return Status{};
}

// They are claimed already: while somebody runs alone they go back.
Step<> Claimer::AcceptResolved(Tasks tasks, std::shared_ptr<Lease> life) {
  for (Task& task : tasks) {
    if (parts_.gate.EnterClaimed()) {
      Tasks one;
      one.push_back(std::move(task));
      const Status accepted = co_await Accept(std::move(one), life, false);
      (void)accepted;  // a key that can't be confirmed now gives its task back
    } else {
      parts_.attempts.EndAtOnce(task, life, GivenBack(), false);
    }
  }
}

// Claimed tasks, inside the gate and the in-flight set, on their way to the run stage.
Step<Status> Claimer::Accept(Tasks tasks, std::shared_ptr<Lease> life, bool solo) {
  const Status confirmed = co_await SkipDuplicates(tasks, life, solo);
  if (!solo) {
    const std::map<TaskKey, std::size_t> rescues = co_await ReadRescues(tasks);
    std::set<TaskKey> ended;
    for (const Task& task : tasks) {
      if (!suspects_.MayObject(task)) continue;
      const auto read = rescues.find(task.key);
      if (read != rescues.end()) suspects_.Note(task, read->second);
      const std::optional<Outcome> objection = suspects_.Objection(task);
      if (!objection) continue;
      parts_.attempts.EndAtOnce(task, life, *objection, false);
      ended.insert(task.key);
    }
    if (!ended.empty()) std::erase_if(tasks, [&](const Task& task) { return ended.contains(task.key); });
  }
  if (!tasks.empty()) parts_.attempts.Dispatch(std::move(tasks), life, solo);
  co_return confirmed;
}

Step<std::map<TaskKey, std::size_t>> Claimer::ReadRescues(const Tasks& tasks) {
  std::map<TableName, std::vector<std::uint64_t>> asked;
  for (const Task& task : tasks) {
    if (suspects_.MayObject(task) && suspects_.WantsRecord(task))
      asked[task.key.table].push_back(task.key.id);
  }
  std::map<TaskKey, std::size_t> rescues;
  for (const auto& [table, ids] : asked) {
    const auto counts = co_await port_.RescuesOf(table, ids);
    if (!counts) continue;
    for (const std::uint64_t id : ids) {
      const auto found = counts->find(id);
      rescues[{table, id}] = found == counts->end() ? 0 : found->second;
    }
  }
  co_return rescues;
}

Step<Status> Claimer::SkipDuplicates(Tasks& tasks, std::shared_ptr<Lease> life, bool solo) {
  std::map<TableName, Tasks> keyed;
  for (const Task& task : tasks) {
    if (!task.biz_key.empty()) keyed[task.key.table].push_back(task);
  }
  Status status;
  if (keyed.empty()) co_return status;
  std::map<TaskKey, KeyVerdict> verdicts;
  for (const auto& [table, of_table] : keyed) {
    const auto confirmed = co_await port_.ConfirmKeys(life->incarnation(), of_table);
    if (!confirmed) {
      status = Fail(confirmed.error());
      continue;
    }
    for (const KeyVerdict& verdict : *confirmed) verdicts[verdict.task] = verdict;
  }
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
    parts_.attempts.EndAtOnce(task, life, outcome, solo);
    return true;
  });
  co_return status;
}

}  // namespace millrace::engine

#include "framework/worker/scanner.h"

#include <algorithm>

#include "framework/base/log.h"
#include "framework/policy/group_order.h"

namespace millrace {
namespace {

constexpr Micros kFirstPause = std::chrono::milliseconds(100);
constexpr Micros kLongestPause = std::chrono::seconds(2);
constexpr Micros kSolitudePatience = std::chrono::seconds(60);  // then the others work for as long
constexpr Micros kSuspectPause = std::chrono::milliseconds(20);
constexpr Micros kSoon = std::chrono::seconds(2);  // given back by the engine, and due again in a moment
constexpr int kMapCostFactor = 50;                 // of the map's own cost is the poll interval at least
constexpr std::uint32_t kSuspectCrashes = 2;
constexpr std::uint32_t kQuarantineCrashes = 3;
constexpr std::size_t kSuspectRescues = 5;
constexpr std::size_t kSmallestPage = 100;  // rows: a page may be full of rows that run already
constexpr std::size_t kMostPages = 64;      // pages read for one lane before it claims what was found

}  // namespace

Scanner::Scanner(Parts parts, std::unique_ptr<TaskStore> store, std::unique_ptr<TaskDesk> desk)
    : parts_(std::move(parts)),
      store_(std::move(store)),
      desk_(std::move(desk)),
      cursors_(parts_.engine.rewind) {}

void Scanner::Start() {
  thread_ = Thread("scan", [this] { Run(); });
}

void Scanner::StopClaiming() {
  claiming_.store(false);
  Wake();
}

void Scanner::Stop() {
  claiming_.store(false);
  stopping_.store(true);
  Wake();
  thread_.Join();
}

void Scanner::Run() {
  while (!stopping_.load()) wake_.WaitFor(Round());
}

void Scanner::Report(const Error& error) {
  if (trouble_pause_ == Micros(0)) {
    LogWarning("scanning is held up; it goes on as soon as it can",
               {{"shard", parts_.shard}, {"error", error.message}});
  }
  failed_ = true;
}

Micros Scanner::Round() {
  failed_ = false;
  idle_.store(false);
  ResolvePending();
  const std::shared_ptr<Standing> life = parts_.host.Life();
  if (!claiming_.load() || !life || !life->MayStart(parts_.clock.Now())) {
    ForgetSuspect();
    quiet_.store(!claiming_.load());
    return parts_.engine.poll;
  }
  TrySuspect(life);

  const bool was_empty = parts_.in_flight.Empty();
  const BootTime asked = parts_.clock.Now();
  const auto map = store_->Due(parts_.slices.Slices(parts_.shard));
  const Micros cost = parts_.clock.Now() - asked;
  // A little more often than the bound, which is to hold for the claim and the start too.
  Micros next = std::max(parts_.engine.poll * 9 / 10, kMapCostFactor * cost);
  if (map) {
    cursors_.Refresh(asked, map->groups);
    for (const DueGroup& group : map->groups) {
      if (group.first_run_at > map->now) next = std::min(next, group.first_run_at - map->now);
    }
    std::vector<LaneWork> lanes = WorkOf(*map);
    for (bool more = true; more && !failed_ && claiming_.load() && parts_.clock.Now() - asked < next;) {
      more = false;
      for (LaneWork& work : lanes) more = Fill(work, life) || more;
    }
    idle_.store(parts_.watch_idle && !failed_ && NothingLeft(*map, was_empty));
  } else {
    Report(map.error());
  }
  if (failed_) {
    trouble_pause_ = std::clamp(trouble_pause_ * 2, kFirstPause, kLongestPause);
    return trouble_pause_;
  }
  if (trouble_pause_ != Micros(0)) LogInfo("scanning goes on", {{"shard", parts_.shard}});
  trouble_pause_ = Micros(0);
  if (suspect_) return kSuspectPause;
  return std::max(next - (parts_.clock.Now() - asked), Micros(0));
}

std::vector<Scanner::LaneWork> Scanner::WorkOf(const DueMap& map) {
  std::map<std::string, std::vector<const DueGroup*>> by_type;
  for (const DueGroup& group : map.groups) {
    if (group.first_run_at <= map.now) by_type[group.handler].push_back(&group);
  }
  const std::uint64_t turn = turn_++;
  std::vector<LaneWork> lanes;
  for (auto& [type, groups] : by_type) {
    LaneWork work;
    work.lane = parts_.lanes.For(type);
    if (work.lane == nullptr) continue;
    std::vector<GroupRank> ranks;
    ranks.reserve(groups.size());
    for (const DueGroup* group : groups) ranks.push_back({group->urgency, cursors_.WaitingSince(*group)});
    for (std::size_t i : OrderGroups(ranks, turn)) work.groups.push_back(groups[i]);
    lanes.push_back(std::move(work));
  }
  return lanes;
}

bool Scanner::Fill(LaneWork& work, const std::shared_ptr<Standing>& life) {
  if (parts_.gate.Wanted() || parts_.in_flight.Size() + kMaxBatchRows > InFlight::kMost) return false;
  const std::size_t wanted = std::min<std::size_t>(work.lane->Room(), parts_.engine.batch);
  if (wanted == 0) return false;
  Candidates found;
  std::size_t pages = 0;
  for (const DueGroup* group : work.groups) {
    while (found.count < wanted && pages < kMostPages && cursors_.MayHaveMore(*group)) {
      ++pages;
      if (!ScanInto(*group, wanted - found.count, found)) return false;
    }
    if (found.count >= wanted) break;
  }
  const bool any = found.count > 0;
  ClaimAll(std::move(found), life);
  return any;
}

bool Scanner::ScanInto(const DueGroup& group, std::size_t limit, Candidates& found) {
  ScanRequest request{group, cursors_.At(group), std::max(limit, kSmallestPage)};
  const auto rows = store_->Scan(request);
  if (!rows) {
    Report(rows.error());
    return false;
  }
  ScanPosition last = request.after;
  bool full = rows->size() == request.limit;
  const std::size_t enough = found.count + limit;
  for (const ScanRow& row : *rows) {
    if (found.count == enough) {
      full = true;
      break;
    }
    last = {row.run_at, row.id};
    // Running rows are the tender's business: it adopts our own and rescues those of the dead.
    if (row.state != TaskState::Waiting || parts_.in_flight.Contains(group.table, row.id)) continue;
    if (IsSuspect(row, group.table)) {
      const BootTime now = parts_.clock.Now();
      if (!suspect_ && now >= no_suspects_before_) suspect_ = Suspect{group.table, row.id, row.attempt, now};
      continue;
    }
    found.by_attempt[{group.table, row.attempt}].push_back(row.id);
    ++found.count;
  }
  cursors_.Advance(group, last, rows->size(), full);
  return true;
}

bool Scanner::IsSuspect(const ScanRow& row, const std::string& table) const {
  return (row.crashes >= kSuspectCrashes && row.crashes < kQuarantineCrashes) ||
         often_rescued_.contains({table, row.id});
}

void Scanner::ClaimAll(Candidates found, const std::shared_ptr<Standing>& life) {
  for (auto& [key, ids] : found.by_attempt) {
    if (failed_) return;
    Claim({key.first, life->incarnation(), key.second, std::move(ids)}, life);
  }
}

void Scanner::Claim(ClaimRequest request, const std::shared_ptr<Standing>& life) {
  request.ids = parts_.in_flight.Enter(request.table, request.ids);
  if (request.ids.empty()) return;
  if (!parts_.gate.Enter(request.ids.size())) {
    parts_.in_flight.Leave(request.table, request.ids);
    return;
  }
  auto claimed = store_->Claim(request);
  const std::size_t count = request.ids.size();
  if (!claimed) {
    parts_.gate.Leave(count);
    Report(claimed.error());
    if (claimed.error().code == ErrorCode::Unknown) {
      unknown_.emplace_back(std::move(request), life);
    } else {
      parts_.in_flight.Leave(request.table, request.ids);
    }
    return;
  }
  parts_.gate.Leave(count - claimed->size());
  std::set<std::uint64_t> missed(request.ids.begin(), request.ids.end());
  for (const Task& task : *claimed) missed.erase(task.key.id);
  parts_.in_flight.Leave(request.table, std::vector<std::uint64_t>(missed.begin(), missed.end()));
  Accept(std::move(*claimed), life);
}

// Claimed tasks, inside the gate and the in-flight set, on their way to the lanes.
void Scanner::Accept(std::vector<Task> tasks, const std::shared_ptr<Standing>& life, bool solo) {
  SkipDuplicates(tasks, life, solo);
  if (!solo) {
    PickOutSuspects(tasks, life);
    PickOutOftenRescued(tasks, life);
  }
  if (!tasks.empty()) parts_.host.Dispatch(std::move(tasks), life, solo);
}

void Scanner::SkipDuplicates(std::vector<Task>& tasks, const std::shared_ptr<Standing>& life, bool solo) {
  std::map<std::string, std::vector<Task>> keyed;
  for (const Task& task : tasks) {
    if (!task.biz_key.empty()) keyed[task.key.table].push_back(task);
  }
  std::map<TaskKey, KeyVerdict> verdicts;
  for (const auto& [table, of_table] : keyed) {
    const auto confirmed = store_->ConfirmKeys(life->incarnation(), of_table);
    if (!confirmed) {
      Report(confirmed.error());
      continue;
    }
    for (const KeyVerdict& verdict : *confirmed) verdicts[verdict.task] = verdict;
  }
  if (keyed.empty()) return;
  std::erase_if(tasks, [&](const Task& task) {
    if (task.biz_key.empty()) return false;
    Outcome outcome;
    const auto verdict = verdicts.find(task.key);
    if (verdict == verdicts.end()) {  // not known whether the key is its own: try again a little later
      outcome.kind = OutcomeKind::GiveBack;
      outcome.delay = parts_.engine.poll;
    } else if (verdict->second.mine) {
      return false;
    } else {
      outcome.kind = OutcomeKind::Skip;
      outcome.text = "duplicate of " + parts_.shard + "/" + verdict->second.holder;
    }
    parts_.host.LandAtOnce(task, life, std::move(outcome), solo);
    return true;
  });
}

// Charged between its scan and its claim, or claimed by a statement whose reply was lost: it is to run alone.
void Scanner::PickOutSuspects(std::vector<Task>& tasks, const std::shared_ptr<Standing>& life) {
  std::erase_if(tasks, [&](const Task& task) {
    if (task.crashes < kSuspectCrashes || task.crashes >= kQuarantineCrashes) return false;
    Outcome outcome;
    outcome.kind = OutcomeKind::GiveBack;
    parts_.host.LandAtOnce(task, life, std::move(outcome), false);
    return true;
  });
}

// Where flight recorders are lost with their machine, the rescues noted in millrace_attempts count instead:
// many claims without as many failures are looked into.
void Scanner::PickOutOftenRescued(std::vector<Task>& tasks, const std::shared_ptr<Standing>& life) {
  std::erase_if(tasks, [&](const Task& task) {
    if (task.attempt <= task.failures + kSuspectRescues) return false;
    const auto record = desk_->Get(task.key);
    if (!record) return false;
    const auto rescues = static_cast<std::size_t>(
        std::count_if(record->attempts.begin(), record->attempts.end(),
                      [](const AttemptRecord& attempt) { return attempt.kind == "rescued"; }));
    if (rescues < kSuspectRescues) return false;
    Outcome outcome;
    if (rescues > kSuspectRescues) {
      outcome.kind = OutcomeKind::Fail;
      outcome.text = "quarantined: " + std::to_string(rescues) + " workers died while they had it";
      outcome.error_class = "crash";
      often_rescued_.erase({task.key.table, task.key.id});
    } else {
      outcome.kind = OutcomeKind::GiveBack;
      outcome.delay = Micros(0);
      often_rescued_.insert({task.key.table, task.key.id});
    }
    parts_.host.LandAtOnce(task, life, std::move(outcome), false);
    return true;
  });
}

void Scanner::ResolvePending() {
  std::vector<std::pair<ClaimRequest, std::shared_ptr<Standing>>> pending;
  pending.swap(unknown_);
  for (auto& [request, life] : pending) {
    if (!life->Alive()) {  // whoever marked it dead sees to its rows
      parts_.in_flight.Leave(request.table, request.ids);
      continue;
    }
    auto adopted =
        failed_ ? Result<std::vector<Task>>(Fail(ErrorCode::Unavailable, "")) : store_->Resolve(request);
    if (!adopted) {
      if (!failed_) Report(adopted.error());
      unknown_.emplace_back(std::move(request), life);
      continue;
    }
    LogInfo("a claim whose reply was lost is resolved",
            {{"shard", parts_.shard}, {"sent", request.ids.size()}, {"adopted", adopted->size()}});
    std::set<std::uint64_t> missed(request.ids.begin(), request.ids.end());
    for (const Task& task : *adopted) missed.erase(task.key.id);
    parts_.in_flight.Leave(request.table, std::vector<std::uint64_t>(missed.begin(), missed.end()));
    for (const Task& task : *adopted) {
      // They are claimed already: while somebody runs alone they go back.
      const bool may_run = parts_.gate.EnterClaimed();
      if (may_run) {
        Accept({task}, life);
        continue;
      }
      Outcome outcome;
      outcome.kind = OutcomeKind::GiveBack;
      parts_.host.LandAtOnce(task, life, std::move(outcome), false);
    }
  }
}

// Claims a task that has killed its process twice, once nothing else runs in this worker.
void Scanner::TrySuspect(const std::shared_ptr<Standing>& life) {
  if (!suspect_) return;
  const std::string name = ToString(TaskName{parts_.shard, {suspect_->table, suspect_->id}});
  if (!parts_.gate.EnterAlone(name)) {
    // Beside a handler that runs for long nobody else shall stand still for more than this.
    if (parts_.clock.Now() - suspect_->since > kSolitudePatience) ForgetSuspect();
    return;
  }
  ClaimRequest request{suspect_->table, life->incarnation(), suspect_->attempt, {suspect_->id}};
  suspect_.reset();
  request.ids = parts_.in_flight.Enter(request.table, request.ids);
  auto claimed =
      request.ids.empty() ? Result<std::vector<Task>>(std::vector<Task>{}) : store_->Claim(request);
  if (claimed && !claimed->empty()) {
    LogWarning("a task whose runs have killed its process is run alone", {{"task", name}});
    Accept(std::move(*claimed), life, true);
    return;
  }
  parts_.gate.LeaveAlone();
  if (claimed) {
    parts_.in_flight.Leave(request.table, request.ids);
    return;
  }
  Report(claimed.error());
  if (claimed.error().code == ErrorCode::Unknown) {
    unknown_.emplace_back(std::move(request), life);
  } else {
    parts_.in_flight.Leave(request.table, request.ids);
  }
}

void Scanner::ForgetSuspect() {
  if (!suspect_) return;
  parts_.gate.Withdraw(ToString(TaskName{parts_.shard, {suspect_->table, suspect_->id}}));
  suspect_.reset();
  no_suspects_before_ = parts_.clock.Now() + kSolitudePatience;
}

bool Scanner::NothingLeft(const DueMap& map, bool was_empty) {
  if (!was_empty || !parts_.in_flight.Empty() || !unknown_.empty() || suspect_) return false;
  for (const DueGroup& group : map.groups) {
    if (group.first_run_at > map.now + kSoon) continue;
    if (parts_.lanes.For(group.handler) != nullptr) return false;
    // Nobody here can run these, but some may be running elsewhere, or be left by the dead.
    const auto rows = store_->Scan({group, {}, kMaxBatchRows});
    if (!rows || std::any_of(rows->begin(), rows->end(),
                             [](const ScanRow& row) { return row.state == TaskState::Running; })) {
      return false;
    }
  }
  return true;
}

}  // namespace millrace

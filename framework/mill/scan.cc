#include "framework/mill/scan.h"

#include <algorithm>
#include <boost/algorithm/string/join.hpp>
#include <map>
#include <set>

#include "framework/base/log.h"
#include "framework/policy/group_order.h"

namespace millrace::engine {
namespace {

constexpr Micros kFirstPause = std::chrono::milliseconds(100);
constexpr Micros kLongestPause = std::chrono::seconds(2);
constexpr Micros kSuspectPause = std::chrono::milliseconds(20);
constexpr Micros kSoon = std::chrono::seconds(2);  // given back by the engine, and due again in a moment
constexpr Micros kAttendedPoll = std::chrono::seconds(2);  // somebody rings if anything is new
constexpr Micros kTellPaused = std::chrono::minutes(1);
constexpr std::size_t kSmallestPage = 100;  // rows: a page may be full of rows that run already
constexpr std::size_t kMostPages = 64;      // pages read for one lane before it claims what was found
constexpr std::size_t kShares = 8;  // so many groups at least have a part in what a lane takes at once

std::size_t CountTables(const std::vector<TableSlices>& slices) {
  std::set<TableName> tables;
  for (const TableSlices& part : slices) tables.insert(part.table);
  return tables.size();
}

}  // namespace

Scanner::Scanner(Parts parts, ScanPort& port)
    : parts_(parts),
      port_(port),
      suspects_(parts_.shard, parts_.gate),
      claimer_({parts_.shard, parts_.attempts, parts_.gate, parts_.engine, parts_.counters, parts_.beat},
               port_, suspects_) {}

void Scanner::LookAgain() {
  look_again_.store(true);
  port_.Wake();
}

void Scanner::Ring() {
  rung_.store(true);
  if (!busy_.load()) port_.Wake();
}

void Scanner::SetAttended(bool attended) {
  if (attended_.exchange(attended) != attended) LookAgain();
}

bool Scanner::RingDue() {
  if (busy_.load() || trouble_pause_ != Micros(0)) return false;
  if (rung_.exchange(false)) rings_.Rung(parts_.clock.Now());
  return parts_.clock.Now() >= rings_.Next();
}

// A ring that came while it was busy has woken nobody: it is seen here, once there is room.
Micros Scanner::UntilNext() {
  busy_.store(full_);
  if (full_) return look_.until - parts_.clock.Now();
  if (rung_.load()) return Micros(0);
  return std::min(look_.until, rings_.Next()) - parts_.clock.Now();
}

void Scanner::StopClaiming() {
  claiming_.store(false);
  parts_.gate.WithdrawAll(parts_.shard);
  port_.Wake();
}

void Scanner::Stop() {
  stopping_.store(true);
  StopClaiming();
}

ScanView Scanner::View() const {
  MutexLock lock(mutex_);
  return view_;
}

std::shared_ptr<const DueMap> Scanner::LatestMap() const {
  MutexLock lock(mutex_);
  return latest_;
}

Step<> Scanner::Run() {
  while (!stopping_.load()) {
    const Micros wait = co_await Round();
    if (!stopping_.load()) co_await port_.Rest(wait);
  }
  suspects_.Forget();  // the gate is other shards' too
}

bool Scanner::Note(const Status& status) {
  if (status) return true;
  if (trouble_pause_ == Micros(0)) {
    LogWarning("scanning is held up; it goes on as soon as it can",
               {{"shard", parts_.shard}, {"error", status.error().message}});
  }
  failed_ = true;
  MutexLock lock(mutex_);
  view_.error = status.error().message;
  return false;
}

Step<Micros> Scanner::Round() {
  const EngineConfig engine = parts_.engine.Get();
  failed_ = false;
  idle_.store(false);
  const Status resolved = co_await claimer_.Resolve();
  Note(resolved);
  const std::shared_ptr<Lease> life = parts_.lives.Own();
  if (!claiming_.load() || !life || !life->MayStart(parts_.clock.Now())) {
    suspects_.Forget();
    look_ = {};
    quiet_.store(!claiming_.load());
    co_return engine.poll;
  }
  Suspects::MayClaim may_claim = [this](const DueGroup& group) { return MayClaim(group); };
  const Micros busy = suspects_.Waits() ? parts_.runner.BusyFor() : Micros(0);
  const Status claimed = co_await claimer_.ClaimSuspect(life, std::move(may_claim), busy);
  Note(claimed);

  const bool was_empty = parts_.attempts.in_flight().Empty();
  const bool rung = RingDue();
  const bool looks = look_again_.exchange(false) || rung || parts_.clock.Now() >= look_.until;
  if (looks) co_await TakeLook(engine);
  full_ = false;
  if (look_.map) co_await WorkOff(engine.batch, life);
  if (parts_.watch_idle && looks && look_.full && !failed_) {
    const bool nothing_left = co_await NothingLeft(look_.map, was_empty);
    NoteIdle(nothing_left);
  }
  if (failed_) co_return AfterTrouble();
  if (trouble_pause_ != Micros(0)) LogInfo("scanning goes on", {{"shard", parts_.shard}});
  trouble_pause_ = Micros(0);
  if (suspects_.Waits()) co_return kSuspectPause;
  co_return std::max(UntilNext(), Micros(0));
}

void Scanner::NoteIdle(bool nothing_left) {
  {
    MutexLock lock(mutex_);
    if (!nothing_left) {
      idleness_.reset();
    } else if (idleness_) {
      idleness_->looked = look_.asked;
    } else {
      idleness_ = {look_.asked, look_.asked};
    }
  }
  idle_.store(nothing_left);
}

IdleSpan Scanner::Idleness() const {
  MutexLock lock(mutex_);
  return idleness_.value_or(IdleSpan{BootTime::max(), BootTime{}});
}

Micros Scanner::AfterTrouble() {
  look_ = {};
  trouble_pause_ = std::clamp(trouble_pause_ * 2, kFirstPause, kLongestPause);
  return trouble_pause_;
}

Step<> Scanner::TakeLook(EngineConfig engine) {
  const std::vector<TableSlices> slices = parts_.scope.Slices();
  const BootTime asked = parts_.clock.Now();
  look_ = {};
  const DueFloor floor = schedule_.Floor(asked, slices);
  auto map = co_await ReadMap(slices, floor);
  ScanView view;
  const Micros cost = parts_.clock.Now() - asked;
  rings_.Looked(asked, cost);
  Micros rest{0};
  if (!map) {
    Note(Fail(map.error()));
    view.error = map.error().message;
  } else {
    view.reachable = true;
    schedule_.Looked(asked, cost, floor, *map, engine.poll, CountTables(slices));
    if (map->now != WallTime{}) parts_.attempts.NoteClock(asked, map->now);
    look_.full = floor.Empty();
    look_.asked = asked;
    look_.map = std::make_shared<const DueMap>(std::move(*map));
    if (parts_.scope.FollowShard(look_.map->pauses)) pauses_changed_.store(true);
    cursors_.Refresh(asked, look_.map->groups, engine.rewind);
    look_.work = WorkOf(*look_.map, view);
    if (MayRest(asked)) rest = kAttendedPoll;
    look_.until = std::max(schedule_.Next(), asked + rest);
    for (const DueGroup& group : look_.map->groups) {
      if (group.first_run_at <= look_.map->now) continue;
      look_.until = std::min(look_.until, asked + (group.first_run_at - look_.map->now));
    }
  }
  view.map_cost = schedule_.FullCost();
  view.poll = std::max(schedule_.Interval(), rest);
  MutexLock lock(mutex_);
  latest_ = look_.map;
  view_ = std::move(view);
}

bool Scanner::MayRest(BootTime now) const {
  return attended_.load() && !parts_.watch_idle && look_.full && look_.work.empty() && !rings_.Recent(now) &&
         parts_.attempts.in_flight().Empty();
}

// A worker that has no part in the shard now asks it nothing.
Step<Result<DueMap>> Scanner::ReadMap(std::vector<TableSlices> slices, DueFloor floor) {
  if (slices.empty()) co_return DueMap{};
  auto map = co_await port_.Due(slices, floor);
  // The slices may have changed since they were read.
  if (map) std::erase_if(map->groups, [this](const DueGroup& group) { return !parts_.scope.Owns(group); });
  co_return map;
}

std::vector<Scanner::TypeWork> Scanner::WorkOf(const DueMap& map, ScanView& view) {
  std::map<std::string, std::vector<const DueGroup*>> by_type;
  for (const DueGroup& group : map.groups) {
    if (group.first_run_at <= map.now) by_type[group.handler].push_back(&group);
  }
  std::vector<TypeWork> work;
  for (auto& [type, groups] : by_type) {
    if (!parts_.runner.Runs(type)) {
      view.unrunnable.push_back(type);
      continue;
    }
    TypeWork& of_type = work.emplace_back(TypeWork{type, std::move(groups), {}});
    for (const DueGroup* group : of_type.groups) {
      view.lag = std::max(view.lag, map.now - group->first_run_at);
      of_type.ranks.push_back(cursors_.Rank(*group));
    }
  }
  return work;
}

Step<> Scanner::WorkOff(std::size_t most, std::shared_ptr<Lease> life) {
  for (bool more = true; more;) {
    more = false;
    for (TypeWork& work : look_.work) {
      if (failed_ || !claiming_.load()) co_return;
      const bool filled = co_await Fill(work, most, life);
      more = filled || more;
    }
    if (parts_.clock.Now() >= look_.until) co_return;
  }
}

bool Scanner::MayClaim(const DueGroup& group) const {
  return parts_.scope.Owns(group) && !parts_.scope.Paused(group);
}

Step<bool> Scanner::Fill(TypeWork& work, std::size_t most, std::shared_ptr<Lease> life) {
  if (parts_.gate.Wanted()) co_return false;
  Candidates found;
  found.wanted = std::min(parts_.runner.Room(work.type, parts_.attempts), most);
  full_ = full_ || found.wanted == 0;
  if (found.wanted == 0) co_return false;
  found.room = parts_.attempts.in_flight().Room();
  const bool gathered = co_await Gather(work, found);
  if (!gathered) co_return false;
  for (ClaimRequest& request : found.claims) {
    request.incarnation = life->incarnation();
    const Status claimed = co_await claimer_.Claim(std::move(request), life);
    if (!Note(claimed)) break;
  }
  co_return found.count > 0;
}

// Equally urgent groups get a share each before one of them gets more.
Step<bool> Scanner::Gather(TypeWork& work, Candidates& found) {
  ++turn_;
  const std::size_t share = std::max((found.wanted + kShares - 1) / kShares, kSmallestPage);
  const std::vector<std::size_t> order = OrderGroups(work.ranks, turn_);
  for (auto equal = order.begin(); equal != order.end() && !found.Full();) {
    const auto end = std::find_if(equal, order.end(), [&](std::size_t i) {
      return work.ranks[i].urgency != work.ranks[*equal].urgency;
    });
    for (const std::size_t part : {share, found.wanted}) {
      const bool read = co_await GatherFrom(work, {equal, end}, part, found);
      if (!read) co_return false;
    }
    equal = end;
  }
  co_return true;
}

// As many groups at once as have what is wanted, if each has its share; a group whose page had rows that run
// already stays until it has given its share or has no more.
Step<bool> Scanner::GatherFrom(TypeWork& work, std::span<const std::size_t> groups, std::size_t most,
                               Candidates& found) {
  std::vector<Share> shares;
  auto next = groups.begin();
  while (!found.Full()) {
    std::erase_if(shares, [&](const Share& share) { return share.left == 0 || !MayHaveMore(*share.group); });
    const std::size_t wanted = found.wanted - found.count;
    const std::size_t enough = std::min(wanted, std::max<std::size_t>(found.room / mean_bytes_, 1));
    std::size_t rows = 0;
    for (const Share& share : shares) rows += PageOf(share, found);
    for (; next != groups.end() && rows < enough; ++next) {
      const DueGroup& group = *work.groups[*next];
      work.ranks[*next].served = turn_;
      cursors_.Served(group, turn_);
      if (!MayHaveMore(group)) continue;
      rows += PageOf(shares.emplace_back(Share{&group, std::min(most, wanted)}), found);
    }
    if (shares.empty()) co_return true;
    const bool read = co_await ScanInto(shares, found);
    if (!read) co_return false;
  }
  co_return true;
}

bool Scanner::MayHaveMore(const DueGroup& group) const {
  return MayClaim(group) && cursors_.MayHaveMore(group);
}

bool Scanner::Candidates::Full() const { return count >= wanted || room == 0 || pages >= kMostPages; }

bool Scanner::Candidates::Takes(std::size_t bytes) {
  const bool fits = bytes <= room || count == 0;
  room = fits ? room - std::min(room, bytes) : 0;
  return fits;
}

// Running rows are the tender's business: it adopts our own and rescues those of the dead.
bool Scanner::IsFree(const DueGroup& group, const ScanRow& row) {
  return row.state == TaskState::Waiting && !suspects_.IsSuspect(group, row);
}

// A row's size costs the database a look at its texts: it is asked for no more rows than may fit.
std::size_t Scanner::PageOf(const Share& share, const Candidates& found) const {
  return std::max(std::min(share.left, found.room / mean_bytes_), kSmallestPage);
}

void Scanner::Candidates::Add(const TableName& table, ScanRow& row) {
  const auto fits = [&](const ClaimRequest& claim) {
    return claim.attempt == row.attempt && claim.contents.empty() == !row.contents && claim.table == table;
  };
  auto claim = std::find_if(claims.rbegin(), claims.rend(), fits);
  if (claim == claims.rend()) {
    claims.push_back({table, {}, row.attempt, {}});
    claim = claims.rbegin();
  }
  claim->ids.push_back(row.id);
  if (row.contents) claim->contents.push_back(std::move(*row.contents));
  ++count;
}

Step<bool> Scanner::ScanInto(std::span<Share> shares, Candidates& found) {
  std::vector<ScanRequest> requests;
  for (const Share& share : shares)
    requests.push_back({*share.group, cursors_.At(*share.group), PageOf(share, found), true, true});
  found.pages += requests.size();
  auto pages = co_await port_.ScanEach(requests);
  if (!pages) co_return Note(Fail(pages.error()));
  for (std::size_t i = 0; i < shares.size() && !found.Full(); ++i) {
    const std::size_t limit = std::min(shares[i].left, found.wanted - found.count);
    shares[i].left -= Pick(requests[i], (*pages)[i], limit, found);
  }
  co_return true;
}

std::size_t Scanner::Pick(const ScanRequest& request, std::vector<ScanRow>& rows, std::size_t limit,
                          Candidates& found) {
  const DueGroup& group = request.group;
  ScanPosition last = request.after;
  bool full = rows.size() == request.limit;
  const std::size_t before = found.count;
  std::size_t all_bytes = 0;
  for (const ScanRow& row : rows) all_bytes += MemoryBudget::Of(row.bytes);
  if (!rows.empty()) mean_bytes_ = all_bytes / rows.size();
  const std::vector<bool> in_hand = parts_.attempts.in_flight().Contains(group.table, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ScanRow& row = rows[i];
    const std::size_t bytes = MemoryBudget::Of(row.bytes);
    if (!in_hand[i] && IsFree(group, row)) {
      if (found.count == before + limit || !found.Takes(bytes)) {
        full = true;
        break;
      }
      found.Add(group.table, row);
    }
    last = {row.run_at, row.id};
  }
  cursors_.Advance(group, last, rows.size(), full);
  return found.count - before;
}

// What is due and paused is left: the worker waits for it, and says so.
Step<bool> Scanner::NothingLeft(std::shared_ptr<const DueMap> map, bool was_empty) {
  if (!was_empty || !parts_.attempts.in_flight().Empty()) co_return false;
  if (claimer_.HasUnknown() || suspects_.Waits()) co_return false;
  bool paused = false;
  for (const DueGroup& group : map->groups) {
    if (group.first_run_at > map->now + kSoon) continue;
    if (!parts_.runner.Runs(group.handler)) {
      const bool may_run = co_await MayStillRun(group);
      if (may_run) co_return false;
      continue;
    }
    if (!parts_.scope.Paused(group)) co_return false;
    paused = true;
  }
  const BootTime now = parts_.clock.Now();
  if (paused && (!told_paused_ || now - *told_paused_ >= kTellPaused)) {
    told_paused_ = now;
    LogWarning(
        "all that is left is paused: the worker is not idle, it waits for the pause to end",
        {{"shard", parts_.shard}, {"paused", boost::algorithm::join(parts_.scope.PauseNames(), ", ")}});
  }
  co_return !paused;
}

// Nobody here can run these, but some may be running elsewhere, or be left by the dead.
Step<bool> Scanner::MayStillRun(const DueGroup& group) {
  const std::vector<ScanRequest> requests{{group, HeadOf(group), kMaxBatchRows}};
  const auto pages = co_await port_.ScanEach(requests);
  co_return !pages || std::any_of(pages->front().begin(), pages->front().end(),
                                  [](const ScanRow& row) { return row.state == TaskState::Running; });
}

}  // namespace millrace::engine

// What a look at the shard shows, and what follows from it.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "framework/mill/scan.h"

namespace millrace::engine {
namespace {

constexpr Micros kDueSoon = std::chrono::seconds(2);  // given back by the engine, and due again in a moment
constexpr Micros kLookForAgain = std::chrono::seconds(1);
constexpr Micros kAttendedPoll = std::chrono::seconds(2);  // somebody rings if anything is new
constexpr Micros kQuietPoll = std::chrono::seconds(4);     // and hears that nothing is written

std::size_t CountTables(const std::vector<TableSlices>& slices) {
  std::set<TableName> tables;
  for (const TableSlices& part : slices) tables.insert(part.table);
  return tables.size();
}

// The first task that comes would wait for another connection than one that is unused for half a lease.
Micros QuietPoll(Micros lease) { return std::clamp(lease * 2 / 5, kAttendedPoll, kQuietPoll); }

}  // namespace

Step<> Scanner::TakeLook(EngineConfig engine) {
  const std::uint64_t part = part_.Version();
  const std::uint64_t gains = parts_.scope.Gains();
  std::vector<TableSlices> slices = part_.Slices();
  const BootTime asked = parts_.clock.Now();
  const bool left_out = std::erase_if(slices, [&](const TableSlices& of) {
                          return shared_.unreadable.Rests(of.table, parts_.clock);
                        }) > 0;
  PrepareLook(part, gains);
  look_ = {};
  const DueWanted wanted = Wanted(asked, slices);
  auto map = co_await ReadMap(slices, wanted);
  ScanView view;
  const Micros cost = parts_.clock.Now() - asked;
  // A table that keeps a map waiting rests; the next will be as quick as ever.
  rings_.Looked(asked, map && !map->refused.empty() ? Micros(0) : cost);
  Micros rest{0};
  if (!map) {
    Note(Fail(map.error()));
    view.error = map.error().message;
  } else {
    known_.Take(wanted, *map, cursors_);
    schedule_.Looked(asked, cost, wanted.IsPart(), engine.poll, CountTables(slices),
                     known_.Begun() && map->refused.empty() && !MayEnd(*map));
    // A strand that scans nothing has asked nobody. The moment of the answer, not of the question: the
    // store's clock taken for further than it is would end tasks before their time.
    const bool told = map->now != WallTime{};
    if (told) parts_.attempts.NoteClock(asked + cost, map->now);
    look_.full = !wanted.IsPart();
    look_.asked = asked;
    look_.part = part;
    look_.gains = gains;
    look_.map = std::make_shared<const DueMap>(std::move(*map));
    if (told && parts_.scope.FollowShard(look_.map->pauses, asked)) pauses_changed_.store(true);
    for (const auto& [table, why] : look_.map->refused) Rest(shared_.unreadable, table, cost, why);
    std::erase_if(slices, [&](const TableSlices& of) { return look_.map->refused.contains(of.table); });
    look_.left_out = left_out || !look_.map->refused.empty();
    co_await LookAtRounds(asked, slices);
    shared_.bands.Look(asked, *look_.map);
    ScanCursors::RewindingOf of;
    if (rounds_.Any() || shared_.bands.Any())
      of = [this](const DueGroup& group) { return RewindingOf(group); };
    // What went back to wait behind a cursor is known to no part any more.
    const Micros rewind = look_.full && known_.Begun() ? Micros(0) : engine.rewind;
    cursors_.Refresh(asked, look_.map->groups, rewind, of);
    look_.work = WorkOf(*look_.map, engine, view);
    KeepBrought();
    if (look_.work.empty() || brake_.Failing()) brake_.Answered(parts_.clock.Now(), Micros(0), brake_limit_);
    if (MayRest(asked)) rest = kAttendedPoll;
    look_.until = look_.quiet_until = NextLook(cost, rest);
    if (rest > Micros(0) && view.unrunnable.empty() && !look_.left_out)  // those end unwritten
      look_.quiet_until = NextLook(cost, QuietPoll(engine.lease));
  }
  view.poll = std::max(schedule_.Interval(), rest);
  view.speed = brake_.Speed();
  view.rounds = rounds_.Views();
  Publish(std::move(view));
}

void Scanner::Publish(ScanView view) {
  MutexLock lock(mutex_);
  view_ = std::move(view);
  newest_ = look_.map;
  if (look_.map && !look_.full) return;
  latest_ = look_.map;
  latest_part_ = look_.part;
  latest_gains_ = look_.gains;
  latest_whole_ = !look_.left_out;
}

void Scanner::PrepareLook(std::uint64_t part, std::uint64_t gains) {
  if (look_.part != part || look_.gains != gains) schedule_.Forget();
  if (!part_.IsFirst()) return;
  if (rounds_.Follow(parts_.engine.Scans())) schedule_.Forget();
  if (!rounds_.Any()) return;
  for (const auto& [type, back] : parts_.attempts.TakeGivenBack())
    rounds_.GivenBack(type, back.rows, back.due);
}

bool Scanner::MayEnd(const DueMap& map) const {
  return parts_.watch_idle && parts_.attempts.in_flight().Empty() &&
         std::none_of(map.groups.begin(), map.groups.end(),
                      [&](const DueGroup& group) { return group.first_run_at <= map.now; });
}

void Scanner::LookForAgain(const DueGroup& group, WallTime due) {
  known_.LookAgain(GroupKeyOf(group), due, parts_.clock.Now() + kLookForAgain);
}

void Scanner::KeepBrought() {
  // What belongs to a round, and when a band is looked at, says somebody else.
  if (look_.map->rows.empty() || look_.work.size() != 1 || rounds_.Any() || shared_.bands.Any()) return;
  DueRows first;
  for (const DueGroup* group : look_.work.front().groups) {
    const auto brought = look_.map->rows.find(GroupKeyOf(*group));
    if (brought == look_.map->rows.end()) return;
    std::vector<ScanRow>& rows = first[brought->first] = brought->second;
    std::erase_if(rows, [&](const ScanRow& row) { return row.run_at != group->first_run_at; });
    if (rows.empty()) return;
  }
  look_.brought = std::move(first);
}

std::map<TableName, std::vector<std::uint64_t>> Scanner::TakeRung() {
  std::vector<Ring> rung;
  {
    MutexLock lock(mutex_);
    rung.swap(rings_with_rows_);
  }
  std::map<TableName, std::vector<std::uint64_t>> rows;
  for (const Ring& ring : rung) {
    std::vector<std::uint64_t>& of_table = rows[*ring.table];
    of_table.insert(of_table.end(), ring.rows.begin(), ring.rows.end());
  }
  return rows;
}

// What belongs to a round is settled at its beginning.
DueWanted Scanner::Wanted(BootTime now, const std::vector<TableSlices>& slices) {
  const auto returned =
      parts_.attempts.TakeReturned([this](const DueGroup& group) { return part_.Has(group); });
  const bool part = schedule_.TakesPart(now, slices) && rounds_.Next() > now;
  auto rung = TakeRung();
  if (!part && schedule_.WantsParts(now) && known_.MayBegin()) return known_.WantedOfWhole();
  if (!part) return {.rows = std::move(rung)};
  for (const auto& [group, due] : returned) known_.Return(group, due);
  return known_.Wanted(now, cursors_);
}

// What comes due is looked for at its time, but not with one map after another where many do, each at its
// own: then those that the maps leave room for are found together.
BootTime Scanner::NextLook(Micros cost, Micros rest) const {
  BootTime next = std::min(std::max(schedule_.Next(), look_.asked + rest), shared_.bands.Next(look_.asked));
  const Micros soonest = RingLooks::kShare * cost;
  for (const DueGroup& group : look_.map->groups) {
    if (group.first_run_at <= look_.map->now || rounds_.Left(group.handler) == 0) continue;
    const Micros comes = group.first_run_at - look_.map->now;
    next = std::min(next, look_.asked + std::max(comes, soonest));
  }
  return next;
}

BootTime Scanner::NextLookAt(BootTime now) const {
  const bool quiet =
      now >= look_.until && now < look_.quiet_until && MayRest(now) && port_.UnchangedSince(look_.asked, now);
  return quiet ? look_.quiet_until : look_.until;
}

Step<> Scanner::LookAtRounds(BootTime now, std::vector<TableSlices> slices) {
  if (!part_.IsFirst()) co_return;
  if (!rounds_.Any()) co_return;
  const std::vector<TableName> tables = rounds_.Wanted(now, slices);
  ScanRounds::Greatest greatest;
  if (!tables.empty()) {
    const auto ids = co_await port_.GreatestIds(tables);
    if (!ids) {
      Note(Fail(ids.error()));
      co_return;
    }
    for (std::size_t i = 0; i < tables.size(); ++i) greatest[tables[i]] = (*ids)[i];
  }
  const auto in_hand = [this](const std::string& type) { return InHand(type); };
  rounds_.Look(
      now,
      {*look_.map, slices, greatest, [this](const std::string& type) { return parts_.runner.Runs(type); },
       [this](const DueGroup& group) { return parts_.scope.Paused(group) || Rests(group.table); },
       [this](const std::string& type) { return suspects_.Waits(type); }, in_hand});
}

bool Scanner::InHand(const std::string& type) const {
  return parts_.attempts.in_flight().Holds(type) || claimer_.HasUnknown() || suspects_.Waits(type);
}

bool Scanner::MayRest(BootTime now) const {
  return attended_.load() && !parts_.watch_idle && look_.full && look_.work.empty() && !rings_.Recent(now) &&
         parts_.attempts.in_flight().Empty();
}

Rewinding Scanner::RewindingOf(const DueGroup& group) {
  const Rewinding by_round = rounds_.RewindingOf(group);
  return by_round == Rewinding::AsNeeded ? shared_.bands.RewindingOf(group) : by_round;
}

// A worker that has no part in the shard now asks it nothing.
Step<Result<DueMap>> Scanner::ReadMap(std::vector<TableSlices> slices, DueWanted wanted) {
  if (slices.empty()) co_return DueMap{};
  auto map = co_await port_.Due(slices, wanted);
  // The slices may have changed since they were read.
  const auto is_others = [this](const DueGroup& group) { return !part_.Owns(group); };
  if (map) std::erase_if(map->groups, is_others);
  if (map) std::erase_if(map->after, is_others);
  co_return map;
}

std::vector<Scanner::TypeWork> Scanner::WorkOf(const DueMap& map, const EngineConfig& engine,
                                               ScanView& view) {
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
    std::erase_if(groups, [this](const DueGroup* group) {
      return !rounds_.Takes(*group) || shared_.bands.Left(*group) == 0;
    });
    if (groups.empty()) continue;
    TypeWork& of_type = work.emplace_back(TypeWork{type, std::move(groups), {}});
    for (const DueGroup* group : of_type.groups) {
      view.lag = std::max(view.lag, map.now - group->first_run_at);
      GroupRank& rank = of_type.ranks.emplace_back(cursors_.Rank(*group));
      rank.urgency = AgedUrgency(rank.urgency, map.now - rank.waiting_since, engine.aging);
    }
  }
  return work;
}

void Scanner::NoteIdle(bool nothing_left) {
  MutexLock lock(mutex_);
  nothing_left = nothing_left && look_.part == part_.Version();
  if (!nothing_left) {
    idleness_.reset();
  } else if (idleness_) {
    idleness_->looked = look_.asked;
  } else {
    idleness_ = {look_.asked, look_.asked};
  }
  idle_.store(nothing_left);
}

IdleSpan Scanner::Idleness() const {
  MutexLock lock(mutex_);
  return idleness_.value_or(IdleSpan{BootTime::max(), BootTime{}});
}

std::set<std::string> Scanner::LeftAside() const {
  MutexLock lock(mutex_);
  return left_aside_;
}

std::set<std::string> Scanner::HeldBack() const {
  std::shared_ptr<const DueMap> map;
  double speed = 1;
  {
    MutexLock lock(mutex_);
    map = newest_;
    speed = view_.speed;
  }
  if (!map) return {};
  std::set<std::string> held;
  for (const DueGroup& group : map->groups) {
    const std::string& type = group.handler;
    if (group.first_run_at > map->now || !parts_.runner.Runs(type)) continue;
    if (!AsideBecause(group).empty()) continue;  // that is left behind
    const auto gate = parts_.admission.Of(type);
    const std::string policy = gate ? gate->HeldBy(parts_.clock.Now(), parts_.clock.WallNow()) : "";
    if (!policy.empty()) {
      held.insert(type + ": its " + policy);
    } else if (shared_.bands.Left(group) == 0) {
      held.insert(type + ": the interval of its band");
    } else if (speed < 1) {
      held.insert(type + ": the brake");
    }
  }
  return held;
}

std::string Scanner::AsideBecause(const DueGroup& group) const {
  if (parts_.scope.OpenedByHand(group.handler)) return group.handler + ": its breaker is open by hand";
  if (parts_.scope.Paused(group)) return group.handler + " is paused";
  const std::string hours = parts_.admission.OutsideHours(group.handler);
  return hours.empty() ? "" : group.handler + ": " + hours;
}

// What a limit, the brake or a breaker by itself holds back is to run yet, and is waited for.
Step<bool> Scanner::NothingLeft(std::shared_ptr<const DueMap> map, bool was_empty) {
  if (!was_empty || !parts_.attempts.in_flight().Empty()) co_return false;
  if (claimer_.HasUnknown() || suspects_.Waits()) co_return false;
  if (look_.left_out) co_return false;
  std::set<std::string> aside;
  for (const DueGroup& group : map->groups) {
    if (group.first_run_at > map->now + kDueSoon) continue;
    if (parts_.runner.Runs(group.handler)) {
      std::string because = AsideBecause(group);
      if (because.empty()) co_return false;
      aside.insert(std::move(because));
    }
    const bool may_run = co_await MayStillRun(group);
    if (may_run) co_return false;
  }
  MutexLock lock(mutex_);
  left_aside_ = std::move(aside);
  co_return true;
}

// Nobody here is to run these, but some may be running elsewhere, or be left by the dead.
Step<bool> Scanner::MayStillRun(const DueGroup& group) {
  const std::vector<ScanRequest> requests{{group, HeadOf(group), kMaxBatchRows}};
  const auto pages = co_await port_.ScanEach(requests);
  co_return !pages || std::any_of(pages->front().begin(), pages->front().end(),
                                  [](const ScanRow& row) { return row.state == TaskState::Running; });
}

}  // namespace millrace::engine

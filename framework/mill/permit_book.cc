#include "framework/mill/permit_book.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace millrace::engine {
namespace {

using To = PermitChange::To;

// Who has asked for room is taken to have tasks for so long.
constexpr Micros kWanted = std::chrono::seconds(10);
// A permit without a task is kept for the claim that is to bring one.
constexpr Micros kForAClaim = std::chrono::milliseconds(250);
// What is claimed ahead of the permits, as short work as this.
constexpr Micros kAhead = std::chrono::milliseconds(250);
constexpr std::size_t kMostAhead = 32;  // for each permit
constexpr Micros kAfterAMiss = std::chrono::milliseconds(20);
// After a turn others have at least so long to find the permit free.
constexpr Micros kShortestYield = std::chrono::milliseconds(150);
constexpr Micros kLongestYield = std::chrono::milliseconds(800);
// A task that was claimed for a permit waits so long for another.
constexpr Micros kWaitsForPermit = std::chrono::seconds(2);
constexpr Micros kLockedIsTrouble = std::chrono::seconds(1);  // others' writes lock a row for a moment
constexpr Micros kLockedAge = std::chrono::seconds(10);       // then nobody has needed the row for long

std::string NameOf(const Attempt& attempt) { return ToString(TaskName{attempt.shard, attempt.task.key}); }

}  // namespace

void PermitBook::Follow(const PermitRules& rules) {
  for (auto& [type, one] : types_) one.ruled = rules.contains(type);
  for (const auto& [type, rule] : rules) {
    Type& one = types_[type];
    one.ruled = true;
    if (one.rule != rule) one.look = {};
    one.rule = rule;
  }
}

std::size_t PermitBook::Mine(const std::string& type) const {
  std::size_t mine = 0;
  for (const auto& [place, held] : HeldOf(type)) {
    if (!held.lost && !held.doubt && !held.taking && held.life == life_) ++mine;
  }
  return mine;
}

std::size_t PermitBook::InHand(const std::string& type, const Type& one) const {
  std::size_t hand = one.waiting.size();
  for (const auto& [place, held] : HeldOf(type)) {
    if ((held.attempt || locked_.contains(place)) && held.life == life_) ++hand;
  }
  return hand;
}

std::size_t PermitBook::Ahead(const std::string& type, const Type& one, BootTime now) const {
  if (one.each == Micros(0) || now < one.yields) return 0;
  std::size_t ahead = 0;
  for (const auto& [place, held] : HeldOf(type)) {
    if (locked_.contains(place)) continue;
    const Micros left = others_ ? held.since + kTurn - now : kAhead;
    const Micros::rep fit = std::clamp(left, Micros(0), kAhead) / one.each;
    ahead += std::min(static_cast<std::size_t>(fit), kMostAhead);
  }
  return ahead;
}

std::size_t PermitBook::Room(const std::string& type, BootTime now) {
  const auto known = types_.find(type);
  if (known == types_.end() || !known->second.ruled) return std::numeric_limits<std::size_t>::max();
  known->second.wanted = now + kWanted;
  const std::size_t room = RoomNow(type, known->second, now);
  if (room > 0) KeepIdle(type, now);
  return room;
}

bool PermitBook::HasRoom(const std::string& type, BootTime now) const {
  const auto known = types_.find(type);
  return known == types_.end() || !known->second.ruled || RoomNow(type, known->second, now) > 0;
}

std::size_t PermitBook::RoomNow(const std::string& type, const Type& one, BootTime now) const {
  const std::size_t mine = Mine(type);
  if (mine == 0) return 0;
  const std::size_t most = mine + Ahead(type, one, now);
  return most - std::min(most, InHand(type, one));
}

// Something else may be in the way of the claim still; others have their turn all the same.
void PermitBook::KeepIdle(const std::string& type, BootTime now) {
  for (auto& [place, held] : HeldOf(type)) {
    if (!held.attempt) held.until = std::max(held.until, now + kForAClaim);
  }
}

bool PermitBook::Unwanted(const std::string& type, BootTime now) {
  const auto known = types_.find(type);
  if (known == types_.end()) return false;
  known->second.wanted = {};
  bool idle = false;
  for (auto& [place, held] : HeldOf(type)) {
    if (held.attempt || now >= held.until) continue;
    held.until = now;
    idle = true;
  }
  return idle;
}

void PermitBook::Wait(AttemptPtr attempt, BootTime now) {
  const std::string& type = attempt->task.handler;
  types_[type].waiting.push_back({std::move(attempt), now});
}

// Nothing tells when a home that is away says what came of a write: its task needs not wait for that, and the
// permit stays in doubt by itself.
bool PermitBook::WaitsInDoubt(const Held& held) { return held.attempt && held.starting && held.doubt; }

AttemptPtr PermitBook::TakeFrom(Held& held) {
  held.starting = false;
  return std::exchange(held.attempt, nullptr);
}

std::vector<AttemptPtr> PermitBook::AllWaiting() const {
  std::vector<AttemptPtr> attempts;
  for (const auto& [place, held] : held_) {
    if (WaitsInDoubt(held)) attempts.push_back(held.attempt);
  }
  for (const auto& [type, one] : types_) {
    for (const Waiting& waiting : one.waiting) attempts.push_back(waiting.attempt);
  }
  return attempts;
}

std::vector<AttemptPtr> PermitBook::TakeUnwanted(const std::set<AttemptPtr>& withdrawn, BootTime now) {
  std::vector<AttemptPtr> taken;
  for (auto& [place, held] : held_) {
    if (!WaitsInDoubt(held)) continue;
    if (!types_[place.first].ruled || now - held.bound > kWaitsForPermit || withdrawn.contains(held.attempt))
      taken.push_back(TakeFrom(held));
  }
  for (auto& [type, one] : types_) {
    const auto unwanted = [&, ruled = one.ruled](const Waiting& waiting) {
      return !ruled || now - waiting.since > kWaitsForPermit || withdrawn.contains(waiting.attempt);
    };
    for (Waiting& waiting : one.waiting) {
      if (unwanted(waiting)) taken.push_back(std::move(waiting.attempt));
    }
    std::erase_if(one.waiting, [](const Waiting& waiting) { return waiting.attempt == nullptr; });
  }
  return taken;
}

std::vector<AttemptPtr> PermitBook::TakeWaiting() {
  std::vector<AttemptPtr> taken;
  for (auto& [place, held] : held_) {
    if (WaitsInDoubt(held)) taken.push_back(TakeFrom(held));
  }
  for (auto& [type, one] : types_) {
    for (Waiting& waiting : one.waiting) taken.push_back(std::move(waiting.attempt));
    one.waiting.clear();
    one.wanted = {};
  }
  return taken;
}

bool PermitBook::Ended(const Attempt& attempt, BootTime now) {
  const auto bound = std::find_if(held_.begin(), held_.end(),
                                  [&](const auto& entry) { return entry.second.attempt.get() == &attempt; });
  if (bound == held_.end()) return false;
  auto& [place, held] = *bound;
  const std::string type = place.first;
  Type& one = types_[type];
  const Micros took = std::max(now - held.bound, Micros(1));
  one.each = one.each == Micros(0) ? took : (3 * one.each + took) / 4;
  held.attempt.reset();
  held.told = false;
  held.until = now + kForTheNext;
  if (former_.contains(held.life)) one.look = one.again = {};
  if (held.lost || held.life != life_) held_.erase(bound);
  return 2 * InHand(type, one) <= Mine(type) + Ahead(type, one, now);
}

void PermitBook::Live(const std::shared_ptr<Lease>& life, bool others, const std::string& address) {
  others_ = others;
  const bool same_home = address == std::exchange(address_, address);
  if (life == life_ && same_home) return;
  for (auto& [former, left] : former_) left.clear();  // what is read next says it anew
  if (life_) former_.try_emplace(life_);
  former_.erase(life);
  life_ = life;
  for (auto entry = held_.begin(); entry != held_.end();) {
    Held& held = (entry++)->second;
    if (held.life == life_ && same_home) continue;
    held.doubt = held.voided = false;  // what its row says holds; the dead's are others'
    if (held.attempt && held.starting) PutBack(held);
    // Whether the former life may still be counted upon is asked as long as its attempt runs (Doubtful).
    if (!held.attempt || !same_home) held.lost = true;
  }
  std::erase_if(held_, [](const auto& entry) { return entry.second.lost && !entry.second.attempt; });
  for (auto& [type, one] : types_) one.look = one.again = {};
}

bool PermitBook::HeldUnder(const Lease& life) const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& entry) {
    return entry.second.attempt && entry.second.life.get() == &life;
  });
}

std::vector<AttemptPtr> PermitBook::Doubtful(BootTime now) {
  std::vector<AttemptPtr> doubtful;
  for (auto& [place, held] : held_) {
    if (!held.attempt || held.starting || held.told) continue;
    if (!held.lost && held.life->KeepsPermits(now)) continue;
    held.told = true;
    doubtful.push_back(held.attempt);
  }
  return doubtful;
}

PermitChange PermitBook::Bind(const Place& place, Held& held) {
  Type& one = types_[place.first];
  PermitChange change{.handler = place.first, .number = place.second, .turn = held.turn, .to = To::Held};
  if (one.waiting.empty()) return change;
  held.attempt = std::move(one.waiting.front().attempt);
  held.bound = one.waiting.front().since;
  held.starting = true;
  one.waiting.pop_front();
  change.task = NameOf(*held.attempt);
  change.attempt = held.attempt->task.attempt;
  return change;
}

// Its task waits again, before the others.
void PermitBook::PutBack(Held& held) {
  Type& one = types_[held.attempt->task.handler];
  one.waiting.push_front({std::move(held.attempt), held.bound});
  held.attempt.reset();
  held.starting = false;
}

std::vector<PermitChange> PermitBook::ToChange(BootTime now) {
  std::vector<PermitChange> changes;
  if (!life_ || !life_->Alive()) return changes;
  std::erase_if(locked_, [&](const auto& entry) { return now - entry.second.last > kLockedAge; });
  for (auto& [place, held] : held_) {
    if (held.attempt || held.doubt || held.lost || now < RestsUntil(place)) continue;
    Type& one = types_[place.first];
    const bool over = others_ && now - held.since >= kTurn;
    const bool valid = one.ruled && place.second <= one.rule.concurrency;
    if (valid && !over && !one.waiting.empty()) {
      changes.push_back(Bind(place, held));
    } else if (!valid || over || now >= held.until) {
      changes.push_back({.handler = place.first, .number = place.second, .turn = held.turn, .to = To::Free});
      if (locked_.contains(place)) continue;  // it is told again
      if (over) one.yields = now + Jittered(std::clamp(one.each, kShortestYield, kLongestYield));
      if (!over) one.wanted = {};
    }
  }
  for (auto& [type, one] : types_) {
    if (std::exchange(one.fresh, false)) Take(type, one, now, changes);
  }
  return changes;
}

// Those above a limit that was lowered count until they are free.
void PermitBook::Take(const std::string& type, Type& one, BootTime now, std::vector<PermitChange>& changes) {
  const auto free = [](const Permit& row) { return row.holder.empty() || row.lapsed; };
  std::size_t held = 0;
  for (const auto& [number, row] : one.seen) held += !free(row) || held_.contains({type, number}) ? 1 : 0;
  for (const auto& [number, row] : one.seen) {
    const Place place{type, number};
    if (number > one.rule.concurrency || held >= one.rule.concurrency || !Needs(type, one, now)) return;
    if (!free(row) || held_.contains(place) || now < RestsUntil(place)) continue;
    Held& taken = held_[place];
    taken = {.turn = row.turn, .life = life_, .taking = true, .since = now};
    changes.push_back(Bind(place, taken));
    ++held;
  }
}

// Returns whether its row is, by that answer.
bool PermitBook::NoteLocked(const PermitChange& sent, PermitAnswer answer, BootTime now) {
  const Place place{sent.handler, sent.number};
  if (answer != PermitAnswer::Locked) {
    locked_.erase(place);
    return false;
  }
  Locked& locked = locked_.try_emplace(place, Locked{sent.turn, now}).first->second;
  if (locked.turn != sent.turn) locked = {sent.turn, now};
  locked.last = now;
  return true;
}

BootTime PermitBook::RestsUntil(const Place& place) const {
  const auto found = locked_.find(place);
  if (found == locked_.end()) return {};
  const Locked& locked = found->second;
  return locked.last + std::clamp(locked.last - locked.since, kAfterAMiss, kSeldomest);
}

std::set<std::string> PermitBook::LockedTypes() const {
  std::set<std::string> types;
  for (const auto& [place, locked] : locked_) {
    if (locked.last - locked.since >= kLockedIsTrouble) types.insert(place.first);
  }
  return types;
}

std::vector<AttemptPtr> PermitBook::Changed(const std::vector<PermitChange>& sent,
                                            const std::vector<PermitAnswer>& answers, BootTime now) {
  std::vector<AttemptPtr> started;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const Place place{sent[i].handler, sent[i].number};
    const auto entry = held_.find(place);
    if (entry == held_.end()) continue;
    Held& held = entry->second;
    const bool locked = NoteLocked(sent[i], answers[i], now);
    if (held.lost) continue;  // its life has ended meanwhile
    const bool done = answers[i] == PermitAnswer::Done;
    if (!done && held.attempt) PutBack(held);
    if (locked && !held.taking) continue;  // it is this worker's still
    if (!done || sent[i].to == To::Free) {
      if (!done) types_[place.first].look = now + Jittered(kAfterAMiss);
      held_.erase(entry);
      continue;
    }
    held.turn = sent[i].turn + 1;
    if (held.taking) held.since = now;
    held.taking = false;
    if (held.attempt) {
      held.starting = false;
      held.bound = now;
      held.attempt->home = held.life;
      started.push_back(held.attempt);
    } else {
      held.until = now + kForAClaim;
      room_again_ = true;
    }
  }
  return started;
}

void PermitBook::Failed(const std::vector<PermitChange>& sent) {
  for (const PermitChange& change : sent) {
    const auto entry = held_.find({change.handler, change.number});
    if (entry == held_.end()) continue;
    Held& held = entry->second;
    if (held.attempt && held.starting) PutBack(held);
    if (held.taking) held_.erase(entry);
  }
}

void PermitBook::Unknown(const std::vector<PermitChange>& sent) {
  for (const PermitChange& change : sent) {
    const auto entry = held_.find({change.handler, change.number});
    if (entry != held_.end() && !entry->second.lost) entry->second.doubt = true;
  }
}

BootTime PermitBook::Next(BootTime now) const {
  BootTime next = now + kSeldomest;
  for (const auto& [place, held] : held_) {
    if (held.attempt || held.lost) continue;
    next = std::min(next, std::max(held.until, RestsUntil(place)));
  }
  for (const auto& [type, one] : types_) {
    const BootTime at = std::max({one.look, one.yields, now});
    if (Needs(type, one, at)) next = std::min(next, at);
    if (one.ruled) next = std::min(next, one.again);
  }
  return std::max(next, now);
}

std::vector<PermitView> PermitBook::View() const {
  std::vector<PermitView> views;
  for (const auto& [type, one] : types_) {
    if (one.ruled) views.push_back({type, one.rule.concurrency, Mine(type), one.waiting.size()});
  }
  return views;
}

}  // namespace millrace::engine

// What the rows of the permits say, and what is to be read of them.
#include <algorithm>

#include "framework/mill/permit_book.h"

namespace millrace::engine {
namespace {

using To = PermitChange::To;

// Between two looks at permits that others hold, while they change hands.
constexpr Micros kOftenest = std::chrono::milliseconds(80);
// Who needs none looks too: a database in the place of one that failed may have forgotten that it gave one
// back, and everybody else waits for it.
constexpr Micros kAgain = std::chrono::seconds(5);

}  // namespace

// It has tasks that no permit of its own is free for, and may use another.
bool PermitBook::Needs(const std::string& type, const Type& one, BootTime now) const {
  if (!one.ruled || now < one.yields) return false;
  std::size_t places = 0;
  std::size_t idle = 0;
  for (const auto& [place, held] : HeldOf(type)) {
    ++places;
    if (!held.attempt && !locked_.contains(place)) ++idle;
  }
  if (places >= std::min(one.rule.concurrency, one.rule.here)) return false;
  return one.waiting.size() > idle || (idle == 0 && now < one.wanted);
}

bool PermitBook::IsToRead(const std::string& type, const Type& one, BootTime now) const {
  return Needs(type, one, now) ? now >= one.look : one.ruled && now >= one.again;
}

bool PermitBook::AnyToRead(BootTime now) const {
  const auto is_to_read = [&](const auto& entry) { return IsToRead(entry.first, entry.second, now); };
  const auto is_voided = [](const auto& entry) { return entry.second.voided; };
  return std::any_of(types_.begin(), types_.end(), is_to_read) ||
         std::any_of(held_.begin(), held_.end(), is_voided);
}

std::vector<std::string> PermitBook::ToRead(BootTime now) const {
  std::vector<std::string> types;
  for (const auto& [type, one] : types_) {
    if (IsToRead(type, one, now)) types.push_back(type);
  }
  for (const auto& [place, held] : held_) {
    if (held.voided) types.push_back(place.first);
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  return types;
}

void PermitBook::Read(const std::vector<std::string>& types, const std::vector<Permit>& rows, BootTime now) {
  for (const std::string& type : types) {
    Type& one = types_[type];
    const bool needs = Needs(type, one, now);
    one.seen.clear();
    one.fresh = true;
    one.again = now + Jittered(kAgain);
    for (auto& [life, left] : former_) {
      std::erase_if(left, [&](const PermitChange& change) { return change.handler == type; });
    }
    std::uint64_t turns = 0;
    for (const Permit& row : rows) {
      if (row.handler != type) continue;
      turns += row.turn;
      one.seen.emplace(row.number, row);
      const Place place{type, row.number};
      if (const auto held = held_.find(place); held != held_.end()) {
        Reconcile(place, held->second, row, now);
      } else if (life_ && row.holder == life_->incarnation()) {  // whatever came of it, it is ours
        held_.emplace(place, Held{.turn = row.turn, .life = life_, .since = now, .until = now});
      } else {
        NoteLeft(row);
      }
    }
    for (auto& [place, held] : held_) held.lost |= place.first == type && !one.seen.contains(place.second);
    const auto end = one.seen.upper_bound(one.rule.concurrency);
    one.make = static_cast<std::size_t>(std::distance(one.seen.begin(), end)) < one.rule.concurrency;
    if (!needs) continue;
    one.pause = turns != one.turns ? kOftenest : std::min(std::max(2 * one.pause, kOftenest), kSeldomest);
    one.turns = turns;
    one.look = one.make ? now : now + Jittered(one.pause);
  }
  std::erase_if(held_, [](const auto& entry) { return entry.second.lost && !entry.second.attempt; });
}

// Of a permit that nothing here runs by.
void PermitBook::NoteLeft(const Permit& row) {
  for (auto& [life, left] : former_) {
    if (row.holder != life->incarnation()) continue;
    left.push_back({.handler = row.handler, .number = row.number, .turn = row.turn, .to = To::Free});
  }
}

std::map<std::string, std::vector<PermitChange>> PermitBook::ToFree(BootTime now) {
  std::erase_if(former_, [](const auto& entry) { return !entry.first->Alive(); });  // others see to its rows
  std::map<std::string, std::vector<PermitChange>> changes;
  for (const auto& [life, left] : former_) {
    for (const PermitChange& change : left) {
      if (now >= RestsUntil({change.handler, change.number})) changes[life->incarnation()].push_back(change);
    }
  }
  return changes;
}

void PermitBook::Freed(const std::string& incarnation, const std::vector<PermitChange>& sent,
                       const std::vector<PermitAnswer>& answers, BootTime now) {
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (NoteLocked(sent[i], answers[i], now)) continue;
    for (auto& [life, left] : former_) {
      if (life->incarnation() == incarnation) std::erase(left, sent[i]);
    }
  }
}

// What a row says of a permit that was taken to be this worker's.
void PermitBook::Reconcile(const Place& place, Held& held, const Permit& row, BootTime now) {
  if (held.doubt && !held.voided) return;
  const bool mine = !held.lost && row.holder == held.life->incarnation();
  if (!held.voided && row.turn == held.turn) return;
  held.turn = row.turn;
  if (held.voided) {
    held.doubt = held.voided = held.taking = false;
    if (held.attempt && held.starting) PutBack(held);
    held.until = now + kForTheNext;
    types_[place.first].look = now;
  }
  held.lost = !mine;
}

std::vector<std::pair<std::string, std::uint32_t>> PermitBook::ToMake() {
  std::vector<std::pair<std::string, std::uint32_t>> made;
  for (auto& [type, one] : types_) {
    if (std::exchange(one.make, false)) made.emplace_back(type, one.rule.concurrency);
  }
  return made;
}

std::vector<PermitChange> PermitBook::ToVoid(BootTime now) const {
  std::vector<PermitChange> changes;
  for (const auto& [place, held] : held_) {
    if (!held.doubt || held.voided || now < RestsUntil(place)) continue;
    changes.push_back({.handler = place.first, .number = place.second, .turn = held.turn, .to = To::Voided});
  }
  return changes;
}

void PermitBook::Voided(const std::vector<PermitChange>& sent, const std::vector<PermitAnswer>& answers,
                        BootTime now) {
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (NoteLocked(sent[i], answers[i], now)) continue;
    const auto entry = held_.find({sent[i].handler, sent[i].number});
    if (entry != held_.end()) entry->second.voided = entry->second.doubt;
  }
}

}  // namespace millrace::engine

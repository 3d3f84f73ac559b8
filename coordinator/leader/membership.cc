#include "coordinator/leader/membership.h"

#include <algorithm>

namespace millrace::engine {
namespace {

// So many at least, and more than this part of all, within one session time-out: a mass loss.
constexpr std::size_t kManyVanished = 3;
constexpr std::size_t kVanishedPart = 4;

}  // namespace

void Membership::Begin(BootTime judge_from) {
  members_.clear();
  judge_from_ = judge_from;
  changed_ = last_vanished_ = hold_until_ = proceeded_ = BootTime{};
}

void Membership::Observe(const MembershipView& view, BootTime now) {
  for (const auto& [id, document] : view.present) Appear(members_[id], document, view, now);
  FindAway(view, now);
  for (const auto& [id, document] : view.expected) members_.try_emplace(id);
  for (auto& [id, member] : members_) {
    member.owner = view.owners.contains(id);
    const bool draining = view.draining.contains(id);
    if (draining != member.draining) changed_ = now;
    member.draining = draining;
    if (member.since == BootTime{}) member.since = now;  // announced, and never seen
  }
  Expect(view, now);
  for (auto& [id, member] : members_) {
    if (member.present && !view.present.contains(id)) Vanish(member, view, now);
  }
  CountVanished(now);
  EndLeaves(view);
  std::erase_if(members_, [&](const auto& entry) {
    const Member& member = entry.second;
    return !member.present && !member.owner && !member.expected && now - member.since > options_.memory;
  });
}

// Owners that were away when this leader began: those with whom its predecessor vanished, as long as somebody
// of that cluster is still there. Where nobody is, all were stopped, and who comes now may have other names.
void Membership::FindAway(const MembershipView& view, BootTime now) {
  const bool goes_on = std::any_of(view.owners.begin(), view.owners.end(),
                                   [&](const std::string& id) { return view.present.contains(id); });
  std::set<std::string> left;
  for (const auto& [incarnation, id] : view.left) left.insert(id);
  for (const std::string& id : view.owners) {
    const auto [entry, added] = members_.try_emplace(id);
    if (!added) continue;
    Member& member = entry->second;
    member.since = now;
    member.left = left.contains(id);
    if (member.left || !goes_on || view.draining.contains(id) || view.expected.contains(id)) continue;
    member.ends = 1;
    member.last_end = last_vanished_ = now;
  }
}

void Membership::Appear(Member& member, const WorkerDocument& document, const MembershipView& view,
                        BootTime now) {
  const bool restarted = member.present && member.document.incarnation != document.incarnation;
  if (restarted) Vanish(member, view, now);  // and back, between two looks
  member.document = document;
  if (member.present) return;
  member.present = true;
  member.left = false;
  member.since = now;
  NoteChange(member, now);
}

// One that has nothing and may take nothing yet changes no balance: that it comes and goes holds nobody up.
void Membership::NoteChange(const Member& member, BootTime now) {
  if (member.owner || now >= ProbationEnd(member)) changed_ = now;
}

void Membership::Vanish(Member& member, const MembershipView& view, BootTime now) {
  NoteChange(member, now);
  member.present = false;
  member.left = view.left.contains(member.document.incarnation);
  member.since = now;
  if (member.left || member.draining || (member.expected && now < member.expected_until)) {
    member.ends = std::min(member.ends, options_.flaps - 1);  // it is somebody's will, and may be the mend
    return;
  }
  if (now - member.last_end > options_.memory) member.ends = 0;
  ++member.ends;
  member.last_end = last_vanished_ = now;
}

void Membership::EndLeaves(const MembershipView& view) {
  ended_leaves_.clear();
  for (const auto& [incarnation, id] : view.left) {
    const auto member = members_.find(id);
    const bool matters = member != members_.end() && member->second.owner && !member->second.present;
    if (!matters) ended_leaves_.insert(incarnation);
  }
}

void Membership::Expect(const MembershipView& view, BootTime now) {
  for (auto& [id, member] : members_) {
    const auto found = view.expected.find(id);
    if (found == view.expected.end()) {
      member.expected = false;
      continue;
    }
    if (member.expected && member.expectation.SameNode(found->second)) continue;
    const ExpectDocument& document = found->second.document;
    member.expected = true;
    member.expectation = found->second;
    member.expected_until = now + std::chrono::seconds(document.seconds);
    member.expected_end = document.incarnation.empty() ? member.document.incarnation : document.incarnation;
  }
}

void Membership::CountVanished(BootTime now) {
  std::size_t vanished = 0;
  std::size_t all = 0;
  BootTime last{};
  for (const auto& [id, member] : members_) {
    const bool lately = !member.present && member.last_end == member.since && member.ends > 0 &&
                        now - member.since <= options_.session_timeout && member.since > proceeded_;
    if (member.present || lately) ++all;
    if (!lately) continue;
    ++vanished;
    last = std::max(last, member.since);
  }
  if (vanished < kManyVanished || vanished * kVanishedPart <= all) return;
  hold_until_ = std::max(hold_until_, last + options_.hold);
}

bool Membership::Gathering(BootTime now) const {
  return last_vanished_ > proceeded_ &&
         now < last_vanished_ + std::min(options_.gather, options_.session_timeout / 3);
}

void Membership::Proceed(BootTime now) {
  hold_until_ = BootTime{};
  judge_from_ = std::min(judge_from_, now);
  proceeded_ = now;
  changed_ = BootTime{};
  for (auto& [id, member] : members_) member.ends = 0;
}

BootTime Membership::ProbationEnd(const Member& member) const {
  if (member.ends == 0 || member.since - member.last_end > options_.memory) return BootTime{};
  Micros probation = options_.probation;
  for (int i = 1; i < member.ends && probation < options_.longest_probation; ++i) probation *= 2;
  return member.since + std::min(probation, options_.longest_probation);
}

bool Membership::OnProbation(const Member& member, BootTime now) const {
  return member.present && !member.draining && now < ProbationEnd(member);
}

// Whoever is between two lives, or has held out for a while, counts as well: one that comes and goes turns
// nobody else's part over.
bool Membership::MostFlap(BootTime now) const {
  std::size_t all = 0;
  std::size_t flap = 0;
  for (const auto& [id, member] : members_) {
    const bool flaps = member.ends >= options_.flaps && now - member.last_end <= options_.memory;
    if (member.present || flaps) ++all;
    if (flaps) ++flap;
  }
  return flap * 2 > all;
}

// It was announced to end, and another life of it is there.
bool Membership::Returned(const Member& member) const {
  return member.expected && member.present && member.document.incarnation != member.expected_end;
}

MemberRole Membership::RoleOf(const Member& member, BootTime now) const {
  if (member.present) {
    if (member.draining) return MemberRole::Draining;
    if (!OnProbation(member, now)) return MemberRole::Active;
    return member.ends < options_.flaps || Holding(now) ? MemberRole::Probation : MemberRole::Flapping;
  }
  if (member.draining) return MemberRole::Gone;
  const bool expected = member.expected && now < member.expected_until;
  if (member.left && !expected) return MemberRole::Gone;
  // Sessions that were lost together end within one time-out.
  const bool gathers = Gathering(now) && now - member.since < options_.session_timeout;
  return expected || now < judge_from_ || gathers || Holding(now) ? MemberRole::Kept : MemberRole::Gone;
}

std::map<std::string, MemberRole> Membership::Roles(BootTime now) const {
  std::map<std::string, MemberRole> roles;
  const bool most_flap = MostFlap(now);
  for (const auto& [id, member] : members_) {
    if (!member.present && !member.owner) continue;
    const MemberRole role = RoleOf(member, now);
    roles[id] = role == MemberRole::Flapping && most_flap ? MemberRole::Probation : role;
  }
  return roles;
}

std::map<std::string, BootTime> Membership::Probations(BootTime now) const {
  std::map<std::string, BootTime> probations;
  for (const auto& [id, member] : members_) {
    if (OnProbation(member, now)) probations[id] = ProbationEnd(member);
  }
  return probations;
}

std::map<std::string, WorkerDocument> Membership::Documents() const {
  std::map<std::string, WorkerDocument> documents;
  for (const auto& [id, member] : members_) {
    if (!member.document.incarnation.empty()) documents[id] = member.document;
  }
  return documents;
}

bool Membership::Quiet(BootTime now) const {
  return !Holding(now) && now >= judge_from_ && now - changed_ >= options_.quiet;
}

std::set<std::string> Membership::EndedExpectations(BootTime now) const {
  std::set<std::string> ended;
  for (const auto& [id, member] : members_) {
    if (member.expected && (Returned(member) || now >= member.expected_until)) ended.insert(id);
  }
  return ended;
}

BootTime Membership::NextChange(BootTime now) const {
  BootTime next = now + std::chrono::minutes(1);
  const auto consider = [&](BootTime at) {
    if (at > now) next = std::min(next, at);
  };
  consider(judge_from_);
  consider(hold_until_);
  consider(last_vanished_ + std::min(options_.gather, options_.session_timeout / 3));
  consider(changed_ + options_.quiet);
  for (const auto& [id, member] : members_) {
    consider(ProbationEnd(member));
    if (!member.present) consider(member.since + options_.session_timeout);
    if (member.expected) consider(member.expected_until);
  }
  return next;
}

}  // namespace millrace::engine

// The leader's memory of its workers, and the calm that it keeps: who is there, who is expected back, who
// flaps, and whether so many vanished at once that it is rather the network than they. Pure: time is passed
// in.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "coordinator/coordination/documents.h"
#include "framework/base/clock.h"

namespace millrace::engine {

// From when a leader may call workers missing.
//
// Whoever was cut off can't know who is missing and who was cut off as well, so each loss of the connection
// puts the judgement off until one session time-out after it is back. A link that is lost again and again,
// each time for a moment, must not put it off for ever: one and a half time-outs after the first return of
// such a row the leader judges whenever it is connected, and what is lost after that begins a new row. An
// outage as long as a session lives is no such moment: after it everybody has the whole time-out again.
//
// Not thread-safe.
class Judgement {
 public:
  explicit Judgement(Micros session_timeout) : timeout_(session_timeout) {}

  void SessionsLast(Micros timeout) { timeout_ = timeout; }
  void Connected(BootTime now) {
    if (!row_ || !lost_ || now - *lost_ >= timeout_) row_ = now;
    lost_.reset();
    from_ = std::min(now + timeout_, *row_ + timeout_ * 3 / 2);
  }
  void Disconnected(BootTime now) {
    if (!lost_) lost_ = now;
    from_ = BootTime::max();
  }
  // The leader has looked at all workers, and decided; or this process does not lead, so that nobody waits
  // for its word.
  void Decided(BootTime now) {
    if (now >= from_) row_.reset();
  }
  // Before this time nobody is called missing; BootTime::max(): while there is no connection.
  BootTime From() const { return from_; }

 private:
  Micros timeout_;
  std::optional<BootTime> lost_;  // since when there is no connection
  std::optional<BootTime> row_;   // the first return of the row
  BootTime from_{};
};

struct CalmOptions {
  Micros session_timeout = std::chrono::seconds(10);
  Micros quiet = std::chrono::seconds(5);  // without a change, before slices move that need not
  Micros hold = std::chrono::seconds(30);  // nothing moves for so long when very many vanish at once
  // Sessions that were lost together end one after another, since each was last heard of at another moment:
  // for so long after an end the leader looks whether more follow, lest it moves slices to workers that are
  // lost as well. Longer than a server's tick, by which sessions end in groups; short enough that the slices
  // of a dead worker are owned again two seconds after its session time-out, ticks and all. At most a third
  // of the time-out.
  Micros gather = std::chrono::milliseconds(700);
  Micros probation = std::chrono::seconds(15);  // after a worker's first unannounced end; doubles with each
  Micros longest_probation = std::chrono::minutes(5);
  Micros memory = std::chrono::minutes(10);  // after which an unannounced end is forgotten
  // From so many ends that are not forgotten a worker flaps: it works for moments between its ends, so what
  // it has is better with others. Unless more than half of all flap: then the fault is not theirs (a handler
  // that all run, the network), and whoever still stood would get everything, and be the next.
  int flaps = 3;
};

// An announced restart, with what tells its node from an earlier one of the same worker: the time counts anew
// with each.
struct Expectation {
  ExpectDocument document;
  std::int64_t created = 0;
  std::int32_t version = 0;
  bool SameNode(const Expectation& other) const {
    return created == other.created && version == other.version;
  }
};

// What the tree shows at one time.
struct MembershipView {
  std::map<std::string, WorkerDocument> present;  // by id
  std::set<std::string> owners;                   // ids that have slices, present or not
  std::set<std::string> draining;
  std::map<std::string, Expectation> expected;
  std::map<std::string, std::string> left;  // by incarnation that left in good order: the id of its worker
};

// How the plan treats a worker.
enum class MemberRole {
  Active,     // takes slices
  Probation,  // there, but it ended lately: keeps what it has, gets what nobody else can take
  Flapping,   // there, but it ends again and again: has nothing but what nobody else can take
  Draining,   // there; everything it has goes to others
  Kept,       // away; its slices are kept for it
  Gone,       // away; its slices go to others at once
};

// Not thread-safe.
class Membership {
 public:
  explicit Membership(CalmOptions options) : options_(options) {}

  void SessionsLast(Micros timeout) { options_.session_timeout = timeout; }
  // A new leader knows nothing; `judge_from`: before this time nobody is called missing.
  void Begin(BootTime judge_from);
  // The leader was cut off: before `judge_from` nobody is called missing.
  void Delay(BootTime judge_from) { judge_from_ = judge_from; }
  void Observe(const MembershipView& view, BootTime now);
  // An operator says: do not wait.
  void Proceed(BootTime now);

  // By id: everybody present, and everybody who owns slices.
  std::map<std::string, MemberRole> Roles(BootTime now) const;
  // Who is on probation or flaps, and until when.
  std::map<std::string, BootTime> Probations(BootTime now) const;
  // What each worker said of itself last: of those that are there, and of those that are kept.
  std::map<std::string, WorkerDocument> Documents() const;
  bool Knows(const std::string& id) const { return members_.contains(id); }
  // Whether slices may move that need not.
  bool Quiet(BootTime now) const;
  // Very many have vanished at once: nothing moves before this time.
  bool Holding(BootTime now) const { return now < hold_until_; }
  // Restarts that are over, or did not come about: their nodes can go.
  std::set<std::string> EndedExpectations(BootTime now) const;
  // Incarnations whose leave has been heeded: their slices are elsewhere, or another life of them is there.
  const std::set<std::string>& EndedLeaves() const { return ended_leaves_; }
  // When Roles or Quiet may change by time alone; `now` + a minute at the latest.
  BootTime NextChange(BootTime now) const;

 private:
  struct Member {
    bool present = false;
    bool owner = false;
    bool draining = false;
    bool left = false;        // away, since it said so
    WorkerDocument document;  // as it said last
    BootTime since{};         // present, or away, since then
    BootTime last_end{};      // its last unannounced end
    int ends = 0;             // unannounced ends that are not forgotten
    bool expected = false;
    Expectation expectation;
    BootTime expected_until{};
    std::string expected_end;  // the incarnation that was announced to end
  };

  void FindAway(const MembershipView& view, BootTime now);
  void Appear(Member& member, const WorkerDocument& document, const MembershipView& view, BootTime now);
  void Vanish(Member& member, const MembershipView& view, BootTime now);
  void NoteChange(const Member& member, BootTime now);
  void EndLeaves(const MembershipView& view);
  void Expect(const MembershipView& view, BootTime now);
  void CountVanished(BootTime now);
  bool Gathering(BootTime now) const;
  BootTime ProbationEnd(const Member& member) const;
  bool OnProbation(const Member& member, BootTime now) const;
  bool MostFlap(BootTime now) const;
  MemberRole RoleOf(const Member& member, BootTime now) const;
  bool Returned(const Member& member) const;

  CalmOptions options_;
  std::map<std::string, Member> members_;
  std::set<std::string> ended_leaves_;
  BootTime judge_from_{};
  BootTime changed_{};
  BootTime last_vanished_{};
  BootTime hold_until_{};
  BootTime proceeded_{};
};

}  // namespace millrace::engine

// A modelled database server: the statements of a shard, and the way to it. A statement may wait, be lost
// before it is carried out, be carried out without its reply ever arriving, or arrive long after its sender
// has given up or died. A claim holds its share lock on its incarnation's flag from when it has checked the
// flag until it has written: who wants to set the flag waits.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/testing/checked_shard.h"

namespace millrace::engine {

// The way between one process and the database, as faults change it.
struct DatabaseLink {
  bool open = true;
  Micros slowest{1'000};      // one way
  unsigned lost_replies = 0;  // percent of the statements whose reply never comes
  unsigned late = 0;          // percent of the statements that arrive after their sender's time-out
  Micros latest = std::chrono::seconds(12);  // by how much at most
  // The next claim is under way for so long; zero: for as long as any other. It is zero again once it is
  // sent.
  mutable Micros next_claim{0};
  mutable Micros next_keys{0};    // the same of the next keys that are entered
  mutable Micros next_change{0};  // and of the next change of permits
};

// How a claim looks at its incarnation's flag, before it writes. All but the first are planted bugs.
enum class ClaimCheck {
  Locked,
  Unlocked,  // it looks, waits for locked rows, and writes
  None,
};

// Not thread-safe.
class ModelledDatabase {
 public:
  struct Bugs {
    ShardGuards guards = {};
    ClaimCheck claim_check = ClaimCheck::Locked;
    bool keys_without_lock = false;      // the rows whose keys are entered are looked at and not locked
    bool permits_without_check = false;  // who takes a permit does not lock its own flag
  };

  ModelledDatabase(Timeline& timeline, Journal& journal, const Bugs& bugs,
                   const CheckedShard::Schema& schema = {})
      : timeline_(timeline), clock_(timeline), shard_(clock_, journal, bugs.guards, schema), bugs_(bugs) {}

  CheckedShard& checked() { return shard_; }
  const CheckedShard& checked() const { return shard_; }
  // How many claims were sent ahead, and how many due maps were parts.
  std::size_t ClaimsAhead() const { return claims_ahead_; }
  std::size_t Parts() const { return parts_; }
  void NotePart() { ++parts_; }
  CompactShard& shard() { return shard_.shard(); }
  const CompactShard& shard() const { return shard_.shard(); }
  TimelineClock& clock() { return clock_; }

  // Faults. Statements under way are lost with a stop; their senders learn nothing.
  void Stop() {
    if (std::exchange(up_, false)) stopped_ = timeline_.Now();
  }
  void Start() {
    if (!std::exchange(up_, true)) shard_.WasAway(timeline_.Now() - stopped_);
  }
  bool Up() const { return up_; }
  std::uint64_t Failovers() const { return failovers_; }
  // Another server takes its place, which has nothing of what was committed since the copy was kept, nor of
  // what is under way.
  void FailOver(const CheckedShard::Copy& copy) {
    shard_.GoBack(copy);
    share_locks_.clear();
    ++failovers_;
  }

  // Sends a statement for a thread of a process; `done` is told on that thread. Unavailable: nothing was
  // changed; Unknown: a write whose outcome is not known.
  template <class Reply>
  void Read(const DatabaseLink& link, Strand& strand, std::function<Reply(CheckedShard&)> statement,
            std::function<void(Reply)> done) {
    Send<Reply>(link, strand, ErrorCode::Unavailable, {}, std::move(statement), std::move(done));
  }
  template <class Reply>
  void Write(const DatabaseLink& link, Strand& strand, std::function<Reply(CheckedShard&)> statement,
             std::function<void(Reply)> done) {
    Send<Reply>(link, strand, ErrorCode::Unknown, {}, std::move(statement), std::move(done));
  }
  void ConfirmKeys(const DatabaseLink& link, Strand& strand, const std::string& incarnation,
                   const std::vector<Task>& tasks, std::function<void(Result<std::vector<KeyVerdict>>)> done);
  void Claim(const DatabaseLink& link, Strand& strand, ClaimRequest request, bool ahead,
             std::function<void(Result<std::vector<Task>>)> done) {
    claims_ahead_ += ahead ? 1 : 0;
    Send<Result<std::vector<Task>>>(
        link, strand, ErrorCode::Unknown,
        {.shares = request.incarnation, .held_up = std::exchange(link.next_claim, Micros(0))},
        [request](CheckedShard& shard) { return shard.Claim(request); }, std::move(done));
  }
  // May wait for rows that others lock.
  void Settle(const DatabaseLink& link, Strand& strand, const std::string& incarnation,
              std::vector<Settlement> batch, std::function<void(Result<SettleReport>)> done) {
    Send<Result<SettleReport>>(
        link, strand, ErrorCode::Unknown,
        {.held_up = Percent(kSettlesThatWait) ? Spread(kLongestWait) : Micros(0)},
        [incarnation, batch = std::move(batch)](CheckedShard& shard) {
          return shard.Settle(incarnation, batch);
        },
        std::move(done));
  }
  // Takes, binds, frees or voids permits; holds the flag of `incarnation` as a claim does.
  void Change(const DatabaseLink& link, Strand& strand, const std::string& incarnation,
              const std::vector<PermitChange>& changes,
              std::function<void(Result<std::vector<PermitAnswer>>)> done) {
    Send<Result<std::vector<PermitAnswer>>>(
        link, strand, ErrorCode::Unknown,
        {.shares = bugs_.permits_without_check ? "" : incarnation,
         .held_up = std::exchange(link.next_change, Micros(0))},
        [incarnation, changes](CheckedShard& shard) { return shard.Change(incarnation, changes); },
        std::move(done));
  }
  // Sets the flag of `id`: MarkDead or Retire. Waits for the claims that hold it.
  void SetFlag(const DatabaseLink& link, Strand& strand, const std::string& id,
               std::function<Result<bool>(CheckedShard&)> statement, std::function<void(Result<bool>)> done) {
    Send<Result<bool>>(link, strand, ErrorCode::Unknown, {.waits_for = id}, std::move(statement),
                       std::move(done));
  }

 private:
  struct Locks {
    std::string waits_for = {};  // the incarnation whose flag must not be share-locked
    std::string shares = {};     // the incarnation whose flag is share-locked meanwhile
    Micros held_up{0};           // how long it is under way; zero: as long as any other
    bool held = false;
  };

  static constexpr Micros kTimeout = std::chrono::seconds(2);
  static constexpr Micros kRefusal = std::chrono::milliseconds(20);
  static constexpr Micros kLockWait = std::chrono::milliseconds(1);
  static constexpr Micros kLongestClaim = std::chrono::milliseconds(20);
  static constexpr Micros kLongestWait = std::chrono::seconds(1);  // of a claim, for rows that others lock
  static constexpr unsigned kClaimsThatWait = 30;                  // percent
  static constexpr unsigned kSettlesThatWait = 10;

  Micros Spread(Micros longest) {
    return Micros(static_cast<std::int64_t>(timeline_.random().Below(longest.count()) + 1));
  }
  bool Percent(unsigned percent) { return percent != 0 && timeline_.random().Below(100) < percent; }

  using Verdicts = Result<std::vector<KeyVerdict>>;
  // A statement that enters keys, whether it looks at their tasks itself or goes by an earlier look.
  void EnterKeys(const DatabaseLink& link, Strand& strand, std::function<Verdicts(CheckedShard&)> statement,
                 std::function<void(Verdicts)> done) {
    Send<Verdicts>(link, strand, ErrorCode::Unknown, {.held_up = std::exchange(link.next_keys, Micros(0))},
                   std::move(statement), std::move(done));
  }

  // How long a statement that is sent now takes to arrive; at least the time-out: its sender hears nothing.
  // Negative: it never arrives.
  Micros Passage(const DatabaseLink& link);

  template <class Reply>
  void Send(const DatabaseLink& link, Strand& strand, ErrorCode lost, Locks locks,
            std::function<Reply(CheckedShard&)> statement, std::function<void(Reply)> done) {
    if (!up_) {
      Tell<Reply>(strand, kRefusal, Lost(ErrorCode::Unavailable), std::move(done));
      return;
    }
    const Micros passage = locks.held_up > Micros(0) ? locks.held_up : Passage(link);
    const BootTime deadline = timeline_.Now() + kTimeout;
    if (passage < Micros(0) || passage >= kTimeout) {
      Tell<Reply>(strand, kTimeout, Lost(lost), std::move(done));
      if (passage < Micros(0)) return;
      done = nullptr;
    }
    Later(passage, Request<Reply>{&link, &strand, strand.life, lost, deadline, std::move(locks),
                                  std::move(statement), std::move(done), failovers_});
  }

  template <class Reply>
  struct Request {
    const DatabaseLink* link;
    Strand* strand;
    std::uint64_t life;
    ErrorCode lost;
    BootTime deadline;
    Locks locks;
    std::function<Reply(CheckedShard&)> statement;
    std::function<void(Reply)> done;  // null: nobody listens any more
    std::uint64_t failovers;          // that there had been when it was sent
  };

  template <class Reply>
  void Arrive(Request<Reply> request) {
    if (request.failovers != failovers_) {  // it was sent to the server of before
      Answer(request, Reply(Lost(request.lost)));
      return;
    }
    if (up_ && !request.locks.waits_for.empty() && share_locks_.contains(request.locks.waits_for)) {
      Later(kLockWait, std::move(request));
      return;
    }
    if (!request.locks.shares.empty() && !request.locks.held) {
      if (bugs_.claim_check == ClaimCheck::Unlocked && !shard().IsAlive(request.locks.shares)) {
        Answer(request, Reply(Fail(ErrorCode::Cancelled, "it was marked dead")));
        return;
      }
      request.locks.held = true;
      if (bugs_.claim_check == ClaimCheck::Locked) ++share_locks_[request.locks.shares];
      const bool waits = bugs_.claim_check == ClaimCheck::Unlocked || Percent(kClaimsThatWait);
      Later(Spread(waits ? kLongestWait : kLongestClaim), std::move(request));
      return;
    }
    if (request.locks.held) Unlock(request.locks.shares);
    Answer(request, up_ ? request.statement(shard_) : Reply(Lost(request.lost)));
  }

  template <class Reply>
  void Later(Micros delay, Request<Reply> request) {
    timeline_.After(delay,
                    [this, request = std::move(request)]() mutable { Arrive<Reply>(std::move(request)); });
  }

  template <class Reply>
  void Answer(Request<Reply>& request, Reply reply) {
    if (!request.done || request.strand->life != request.life) return;
    const Micros left = request.deadline - timeline_.Now();
    const Micros passage = Spread(request.link->slowest);
    if (!request.link->open || Percent(request.link->lost_replies) || passage >= left) {
      Tell<Reply>(*request.strand, left, Lost(request.lost), std::move(request.done));
    } else {
      Tell<Reply>(*request.strand, passage, std::move(reply), std::move(request.done));
    }
  }

  template <class Reply>
  void Tell(Strand& strand, Micros delay, Reply reply, std::function<void(Reply)> done) {
    timeline_.After(delay, &strand,
                    [reply = std::move(reply), done = std::move(done)]() mutable { done(std::move(reply)); });
  }

  static Failure Lost(ErrorCode code) { return Fail(code, "the connection was lost"); }
  void Unlock(const std::string& incarnation);

  Timeline& timeline_;
  TimelineClock clock_;
  CheckedShard shard_;
  const Bugs bugs_;
  bool up_ = true;
  BootTime stopped_{};
  std::uint64_t failovers_ = 0;
  std::size_t claims_ahead_ = 0;
  std::size_t parts_ = 0;
  std::map<std::string, int> share_locks_;  // on the flags of incarnations: how many claims hold them
};

}  // namespace millrace::engine

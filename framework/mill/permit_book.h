// What a worker knows of the permits that it holds, and what it does about them next: pure, time is passed
// in. Why rows, and why these: framework/README.md, "A limit of a few is held by rows".
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/range/iterator_range_core.hpp>

#include "framework/base/clock.h"
#include "framework/base/random.h"
#include "framework/mill/attempt.h"
#include "framework/store/permit_store.h"

namespace millrace::engine {

// What a worker holds of one type, for people.
struct PermitView {
  std::string handler;
  std::uint32_t concurrency = 0;
  std::size_t held = 0;
  std::size_t waiting = 0;  // claimed, without a permit
};

// Not thread-safe. A permit is this worker's from the known success of the write that took it until that of
// the write that frees it. It is bound to one attempt at a time, by a write before that attempt starts, and
// loosened once what became of the attempt's settle is known.
class PermitBook {
 public:
  static constexpr Micros kTurn = std::chrono::seconds(1);  // then others have theirs

  explicit PermitBook(std::uint64_t seed) : random_(seed) {}

  void Follow(const PermitRules& rules);
  bool Holds(const std::string& type) const {
    const auto known = types_.find(type);
    return known != types_.end() && known->second.ruled;
  }
  bool Any() const { return !types_.empty() || !held_.empty(); }

  // How many more tasks of the type may be claimed. Whoever asks has some.
  std::size_t Room(const std::string& type, BootTime now);
  bool HasRoom(const std::string& type, BootTime now) const;
  // Whoever had tasks may not claim them now: permits that are bound to none are for others. True where there
  // are any.
  bool Unwanted(const std::string& type, BootTime now);
  // Claimed, and in need of a permit. It waits until the write that binds one to it is known to have
  // succeeded; while the outcome of that is unknown it may be taken out as any other.
  void Wait(AttemptPtr attempt, BootTime now);
  std::vector<AttemptPtr> AllWaiting() const;
  // These of them, and those that have waited too long or are limited no more.
  std::vector<AttemptPtr> TakeUnwanted(const std::set<AttemptPtr>& withdrawn, BootTime now);
  std::vector<AttemptPtr> TakeWaiting();
  // What became of its settle is known. True where somebody may claim again.
  bool Ended(const Attempt& attempt, BootTime now);

  // The worker's life in the home, null where it has none, whether anybody else lives there, and of which
  // database that is. What runs by a former life there goes on while that may be counted upon: its shard may
  // have been opened anew, and the former mill not be at its end. In another database it counts for nothing.
  void Live(const std::shared_ptr<Lease>& life, bool others, const std::string& address);
  // Something that runs has its permit by this life.
  bool HeldUnder(const Lease& life) const;
  // Attempts whose permits can't be counted upon any more: the renewal of the life that holds them is older
  // than half a lease, or it is over. Each once.
  std::vector<AttemptPtr> Doubtful(BootTime now);

  // Which types' rows are to be read now.
  std::vector<std::string> ToRead(BootTime now) const;
  bool AnyToRead(BootTime now) const;
  void Read(const std::vector<std::string>& types, const std::vector<Permit>& rows, BootTime now);
  // Types whose rows have to be made, as of the last Read.
  std::vector<std::pair<std::string, std::uint32_t>> ToMake();
  // Writes that make what was sent before harmless, where its outcome is unknown.
  std::vector<PermitChange> ToVoid(BootTime now) const;
  void Voided(const std::vector<PermitChange>& sent, const std::vector<PermitAnswer>& answers, BootTime now);
  // What is to be written now. Each is answered by Changed, Failed or Unknown before it is asked again.
  std::vector<PermitChange> ToChange(BootTime now);
  // Returns the attempts that may start. What met a locked row is told again, ever more seldom.
  std::vector<AttemptPtr> Changed(const std::vector<PermitChange>& sent,
                                  const std::vector<PermitAnswer>& answers, BootTime now);
  void Failed(const std::vector<PermitChange>& sent);
  void Unknown(const std::vector<PermitChange>& sent);
  // A permit without a task was taken: tasks may be claimed for it. True once for each.
  bool TakeRoomAgain() { return std::exchange(room_again_, false); }
  // What former lives hold by the last look, though nothing runs by it: to be freed in the name of each,
  // since nobody can take it over while that life goes on. Told until Freed: the turn keeps a write that is
  // sent twice, or lands late, from a permit that was taken since.
  std::map<std::string, std::vector<PermitChange>> ToFree(BootTime now);
  void Freed(const std::string& incarnation, const std::vector<PermitChange>& sent,
             const std::vector<PermitAnswer>& answers, BootTime now);
  // Types of which others have had a row locked for a while.
  std::set<std::string> LockedTypes() const;
  // When there is something to do again, if nothing happens.
  BootTime Next(BootTime now) const;

  std::vector<PermitView> View() const;

 private:
  using Place = std::pair<std::string, std::uint32_t>;  // type, number
  struct Held {
    std::uint64_t turn = 0;
    std::shared_ptr<Lease> life;
    AttemptPtr attempt;     // bound to it, or about to be
    bool starting = false;  // the write that binds it is not known to have succeeded
    bool taking = false;    // nor is the one that takes the permit
    bool told = false;      // its attempt was told to stop
    bool doubt = false;     // what was sent with this turn may land yet
    bool voided = false;    // … and may not any more: the row says what holds
    bool lost = false;      // it is not this worker's any more, and its attempt has not ended
    BootTime since{};       // it was taken
    BootTime until{};       // so long it waits for a task
    BootTime bound{};       // until that write has succeeded: its attempt waits
  };
  struct Waiting {
    AttemptPtr attempt;
    BootTime since{};
  };
  struct Locked {
    std::uint64_t turn = 0;  // of the row, which has not moved since
    BootTime since{};        // the first answer that said so
    BootTime last{};         // the last one
  };
  struct Type {
    PermitRule rule;
    bool ruled = true;  // false: it is limited no more; what is held is freed
    std::deque<Waiting> waiting;
    BootTime wanted{};                     // until then somebody has tasks for it
    BootTime look{};                       // not to be read before
    BootTime again{};                      // to be read then, though nothing is needed
    BootTime yields{};                     // nothing is taken before: others have their turn
    Micros pause{0};                       // between two looks
    Micros each{0};                        // how long one task keeps a permit; 0: not known
    std::map<std::uint32_t, Permit> seen;  // of others, or free, as of the last look
    std::uint64_t turns = 0;               // of all rows, likewise
    bool fresh = false;                    // `seen` was read since something was written by it
    bool make = false;
  };

  // Between two looks at permits that others hold, while nothing moves.
  static constexpr Micros kSeldomest = std::chrono::milliseconds(400);
  // A permit without a task is kept so long after one: there may be another at hand.
  static constexpr Micros kForTheNext = std::chrono::milliseconds(50);
  static constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();
  auto HeldOf(const std::string& type) {
    return boost::make_iterator_range(held_.lower_bound({type, 0}), held_.upper_bound({type, kLast}));
  }
  auto HeldOf(const std::string& type) const {
    return boost::make_iterator_range(held_.lower_bound({type, 0}), held_.upper_bound({type, kLast}));
  }
  std::size_t Mine(const std::string& type) const;
  std::size_t InHand(const std::string& type, const Type& one) const;  // under this life
  std::size_t RoomNow(const std::string& type, const Type& one, BootTime now) const;
  void KeepIdle(const std::string& type, BootTime now);
  // How many tasks may be claimed ahead of the permits.
  std::size_t Ahead(const std::string& type, const Type& one, BootTime now) const;
  bool Needs(const std::string& type, const Type& one, BootTime now) const;
  bool NoteLocked(const PermitChange& sent, PermitAnswer answer, BootTime now);
  // The row was locked; not to be written before.
  BootTime RestsUntil(const Place& place) const;
  bool IsToRead(const std::string& type, const Type& one, BootTime now) const;
  void Reconcile(const Place& place, Held& held, const Permit& row, BootTime now);
  void Take(const std::string& type, Type& one, BootTime now, std::vector<PermitChange>& changes);
  void NoteLeft(const Permit& row);
  PermitChange Bind(const Place& place, Held& held);
  void PutBack(Held& held);
  static bool WaitsInDoubt(const Held& held);
  static AttemptPtr TakeFrom(Held& held);
  Micros Jittered(Micros about) {
    return Micros(static_cast<Micros::rep>(static_cast<double>(about.count()) * (0.5 + random_.Unit())));
  }

  Random random_;
  std::shared_ptr<Lease> life_;
  std::map<std::shared_ptr<Lease>, std::vector<PermitChange>> former_;  // lives, and what is theirs yet
  std::string address_;                                                 // of the home's database
  bool others_ = false;
  bool room_again_ = false;
  std::map<std::string, Type> types_;
  std::map<Place, Held> held_;
  std::map<Place, Locked> locked_;  // by others, as of the last answer
};

}  // namespace millrace::engine

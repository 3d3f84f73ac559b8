// A scan strand: finds due tasks of one shard, or of its part of it, and has them claimed for the run stage:
// due map → keyset pages → claims. The most urgent of all types come first; types of one urgency have shares
// by their weights of whatever is not enough for all.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/mill/claim.h"
#include "framework/mill/idle_span.h"
#include "framework/mill/known_groups.h"
#include "framework/mill/lives.h"
#include "framework/mill/look_schedule.h"
#include "framework/mill/ring_looks.h"
#include "framework/mill/scan_cursors.h"
#include "framework/mill/scan_part.h"
#include "framework/mill/scan_rounds.h"
#include "framework/mill/scan_shared.h"
#include "framework/policy/brake.h"
#include "framework/policy/fair_shares.h"
#include "framework/policy/group_order.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// What the last look at the shard showed.
struct ScanView {
  std::string error;
  Micros poll{0};  // while a log is quiet it may be twice that
  Micros lag{0};
  std::vector<std::string> unrunnable;
  // Tables of which nothing is claimed for some time by now, and why; the strands' together.
  std::map<TableName, std::string> resting;
  double speed = 1;  // below 1: the brake holds
  std::vector<RoundView> rounds;
  std::vector<BandView> bands;
};

// Run is the strand; the rest is thread-safe. Its parts: scan_look.cc (what there is to do), scan_turns.cc
// (whose turn it is), scan_pages.cc (what is read for it), scan.cc (claims).
class Scanner {
 public:
  struct Parts {
    const Clock& clock;
    const std::string& shard;
    Scope& scope;
    const Lives& lives;
    Attempts& attempts;
    Runner& runner;
    SoloGate& gate;
    const LiveEngine& engine;
    MillCounters& counters;
    const Admission& admission;
    StrandPort& beat;         // woken where a claim was refused as one of a dead life
    bool watch_idle = false;  // also find out whether nothing at all is left to do
  };

  // `part` says what it scans; `shared` is the other strands' of the shard, too.
  Scanner(Parts parts, const ScanPart& part, ScanShared& shared, ScanPort& port);

  // Until Stop.
  Step<> Run();
  void Stop();
  // Claims nothing more; only what it does not know yet of its claims is still resolved. A suspect that waits
  // keeps nobody out any more, even if the strand hangs in the shard.
  void StopClaiming();
  // Looks at the shard again at once: a task came back, or other slices are its own now.
  void LookAgain();
  // Its part is another now: what it found idle says nothing of that.
  void Redealt();
  // There may be something new: looks now, and for a moment again and again (mill/ring_looks.h). Also beside
  // a full lane: what is new may be of another type.
  void Rung(const Ring& ring);
  // Whether somebody listens who will ring: a shard in which nothing is due is then asked every two seconds,
  // and every four while nothing is written, as far as is heard.
  void SetAttended(bool attended);
  // Nothing runs and nothing is due that can run here, as of the last look. Meant for `watch_idle`.
  bool Idle() const { return idle_.load(); }
  // Since when that is so; of the last such time, where it is not so now.
  IdleSpan Idleness() const;
  // What is due all the same, as of then, and why nobody waits for it: `report is paused`.
  std::set<std::string> LeftAside() const;
  // What is due as of the newest map and not to be claimed now, and why: `report: its limit`.
  std::set<std::string> HeldBack() const;
  // It has seen that it is to claim nothing more: what it had claimed is in the in-flight set.
  bool Quiet() const { return quiet_.load(); }
  // The shard says that something else is paused than it did before. True once for each change.
  bool TakePausesChanged() { return pauses_changed_.exchange(false); }
  ScanView View() const;
  // The newest whole due map, of own groups alone; null while there is none, or where the last map could not
  // be read. Current: nothing has come to this scanner since, and no table was left out.
  struct Seen {
    std::shared_ptr<const DueMap> map;
    bool current = false;
  };
  Seen LatestMap() const;

 private:
  // Rows that one statement claims, and the groups that they were found in, one for each.
  struct FoundRows {
    ClaimRequest request;
    std::vector<const DueGroup*> groups;
  };
  struct Candidates {
    static constexpr std::size_t kMostPages = 64;  // after so many what was found is claimed

    // One for each table and attempt number, with contents or without.
    std::vector<FoundRows> claims;
    std::size_t wanted = 0;
    std::size_t room = 0;  // bytes that more of them may take
    std::size_t count = 0;
    std::size_t bytes = 0;  // that they take
    std::size_t pages = 0;  // read for them
    std::size_t read = 0;   // rows that the last statement has brought

    bool Full() const { return count >= wanted || room == 0; }
    bool MayRead() const { return !Full() && pages < kMostPages; }
    // One that is larger than all the room is taken by itself; after one that does not fit there is no room.
    bool Takes(std::size_t of_row) {
      const bool fits = of_row <= room || count == 0;
      room = fits ? room - std::min(room, of_row) : 0;
      bytes += fits ? of_row : 0;
      return fits;
    }
    void Add(const DueGroup& group, ScanRow& row);
  };
  // What is still wanted of a group in this turn.
  struct Share {
    const DueGroup* group = nullptr;
    GroupRank* rank = nullptr;  // its own
    std::size_t left = 0;
  };
  struct TypeWork {
    std::string type;
    std::vector<const DueGroup*> groups;  // due
    std::vector<GroupRank> ranks;         // theirs
    std::optional<double> yield = {};  // rows that a page gave of late; nullopt: none was read in this look
    std::size_t longest = std::numeric_limits<std::size_t>::max();  // page of the last statement, in rows
    bool in_runs = false;  // the rows of its last page were neighbours in their table
  };
  // A type's place in one turn.
  struct Place {
    TypeWork* work = nullptr;
    std::vector<std::size_t> order = {};  // of its groups
    std::size_t next = 0;                 // in that
    LaneRoom room = {};                   // for what is next, as far as policies go
    LaneRoom free = {};                   // of that, beside what is about to be claimed
    std::size_t most = 0;                 // of that to claim now
    bool unbound = false;                 // by what goes by what was claimed: rounds, policies
    ClaimLoad landed = {};                // of the type, when that was asked (ClaimLedger)
    bool Done() const { return next == order.size(); }
  };
  struct Look {
    std::shared_ptr<const DueMap> map;
    bool full = false;      // the map is a whole one
    bool left_out = false;  // of its part, a table that can't be read
    BootTime asked{};
    std::uint64_t part = 0;      // the version of its part
    std::uint64_t gains = 0;     // the scope's
    std::vector<TypeWork> work;  // points into the map
    DueRows brought;             // rows that came with the map, and nothing else is due
    BootTime until;              // when to look again
    BootTime quiet_until;        // the same where nothing is written until then
  };

  // One round of work; returns how long to wait for the next.
  Step<Micros> Round();
  // Whether somebody has rung, and it is time for the next look because of it.
  bool RingDue();
  void NoteIdle(bool nothing_left);
  // How long there is nothing to do, as far as is known.
  Micros UntilNext();
  // Claims the suspect whose turn it is, if any.
  Step<Status> ClaimSuspect(std::shared_ptr<Lease> life);
  Step<> TakeLook(EngineConfig engine);
  // When to look again after a map that took `cost`; an idle shard that is listened to may `rest` so long.
  BootTime NextLook(Micros cost, Micros rest) const;
  // The same, once its time has come.
  BootTime NextLookAt(BootTime now) const;
  Step<> LookAtRounds(BootTime now, std::vector<TableSlices> slices);
  // Something of the type that was claimed, or is about to be, has not ended.
  bool InHand(const std::string& type) const;
  Step<Result<DueMap>> ReadMap(std::vector<TableSlices> slices, DueWanted wanted);
  // Rows that came with the map are used where nothing else is due, as it shows, and each is the first of its
  // group: so nobody is passed over.
  void KeepBrought();
  // The rows that somebody has rung for since the last look.
  std::map<TableName, std::vector<std::uint64_t>> TakeRung();
  // What the map is to bring that is taken now.
  DueWanted Wanted(BootTime now, const std::vector<TableSlices>& slices);
  // Before a look: what changes its rounds, and whether a part would not be enough for it.
  void PrepareLook(std::uint64_t part, std::uint64_t gains);
  // Nothing is due or in hand, and somebody waits for nothing to be left. That only whole maps show.
  bool MayEnd(const DueMap& map) const;
  // Rows of this group were seen that wait, or will, and were not claimed: they are looked for again shortly.
  void LookForAgain(const DueGroup& group, WallTime due);
  // For others to see.
  void Publish(ScanView view);
  // Nothing is due or in hand, and somebody rings if that changes.
  bool MayRest(BootTime now) const;
  Rewinding RewindingOf(const DueGroup& group);
  std::vector<TypeWork> WorkOf(const DueMap& map, const EngineConfig& engine, ScanView& view);
  // More may be claimed in this round of work.
  bool GoesOn() const;
  // Claims what the look shows, as far as the run stage has room.
  Step<> WorkOff(EngineConfig engine, std::shared_ptr<Lease> life);
  // One turn of all types, the most urgent groups of them all first; false: nothing more can be claimed now.
  Step<bool> TakeTurn(const EngineConfig& engine, std::shared_ptr<Lease> life);
  std::uint32_t UrgencyOf(const Place& place) const;
  // Those places whose next groups are the most urgent; empty: there are none left.
  std::vector<Place*> MostUrgent(std::vector<Place>& places) const;
  void PutInTurn(std::vector<Place*>& places) const;
  // Where the groups end that a place may be filled from now: no other type has more urgent ones.
  std::size_t EndOf(const Place& place, std::span<const Place> places) const;
  // What each of these equally urgent types may claim now: by weight, where there is not enough for all.
  // Empty: one after another takes what it can.
  std::vector<std::size_t> SharesOf(std::span<Place* const> places, const EngineConfig& engine);
  // How many tasks of the type may be claimed now, beginning with the next group.
  std::size_t RoomOf(Place& place, const EngineConfig& engine);
  // Scans and claims for one type up to a group, as far as its share and its room go; false: nothing was
  // found, or could be claimed. A full claim is sent ahead: while the shard works on it the next rows are
  // looked for.
  Step<bool> Fill(Place& place, std::size_t end, std::size_t share, std::shared_ptr<Lease> life);
  // Other strands may have filled the room meanwhile: what has no place is given up.
  void KeepWithin(Place& place, Candidates& found);
  void RestByBrake();
  // Nobody has paused or moved what was found.
  bool StillOpen(const Candidates& found) const;
  bool GoesAhead(const Place& place, const Candidates& found) const;
  Step<> ClaimFound(std::string type, Candidates found, std::shared_ptr<Lease> life, bool ahead);
  // What came of the claim that was sent, if any.
  Step<> Land();
  // The rest is given up.
  void KeepFirst(Candidates& found, std::size_t rows);
  // Rows that were found in these groups, and are not claimed: they are to be found again.
  void GiveUp(std::span<const DueGroup* const> rows);
  // Finds rows for a type in these of its groups; false: nothing is to be claimed now.
  Step<bool> Gather(TypeWork& work, std::span<const std::size_t> order, Candidates& found);
  // What the map has brought of these groups of the type; false: nothing.
  bool TakeBrought(TypeWork& work, std::span<const std::size_t> groups, Candidates& found);
  // Up to so many more of each of these groups of the type; false as with Gather.
  Step<bool> GatherFrom(TypeWork& work, std::span<const std::size_t> groups, std::size_t most,
                        Candidates& found);
  bool MayClaim(const DueGroup& group) const;
  // The database takes no claims of this table, or no settles.
  bool Rests(const TableName& table) const;
  // The table is left out for a while, since a statement was refused though the shard answers; `took`: that.
  void Rest(RestingTables& among, const TableName& table, Micros took, const std::string& why);
  bool MayHaveMore(const DueGroup& group) const;
  // Adds groups to those that have something left, as far as one statement reads and what is wanted asks for.
  // How many rows are read of them together; 0: each has its page.
  std::size_t AddShares(TypeWork& work, std::span<const std::size_t>& groups, std::size_t most,
                        const Candidates& found, std::vector<Share>& shares);
  // The same of groups that are read together; 0: they can't be.
  std::size_t Join(TypeWork& work, std::span<const std::size_t>& groups, std::size_t most,
                   const Candidates& found, std::vector<Share>& shares);
  // `rows_of`: how many are read of one.
  void TakeShares(TypeWork& work, std::span<const std::size_t>& groups, std::size_t most,
                  const Candidates& found, std::vector<Share>& shares,
                  const std::function<std::size_t(const Share&)>& rows_of);
  // It has had its place in this turn.
  void SetServed(const DueGroup& group, GroupRank& rank);
  // A page of each group into `found`; false as with Gather.
  Step<bool> ScanInto(TypeWork& work, std::span<Share> shares, std::size_t joined, Candidates& found);
  std::size_t PageOf(const Share& share, const Candidates& found) const;
  struct Picked {
    std::size_t taken = 0;
    std::size_t had = 0;  // to be taken: those, or all rows where there may be more of them
  };
  // `whole`: these are all rows that the group has.
  Picked Pick(const DueGroup& group, const ScanRequest& request, bool whole, std::vector<ScanRow>& rows,
              std::size_t limit, Candidates& found);
  // It ran in this life when it was seen.
  bool IsOwn(const ScanRow& row) const;
  bool IsFree(const DueGroup& group, const ScanRow& row);
  // Why nobody is to wait for a group that is due: it is paused, or outside its hours; empty: it is to run.
  std::string AsideBecause(const DueGroup& group) const;
  Step<bool> NothingLeft(std::shared_ptr<const DueMap> map, bool was_empty);
  Step<bool> MayStillRun(const DueGroup& group);
  // True where it is well.
  bool Note(const Status& status);
  Micros AfterTrouble();

  const Parts parts_;
  const ScanPart& part_;
  ScanShared& shared_;
  ScanPort& port_;

  // The strand's own.
  Suspects suspects_;
  Claimer claimer_;
  ScanCursors cursors_;
  ScanRounds rounds_;
  std::uint64_t turn_ = 0;  // of all types together
  bool worked_ = true;      // there was room in it: one without room is no turn
  FairShares shares_;
  Brake brake_;
  Micros brake_limit_{0};
  BootTime rests_until_{};      // the brake holds
  Micros work_to_rest_of_{0};   // since the last rest
  std::optional<Step<>> sent_;  // the claim that is on its way, until it has landed
  Look look_;
  LookSchedule schedule_;
  KnownGroups known_;
  Micros trouble_pause_{0};
  bool failed_ = false;    // an error in this round
  bool full_ = false;      // a lane had no room in this round for what there is to claim
  BootTime held_until_{};  // a policy had none in this round: until then, at least
  RingLooks rings_;
  std::size_t mean_bytes_ = MemoryBudget::Of(0);  // of the rows that the last statement brought

  std::atomic<bool> look_again_{false};
  std::atomic<bool> rung_{false};
  std::atomic<bool> attended_{false};
  std::atomic<bool> pauses_changed_{false};
  std::atomic<bool> idle_{false};
  std::atomic<bool> quiet_{false};
  std::atomic<bool> claiming_{true};
  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  ScanView view_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const DueMap> newest_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const DueMap> latest_ MILLRACE_GUARDED_BY(mutex_);  // that is a whole one
  std::uint64_t latest_part_ MILLRACE_GUARDED_BY(mutex_) = 0;         // as of that look
  std::uint64_t latest_gains_ MILLRACE_GUARDED_BY(mutex_) = 0;        // likewise
  bool latest_whole_ MILLRACE_GUARDED_BY(mutex_) = false;             // nothing was left out
  std::vector<Ring> rings_with_rows_ MILLRACE_GUARDED_BY(mutex_);     // since the last look
  std::optional<IdleSpan> idleness_ MILLRACE_GUARDED_BY(mutex_);
  std::set<std::string> left_aside_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine

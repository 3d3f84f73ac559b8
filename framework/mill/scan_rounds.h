// The rounds of handlers that are not scanned without a pause (`handlers.H.scan`): when one begins, what
// belongs to it, and when it is over. Of one shard in one worker. Pure; time comes from outside.
//
// A round begins when its time has come, and freezes its scope then: rows that were created by then, or up to
// the table's greatest id. It goes through each due group once, from its beginning to its end, and takes
// `max_rows` at most from all of them together. It is over once that is reached, or nothing is left in it;
// what is paused then can be taken yet, until the next round begins, and so can what goes back before it
// starts. A group that comes with a slice, or of retries, belongs to the round that is open. Nothing but time
// begins a round: no row, and no ring.
//
// Not thread-safe; the scan strand's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/config/config.h"
#include "framework/mill/scan_cursors.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// A handler's rounds as they are, for people.
struct RoundView {
  std::string handler;
  bool open = false;
  std::size_t claimed = 0;             // in the newest round
  std::optional<BootTime> began = {};  // that one; nullopt: there was none yet
  std::optional<BootTime> next = {};   // when the next begins; nullopt: not known before this one has ended
};

class ScanRounds {
 public:
  using Greatest = std::map<TableName, std::uint64_t>;
  // Of a task type.
  using Asks = std::function<bool(const std::string& handler)>;
  // What a look at the shard has shown.
  struct Shown {
    const DueMap& map;
    const std::vector<TableSlices>& slices;  // its own
    const Greatest& greatest;                // of the tables that were wanted
    Asks runs;
    std::function<bool(const DueGroup&)> paused;
    Asks waits;    // one that was found has not been claimed yet, and may be
    Asks in_hand;  // one that was claimed has not ended
  };

  // The rules in force. A round that is open goes on by a new `max_rows`; a new rhythm counts from the last
  // beginning or end. A type whose rule is gone is scanned without a pause from now on. True: others are.
  bool Follow(std::shared_ptr<const ScanRules> rules);
  bool Any() const { return !rounds_.empty(); }

  // When a round is to begin, as far as that is known: look then. max(): none.
  BootTime Next() const;
  // The tables whose greatest ids a look that is taken now has to bring: of rounds that begin with it.
  std::vector<TableName> Wanted(BootTime now, const std::vector<TableSlices>& slices) const;
  // A look was taken: rounds end, and begin.
  void Look(BootTime now, const Shown& shown);
  // Between looks: from when on the time to the next round counts.
  void NoteEnded(BootTime now, const Asks& in_hand);

  // How the cursor of a group is to be set after this look.
  Rewinding RewindingOf(const DueGroup& group) const;
  // Whether rows of the group may be claimed, as far as rounds say.
  bool Takes(const DueGroup& group) const;
  // How many rows of the type may be claimed now.
  std::size_t Left(const std::string& handler) const;
  // Whether a scan for this type has to bring ScanRow::created_at.
  bool ByCreation(const std::string& handler) const;
  bool IsWithin(const DueGroup& group, const ScanRow& row) const;
  // A page of the group was read: up to the due time `last`; `any`: rows of the round were in it; `more`:
  // there may be more behind it.
  void Read(const DueGroup& group, WallTime last, bool any, bool more);
  void Claimed(const std::string& handler, std::size_t rows);
  // So many of those went back before they started, all due again at `due`: the newest round, which they
  // count to, takes them yet.
  void GivenBack(const std::string& handler, std::size_t rows, BootTime due);
  // What was found may not have been claimed: open rounds go through their groups again, with what is left to
  // them.
  void Again();

  std::vector<RoundView> Views() const;

 private:
  struct Round {
    ScanConfig rule;
    bool begun = false;    // there was one
    bool covered = false;  // the last look found slices of its own with this type, which it can run
    bool open = false;
    bool left = false;                     // open, and there is something that may be claimed now
    bool rewinds = false;                  // its groups start from their beginning with this look
    bool again = false;                    // and with the next one
    std::optional<BootTime> returns = {};  // all that went back is due by then
    BootTime anchor{};                     // of the rhythm `every`
    BootTime began{};
    std::optional<BootTime> ended = {};  // all that it has claimed
    ScanScope scope = ScanScope::Created;
    WallTime at{};  // the database's clock when it began
    Greatest greatest = {};
    std::size_t claimed = 0;
    std::set<UrgencyGroup> gone = {};  // gone through to their ends
  };

  static std::optional<BootTime> NextOf(const Round& round);
  static bool IsDue(const Round& round, BootTime now);
  static std::size_t LeftOf(const Round& round);
  static void Begin(Round& round, BootTime now, const Shown& shown);
  // What is left of an open round; it is over if that is nothing.
  static void See(const std::string& handler, Round& round, const Shown& shown);
  static void NoteEnd(const std::string& handler, Round& round, BootTime now, const Asks& in_hand);
  const Round* Of(const std::string& handler) const;

  std::shared_ptr<const ScanRules> rules_;
  std::map<std::string, Round> rounds_;  // by task type
};

}  // namespace millrace::engine

// The groups of a shard that have something to do, as they are known between two whole due maps. Pure.
//
// A whole map reads the head of every group. While somebody holds an old snapshot of the database (a dump, a
// forgotten transaction) the index keeps an entry of each task that was settled since, and a map wades
// through all of them; so does a question for a group of which nothing lives, since the server sees the end
// of a range only where it finds a row. Then maps between whole ones are parts: of a group that has not been
// read to its end nothing is asked; what is new is found by its id; and what comes due is asked for where
// something is known to live: once a row came due behind which there may be more, or one went back to wait
// here, or was seen and could not be claimed.
//
// A commit that comes late is found within a second if it is at most kLateCommits late. Whatever else appears
// in an old row (an edit, a release) waits for the next whole map.
//
// Not thread-safe; the scan strand's.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "framework/base/clock.h"
#include "framework/mill/scan_cursors.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

class KnownGroups {
 public:
  static constexpr Micros kLateCommits = std::chrono::seconds(5);
  // Beyond so many all maps are whole ones.
  static constexpr std::size_t kMost = 1024;

  // What a whole map has to bring that begins them.
  DueWanted WantedOfWhole() const { return {.begins_parts = true, .newer = greatest_}; }
  // Ids may be another database's from now on.
  void Forget() {
    greatest_.clear();
    earlier_.clear();
  }
  // The last whole map did not show too many groups.
  bool MayBegin() const { return groups_ <= kMost; }
  // The last whole map has begun parts.
  bool Begun() const { return !greatest_.empty() && known_.size() <= kMost; }
  // What the next part has to bring, as far as the groups have been read by now; those that were read to
  // their end are forgotten, there too.
  DueWanted Wanted(BootTime now, ScanCursors& cursors);
  // Of this group rows wait again that did not, due from then on at the earliest.
  void Return(const GroupKey& group, WallTime due);
  // Likewise, but they may from `when` on: nothing is asked of it before.
  void LookAgain(const GroupKey& group, WallTime due, BootTime when);
  // A map came that was asked for so: a part is filled up with what is known beside it. Groups that are to
  // be read from an earlier row on than they would be are forgotten in `cursors`.
  void Take(const DueWanted& wanted, DueMap& map, ScanCursors& cursors);

 private:
  struct Known {
    std::optional<WallTime> first = {};  // of rows that have not been read, as far as is known
    std::size_t rows = 0;                // as in DueGroup, of the newest map
    bool more = false;                   // behind those there may be some that are due later
    std::optional<WallTime> after = {};  // it is to be asked for what is due after that
    std::optional<WallTime> tie = {};    // where it is being read something is due that may stand behind that
    std::optional<std::pair<WallTime, BootTime>> again = {};  // from this on it is to be asked for, then
    void AskAfter(WallTime at) { after = after ? std::min(*after, at) : at; }
  };
  using Greatest = std::map<TableName, std::uint64_t>;

  void DropRead(const GroupKey& key, Known& known, ScanCursors& cursors) const;
  void Begin(const DueGroup& group, Known& known, ScanCursors& cursors) const;
  void AskForNewRows(BootTime now, DueWanted& wanted);
  void Fill(DueMap& map) const;

  std::map<GroupKey, Known> known_;
  WallTime now_{};  // the database's, of the newest map
  Greatest greatest_;
  std::deque<std::pair<BootTime, Greatest>> earlier_;  // a second apart
  bool asked_earlier_ = false;                         // the last part did
  std::size_t groups_ = 0;                             // of the last whole map
  std::size_t turn_ = 0;                               // of those that are asked for
};

}  // namespace millrace::engine

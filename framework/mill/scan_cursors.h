// Where the scan of each due group stands, and when it goes back to the group's beginning. Pure.
//
// A group begins at its head as the due map shows it: before that there may be entries of settled rows, which
// an old snapshot keeps and a scan would wade through.
//
// Rows may appear behind a cursor: a transaction that commits late, a row whose run_at was changed, a task
// given back. So a group that has run empty starts again from its beginning with the next whole map, a group
// whose head moved to an earlier time does so at once, and one that never runs empty does so every rewind
// interval.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "framework/base/clock.h"
#include "framework/policy/group_order.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

enum class Rewinding {
  AsNeeded,
  Now,
  Never,
};

// A slice's tasks of one urgency, of a type that is known beside it.
using UrgencyGroup = std::tuple<TableName, std::uint32_t, std::uint32_t>;  // slice, urgency
inline UrgencyGroup UrgencyGroupOf(const DueGroup& group) {
  return {group.table, group.slice, group.urgency};
}

class ScanCursors {
 public:
  using RewindingOf = std::function<Rewinding(const DueGroup&)>;

  // Takes a new due map: forgets groups that it does not name and rewinds those that are to be; `of` says of
  // which groups something else decides. Empty: of none.
  void Refresh(BootTime now, const std::vector<DueGroup>& groups, Micros rewind, const RewindingOf& of = {});

  // Where the next page of the group begins.
  ScanPosition At(const DueGroup& group) const;
  // Since when the oldest row that may still be claimed waits, as far as is known; and its last turn.
  GroupRank Rank(const DueGroup& group) const;
  // False once a page came back short, until the next Refresh.
  bool MayHaveMore(const DueGroup& group) const;
  // How many of its waiting rows have not been passed yet, where the map has told (DueGroup::rows); 0: not
  // known.
  std::size_t Expected(const DueGroup& group) const;
  // So many rows were passed, and of these so many that wait; true: the last of those that were expected.
  bool Passed(const DueGroup& group, std::size_t rows, std::size_t waiting);
  // A page of so many rows was read up to `last`; `full`: there may be more.
  void Advance(const DueGroup& group, const ScanPosition& last, std::size_t rows, bool full);
  // Nothing is left of it: where the next map names it, it begins anew.
  void Forget(const DueGroup& group) { places_.erase(GroupKeyOf(group)); }
  // What was read of it is to be read again.
  void Rewind(const DueGroup& group);
  // It was worked on in this turn.
  void Served(const DueGroup& group, std::uint64_t turn);
  std::size_t Size() const { return places_.size(); }

 private:
  struct Place {
    ScanPosition after;
    WallTime head;  // first_run_at when it last started from the beginning
    BootTime rewound;
    std::size_t read = 0;  // rows since then
    std::size_t expected = 0;
    bool empty = false;
    std::uint64_t served = 0;  // the last turn
  };

  static constexpr std::size_t kSmallGroup = 100;  // rows that may be read again in every round

  std::map<GroupKey, Place> places_;
};

}  // namespace millrace::engine

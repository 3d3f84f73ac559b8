// What nobody needs any more goes from a shard, in small steps that leave its database to the real work.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/upkeep/exports.h"
#include "framework/base/clock.h"
#include "framework/config/config.h"
#include "framework/store/store.h"

namespace millrace::engine {

// How much the next step of a walk takes on, and how long the walk rests. A database that is busy answers
// later: then steps become smaller and rests longer, so that a walk has a tenth of one connection's time
// at most, and none of its transactions is long. Pure.
class PrunePace {
 public:
  static constexpr std::size_t kMostRows = 999;
  static constexpr std::size_t kFewestRows = 50;
  static constexpr Micros kSlow = std::chrono::milliseconds(60);  // for one step
  static constexpr Micros kQuick = std::chrono::milliseconds(15);
  static constexpr Micros kLongestTurn = std::chrono::milliseconds(100);
  static constexpr int kRest = 9;  // times what a turn took

  std::size_t rows() const { return rows_; }
  bool Rests(BootTime now) const { return now < rests_until_; }
  // A step has taken from `began` until `ended`. True: the turn is over.
  bool Note(BootTime began, BootTime ended) {
    const Micros took = std::chrono::duration_cast<Micros>(ended - began);
    if (took > kSlow) rows_ = std::max(std::min(rows_, kFewestRows), rows_ / 2);
    if (took < kQuick) rows_ = std::min(kMostRows, rows_ * 2);
    turn_ += took;
    if (took <= kSlow && turn_ < kLongestTurn) return false;
    Rest(ended);
    return true;
  }
  // A step was cut short, by a time limit perhaps: the same again would be, too.
  void NoteCut(BootTime began, BootTime ended) {
    const Micros took = std::chrono::duration_cast<Micros>(ended - began);
    if (took > kSlow) rows_ = std::max<std::size_t>(1, rows_ / 2);
    turn_ += took;
    Rest(ended);
  }

 private:
  void Rest(BootTime now) {
    rests_until_ = now + turn_ * kRest;
    turn_ = {};
  }

  std::size_t rows_ = kMostRows;
  Micros turn_{};
  BootTime rests_until_{};
};

// One thread.
class Pruning {
 public:
  Pruning(const std::string& shard, Store& store);

  // A turn of the walks that are due: over what is held for too long each minute, over all else each hour,
  // or sooner where something is kept for less. True: the latter has come to its end, and without a trouble.
  bool Go(const std::vector<TableName>& tables, const Config& config, BootTime now);
  // Why finished tasks of some types stay; see Exports. And what can't be pruned for its own fault: the walk
  // goes on behind it.
  std::vector<std::string> Troubles() const;

 private:
  bool EndHeld(const std::vector<TableName>& tables, const Config& config);
  bool Step(const std::vector<TableName>& tables, const Config& config);
  KeepRule RuleFor(const TableName& table, const Config& config);
  // True: what is behind `what` is to be pruned all the same. False: the shard does not answer, or is busy.
  bool Skip(const std::string& what, const Error& error);

  const std::string shard_;
  const std::unique_ptr<PruneStore> store_;
  Exports exports_;
  PrunePace pace_;
  // The walk over what is held.
  std::size_t held_table_ = 0;
  std::string held_after_;
  BootTime next_held_{};
  // The other one.
  std::size_t stage_ = 0;  // the table that is walked; behind the last one the keys, then the incarnations
  std::string after_;
  BootTime next_walk_{};
  std::size_t removed_ = 0;
  bool cut_short_ = false;                       // the walk goes on from where it is
  std::map<std::string, std::string> troubles_;  // since it was pruned last; by what it is
};

}  // namespace millrace::engine

// When one shard is swept for what the dead have left, and how deeply.
//
// A sweep that has time reads small pages, and now and then large ones. One in a hurry, after a death, reads
// large ones of all slices that the worker has, and is made again where slices come later: a dead worker's
// come to others once ZooKeeper has missed it, too, mostly after its beat was.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/base/clock.h"
#include "framework/mill/sweep.h"

namespace millrace::engine {

class Sweeps {
 public:
  // Often: whether somebody was marked dead since the last time, and Scope::Gains.
  void Note(BootTime now, bool somebody_died, std::uint64_t gains);
  // Unless one is under way that will do, or there is no map. `current`: nothing has come since the maps were
  // read; `is_due`: one that has time may begin.
  void Begin(BootTime now, bool is_due, Sweep::Maps maps, bool current);
  // Null: none.
  Sweep* UnderWay() { return sweep_ ? &*sweep_ : nullptr; }
  bool InAHurry() const { return hurries_; }
  // False: not all could be read.
  void End(BootTime now, bool swept);

 private:
  std::optional<Sweep> sweep_;
  bool hurries_ = false;
  BootTime began_{};
  std::optional<BootTime> owed_;  // since when one in a hurry is
  BootTime hurry_from_{};         // the next in a hurry
  std::optional<BootTime> died_;  // the last who was marked dead
  std::uint64_t gains_ = 0;
  int unhurried_ = 0;  // so many have begun
};

}  // namespace millrace::engine

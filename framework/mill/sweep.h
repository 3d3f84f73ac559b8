// A sweep of the groups that are due for what the dead have left, as it stands between two of its turns.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "framework/store/task_store.h"

namespace millrace::engine {

class Sweep {
 public:
  using Maps = std::vector<std::shared_ptr<const DueMap>>;

  // `page`: how many rows are read of a group before the first that runs is seen.
  Sweep(Maps maps, std::size_t page) : maps_(std::move(maps)), page_(page) { GoToDue(); }

  bool Through() const { return map_ == maps_.size(); }
  // The first pages of the next groups, at most `most` of them.
  std::vector<ScanRequest> Next(std::size_t most);

 private:
  void GoToDue();

  Maps maps_;
  std::size_t page_;
  std::size_t map_ = 0;    // the next group that is due is this map's
  std::size_t group_ = 0;  // and this one of it
};

}  // namespace millrace::engine

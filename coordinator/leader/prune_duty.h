// A duty of the leader in one shard: what nobody needs any more goes, a small step at a time and with long
// breaths between, so that no round of it is felt.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/config/config.h"
#include "framework/store/store.h"

namespace millrace::engine {

// One thread.
class PruneDuty {
 public:
  PruneDuty(std::string shard, Store& store) : shard_(std::move(shard)), store_(store.OpenPruning()) {}

  // A few steps of the walk over everything that is begun each hour.
  void Do(const std::vector<TableName>& tables, const Config& config, BootTime now);

 private:
  bool Step(const std::vector<TableName>& tables, const Config& config);

  const std::string shard_;
  const std::unique_ptr<PruneStore> store_;
  std::size_t stage_ = 0;  // the table that is walked; behind the last one the keys, then the incarnations
  std::string after_;
  BootTime next_walk_{};
  std::size_t removed_ = 0;
};

}  // namespace millrace::engine

// Carries the fan-outs of one shard to their end, a page at a time. Any number of processes may do so at
// once: each page is one transaction over the row as it was read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/random.h"
#include "framework/store/query_pages.h"
#include "framework/store/store.h"
#include "framework/task/slice_choice.h"

namespace millrace::engine {

// One thread.
class FanOuts {
 public:
  // `fan_outs` may be null, where the store keeps none; a page has at most `rows_of_page` rows.
  FanOuts(std::string shard, Store& store, std::unique_ptr<FanOutStore> fan_outs,
          Random random = Random::FromSystem(), std::size_t rows_of_page = kMaxBatchRows);

  // Goes through them, the oldest firing first, until all have come to their end or `stop`, which is asked
  // before each page. One that fails rests for a minute; the others go on. True: it was stopped, and there is
  // more to do.
  bool Go(const std::vector<TableInfo>& tables, const std::function<bool()>& stop);
  // Why those that rest do so, one sentence each.
  std::vector<std::string> Troubles() const;

 private:
  using Name = std::pair<std::string, WallTime>;  // schedule and firing
  struct Rest {
    BootTime until;
    std::string why;
  };

  const FanOut* Next(const std::vector<FanOut>& all) const;
  Status Step(const FanOut& fan_out, const std::vector<TableInfo>& tables);
  Result<FanOutPage> ReadPage(const FanOut& fan_out, std::uint32_t slices);
  void TellWithoutKey(const FanOut& fan_out, QueryPages& pages);
  void Note(const FanOut& fan_out, const Error& error);

  const std::string shard_;
  Store& store_;
  const std::unique_ptr<FanOutStore> fan_outs_;
  const std::size_t rows_of_page_;
  Random random_;
  std::map<std::pair<TableName, std::uint32_t>, SliceRuns> slices_;  // by table and its slices
  std::map<Name, Rest> resting_;
  std::map<Name, std::uint64_t> taken_;  // keys of its pages that were taken, since this process carries it
};

}  // namespace millrace::engine

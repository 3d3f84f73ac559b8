// Carries the fan-outs of one shard to their end, a page at a time. Any number of processes may do so at
// once: each page is one transaction over the row as it was read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/random.h"
#include "framework/store/query_pages.h"
#include "framework/store/store.h"
#include "framework/task/slice_choice.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// How many fan-outs are under way and come on, whoever carries them. One thread.
class FanOutWatch {
 public:
  explicit FanOutWatch(std::function<BootTime()> now = BootClock::now) : now_(std::move(now)) {}

  // Not counted are those that have not moved for 30 s while this was asked, and what stands in a shard that
  // does not answer, which is asked again after 5 s.
  std::size_t Moving(const StoresByShard& shards);

 private:
  struct OpenShard {
    std::shared_ptr<Store> store;
    std::unique_ptr<FanOutStore> fan_outs;
    BootTime again{};
  };
  using Name = std::pair<std::string, WallTime>;  // schedule and firing
  struct Seen {
    std::uint64_t rows = 0;
    std::optional<std::string> place;
    BootTime since;
  };

  const std::function<BootTime()> now_;
  std::map<std::string, OpenShard> open_;
  std::map<std::string, std::map<Name, Seen>> seen_;  // by shard
};

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
  // How many there were when they were read last, those that rest included.
  std::size_t under_way() const { return under_way_; }
  // When it was asked last, where there was none; nullopt: there was one, or it is not known.
  std::optional<BootTime> none_at() const { return none_at_; }
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
  std::size_t under_way_ = 0;
  std::optional<BootTime> none_at_;
  std::map<Name, Rest> resting_;
  std::map<Name, std::uint64_t> taken_;  // keys of its pages that were taken, since this process carries it
};

}  // namespace millrace::engine

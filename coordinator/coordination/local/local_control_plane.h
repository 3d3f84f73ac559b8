// A worker without a cluster: a plan and shards that never change, and the configuration of its file. All
// slices of its shards are its own, or those of given load-balance numbers; what is paused stands in the
// shards alone.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/base/result.h"
#include "framework/store/schema_store.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// Thread-safe.
class LocalControlPlane final : public ControlPlane {
 public:
  struct Shard {
    std::shared_ptr<Store> store;
    std::vector<TableInfo> tables;
  };

  // `numbers` are sorted load-balance numbers, `handlers` task types; empty: all. Invalid where no table has
  // a slice of these numbers.
  static Result<LocalControlPlane> Make(const std::map<std::string, Shard>& shards, Config config,
                                        const std::vector<std::uint32_t>& numbers = {},
                                        std::vector<std::string> handlers = {});

  StoresByShard Shards() override { return stores_; }
  std::vector<TableSlices> Slices(const std::string& shard) override;
  std::shared_ptr<const Pauses> Paused() override { return no_pauses_; }
  std::shared_ptr<const Config> CurrentConfig() override;
  void SetConfig(Config config);

 private:
  struct Current {
    Mutex mutex;
    std::shared_ptr<const Config> config MILLRACE_GUARDED_BY(mutex);
  };
  LocalControlPlane() = default;

  std::unique_ptr<Current> current_ = std::make_unique<Current>();
  std::shared_ptr<const Pauses> no_pauses_ = std::make_shared<const Pauses>();
  StoresByShard stores_;
  std::map<std::string, std::vector<TableSlices>> slices_;
};

}  // namespace millrace::engine

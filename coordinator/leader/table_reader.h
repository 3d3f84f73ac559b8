// Which task tables there are, for the plan: a keeper for each shard, and what they have read together.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "coordinator/leader/plan_duty.h"
#include "coordinator/leader/shard_keeper.h"
#include "framework/worker/ports.h"

namespace millrace {

// Update by one thread; Catalog by any.
class TableReader {
 public:
  struct Parts {
    ShardSource& shards;
    ConfigSource& config;
    std::function<bool()> leading;
    std::function<std::shared_ptr<const Ownership>()> ownership;
    std::function<void()> changed;  // Catalog() says something new; called by Update
    // How often each shard is looked at: new tables are planned within it.
    Micros round = std::chrono::seconds(1);
  };

  explicit TableReader(Parts parts) : parts_(std::move(parts)) {}

  // Follows the shards: starts keepers for new ones, stops those of shards that are gone, and waits for none.
  // Cheap where nothing changed; to be called several times a second.
  void Update();
  // False: a keeper is held up by a server that does not answer, for longer than a second. Its thread uses
  // what this was made of, so the process must end by std::_Exit.
  [[nodiscard]] bool Stop();
  // Null before the first Update.
  std::shared_ptr<const TableCatalog> Catalog() const;
  // `shard: handler`, for task types with due rows that no worker runs; as of the last Update.
  std::vector<std::string> Unrunnable() const;

 private:
  using Shards = std::map<std::string, std::shared_ptr<Store>>;

  void Retire(const Shards& staying);
  bool Reap();
  void Hire(const Shards& shards);
  void Publish();
  void Warn(bool no_shard);

  const Parts parts_;
  std::map<std::string, std::unique_ptr<ShardKeeper>> keepers_;
  std::vector<std::unique_ptr<ShardKeeper>> retired_;  // asked to stop, and not waited for
  bool warned_ = false;
  mutable Mutex mutex_;
  std::shared_ptr<const TableCatalog> catalog_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<std::string> unrunnable_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace

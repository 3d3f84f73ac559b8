// The leader's hand in one shard: a thread with a connection of its own, so that a shard that is slow or away
// holds up nobody else. It works only while this process leads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/exec/signal.h"
#include "framework/exec/thread.h"
#include "framework/store/store.h"

namespace millrace {

// Thread-safe.
class ShardKeeper {
 public:
  struct Parts {
    std::string name;
    std::shared_ptr<Store> store;
    std::function<bool()> leading;
    std::function<std::vector<std::string>()> wanted;  // the tables that the configuration names; empty: all
    std::function<void()> changed;                     // Tables() says something new
  };

  explicit ShardKeeper(Parts parts);
  ~ShardKeeper() { Stop(); }

  void Start();
  void Stop();
  const std::shared_ptr<Store>& store() const { return parts_.store; }
  // The task tables as they were read last; nullopt: never.
  std::optional<std::vector<TableInfo>> Tables() const;

 private:
  void Run();
  void ReadTables(SchemaStore& schema);
  void Keep(std::vector<TableInfo> tables);

  const Parts parts_;
  std::atomic<bool> stopping_{false};
  Signal wake_;
  mutable Mutex mutex_;
  std::optional<std::vector<TableInfo>> tables_ MILLRACE_GUARDED_BY(mutex_);
  std::string trouble_;  // the thread's own: what was logged last
  Thread thread_;
};

}  // namespace millrace

// What a worker of a cluster is told: by the member's last view, and of shards that are opened as the
// configuration changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/member/member.h"
#include "framework/base/mutex.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// Thread-safe. The member's driver publishes, the worker asks.
class ClusterControlPlane final : public ControlPlane {
 public:
  struct Options {
    std::shared_ptr<const Config> before_contact = std::make_shared<const Config>();
    // Whether the session may be over by now. It counts where `on_zookeeper_loss` is `stop`: then nothing is
    // scanned until the session is back. Asked where slices are assigned, thus after the first contact.
    std::function<bool()> lost = [] { return false; };
    // The store of a shard, without touching a connection. Empty: nobody asks for shards.
    std::function<Result<std::unique_ptr<Store>>(const ShardConfig&, Micros lease)> open = {};
    // For so long a worker is shown no shard before its first assignment; then it has none to wait for.
    Micros first_assignment{0};
  };

  explicit ClusterControlPlane(Options options);

  void Publish(const MemberView& view);
  std::shared_ptr<const MemberView> View() const;
  // The shards of the configuration that this process has opened, whatever is assigned.
  StoresByShard Opened();
  // By shard: why it is not opened, or not as it is configured now. A SQLite file in the configuration of a
  // cluster, an address that can't be read.
  std::map<std::string, std::string> Refusals() const;

  StoresByShard Shards() override;
  std::vector<TableSlices> Slices(const std::string& shard) override;
  std::shared_ptr<const Pauses> Paused() override { return View()->pauses; }
  std::shared_ptr<const Config> CurrentConfig() override { return View()->config; }
  // Null while the session may be over.
  std::shared_ptr<const BreakerWords> Breakers() override { return BreakersNow(); }
  void AskOfBreakers(const BreakerAsks& asks) override;

  void Publish(BreakerWords words);
  // Those that have opened by themselves, and why; nullopt: it is not known.
  std::optional<std::map<std::string, std::string>> OpenBreakers() const;
  // What the worker asked for last; nullopt: none of its types has a breaker.
  std::optional<BreakerAsks> AskedOfBreakers() const;
  void FollowShares(SharesTold told) override;
  void FollowChanges(std::vector<Signal*> wakes) override;
  // Where the session may be over, its shares may be others' by now: it has none until ReadAnew.
  void LifeBegun() override;
  // What the view says was read in a session that lives.
  void ReadAnew();

 private:
  std::shared_ptr<const BreakerWords> BreakersNow() const;
  Result<std::unique_ptr<Store>> Open(const ShardConfig& shard, Micros lease) const;
  void Follow(const Config& config) MILLRACE_REQUIRES(shards_mutex_);
  void TellShares() MILLRACE_REQUIRES(shares_mutex_);
  void TellChange();

  const Options options_;
  mutable Mutex mutex_;
  std::optional<BootTime> begun_ MILLRACE_GUARDED_BY(mutex_);  // when the shards were first asked for
  std::shared_ptr<const MemberView> view_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const BreakerWords> breakers_ MILLRACE_GUARDED_BY(mutex_);  // null: never heard
  BreakerAsks asks_ MILLRACE_GUARDED_BY(mutex_);

  Mutex shares_mutex_;  // held while they are told
  SharesTold told_ MILLRACE_GUARDED_BY(shares_mutex_);
  std::shared_ptr<const LimitShares> shares_told_ MILLRACE_GUARDED_BY(shares_mutex_);  // last; null: none
  bool void_ MILLRACE_GUARDED_BY(shares_mutex_) = false;  // what the view says may be others'

  Mutex wakes_mutex_;
  std::vector<Signal*> wakes_ MILLRACE_GUARDED_BY(wakes_mutex_);

  mutable Mutex shards_mutex_;
  std::shared_ptr<const Config> seen_ MILLRACE_GUARDED_BY(shards_mutex_);
  std::map<std::string, ShardConfig> configured_ MILLRACE_GUARDED_BY(shards_mutex_);  // as it was opened
  StoresByShard opened_ MILLRACE_GUARDED_BY(shards_mutex_);
  std::map<std::string, std::string> refusals_ MILLRACE_GUARDED_BY(shards_mutex_);
};

// Invalid for a store that only processes of one host can open.
Status CheckServer(const ShardConfig& shard);

// Those of this configuration's shards that a process of a cluster can open; sorted.
std::vector<std::string> ServableShards(const Config& config);

}  // namespace millrace::engine

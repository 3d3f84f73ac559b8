#include "coordinator/member/cluster_control_plane.h"

#include "framework/base/log.h"
#include "framework/store/url.h"

namespace millrace::engine {
namespace {

bool SameStore(const ShardConfig& a, const ShardConfig& b) {
  return a.url == b.url && a.password_file == b.password_file && a.doorbell == b.doorbell &&
         a.max_transactions == b.max_transactions;
}

}  // namespace

Status CheckServer(const ShardConfig& shard) {
  BOOST_OUTCOME_TRY(url, ParseStoreUrl(shard.url));
  if (url.kind != StoreUrl::Kind::Sqlite) return {};
  return Fail(ErrorCode::Invalid, "a cluster's shard is on a server; SQLite files are for `millrace run`");
}

ClusterControlPlane::ClusterControlPlane(Options options) : options_(std::move(options)) {
  MemberView view;
  view.config = options_.before_contact;
  view_ = std::make_shared<const MemberView>(std::move(view));
}

void ClusterControlPlane::Publish(const MemberView& view) {
  auto next = std::make_shared<const MemberView>(view);
  {
    MutexLock lock(mutex_);
    view_ = std::move(next);
  }
  {
    MutexLock lock(shares_mutex_);
    TellShares();
  }
  TellChange();
}

void ClusterControlPlane::TellChange() {
  MutexLock lock(wakes_mutex_);
  for (Signal* const wake : wakes_) wake->Notify();
}

void ClusterControlPlane::FollowChanges(std::vector<Signal*> wakes) {
  MutexLock lock(wakes_mutex_);
  wakes_ = std::move(wakes);
}

void ClusterControlPlane::TellShares() {
  if (!told_) return;
  auto shares = void_ ? std::make_shared<const LimitShares>() : View()->shares;
  if (shares_told_ && *shares_told_ == *shares) return;
  shares_told_ = shares;
  told_(std::move(shares));
}

void ClusterControlPlane::FollowShares(SharesTold told) {
  MutexLock lock(shares_mutex_);
  told_ = std::move(told);
  shares_told_ = nullptr;
  TellShares();
}

void ClusterControlPlane::LifeBegun() {
  if (!View()->contact || !options_.lost()) return;
  MutexLock lock(shares_mutex_);
  void_ = true;
  TellShares();
}

// A process that was stopped goes on with what it had read before, until it hears that its session is over.
void ClusterControlPlane::ReadAnew() {
  if (options_.lost()) return;
  MutexLock lock(shares_mutex_);
  void_ = false;
  TellShares();
}

std::shared_ptr<const MemberView> ClusterControlPlane::View() const {
  MutexLock lock(mutex_);
  return view_;
}

void ClusterControlPlane::Publish(BreakerWords words) {
  {
    MutexLock lock(mutex_);
    if (breakers_ && *breakers_ == words) return;  // they are read again and again
    breakers_ = std::make_shared<const BreakerWords>(std::move(words));
  }
  TellChange();
}

std::shared_ptr<const BreakerWords> ClusterControlPlane::BreakersNow() const {
  std::shared_ptr<const BreakerWords> words;
  {
    MutexLock lock(mutex_);
    words = breakers_;
  }
  return words && !options_.lost() ? words : nullptr;
}

std::optional<std::map<std::string, std::string>> ClusterControlPlane::OpenBreakers() const {
  const auto words = BreakersNow();
  if (!words) return std::nullopt;
  std::map<std::string, std::string> open;
  for (const auto& [type, word] : *words) open[type] = word.why;
  return open;
}

void ClusterControlPlane::AskOfBreakers(const BreakerAsks& asks) {
  MutexLock lock(mutex_);
  if (asks != asks_) asks_ = asks;
}

std::optional<BreakerAsks> ClusterControlPlane::AskedOfBreakers() const {
  MutexLock lock(mutex_);
  return asks_.empty() ? std::nullopt : std::optional(asks_);
}

StoresByShard ClusterControlPlane::Shards() {
  bool assigned = false;
  {
    const BootTime now = BootClock::now();
    MutexLock lock(mutex_);
    if (!begun_) begun_ = now;
    assigned = view_->generation > 0 || now - *begun_ >= options_.first_assignment;
  }
  return assigned ? Opened() : StoresByShard{};
}

std::vector<TableSlices> ClusterControlPlane::Slices(const std::string& shard) {
  const std::shared_ptr<const MemberView> view = View();
  const auto found = view->slices->find(shard);
  if (found == view->slices->end()) return {};
  if (view->config->engine.on_zookeeper_loss == OnZooKeeperLoss::Stop && options_.lost()) return {};
  return found->second;
}

StoresByShard ClusterControlPlane::Opened() {
  const std::shared_ptr<const Config> config = CurrentConfig();
  MutexLock lock(shards_mutex_);
  if (config != seen_) {
    Follow(*config);
    seen_ = config;
  }
  return opened_;
}

Result<std::unique_ptr<Store>> ClusterControlPlane::Open(const ShardConfig& shard, Micros lease) const {
  BOOST_OUTCOME_TRYV(CheckServer(shard));
  return options_.open(shard, lease);
}

void ClusterControlPlane::Follow(const Config& config) {
  refusals_.clear();
  std::erase_if(opened_, [&](const auto& entry) { return !config.shards.contains(entry.first); });
  for (const auto& [name, shard] : config.shards) {
    if (opened_.contains(name) && SameStore(configured_[name], shard)) continue;
    auto store = Open(shard, config.engine.lease);
    if (!store) {
      refusals_[name] = store.error().message;
      LogError("a shard is refused; the last good one stays",
               {{"shard", name}, {"why", store.error().message}});
      continue;
    }
    opened_[name] = std::move(*store);
    configured_[name] = shard;
  }
}

std::map<std::string, std::string> ClusterControlPlane::Refusals() const {
  MutexLock lock(shards_mutex_);
  return refusals_;
}

std::vector<std::string> ServableShards(const Config& config) {
  std::vector<std::string> servable;
  for (const auto& [name, shard] : config.shards) {
    if (CheckServer(shard)) servable.push_back(name);
  }
  return servable;
}

}  // namespace millrace::engine

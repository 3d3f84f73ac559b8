#include "coordinator/member/cluster_source.h"

namespace millrace::engine {

ClusterSource::ClusterSource(std::shared_ptr<const Config> before_contact, std::function<bool()> lost)
    : lost_(std::move(lost)) {
  MemberView view;
  view.config = std::move(before_contact);
  view_ = std::make_shared<const MemberView>(std::move(view));
}

void ClusterSource::Publish(const MemberView& view) {
  auto next = std::make_shared<const MemberView>(view);
  MutexLock lock(mutex_);
  view_ = std::move(next);
}

std::shared_ptr<const MemberView> ClusterSource::View() const {
  MutexLock lock(mutex_);
  return view_;
}

std::vector<TableSlices> ClusterSource::Slices(const std::string& shard) {
  const std::shared_ptr<const MemberView> view = View();
  const auto found = view->slices->find(shard);
  if (found == view->slices->end()) return {};
  if (view->config->engine.on_zookeeper_loss == OnZooKeeperLoss::Stop && lost_()) return {};
  return found->second;
}

}  // namespace millrace::engine

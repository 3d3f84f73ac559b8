// The mill's ports, answered from the member's last view.
#pragma once

#include <functional>
#include <memory>

#include "coordinator/member/member_view.h"
#include "framework/base/mutex.h"
#include "framework/worker/ports.h"

namespace millrace::engine {

// Thread-safe. The member's driver publishes, the mill asks.
class ClusterSource final : public SliceSource, public ConfigSource, public PauseSource {
 public:
  // `lost`: whether the session may be over by now. It counts where `on_zookeeper_loss` is `stop`: then
  // nothing is scanned until the session is back. Asked where slices are assigned, thus after the first
  // contact.
  explicit ClusterSource(std::shared_ptr<const Config> before_contact, std::function<bool()> lost);

  void Publish(const MemberView& view);
  std::shared_ptr<const MemberView> View() const;

  std::vector<TableSlices> Slices(const std::string& shard) override;
  std::shared_ptr<const Config> Current() override { return View()->config; }
  std::shared_ptr<const Pauses> Paused() override { return View()->pauses; }

 private:
  const std::function<bool()> lost_;
  mutable Mutex mutex_;
  std::shared_ptr<const MemberView> view_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine

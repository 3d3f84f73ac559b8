#include "framework/worker/config_follower.h"

#include "framework/base/log.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr Micros kPause = std::chrono::milliseconds(500);

}  // namespace

Status ConfigFollower::Start() {
  return thread_.Start("config", [this] { Run(); });
}

void ConfigFollower::RequestStop() {
  stopping_.store(true);
  wake_.Notify();
}

void ConfigFollower::Stop() {
  RequestStop();
  thread_.Join();
}

void ConfigFollower::Run() {
  while (!stopping_.load()) {
    if (auto config = control_.CurrentConfig(); !Follows(config)) Take(std::move(config));
    if (lanes_.LookAgain()) {
      admission_.Follow(lanes_.WithThreads(*Followed()));  // they may have other threads now
      taken_.Notify();
    }
    wake_.WaitFor(kPause);
  }
  ended_.store(true);
}

std::shared_ptr<const Config> ConfigFollower::Followed() const {
  MutexLock lock(mutex_);
  return followed_;
}

bool ConfigFollower::Follows(const std::shared_ptr<const Config>& config) const {
  return config == Followed();
}

std::optional<HandlerRefusals> ConfigFollower::Refused(const std::shared_ptr<const Config>& config) const {
  return Follows(config) ? std::optional(lanes_.Refusals()) : std::nullopt;
}

void ConfigFollower::Take(std::shared_ptr<const Config> config) {
  if (config->engine.lease != engine_.Get().lease) {
    LogInfo("the new lease holds from this worker's next registration in each shard",
            {{"lease", FormatDuration(config->engine.lease)}});
  }
  engine_.Set(config->engine);
  engine_.SetScans(config->Scans());
  engine_.SetOrder(ScanOrder::Of(*config));
  lanes_.Follow(config);
  admission_.Follow(lanes_.WithThreads(*config));
  {
    MutexLock lock(mutex_);
    followed_ = std::move(config);
  }
  taken_.Notify();
  LogInfo("a new configuration is in force", {});
}

}  // namespace millrace::engine

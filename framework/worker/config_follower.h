// Brings the configuration in force to where it is used, while the worker runs. On a thread of its own, since
// handlers are opened on it and may take their time.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "framework/base/mutex.h"
#include "framework/mill/admission.h"
#include "framework/mill/live_engine.h"
#include "framework/threads/signal.h"
#include "framework/threads/thread.h"
#include "framework/worker/control_plane.h"
#include "framework/worker/lane_set.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

class ConfigFollower {
 public:
  // `current` is what `engine`, `lanes` and `admission` go by already. `taken` is notified of what they go by
  // from then on.
  ConfigFollower(ControlPlane& control, std::shared_ptr<const Config> current, LiveEngine& engine,
                 LaneSet& lanes, Admission& admission, Signal& taken)
      : control_(control),
        followed_(std::move(current)),
        engine_(engine),
        lanes_(lanes),
        admission_(admission),
        taken_(taken) {}
  ~ConfigFollower() { Stop(); }

  // Unavailable: its thread can't be started.
  Status Start();
  void RequestStop();
  void Stop();
  // To be notified where the configuration may be a new one.
  Signal& changed() { return wake_; }
  // Its thread has ended. Thread-safe.
  bool Ended() const { return ended_.load(); }
  // nullopt: handlers have not been opened by this configuration. Thread-safe.
  std::optional<HandlerRefusals> Refused(const std::shared_ptr<const Config>& config) const;

 private:
  void Run();
  std::shared_ptr<const Config> Followed() const;
  bool Follows(const std::shared_ptr<const Config>& config) const;
  void Take(std::shared_ptr<const Config> config);

  ControlPlane& control_;
  mutable Mutex mutex_;
  std::shared_ptr<const Config> followed_ MILLRACE_GUARDED_BY(mutex_);
  LiveEngine& engine_;
  LaneSet& lanes_;
  Admission& admission_;
  Signal& taken_;
  Signal wake_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};
  Thread thread_;
};

}  // namespace millrace::engine

// Sees to the alerts of the configuration, on a thread of its own, while this process is the one to judge.
// README.md says how each message is sent once, whoever that is.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/alerts/alert_shard.h"
#include "coordinator/alerts/judge.h"
#include "coordinator/alerts/notice.h"
#include "framework/base/mutex.h"
#include "framework/threads/signal.h"
#include "framework/threads/thread.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// Thread-safe.
class AlertWatch {
 public:
  struct Parts {
    const Clock& clock;
    std::function<StoresByShard()> shards;
    std::function<std::shared_ptr<const Config>()> config;
    // nullopt: it is not this process's to judge, or not yet.
    std::function<std::optional<AlertPlace>()> place;
    std::string from;  // whose tasks the messages are about, for people
  };

  explicit AlertWatch(Parts parts) : parts_(std::move(parts)) {}
  ~AlertWatch();

  Status Start();
  // False: the thread is held up by a server that does not answer, for longer than a second. It uses what
  // this was made of, so the process must end by std::_Exit.
  [[nodiscard]] bool Stop();
  // One look, and when it wants the next: what its thread does. By one thread.
  Micros Turn();
  // What can't be sent, and why; one sentence each.
  std::vector<std::string> Troubles() const;

 private:
  struct Judged {
    AlertConfig config;
    AlertJudge judge = {};
    std::optional<SaidAlert> said = {};  // nullopt: to be read
    std::optional<WallTime> since = {};  // it holds
    std::string trouble = {};
  };
  // Of a shard that did not answer.
  struct Silence {
    BootTime until{};  // it is not asked again before
    std::string why = {};
  };

  void Run();
  Micros Round(const Config& config, const AlertPlace& place);
  void Follow(const Config& config, const StoresByShard& shards);
  Observation Observe(const Config& config, const AlertPlace& place, BootTime now);
  void Judge(const std::string& name, Judged& judged, const Observation& seen, const AlertPlace& place,
             BootTime now);
  std::optional<SaidAlert> ReadSaid(const std::string& name, BootTime now);
  void Send(const std::string& name, Judged& judged, const AlertFact& fact, bool firing,
            const AlertPlace& place, BootTime now);
  // Takes back, in every shard that answers, what was said before that message and is not sent yet.
  // `running`: what is being sent, too: one that fires goes on, however slowly it is taken.
  void TakeBack(const std::string& name, std::uint64_t before, bool running);
  void Tell();
  void Forget();

  const Parts parts_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{true};
  Signal wake_;
  mutable Mutex mutex_;
  std::vector<std::string> troubles_ MILLRACE_GUARDED_BY(mutex_);
  // The thread's own.
  std::map<std::string, std::unique_ptr<AlertShard>> shards_;
  std::map<std::string, Silence> silent_;  // by shard
  Micros looked_{};                        // what the last look took, at shards that answered
  std::map<std::string, Judged> alerts_;
  Thread thread_;
};

}  // namespace millrace::engine

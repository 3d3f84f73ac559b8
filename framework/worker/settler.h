// Settles ended attempts of one shard in batches: whatever has gathered while the last batch was written goes
// into the next, so that batches grow with the load and a lone task waits for nobody.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "framework/exec/hand_over.h"
#include "framework/exec/signal.h"
#include "framework/exec/thread.h"
#include "framework/store/task_store.h"
#include "framework/worker/flight.h"
#include "framework/worker/live_engine.h"

namespace millrace::engine {

class Settler {
 public:
  // Told, on the settler's thread, that the outcome of a landing is known: its id may leave the in-flight
  // set. `verdict` Refused: the attempt was no longer ours.
  using Known = std::function<void(const Landing&, SettleVerdict verdict)>;

  Settler(std::unique_ptr<TaskStore> store, const LiveEngine& engine, Known known);
  ~Settler() { Stop(); }

  // Unavailable: its thread can't be started.
  Status Start();
  // Ends the thread; RequestStop asks it to. What is still queued, or lands from then on, is dropped.
  void Stop();
  void RequestStop();
  // Thread-safe, and never waits: how much can be under way is bounded where tasks are claimed.
  void Land(Landing landing);

 private:
  void Run();
  void SettleAll(std::vector<Landing> batch);
  // One life's landings; returns those whose outcome is still open.
  std::vector<Landing> SettleOnce(std::vector<Landing> batch);
  std::vector<Landing> Verified(std::vector<Landing> batch);
  void MendBroken(Landing landing, const std::string& error);
  void SetAside(Landing landing);
  std::vector<Landing> DueAgain(std::size_t most);

  const std::unique_ptr<TaskStore> store_;
  const LiveEngine& engine_;
  const Known known_;
  HandOver<Landing> queue_;
  std::atomic<bool> stopping_{false};
  Signal wake_;
  bool reported_ = false;  // the present trouble was logged
  // Landings whose rows somebody else has locked, or that the database refuses: nobody waits for them.
  std::vector<Landing> busy_;
  BootTime busy_due_{};
  Thread thread_;
};

}  // namespace millrace::engine

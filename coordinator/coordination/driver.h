// Runs state machines on a session: a thread that tells them what happened, asks each for its next requests,
// performs them, and hands back the replies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/coordination/machine.h"
#include "coordinator/coordination/session.h"
#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/base/result.h"
#include "framework/threads/pulse.h"
#include "framework/threads/thread.h"

namespace millrace::engine {

// What a session looks like from outside. Whether it still lives is a matter of `last_contact` alone.
struct SessionView {
  bool connected = false;    // as far as was told
  std::int64_t session = 0;  // of the last Connected; 0: there was none
  BootTime last_contact{};
  Micros timeout{0};
};

// Thread-safe. The machines and the clock outlive it, and belong to its thread from Start to Stop.
class Driver {
 public:
  Driver(std::unique_ptr<TreeSession> session, std::vector<TreeMachine*> machines, const Clock& clock);
  ~Driver() { Stop(); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Once; it does not wait for the connection. An ensemble that is away is tried until it is there: how long
  // a first contact may take is the caller's business, by View().
  // Unavailable: its thread can't be started.
  Status Start();
  // Lets the machines say farewell and closes the session, when the request under way has its reply. Each
  // takes a session time-out at the latest, and nothing while there is no connection. There is no start after
  // it.
  void Stop();
  // Asks every machine again soon, since something changed outside of the tree.
  void Wake();
  SessionView View() const;
  // Its thread should have gone on for longer than `patience`, and has not; servers that are away are no
  // reason.
  bool StandsStill(Micros patience) const { return pulse_.StandsStill(BootClock::now(), patience); }

 private:
  struct Place {
    TreeMachine* machine = nullptr;
    BootTime ask_from{};  // after a lost request it is not asked at once again
  };

  // What one machine asked for.
  struct Asked {
    Place* place = nullptr;
    TreeRequest request;
  };

  void Run();
  std::optional<TreeEvent> Wait(Micros limit);
  bool ServeAll();
  void Collect(Place& place, std::vector<Asked>& asked);
  void Answer(const Asked& asked, const TreeReply& reply);
  void Tell(const TreeEvent& event);
  Micros Pause() const;
  void Close();

  const Clock& clock_;
  std::vector<Place> places_;  // the thread's own
  TreeSession* const tree_;    // session_, for the thread, which alone ends it
  std::atomic<bool> stopping_{false};
  Pulse pulse_;
  Mutex life_;  // taken by Start and Stop alone
  bool started_ MILLRACE_GUARDED_BY(life_) = false;
  Thread thread_ MILLRACE_GUARDED_BY(life_);
  mutable Mutex mutex_;
  std::unique_ptr<TreeSession> session_ MILLRACE_GUARDED_BY(mutex_);  // null once it is closed
  SessionView view_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine

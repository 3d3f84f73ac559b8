// What the client library's threads tell, until the owner takes it. Thread-safe. Bounded: a path stands in
// it once, and of the news of a session only what still matters.
#pragma once

#include <deque>
#include <optional>

#include "coordinator/coordination/tree.h"
#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace millrace::engine {

class EventQueue {
 public:
  // Changed is dropped where the same one waits already. A Disconnected takes back a Connected that was not
  // heard yet; an Expired takes back both, and the changes, since the watches went with the session.
  void Push(TreeEvent event);
  void Interrupt();

  struct Taken {
    std::optional<TreeEvent> event;
    bool interrupted = false;
  };
  // The oldest event; neither, after `limit`. An Interrupt that came before the wait ends it at once, events
  // first.
  Taken Take(Micros limit);

 private:
  Mutex mutex_;
  CondVar filled_;
  std::deque<TreeEvent> events_ MILLRACE_GUARDED_BY(mutex_);
  bool interrupted_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::engine

// What decides in a cluster: election, the leader's duties, following the plan and the configuration. A
// machine has no threads and does no I/O; somebody asks it what to do next, does that, and tells it what came
// of it. The driver does so with a real session, the simulator with a modelled one.
#pragma once

#include <optional>

#include "coordinator/coordination/tree.h"
#include "framework/base/clock.h"

namespace millrace::engine {

// Not thread-safe. Several reads may be under way at once: Next is asked again before they are answered.
// After a write it is not, until the write has been answered. The requests of a session are carried out and
// answered in their order, with an Event in between where something changed; those whose session ended are
// answered by Lost or Expired. `now` never goes back.
class TreeMachine {
 public:
  virtual ~TreeMachine() = default;

  virtual void Event(const TreeEvent& event, BootTime now) = 0;
  // The next request; nullopt: nothing to ask before a reply, an event or WakeAt().
  virtual std::optional<TreeRequest> Next(BootTime now) = 0;
  virtual void Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) = 0;
  // When to ask again though nothing was heard.
  virtual BootTime WakeAt(BootTime now) const = 0;
  // The process leaves in good order: the last request, performed before the session is closed; nobody tells
  // what came of it. nullopt: the end of the session says it all.
  virtual std::optional<TreeRequest> Farewell() { return std::nullopt; }
};

}  // namespace millrace::engine

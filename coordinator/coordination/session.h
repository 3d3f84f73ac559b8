// A client of the tree: performs requests, and tells events. How a session is opened is the adapter's
// business.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/coordination/tree.h"
#include "framework/base/clock.h"

namespace millrace::engine {

// PerformAll, Perform and WaitEvent belong to one thread, the owner's; the others may be called by any.
class TreeSession {
 public:
  virtual ~TreeSession() = default;  // closes the session: its ephemeral nodes go at once

  // Blocks until the replies, one for each request, at most a session time-out (then Lost). They are carried
  // out in their order, and all are sent before the first is answered, so that many take little longer than
  // one. Lost at once while there is no connection, or one of which WaitEvent has not yet told; what is read
  // is no older than the connection.
  virtual std::vector<TreeReply> PerformAll(const std::vector<TreeRequest>& requests) = 0;
  TreeReply Perform(const TreeRequest& request) { return std::move(PerformAll({request}).front()); }
  // The next event; nullopt after `limit`, or after Interrupt, which is kept for the next wait where none is
  // under way. After an Expired the adapter opens a new session within this call: it may last longer then.
  virtual std::optional<TreeEvent> WaitEvent(Micros limit) = 0;
  virtual void Interrupt() = 0;

  // When the last round trip to the leading server that succeeded was *sent*; while the owner waits, never
  // older than half a time-out. A session may be over one time-out after it, whatever the client library
  // believes: it reports no expiry while it is disconnected, nor after a pause. Reads do not count, since any
  // server answers them from its own memory.
  virtual BootTime LastContact() const = 0;
  virtual Micros Timeout() const = 0;  // as the server granted it
};

}  // namespace millrace::engine

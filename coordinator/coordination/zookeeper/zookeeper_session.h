// The tree on a real ensemble. See README.md beside the seam for what the client library leaves to us.
#pragma once

#include <memory>
#include <optional>

#include "coordinator/coordination/session.h"
#include "coordinator/coordination/zookeeper/client.h"
#include "coordinator/coordination/zookeeper/event_queue.h"

namespace millrace::engine {

// Keeps one session open, and opens the next where one ends or none can be had yet.
class ZookeeperSession final : public TreeSession {
 public:
  // Does not wait for the connection, nor fail for want of one.
  explicit ZookeeperSession(const ZookeeperClientOptions& options);

  std::vector<TreeReply> PerformAll(const std::vector<TreeRequest>& requests) override;
  std::optional<TreeEvent> WaitEvent(Micros limit) override;
  void Interrupt() override { events_.Interrupt(); }
  // Who may do what with nodes is this adapter's own matter. All are sent at once, as by PerformAll, and
  // answered in order. See ZookeeperClient.
  struct Access {
    TreeReply reply = {};
    bool open = false;
  };
  std::vector<Access> ReadAccess(const std::vector<std::string>& paths);
  std::vector<TreeReply> CloseAccess(const std::vector<std::string>& paths);
  BootTime LastContact() const override;
  Micros Timeout() const override;

 private:
  // Why nothing can be asked now; nullopt: it can.
  std::optional<TreeReply> Unusable() const;
  TreeReply Await(const TreeRequest& request, const ZookeeperClient::Sent& sent, BootTime deadline);
  void Heard(const TreeEvent& event);
  // Opens a session if there is none, and probes the one that there is. Returns when to do so again.
  Micros Tend(BootTime now);
  Micros Hasten(const ZookeeperClient& client, BootTime now);
  // Closes the client, if there is one, and opens one for this session, or for a new one. Host names are
  // looked up for it, and the library ends no look-up that is under way: it takes as long as the name servers
  // like.
  void Reopen(const ZookeeperSessionKey& key = {});
  void Note(const TreeEvent& event) const;

  const ZookeeperClientOptions options_;
  EventQueue events_;
  BootTime opened_{};      // the last try; when it was done
  Micros opening_took_{};  // that
  BootTime probed_{};
  bool complained_ = false;  // that no session can be opened: once, not at every try
  // The owner alone changes these, under the lock, and reads them without; others read under the lock.
  mutable Mutex mutex_;
  ZookeeperSessionKey key_;  // of the session to go on with, where there is no client
  std::unique_ptr<ZookeeperClient> client_;
};

}  // namespace millrace::engine

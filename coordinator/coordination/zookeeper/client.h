// One session of the C client library, from its opening to its close. The library's threads only note what
// they have to say: completions fill a request, watchers push events.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/coordination/tree.h"
#include "coordinator/coordination/zookeeper/event_queue.h"
#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/base/result.h"

struct _zhandle;  // the library's name. NOLINT(bugprone-reserved-identifier)

namespace millrace::engine {

struct ZookeeperClientOptions {
  std::string hosts;
  std::string base;    // what requests' paths are relative to; empty: the root
  std::string digest;  // `user:password`; empty: none, and nodes are made open to all
  Micros session_timeout{0};
};

// What it takes to go on with a session in another client.
struct ZookeeperSessionKey {
  std::int64_t id = 0;  // 0: there is none yet
  std::array<char, 16> password{};
  BootTime last_contact{};
  Micros timeout{0};
};

// Requests belong to one thread; what is const may be asked by any.
class ZookeeperClient {
 public:
  // Does not wait for a connection: that is told by an event. Unavailable where no host's name is known.
  static Result<std::unique_ptr<ZookeeperClient>> Open(const ZookeeperClientOptions& options,
                                                       EventQueue& events,
                                                       const ZookeeperSessionKey& key = {});
  ~ZookeeperClient();  // closes the session at the server, if one can be reached
  ZookeeperClient(const ZookeeperClient&) = delete;
  ZookeeperClient& operator=(const ZookeeperClient&) = delete;

  struct PendingRequest;
  // A request that was sent, or could not be. Each is to be awaited once.
  struct Sent {
    PendingRequest* request = nullptr;
    int code = 0;  // the library's
  };
  // Each sends a request and returns; several may be under way, and are carried out and answered in order.
  Sent Get(const std::string& path, bool watch);
  // Whether a node is there, with a watch either way: Ok or NotFound.
  Sent WatchExistence(const std::string& path);
  Sent List(const std::string& path, bool watch);
  Sent Write(const std::vector<TreeWrite>& writes);
  // Whether others than this digest's owner may change the node: to be awaited by AwaitAccess, before
  // anything else is sent.
  Sent ReadAccess(const std::string& path);
  TreeReply AwaitAccess(const Sent& sent, bool& open, BootTime deadline);
  // From now on the node is for this client's digest alone.
  Sent CloseAccess(const std::string& path);
  // Blocks until the reply, or until `deadline`: then Lost, and the request may still be carried out, but
  // before any later one.
  TreeReply Await(const Sent& sent, BootTime deadline);
  // Of the tree's own node, where it is missing; whatever comes of it.
  void MakeParent(BootTime deadline);
  // Asks the ensemble's leader for a sign, and brings the server at hand up to date with it: what is read
  // afterwards is no older than this call.
  TreeReply Sync(BootTime deadline);
  // The same without waiting for the answer.
  void Probe();

  enum class State { Connecting, Connected, Ended };
  State state() const;
  // When the present attempts to connect began, or the last ones.
  BootTime connecting_since() const;
  ZookeeperSessionKey key() const;
  // Whether a sync was answered since the connection was made.
  bool caught_up() const;
  // When the last request that the ensemble's leader answered was sent, or the attempt to connect begun.
  // Reads do not count: the server at hand answers them, and the pings, from its own memory.
  BootTime last_contact() const;
  Micros timeout() const;

 private:
  struct Callbacks;

  ZookeeperClient(const ZookeeperClientOptions& options, EventQueue& events, const ZookeeperSessionKey& key);
  PendingRequest& NewRequest(bool by_leader, bool awaited = true);
  Sent SendSync(bool awaited);
  Sent WriteTo(const std::vector<std::string>& paths, const std::vector<TreeWrite>& writes);
  void Finish(PendingRequest& request, int code, TreeReply reply);
  static void OnSession(_zhandle* handle, int type, int state, const char* path, void* context);
  void SessionChanged(_zhandle* handle, int state);
  std::string Absolute(const std::string& path) const;
  std::string Relative(const std::string& path) const;

  const ZookeeperClientOptions options_;
  EventQueue& events_;
  _zhandle* handle_ = nullptr;

  mutable Mutex mutex_;
  CondVar answered_;
  // Those under way, given up ones among them: the library holds pointers to them.
  std::list<PendingRequest> requests_ MILLRACE_GUARDED_BY(mutex_);
  State state_ MILLRACE_GUARDED_BY(mutex_) = State::Connecting;
  bool caught_up_ MILLRACE_GUARDED_BY(mutex_) = false;
  BootTime connecting_since_ MILLRACE_GUARDED_BY(mutex_);
  ZookeeperSessionKey key_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine

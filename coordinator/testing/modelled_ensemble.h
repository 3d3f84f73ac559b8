// A modelled ZooKeeper: three servers that apply one log, each with a delay of its own; sessions that the
// servers end when they have heard nothing for the time-out; one-shot watches that live with a connection.
//
// Writes are decided at the head of the log, in one order. Reads are answered from the copy of the server
// that the client is connected to, which may lag behind, but never behind what this session has seen: a
// server refuses a client that has seen more, and answers a write only when its own copy has it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/testing/timeline.h"
#include "coordinator/testing/tree_replica.h"

namespace millrace::engine {

// The way between a client and one server, as faults change it. Outlives the connections that use it.
struct TreeLink {
  bool to_server = true;  // false: what is sent is lost, and the connection with it
  bool to_client = true;
  bool news = true;   // false: watches are lost without a word
  Micros least{100};  // a message takes so long, and up to `slowest` more; order is kept
  Micros slowest{2'000};
};

struct ClientMessage {
  enum class Kind { Hello, Ping, Request, Bye };
  Kind kind = Kind::Ping;
  std::int64_t session = 0;  // Hello: 0 asks for a new one
  std::int64_t seen = 0;     // Hello: the last transaction that the client has seen
  Micros timeout{};          // Hello
  TreeRequest request = {};
};

struct ServerMessage {
  enum class Kind { Welcome, Expired, Closed, Pong, Reply, Changed };
  Kind kind = Kind::Pong;
  std::uint64_t connection = 0;
  std::int64_t session = 0;  // Welcome
  std::int64_t seen = 0;     // the server's last transaction
  TreeReply reply = {};
  std::string path = {};  // Changed
};

// A client's end of its connections.
class TreePeer {
 public:
  virtual ~TreePeer() = default;
  virtual void Receive(const ServerMessage& message) = 0;
};

// Not thread-safe.
class ModelledEnsemble {
 public:
  // Told after each transaction, at its place in the order; `session` made it. For checks.
  using Observer = std::function<void(const TreeChanges& changes, std::int64_t session)>;

  explicit ModelledEnsemble(Timeline& timeline);

  static constexpr std::size_t kServers = 3;
  static constexpr Micros kKeepsUp{3'000};  // lags behind by no more

  // Faults.
  void StopServer(std::size_t server);
  void StartServer(std::size_t server);
  void SetLag(std::size_t server, Micros longest);
  bool HasQuorum() const;
  // Since when all servers have been up, and have kept up; now: they do not.
  BootTime WellSince() const;
  void ExpireSession(std::int64_t session);

  // What somebody else writes, an operator for one: at once, and as nobody's session.
  TreeReply WriteNow(const std::vector<TreeWrite>& writes);

  const TreeReplica& head() const { return head_; }
  // When the node at the head was made; now: there is none.
  BootTime MadeAt(const std::string& path) const;
  bool IsLive(std::int64_t session) const { return sessions_.contains(session); }
  void Observe(Observer observer) { observer_ = std::move(observer); }

  // A client's end: `peer` is told on its strand; nothing is once that strand's life has ended.
  std::uint64_t Connect(std::size_t server, TreePeer& peer, Strand& strand, const TreeLink& link);
  void Send(std::uint64_t connection, ClientMessage message);

 private:
  struct Entry {
    std::vector<TreeWrite> writes;  // empty: the session's end
    std::int64_t session = 0;
    BootTime at{};
  };
  struct Server {
    bool up = true;
    TreeReplica replica;
    std::size_t applied = 0;  // entries of the log
    BootTime last_apply{};
    Micros longest_lag = kKeepsUp;
    std::map<std::string, std::set<std::uint64_t>> node_watches;
    std::map<std::string, std::set<std::uint64_t>> child_watches;
  };
  struct Session {
    Micros timeout{};
    BootTime heard;
    std::uint64_t connection = 0;
    BootTime busy_until{};  // a write of its own has not reached its server's copy before
  };
  struct Connection {
    std::size_t server = 0;
    TreePeer* peer = nullptr;
    Strand* strand = nullptr;
    std::uint64_t life = 0;
    const TreeLink* link = nullptr;
    std::int64_t session = 0;
    BootTime next_arrival{};
    BootTime next_delivery{};
    bool lost = false;                     // a message of it was lost, so none after it arrives
    std::deque<ClientMessage> inbox = {};  // not taken up yet
  };

  Micros DelayOn(const TreeLink& link);
  void Arrive(std::uint64_t id, const ClientMessage& message);
  void TakeUp(std::uint64_t id);
  void Welcome(std::uint64_t id, Connection& connection, const ClientMessage& hello);
  void Perform(std::uint64_t id, Connection& connection, Session& session, const TreeRequest& request);
  void Write(std::uint64_t id, Connection& connection, Session& session, const TreeRequest& request);
  void Deliver(std::uint64_t id, ServerMessage message);
  void Close(std::uint64_t id);
  BootTime Commit(Entry entry, const TreeChanges& changes, std::size_t server);
  void EndSession(std::int64_t session);
  void ApplyUpTo(std::size_t server, std::size_t count);
  void Fire(Server& server, const TreeChanges& changes);
  void Tell(std::set<std::uint64_t> connections, const std::string& path);
  void WatchExpiry(std::int64_t session, BootTime when);

  Timeline& timeline_;
  Observer observer_;
  TreeReplica head_;
  std::vector<Entry> log_;
  std::vector<Server> servers_{kServers};
  BootTime well_since_{};  // where all of them are well
  std::map<std::int64_t, Session> sessions_;
  std::map<std::uint64_t, Connection> connections_;
  std::int64_t next_session_ = 1;
  std::uint64_t next_connection_ = 1;
};

}  // namespace millrace::engine

// A ZooKeeper ensemble of a test's own: one server or three, on free loopback ports, in a folder that goes
// with the object.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::engine {

// Not thread-safe. Dies with a message where a server can't be started: there is nothing to test without it.
// Sessions may be as short as 400 ms: the servers tick every 200 ms.
class PrivateZookeeper {
 public:
  explicit PrivateZookeeper(std::size_t servers = 1);  // 1 or 3; returns when they take connections
  ~PrivateZookeeper();
  PrivateZookeeper(const PrivateZookeeper&) = delete;
  PrivateZookeeper& operator=(const PrivateZookeeper&) = delete;

  std::size_t size() const { return servers_.size(); }
  std::uint16_t port(std::size_t server = 0) const { return servers_[server].port; }
  std::string servers() const;  // `127.0.0.1:port,…`
  // `standalone`, `leader`, `follower`; empty: it serves nobody at present.
  std::string Mode(std::size_t server) const;
  // Which server has this session's connection, or size().
  std::size_t ServerOf(std::int64_t session) const;

  void Start(std::size_t server);  // does not wait
  void Kill(std::size_t server);   // SIGKILL
  void Pause(std::size_t server);  // SIGSTOP; returns when it stands still
  void Resume(std::size_t server);
  void WaitServing();  // until every running server has a mode

 private:
  struct Server {
    std::uint16_t port = 0;
    std::uint16_t peer_port = 0;
    std::uint16_t election_port = 0;
    pid_t pid = -1;
  };

  std::string Folder(std::size_t server) const;
  void Configure(std::size_t server) const;
  // What a server answers to a four-letter word.
  std::string Ask(std::size_t server, const char* word) const;

  std::string folder_;
  std::vector<Server> servers_;
};

}  // namespace millrace::engine

// A TCP proxy before a MySQL or a ZooKeeper server. It reads the requests that pass and can do one evil thing
// to the first that contains a given text: so a lost request and a lost reply happen where a test wants them.
// Loopback only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace millrace::engine {

class TcpProxy {
 public:
  enum class Evil {
    None,
    LoseRequest,  // cut the connection instead of forwarding the request
    LoseReply,  // forward the request, wait for the server's answer, cut the connection instead of passing it
                // on
    Delay,      // hold the request back until Release()
  };

  enum class Protocol { Mysql, Zookeeper };

  // What passes once a client has asked for the binary log.
  enum class Log {
    True,
    Late,  // by three seconds
    Lie,   // bytes of it are others
  };

  explicit TcpProxy(std::uint16_t server_port, Protocol protocol = Protocol::Mysql);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::uint16_t port() const { return port_; }
  // Arms one evil for the next request that contains `text`. Replaces the one before.
  void Arm(Evil evil, const std::string& text);
  void Release();
  // How many evils were done.
  int done() const { return done_; }
  // Waits until that many were done; false after ten seconds.
  bool WaitDone(int count);
  // New connections lead to this server, as an address that has moved does; those that are open stay.
  void LeadTo(std::uint16_t server_port) { server_port_ = server_port; }
  // Of connections that ask for the log from now on.
  void Spoil(Log how) { log_ = how; }
  // Cuts every connection, as a network does.
  void CutAll();
  // While it is closed every connection is cut as soon as it is made.
  void Close();
  void Reopen() { closed_ = false; }

 private:
  struct Link;

  void Accept();
  void Serve(Link& link);
  // False: the connection is to be cut.
  bool Answer(Link& link, std::string answer);
  bool Request(Link& link, const std::string& packet);
  Evil Take(const std::string& packet);

  std::atomic<std::uint16_t> server_port_;
  const Protocol protocol_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> closed_{false};
  std::atomic<int> done_{0};
  std::atomic<Log> log_{Log::True};
  std::mutex mutex_;
  std::condition_variable changed_;
  Evil armed_ = Evil::None;
  std::string text_;
  bool released_ = false;
  std::list<std::unique_ptr<Link>> links_;
  std::thread acceptor_;
};

}  // namespace millrace::engine

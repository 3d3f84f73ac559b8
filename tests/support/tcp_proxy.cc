#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace millrace::engine {
namespace {

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

bool SendAll(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

constexpr char kBinlogDump = 0x12;  // the command of a request for the log
constexpr int kLateBy = 150;        // times 20 ms

// The length of a protocol packet with its header, or 0 if it is not all there yet.
std::size_t PacketSize(const std::string& buffer, TcpProxy::Protocol protocol) {
  if (buffer.size() < 4) return 0;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(buffer[i]));
  };
  const std::size_t size = 4 + (protocol == TcpProxy::Protocol::Mysql
                                    ? byte(0) + (byte(1) << 8) + (byte(2) << 16)
                                    : (byte(0) << 24) + (byte(1) << 16) + (byte(2) << 8) + byte(3));
  return buffer.size() < size ? 0 : size;
}

}  // namespace

struct TcpProxy::Link {
  int client = -1;
  int server = -1;
  std::atomic<bool> cut{false};
  std::atomic<bool> ended{false};
  Log log = Log::True;
  std::thread thread;
};

TcpProxy::TcpProxy(std::uint16_t server_port, Protocol protocol)
    : server_port_(server_port), protocol_(protocol) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("test support: the proxy can't listen");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  Release();
  CutAll();
  acceptor_.join();
  for (auto& link : links_) link->thread.join();
  close(listener_);
}

void TcpProxy::Arm(Evil evil, const std::string& text) {
  const std::lock_guard lock(mutex_);
  armed_ = evil;
  text_ = text;
  released_ = false;
}

void TcpProxy::Release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

bool TcpProxy::WaitDone(int count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return done_ >= count; });
}

void TcpProxy::CutAll() {
  const std::lock_guard lock(mutex_);
  for (auto& link : links_) link->cut = true;
}

void TcpProxy::Close() {
  closed_ = true;
  CutAll();
}

void TcpProxy::Accept() {
  while (!stopping_) {
    pollfd ready{listener_, POLLIN, 0};
    if (poll(&ready, 1, 20) <= 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(server_port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(server);
      close(client);
      continue;
    }
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    for (auto link = links_.begin(); link != links_.end();) {
      if ((*link)->ended) {
        (*link)->thread.join();
        link = links_.erase(link);
      } else {
        ++link;
      }
    }
    Link& link = *links_.emplace_back(std::make_unique<Link>());
    link.client = client;
    link.server = server;
    link.cut = closed_.load();
    link.thread = std::thread([this, &link] { Serve(link); });
  }
}

void TcpProxy::Serve(Link& link) {
  std::string requests;
  char buffer[65536];
  while (!link.cut && !stopping_) {
    pollfd ready[2] = {{link.client, POLLIN, 0}, {link.server, POLLIN, 0}};
    if (poll(ready, 2, 20) <= 0) continue;
    if (ready[0].revents != 0) {
      const ssize_t got = recv(link.client, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      requests.append(buffer, static_cast<std::size_t>(got));
      bool alive = true;
      for (std::size_t size = 0; alive && (size = PacketSize(requests, protocol_)) != 0;
           requests.erase(0, size)) {
        alive = Request(link, requests.substr(0, size));
      }
      if (!alive) break;
    }
    if (ready[1].revents != 0) {
      const ssize_t got = recv(link.server, buffer, sizeof buffer, 0);
      if (got <= 0 || !Answer(link, std::string(buffer, static_cast<std::size_t>(got)))) break;
    }
  }
  close(link.server);
  close(link.client);
  link.ended = true;
}

TcpProxy::Evil TcpProxy::Take(const std::string& packet) {
  const std::lock_guard lock(mutex_);
  if (armed_ == Evil::None || packet.find(text_) == std::string::npos) return Evil::None;
  const Evil evil = armed_;
  armed_ = Evil::None;
  return evil;
}

bool TcpProxy::Answer(Link& link, std::string answer) {
  if (link.log != Log::True) ++done_;
  for (int i = 0; link.log == Log::Late && i < kLateBy && !link.cut && !stopping_; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // Behind the header of the packet, so that it is an event that lies.
  for (std::size_t i = 5; link.log == Log::Lie && i < answer.size(); i += 7) answer[i] ^= 0x55;
  return SendAll(link.client, answer.data(), answer.size());
}

bool TcpProxy::Request(Link& link, const std::string& packet) {
  if (protocol_ == Protocol::Mysql && packet.size() > 4 && packet[4] == kBinlogDump) link.log = log_;
  const Evil evil = Take(packet);
  const auto note = [this] {
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  };
  if (evil == Evil::LoseRequest) {
    note();
    return false;
  }
  if (evil == Evil::Delay) {
    note();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [this] { return released_; });
  }
  if (!SendAll(link.server, packet.data(), packet.size())) return false;
  if (evil != Evil::LoseReply) return true;
  // The answer's first byte proves that the server has carried the request out.
  pollfd ready{link.server, POLLIN, 0};
  (void)poll(&ready, 1, 10'000);
  note();
  return false;
}

}  // namespace millrace::engine

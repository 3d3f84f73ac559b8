#include "tests/support/free_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

namespace millrace::engine {
namespace {

// A socket's name that one process at a time can have: the socket is never closed, and the kernel frees the
// name when the process ends. chaos/processes.py uses the same names.
bool Claim(std::uint16_t port) {
  const std::string name = "millrace-test-port-" + std::to_string(port);
  sockaddr_un claimed{};
  claimed.sun_family = AF_UNIX;
  std::memcpy(claimed.sun_path + 1, name.data(), name.size());
  const int claim = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(claim, reinterpret_cast<sockaddr*>(&claimed), size) != 0) {
    close(claim);
    return false;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool free = bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(server);
  if (!free) close(claim);
  return free;
}

}  // namespace

std::vector<std::uint16_t> FreePorts(std::size_t count) {
  // Those from here on are given to clients: a client may have the port of a server that is away.
  int clients = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> clients;
  clients = std::max(21'024, clients);
  std::vector<std::uint16_t> candidates;
  for (int port = clients - 20'000; port < clients; ++port) {
    candidates.push_back(static_cast<std::uint16_t>(port));
  }
  std::shuffle(candidates.begin(), candidates.end(), std::random_device());
  std::vector<std::uint16_t> ports;
  for (const std::uint16_t port : candidates) {
    if (ports.size() == count) break;
    if (Claim(port)) ports.push_back(port);
  }
  if (ports.size() < count) {
    std::fprintf(stderr, "test support: no %zu ports are free below %d\n", count, clients);
    std::abort();
  }
  return ports;
}

}  // namespace millrace::engine

// The administrators' words of a server: four letters on a connection of their own, an answer, the end.
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "coordinator/coordination/zookeeper/address.h"
#include "coordinator/coordination/zookeeper/inspect.h"
#include "framework/files/descriptor.h"

namespace millrace::engine {
namespace {

// False: the time is over.
bool Await(const Descriptor& socket, short what, BootTime deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now()).count();
  pollfd waiting{socket.get(), what, 0};
  return left > 0 && ::poll(&waiting, 1, static_cast<int>(left)) == 1;
}

// Empty text and why, where it can't be had.
std::string Exchange(const std::string& host, const std::string& port, BootTime deadline, ServerWord& word) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    word.trouble = ::gai_strerror(error);
    return "";
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const Descriptor socket(
        ::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol));
    if (socket.get() < 0) continue;
    if (::connect(socket.get(), at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS) {
      word.trouble = std::strerror(errno);
      continue;
    }
    if (!Await(socket, POLLOUT, deadline)) {
      word.trouble = "no connection in time";
      continue;
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 || ::send(socket.get(), "srvr", 4, MSG_NOSIGNAL) != 4) {
      word.trouble = std::strerror(error != 0 ? error : errno);
      continue;
    }
    word.answers = true;
    std::string answer;
    char buffer[4096];
    while (answer.size() < 64 * 1024 && Await(socket, POLLIN, deadline)) {
      const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
      if (got <= 0) break;
      answer.append(buffer, static_cast<std::size_t>(got));
    }
    if (answer.empty()) {
      word.answers = false;
      word.trouble = "it takes connections and says nothing";
    }
    return answer;
  }
  return "";
}

ServerWord AskServer(const std::string& address, Micros limit) {
  ServerWord word{address};
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string answer = Exchange(host, address.substr(colon + 1), BootClock::now() + limit, word);
  constexpr std::string_view kMode = "Mode: ";
  const std::size_t mode = answer.find(kMode);
  if (mode != std::string::npos) {
    const std::size_t from = mode + kMode.size();
    word.mode = answer.substr(from, answer.find_first_of("\r\n", from) - from);
  } else if (word.answers) {
    // "… is not executed because it is not in the whitelist", "This ZooKeeper instance is not currently
    // serving"
    word.trouble = answer.substr(0, answer.find_first_of("\r\n"));
    if (answer.find("not currently serving") != std::string::npos) word.answers = false;
  }
  return word;
}

}  // namespace

Result<std::vector<ServerWord>> AskServers(const std::string& servers, Micros limit) {
  BOOST_OUTCOME_TRY(address, ParseZookeeperAddress(servers));
  std::vector<ServerWord> words;
  std::size_t from = 0;
  while (from <= address.hosts.size()) {
    const std::size_t comma = std::min(address.hosts.find(',', from), address.hosts.size());
    words.push_back(AskServer(address.hosts.substr(from, comma - from), limit));
    from = comma + 1;
  }
  return words;
}

}  // namespace millrace::engine

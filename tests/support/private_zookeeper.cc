#include "tests/support/private_zookeeper.h"
#include "tests/support/die.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/free_ports.h"

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kClassPath =
    "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-log4j12.jar:/usr/share/java/log4j-1.2.jar";

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

}  // namespace

PrivateZookeeper::PrivateZookeeper(std::size_t servers) : servers_(servers) {
  char path[] = "/tmp/millrace-zk-XXXXXX";
  if (mkdtemp(path) == nullptr) Die("no temporary folder");
  folder_ = path;
  const std::vector<std::uint16_t> ports = FreePorts(3 * servers);
  for (std::size_t i = 0; i < servers; ++i) {
    servers_[i] = {.port = ports[3 * i], .peer_port = ports[3 * i + 1], .election_port = ports[3 * i + 2]};
  }
  for (std::size_t i = 0; i < servers; ++i) {
    Configure(i);
    Start(i);
  }
  WaitServing();
}

PrivateZookeeper::~PrivateZookeeper() {
  for (std::size_t i = 0; i < size(); ++i) Kill(i);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string PrivateZookeeper::Folder(std::size_t server) const {
  return folder_ + "/" + std::to_string(server + 1);
}

void PrivateZookeeper::Configure(std::size_t server) const {
  const std::string folder = Folder(server);
  fs::create_directories(folder + "/data");
  std::ofstream(folder + "/data/myid") << server + 1 << "\n";
  std::ofstream config(folder + "/zoo.cfg");
  config << "tickTime=200\ninitLimit=50\nsyncLimit=25\nmaxSessionTimeout=60000\n"
         << "dataDir=" << folder << "/data\n"
         << "clientPort=" << port(server) << "\nclientPortAddress=127.0.0.1\n"
         << "admin.enableServer=false\n4lw.commands.whitelist=srvr,cons\n";
  for (std::size_t i = 0; i < size() && size() > 1; ++i) {
    config << "server." << i + 1 << "=127.0.0.1:" << servers_[i].peer_port << ":" << servers_[i].election_port
           << "\n";
  }
  std::ofstream(folder + "/log4j.properties")
      << "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
      << "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
      << "log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1}: %m%n\n";
}

void PrivateZookeeper::Start(std::size_t server) {
  const std::string folder = Folder(server);
  const std::string classes = folder + ":" + kClassPath;
  const std::string config = folder + "/zoo.cfg";
  const std::string log = folder + "/log";
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    // Nothing is left running when the test dies, however it dies.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
    dup2(1, 2);
    execlp("java", "java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes.c_str(),
           "org.apache.zookeeper.server.quorum.QuorumPeerMain", config.c_str(), nullptr);
    _exit(127);
  }
  servers_[server].pid = pid;
}

void PrivateZookeeper::Kill(std::size_t server) {
  pid_t& pid = servers_[server].pid;
  if (pid <= 0) return;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  pid = -1;
}

void PrivateZookeeper::Pause(std::size_t server) {
  kill(servers_[server].pid, SIGSTOP);
  waitpid(servers_[server].pid, nullptr, WUNTRACED);
}
void PrivateZookeeper::Resume(std::size_t server) { kill(servers_[server].pid, SIGCONT); }

void PrivateZookeeper::WaitServing() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (std::size_t i = 0; i < size(); ++i) {
    while (servers_[i].pid > 0 && Mode(i).empty()) {
      if (waitpid(servers_[i].pid, nullptr, WNOHANG) != 0 || std::chrono::steady_clock::now() > deadline) {
        (void)!std::system(("tail -20 " + Folder(i) + "/log >&2").c_str());
        Die("ZooKeeper did not start; install libzookeeper-java and default-jre-headless");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

std::string PrivateZookeeper::servers() const {
  std::string text;
  for (const Server& server : servers_) {
    text += (text.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(server.port);
  }
  return text;
}

std::string PrivateZookeeper::Mode(std::size_t server) const {
  const std::string answer = Ask(server, "srvr");
  const auto at = answer.find("Mode: ");
  return at == answer.npos ? "" : answer.substr(at + 6, answer.find('\n', at) - at - 6);
}

std::size_t PrivateZookeeper::ServerOf(std::int64_t session) const {
  char text[32];
  std::snprintf(text, sizeof text, "sid=0x%llx,", static_cast<unsigned long long>(session));
  std::size_t server = 0;
  while (server < size() &&
         (servers_[server].pid <= 0 || Ask(server, "cons").find(text) == std::string::npos))
    ++server;
  return server;
}

std::string PrivateZookeeper::Ask(std::size_t server, const char* word) const {
  std::string answer;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port(server));
  // One that is starting takes the question and forgets it.
  const timeval limit{.tv_sec = 0, .tv_usec = 300'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(fd, word, 4, MSG_NOSIGNAL) == 4) {
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  close(fd);
  return answer;
}

}  // namespace millrace::engine

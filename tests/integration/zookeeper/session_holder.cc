// A client of the tree in a process of its own, to be paused and killed.
//   session_holder SERVERS CLUSTER TIMEOUT_MS PATH
// Makes an ephemeral node and prints "ready"; then for each line that it reads prints how many milliseconds
// old its last contact is, and what becomes of a read.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "coordinator/coordination/zookeeper/zookeeper.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;

bool LineToRead() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char line[64];
  if (poll(&input, 1, 0) != 1) return false;
  if (read(STDIN_FILENO, line, sizeof line) <= 0) std::exit(0);
  return true;
}

void Report(TreeSession& session, const std::string& path) {
  const auto age = std::chrono::duration_cast<milliseconds>(BootClock::now() - session.LastContact());
  const TreeReply reply = session.Perform({.path = path});
  std::printf("%lld %s\n", static_cast<long long>(age.count()), ToString(reply.status));
  std::fflush(stdout);
}

int Hold(const ZookeeperOptions& options, const std::string& path) {
  auto session = OpenZookeeper(options);
  if (!session) return 2;
  TreeRequest create{.kind = TreeRequest::Kind::Write};
  create.writes.push_back({.kind = TreeWrite::Kind::CreateEphemeral, .path = path});
  while ((*session)->Perform(create).status != TreeStatus::Ok) (void)(*session)->WaitEvent(milliseconds(100));
  std::puts("ready");
  std::fflush(stdout);
  while (true) {
    (void)(*session)->WaitEvent(milliseconds(20));
    if (LineToRead()) Report(**session, path);
  }
}

}  // namespace
}  // namespace millrace::engine

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return millrace::engine::Hold({.servers = argv[1],
                                 .cluster = argv[2],
                                 .session_timeout = std::chrono::milliseconds(std::atoi(argv[3]))},
                                argv[4]);
}

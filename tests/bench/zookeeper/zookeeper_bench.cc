// How long a client of ZooKeeper waits for a read and for a write of three parts, how many are answered if it
// sends many at once, and how long it takes until a killed client's node is gone. On private ensembles of one
// and of three servers, or on the one that is named. Prints median and range.
//   zookeeper_bench [SERVERS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/coordination/zookeeper/zookeeper.h"
#include "framework/base/random.h"
#include "tests/integration/zookeeper/held_session.h"
#include "tests/support/private_zookeeper.h"
#include "tests/support/tree_words.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kRoundTrips = 2000;
constexpr int kKills = 12;
constexpr int kAtOnce = 20;
constexpr int kTimes = 500;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "zookeeper_bench: %s\n", what.c_str());
  std::exit(1);
}

void Print(const char* what, std::vector<Micros> times) {
  std::sort(times.begin(), times.end());
  const auto ms = [&](std::size_t i) { return static_cast<double>(times[i].count()) / 1000; };
  std::printf("  %-24s median %8.2f ms   p99 %8.2f ms   %8.2f … %.2f ms\n", what, ms(times.size() / 2),
              ms(times.size() * 99 / 100), ms(0), ms(times.size() - 1));
}

class Bench {
 public:
  explicit Bench(const std::string& servers)
      : options_{.servers = servers, .cluster = "bench" + Random::FromSystem().Hex(8)} {
    if (auto done = PrepareZookeeper(options_, seconds(10)); !done) Die(done.error().message);
    session_ = std::move(*OpenZookeeper(options_));
    if (!AwaitEvent(*session_, TreeEvent::Kind::Connected, seconds(10))) Die("no connection");
    Must(Write({Create("/a", std::string(200, 'x')), Create("/b", std::string(200, 'x'))}));
  }

  void RoundTrips() {
    Print("get", Repeat(Get("/a")));
    Print("write: check, 2 sets", Repeat(Write({Check("/epoch"), Set("/a", "x"), Set("/b", "y")})));
  }

  void Rates() {
    Rate("sets of 2 KB a second", Write({Set("/a", std::string(2'000, 'x'))}));
    Rate("gets of them a second", Get("/a"));
  }

  // Clients are killed one after another, and the list of nodes is read until the last is gone.
  void Detection(Micros timeout, const char* what) {
    std::vector<std::unique_ptr<HeldSession>> held;
    std::vector<BootTime> killed;
    std::vector<Micros> times(kKills, Micros(0));
    for (int i = 0; i < kKills; ++i) {
      held.push_back(std::make_unique<HeldSession>(options_.servers, options_.cluster, timeout, Node(i)));
    }
    const BootTime start = BootClock::now();
    for (int gone = 0; gone < kKills;) {
      const BootTime now = BootClock::now();
      // Spread over a second and a half, so that they meet every phase of pings and ticks.
      if (killed.size() < held.size() && now >= start + seconds(3) + killed.size() * milliseconds(130)) {
        killed.push_back(now);
        held[killed.size() - 1]->Kill();
      }
      (void)session_->WaitEvent(milliseconds(5));
      const std::vector<std::string> there = Must(List("/workers")).children;
      for (std::size_t i = 0; i < killed.size(); ++i) {
        if (times[i] != Micros(0) || std::count(there.begin(), there.end(), Node(i).substr(9)) != 0) continue;
        times[i] = BootClock::now() - killed[i];
        ++gone;
      }
    }
    Print(what, times);
  }

 private:
  static std::string Node(std::size_t i) { return "/workers/w" + std::to_string(i); }

  TreeReply Must(const TreeRequest& request) {
    TreeReply reply = session_->Perform(request);
    if (reply.status != TreeStatus::Ok) Die(reply.message);
    return reply;
  }
  std::vector<Micros> Repeat(const TreeRequest& request) {
    std::vector<Micros> times;
    for (int i = 0; i < kRoundTrips; ++i) {
      const BootTime start = BootClock::now();
      Must(request);
      times.push_back(BootClock::now() - start);
    }
    return times;
  }

  // Of one client, some at a time.
  void Rate(const char* what, const TreeRequest& request) {
    const std::vector<TreeRequest> requests(kAtOnce, request);
    const BootTime start = BootClock::now();
    for (int i = 0; i < kTimes; ++i) {
      for (const TreeReply& reply : session_->PerformAll(requests)) {
        if (reply.status != TreeStatus::Ok) Die(reply.message);
      }
    }
    const Micros took = BootClock::now() - start;
    std::printf("  %-24s %8.0f\n", what, 1e6 * kTimes * kAtOnce / static_cast<double>(took.count()));
  }

  const ZookeeperOptions options_;
  std::unique_ptr<TreeSession> session_;
};

void Measure(const std::string& what, const std::string& servers) {
  std::printf("%s\n", what.c_str());
  Bench bench(servers);
  bench.RoundTrips();
  bench.Rates();
  bench.Detection(seconds(6), "killed, session of 6 s");
  bench.Detection(seconds(3), "killed, session of 3 s");
}

}  // namespace
}  // namespace millrace::engine

int main(int argc, char** argv) {
  if (argc > 1) {
    millrace::engine::Measure(argv[1], argv[1]);
    return 0;
  }
  for (const std::size_t size : {1, 3}) {
    const millrace::engine::PrivateZookeeper ensemble(size);
    millrace::engine::Measure(std::to_string(size) + (size == 1 ? " server" : " servers"),
                              ensemble.servers());
  }
}

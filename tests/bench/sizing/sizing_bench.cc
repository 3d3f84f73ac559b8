// What a cluster asks of ZooKeeper and of its leader, by its size. The product's leader and one worker of
// many stand on the modelled ensemble; the others are nodes. Times are virtual: two milliseconds from a
// request to its reply, and what the leader thinks takes none. The processor time beside them is real: in
// truth it comes on top.
//   sizing_bench [--cluster WORKERS,SHARDS,SLICES]... [--rounds N] [--json FILE]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/leader/leader.h"
#include "coordinator/member/member.h"
#include "coordinator/testing/journal.h"
#include "coordinator/testing/tree_driver.h"
#include "tests/bench/figures/figures.h"
#include "tests/support/counted_machine.h"

namespace millrace::bench {
namespace {

using engine::BootTime;
using engine::CountedMachine;
using engine::Micros;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Micros kSessionTimeout = seconds(10);
constexpr Micros kOneWay = milliseconds(1);
constexpr Micros kLimit = seconds(600);
constexpr Micros kRest = seconds(60);

struct Size {
  std::uint32_t workers = 0;
  std::uint32_t shards = 0;
  std::uint32_t slices = 0;  // of all shards
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "sizing_bench: %s\n", what.c_str());
  std::exit(1);
}

double Seconds(Micros time) { return static_cast<double>(time.count()) / 1e6; }

std::string Numbered(const char* prefix, std::uint32_t number) {
  return prefix + std::to_string(100'000 + number);
}

// One of the processes that ask.
struct Process {
  Process(engine::Timeline& timeline, engine::ModelledEnsemble& ensemble, engine::Journal& journal,
          const std::string& name, engine::TreeMachine& machine)
      : process{.name = name}, counted(machine) {
    for (engine::TreeLink& link : process.tree) link = {.least = kOneWay, .slowest = Micros(1)};
    driver = std::make_unique<engine::TreeDriver>(timeline, ensemble, process, journal, kSessionTimeout,
                                                  std::vector<engine::TreeMachine*>{&counted});
  }
  engine::ModelledProcess process;
  CountedMachine counted;
  std::unique_ptr<engine::TreeDriver> driver;
};

// What was asked for between two moments.
struct Asked {
  explicit Asked(const CountedMachine& now)
      : reads(now.reads),
        writes(now.writes),
        read(static_cast<double>(now.bytes_read)),
        written(static_cast<double>(now.bytes_written)),
        cpu(now.cpu) {}
  void Since(const Asked& before) {
    reads -= before.reads;
    writes -= before.writes;
    read -= before.read;
    written -= before.written;
    cpu -= before.cpu;
  }
  int reads;
  int writes;
  double read;
  double written;
  double cpu;
};

class Cluster {
 public:
  Cluster(const Size& size, std::uint64_t seed) : size_(size), timeline_(seed) {
    for (std::size_t server = 0; server < engine::ModelledEnsemble::kServers; ++server)
      ensemble_.SetLag(server, Micros(1));
    for (const engine::FixedNode& node : engine::kFixedNodes)
      Create(std::string(node.path), std::string(node.data));
    engine::TableCatalog catalog;
    for (std::uint32_t shard = 0; shard < size.shards; ++shard)
      catalog.tables.push_back({Numbered("s", shard), {engine::kDefaultTable, size.slices / size.shards}});
    facts_.catalog = std::make_shared<const engine::TableCatalog>(std::move(catalog));
    for (std::uint32_t worker = 0; worker < size.workers; ++worker) Appear(Numbered("w", worker));
  }

  void Measure(Figures& figures) {
    const std::string name = Count(size_.workers) + " workers, " + Count(size_.shards) + " shards, " +
                             Count(size_.slices) + " slices: ";
    const auto add = [&](const std::string& what, double value) { figures.Add(name + what, value); };

    Leads first(*this, "a");
    const auto begun =
        Stopped(first.process, [&] { return first.leader.Leading() && Planned(first.leader); });
    add("first plan, s", Seconds(begun.took));
    add("first plan, requests", begun.asked.reads + begun.asked.writes);
    add("first plan, MB written", begun.asked.written / 1e6);
    add("first plan, s of processor", begun.asked.cpu);
    add("watches of the leader", static_cast<double>(first.process.counted.watches.size()));
    const Spread spread = Spreads();
    add("shards of a worker, at most", static_cast<double>(spread.shards_of_a_worker));
    add("workers of a shard, at most", static_cast<double>(spread.workers_of_a_shard));
    Pass(seconds(60));  // the calm behind it

    const auto rest = Over(first.process, kRest);
    add("leader in rest, requests/s", (rest.reads + rest.writes) / Seconds(kRest));
    add("leader in rest, KB/s", (rest.read + rest.written) / 1e3 / Seconds(kRest));
    add("leader in rest, % of a core", 100 * rest.cpu / Seconds(kRest));

    const std::string dead = Numbered("w", size_.workers / 2);
    Write({{engine::TreeWrite::Kind::Remove, "/workers/" + dead}});
    const auto death = Stopped(first.process, [&] { return SlicesOf(dead) == 0 && first.leader.Settled(); });
    add("a worker ends, s from its session's end", Seconds(death.took));
    add("a worker ends, requests", death.asked.reads + death.asked.writes);
    add("a worker ends, ms of processor", death.asked.cpu * 1e3);

    Worker joins(*this, "joins");
    const auto joined = Stopped(first.process, [&] { return SlicesOf("joins") > 0; });
    add("a worker joins, s until it has slices", Seconds(joined.took));
    Pass(seconds(30));
    add("watches of a worker", static_cast<double>(joins.process.counted.watches.size()));
    const auto member = Over(joins.process, kRest);
    add("a busy worker, writes/s", member.writes / Seconds(kRest));
    add("a busy worker, KB/s", (member.read + member.written) / 1e3 / Seconds(kRest));

    Leads second(*this, "b");
    Pass(seconds(20));
    first.process.driver->Leave();
    const auto after =
        Stopped(second.process, [&] { return second.leader.Leading() && second.leader.Settled(); });
    add("a new leader, s until it could move slices", Seconds(after.took));
    add("a new leader, requests", after.asked.reads + after.asked.writes);
    add("a new leader, MB read", after.asked.read / 1e6);
    add("a new leader, s of processor", after.asked.cpu);
  }

 private:
  struct Leads {
    Leads(Cluster& cluster, const std::string& id)
        : leader({id, id + ".a", {.session_timeout = kSessionTimeout}},
                 {[&cluster] { return cluster.facts_; }, {}}),
          process(cluster.timeline_, cluster.ensemble_, cluster.journal_, id, leader) {}
    engine::Leader leader;
    Process process;
  };
  // Busy: its status says something new each time.
  struct Worker {
    Worker(Cluster& cluster, const std::string& id)
        : member({.id = id, .document = Document(id), .session_timeout = kSessionTimeout},
                 engine::ConfigLayers(),
                 {.publish = [](const engine::MemberView&) {},
                  .status = [this] { return Status(); },
                  .types = {}}),
          process(cluster.timeline_, cluster.ensemble_, cluster.journal_, id, member) {}
    // As long as that of a worker with one shard and a few task types.
    std::string Status() {
      return R"({"totals":{"done":)" + std::to_string(++done) + R"(},"more":")" + std::string(1'500, 'x') +
             "\"}";
    }
    int done = 0;
    engine::Member member;
    Process process;
  };
  struct Stop {
    Micros took;
    Asked asked;
  };

  static engine::WorkerDocument Document(const std::string& id) {
    return {.host = "host.example", .pid = 4711, .incarnation = id + ".a"};
  }
  void Write(const std::vector<engine::TreeWrite>& writes) {
    if (ensemble_.WriteNow(writes).status != engine::TreeStatus::Ok)
      Die(writes.front().path + " can't be written");
  }
  void Create(const std::string& path, const std::string& data) {
    Write({{engine::TreeWrite::Kind::Create, path, data}});
  }
  void Appear(const std::string& id) { Create("/workers/" + id, ToText(Document(id))); }
  void Pass(Micros time) { timeline_.RunUntil(timeline_.Now() + time); }
  Asked Over(const Process& process, Micros time) {
    const Asked before(process.counted);
    Pass(time);
    Asked asked(process.counted);
    asked.Since(before);
    return asked;
  }
  Stop Stopped(const Process& process, const std::function<bool()>& so) {
    const Asked before(process.counted);
    const BootTime begun = timeline_.Now();
    while (!so()) {
      if (timeline_.Now() - begun > kLimit) Die("it takes too long");
      Pass(milliseconds(20));
    }
    Asked asked(process.counted);
    asked.Since(before);
    return {timeline_.Now() - begun, asked};
  }
  // All that a worker has, or that all have who are there.
  void EachSlice(const std::string& id,
                 const std::function<void(const std::string& id, const std::string& slice)>& hear) const {
    const std::string root = "/assign/";
    const auto& nodes = ensemble_.head().nodes();
    for (auto page = nodes.lower_bound(root + id); page != nodes.end(); ++page) {
      if (!page->first.starts_with(root)) break;
      const std::string whose =
          page->first.substr(root.size(), page->first.find('/', root.size()) - root.size());
      if (!id.empty() && whose != id) break;
      const auto assigned = engine::ReadAssign(page->second.data);
      for (const std::string& slice : assigned->slices) hear(whose, slice);
    }
  }
  std::size_t SlicesOf(const std::string& id) const {
    std::size_t slices = 0;
    EachSlice(id, [&](const std::string&, const std::string&) { ++slices; });
    return slices;
  }
  // Whose connections a database has.
  struct Spread {
    std::size_t shards_of_a_worker = 0;
    std::size_t workers_of_a_shard = 0;
  };
  Spread Spreads() const {
    std::map<std::string, std::set<std::string>> workers;  // by shard
    std::map<std::string, std::set<std::string>> shards;   // by worker
    EachSlice("", [&](const std::string& id, const std::string& slice) {
      const std::string shard = slice.substr(0, slice.find('/'));
      workers[shard].insert(id);
      shards[id].insert(shard);
    });
    const auto largest = [](const auto& sets) {
      std::size_t size = 0;
      for (const auto& [name, set] : sets) size = std::max(size, set.size());
      return size;
    };
    return {largest(shards), largest(workers)};
  }
  // All slices are somebody's: the last worker has its own.
  bool Planned(const engine::Leader& leader) const {
    return leader.Settled() && SlicesOf(Numbered("w", size_.workers - 1)) > 0;
  }

  const Size size_;
  engine::Timeline timeline_;
  engine::ModelledEnsemble ensemble_{timeline_};
  engine::Journal journal_{timeline_, {}};
  engine::LeaderFacts facts_;
};

int Run(const std::vector<Size>& sizes, std::size_t rounds, const std::string& json) {
  Figures figures("sizing", "What a cluster asks of ZooKeeper and of its leader", "");
  figures.Fact("a request", "2 ms to its reply, in virtual time; what the leader thinks comes on top");
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const Size& size : sizes) Cluster(size, round + 1).Measure(figures);
  }
  std::printf("%s\n", figures.Table().c_str());
  figures.Write(json);
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int count, char** arguments) {
  std::vector<std::array<std::uint32_t, 3>> given{
      {100, 10, 6'400}, {1'000, 100, 100'000}, {10'000, 1'000, 1'000'000}};
  std::size_t rounds = 1;
  std::string json;
  CLI::App app("What a cluster asks of ZooKeeper and of its leader, by its size");
  app.add_option("--cluster", given, "workers, shards and slices of all shards; may be repeated")
      ->delimiter(',');
  app.add_option("--rounds", rounds, "of each size")->capture_default_str();
  app.add_option("--json", json, "write the figures there");
  CLI11_PARSE(app, count, arguments);
  std::vector<millrace::bench::Size> sizes;
  for (const auto& [workers, shards, slices] : given) {
    if (workers < 2 || shards < 1 || slices < workers || slices % shards != 0 ||
        slices / shards > millrace::engine::kMaxSlices) {
      std::fprintf(
          stderr,
          "sizing_bench: at least two workers, as many slices as workers, and as many in each shard, at "
          "most %u\n",
          millrace::engine::kMaxSlices);
      return 2;
    }
    sizes.push_back({workers, shards, slices});
  }
  return millrace::bench::Run(sizes, rounds, json);
}

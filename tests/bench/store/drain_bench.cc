// One worker process drains a table of no-op tasks, beside the ceiling and beside award_points with its
// effects, in alternating rounds on one private server; or, with --beside, both kinds of task beside the
// worker of another build. Exits 1 where the median of worker / ceiling, or of worker / the other worker, is
// below --least, or where worker and server take more than --most-cpu of the CPU that they take for the
// other.
#include <stdlib.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "tests/bench/figures/figures.h"
#include "tests/bench/store/ceiling.h"
#include "tests/support/run_process.h"

namespace millrace::bench {
namespace {

constexpr const char* kCeiling = "ceiling";
constexpr const char* kWorker = "worker, noop";
constexpr const char* kUnkept = "worker, noop, no row kept";
constexpr const char* kPoints = "worker, award_points";
constexpr const char* kOfCeiling = "worker / ceiling";
constexpr const char* kOfNoop = "award_points / noop";
constexpr const char* kOfKept = "no row kept / noop";

struct Options {
  std::size_t rows = 1'000'000;
  std::size_t rounds = 5;
  std::size_t tries = 200'000;
  std::size_t points = 200'000;  // tasks of award_points; none leaves it out
  bool runs = false;
  bool worker_only = false;
  bool unkept = false;
  double least = 0;
  double most_cpu = 10;
  std::string millrace = MILLRACE_BINARY;
  std::string beside;  // another build's program
  std::string json;
};

double ChildrenCpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// A database with the tables of this program's version, and worker processes that drain it.
class WorkerSide {
 public:
  WorkerSide(const BenchServer& server, std::string program)
      : server_(server), program_(std::move(program)), database_(server.server()) {
    Millrace("schema apply --slices " + std::to_string(kSlices));
    std::ifstream file(MILLRACE_SOURCE_DIR "/conf/samples/points.sql");
    std::stringstream text;
    text << file.rdbuf();
    Sql().Ask(text.str());
  }

  Drained Drain(const Load& load) {
    engine::SqlConnection sql = Sql();
    Fill(sql, load);
    char folder[] = "/tmp/drain_bench_XXXXXX";
    if (mkdtemp(folder) == nullptr) Die("no folder for the worker's state");
    const double server = server_.CpuSeconds();
    const double worker = ChildrenCpuSeconds();
    std::unique_ptr<CountedDrain> counted;
    std::string config;
    if (!load.kept) {
      config = std::string(folder) + "/config.json";
      std::ofstream(config) << R"({"handlers":{")" << load.handler << R"(":{"keep":"0s"}}})";
      config = " --config " + config;
      counted = std::make_unique<CountedDrain>(
          std::make_unique<engine::SqlConnection>(database_.url(), database_.password_file()));
    }
    Millrace("worker --until-idle --state-dir " + std::string(folder) + config);
    const double tasks = static_cast<double>(load.rows);
    Drained drained;
    drained.client_us = (ChildrenCpuSeconds() - worker) * 1e6 / tasks;
    drained.server_us = (server_.CpuSeconds() - server) * 1e6 / tasks;
    std::filesystem::remove_all(folder);
    drained.rate = counted ? counted->MiddleRate(load.rows) : MiddleRate(sql, load.rows);
    return drained;
  }

 private:
  engine::SqlConnection Sql() { return {database_.url(), database_.password_file()}; }
  void Millrace(const std::string& words) {
    const engine::StoreUrl& url = database_.url();
    const auto ended =
        engine::testing::RunProcess("MILLRACE_PASSWORD_FILE=" + database_.password_file() + " " + program_ +
                                        " " + words + " --store mysql://" + url.user + "@" + url.host + ":" +
                                        std::to_string(url.port) + "/" + url.database,
                                    1200);
    if (ended.exit_code != 0) Die("millrace " + words + ": " + ended.output);
  }

  const BenchServer& server_;
  const std::string program_;
  engine::TestDatabase database_;
};

Load NoopsOf(const Options& options) {
  return {.rows = options.rows, .spread = options.runs ? Spread::Runs : Spread::Random};
}

Load PointsOf(const Options& options) {
  Load points = NoopsOf(options);
  points.rows = std::min(options.points, options.rows);
  points.handler = "award_points";
  points.params = R"({"customer_id":$,"amount":5.99})";
  return points;
}

// The figures of what drains in each round, with what it costs the processors.
class Rounds {
 public:
  explicit Rounds(Figures& figures) : figures_(figures) {}

  void Note(const std::string& who, const Drained& drained) {
    figures_.Add(who, drained.rate);
    cpu_[who].push_back(drained);
    std::printf("%s: %s tasks/s, CPU for a task: server %.1f us, client %.1f us\n", who.c_str(),
                Count(drained.rate).c_str(), drained.server_us, drained.client_us);
    std::fflush(stdout);
  }
  void TellCpu() {
    for (const auto& [who, all] : cpu_) {
      std::vector<double> server, client;
      for (const Drained& one : all) server.push_back(one.server_us), client.push_back(one.client_us);
      figures_.Fact("CPU for a task, " + who,
                    "server " + Fixed(Median(server), 1) + " us, client " + Fixed(Median(client), 1) + " us");
    }
  }

 private:
  Figures& figures_;
  std::map<std::string, std::vector<Drained>> cpu_;
};

// What one commit costs or gains: drains of one handler by the programs of two builds, in turn first and
// last.
class Pairs {
 public:
  Pairs(WorkerSide& worker, WorkerSide& other, Load load, Figures& rates, Figures& cpu)
      : worker_(worker), other_(other), load_(std::move(load)), rates_(rates), cpu_(cpu) {}

  void Drain(Rounds& rounds, bool first) {
    if (first) Note(rounds, Mine(), worker_.Drain(load_));
    Note(rounds, Others(), other_.Drain(load_));
    if (!first) Note(rounds, Mine(), worker_.Drain(load_));
  }
  void Compare() {
    rates_.Compare(Rates(), Mine(), Others());
    cpu_.Compare(Cpu(), Others(), Mine());
  }
  bool Judge(double least, double most_cpu) const {
    const bool fast =
        rates_.Judge("beside",
                     "one worker drains " + load_.handler + " at " + Fixed(least, 2) +
                         " of the rate of another build's, at least, by the median of alternating drains",
                     Rates(), least);
    const bool lean = cpu_.Judge("beside",
                                 "worker and server take at most " + Fixed(most_cpu, 2) +
                                     " of another build's CPU for a task of " + load_.handler +
                                     ": the other's / theirs is " + Fixed(1 / most_cpu, 2) + ", at least",
                                 Cpu(), 1 / most_cpu);
    return fast && lean;
  }

 private:
  std::string Mine() const { return "worker, " + load_.handler; }
  std::string Others() const { return "the other worker, " + load_.handler; }
  std::string Rates() const { return "worker / the other worker, " + load_.handler; }
  std::string Cpu() const { return "the other worker / worker, " + load_.handler; }
  void Note(Rounds& rounds, const std::string& who, const Drained& drained) {
    rounds.Note(who, drained);
    cpu_.Add(who, (drained.server_us + drained.client_us) * 1000);
  }

  WorkerSide& worker_;
  WorkerSide& other_;
  const Load load_;
  Figures& rates_;
  Figures& cpu_;
};

int RunBeside(const Options& options) {
  const BenchServer server;
  Figures rates("beside", "One worker drains a table, beside that of another build", "tasks/s");
  Figures cpu("beside_cpu", "Worker and server together, beside those of another build", "ns of CPU a task");
  rates.Fact("server", server.About());
  rates.Fact("one durable commit", Fixed(server.CommitMilliseconds(), 2) + " ms");
  for (const Load& load : {NoopsOf(options), PointsOf(options)})
    rates.Fact("tasks of a drain, " + load.handler, Count(static_cast<double>(load.rows)));
  WorkerSide worker(server, options.millrace);
  WorkerSide other(server, options.beside);
  Load trial = NoopsOf(options);
  trial.rows = std::min(options.tries, options.rows);
  worker.Drain(trial);  // the files grow once
  other.Drain(trial);
  std::vector<Pairs> kinds;
  for (const Load& load : {NoopsOf(options), PointsOf(options)}) {
    if (load.rows > 0) kinds.emplace_back(worker, other, load, rates, cpu);
  }
  Rounds rounds(rates);
  for (std::size_t round = 0; round < options.rounds; ++round) {
    for (Pairs& pairs : kinds) pairs.Drain(rounds, round % 2 == 0);
  }
  rounds.TellCpu();
  for (Pairs& pairs : kinds) pairs.Compare();
  std::printf("\n%s\n%s\n", rates.Table().c_str(), cpu.Table().c_str());
  rates.Write(options.json);
  bool holds = true;
  for (const Pairs& pairs : kinds) holds = pairs.Judge(options.least, options.most_cpu) && holds;
  return holds ? 0 : 1;
}

int Run(const Options& options) {
  if (!options.beside.empty()) return RunBeside(options);
  const BenchServer server;
  Figures figures("drain", "One worker drains a table, beside the bare statements", "tasks/s");
  figures.Fact("server", server.About());
  figures.Fact("one durable commit", Fixed(server.CommitMilliseconds(), 2) + " ms");
  const Load load = NoopsOf(options);
  figures.Fact("tasks of a drain", Count(static_cast<double>(options.rows)) +
                                       (options.runs ? ", slices in runs" : ", slices at random"));
  const Load points = PointsOf(options);
  Load unkept = load;
  unkept.kept = false;

  WorkerSide worker(server, options.millrace);
  std::unique_ptr<Ceiling> ceiling;
  Way way;
  if (!options.worker_only) {
    ceiling = std::make_unique<Ceiling>(server, "fixed_width");
    Load trial = load;
    trial.rows = std::min(options.tries, options.rows);
    way = ceiling->BestWay(trial);
    figures.Fact("best way, ceiling", way.Name());
    worker.Drain(trial);  // the files grow once
  }
  Rounds rounds(figures);
  std::vector<std::function<void()>> drains;
  if (ceiling) drains.emplace_back([&] { rounds.Note(kCeiling, ceiling->Drain(load, way)); });
  if (options.unkept) drains.emplace_back([&] { rounds.Note(kUnkept, worker.Drain(unkept)); });
  drains.emplace_back([&] { rounds.Note(kWorker, worker.Drain(load)); });
  if (points.rows > 0) drains.emplace_back([&] { rounds.Note(kPoints, worker.Drain(points)); });
  for (std::size_t round = 0; round < options.rounds; ++round) {
    for (const auto& drain : drains) drain();
    std::ranges::reverse(drains);  // in turn first and last, so that a drift of the machine favours nobody
  }
  rounds.TellCpu();
  if (ceiling) figures.Compare(kOfCeiling, kWorker, kCeiling);
  if (points.rows > 0) figures.Compare(kOfNoop, kPoints, kWorker);
  if (options.unkept) figures.Compare(kOfKept, kUnkept, kWorker);
  std::printf("\n%s\n", figures.Table().c_str());
  figures.Write(options.json);
  if (!ceiling) return 0;
  const std::string asked =
      "one worker drains no-op tasks at " + Fixed(options.least, 2) +
      " of the rate of the bare statements, at least, by the median of alternating drains";
  return figures.Judge("drain", asked, kOfCeiling, options.least) ? 0 : 1;
}

}  // namespace
}  // namespace millrace::bench

int main(int count, char** arguments) {
  millrace::bench::Options options;
  CLI::App app("One worker drains a table of tasks, beside the bare statements");
  app.add_option("--rows", options.rows, "no-op tasks of a drain")->capture_default_str();
  app.add_option("--rounds", options.rounds, "drains of each kind")->capture_default_str();
  app.add_option("--tries", options.tries, "tasks of each drain that looks for the ceiling's best way")
      ->capture_default_str();
  app.add_option("--points", options.points, "tasks of award_points; 0 leaves it out")->capture_default_str();
  app.add_flag("--runs", options.runs, "slices in runs, as bulk producers give them, instead of at random");
  app.add_flag("--worker-only", options.worker_only, "no ceiling beside it");
  app.add_flag("--unkept", options.unkept, "also of a type whose finished tasks leave no row (keep 0s)");
  app.add_option("--least", options.least,
                 "the part of the ceiling, or of the other's rate, that is asked for");
  app.add_option("--most-cpu", options.most_cpu, "of the CPU that a task takes beside --beside's, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--millrace", options.millrace, "another program to measure")->check(CLI::ExistingFile);
  app.add_option("--beside", options.beside, "another build's program, in pairs with it and nothing else")
      ->check(CLI::ExistingFile);
  app.add_option("--json", options.json, "write the figures there");
  CLI11_PARSE(app, count, arguments);
  return millrace::bench::Run(options);
}

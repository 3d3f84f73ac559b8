// The yardstick: how many tasks a second the statements of a drain allow with nothing around them, on the
// schema as it was first shipped and on the best that is known, in alternating pairs. Exits 1 where the
// median of the ratios is below --least.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "tests/bench/figures/figures.h"
#include "tests/bench/store/ceiling.h"

namespace millrace::bench {
namespace {

constexpr const char* kBest = "fixed width";
constexpr const char* kFirst = "nullable claimer";
constexpr const char* kRatio = "fixed width / nullable claimer";

struct Options {
  std::size_t rows = 1'000'000;
  std::size_t rounds = 5;
  std::size_t tries = 200'000;  // rows of each way that is tried
  bool runs = false;
  double least = 0;
  std::string json;
};

struct Side {
  const char* name;
  Ceiling ceiling;
  Way way;
  std::vector<double> server_us{};
};

void Measure(Side& side, const Load& load, Figures& figures) {
  const Drained drained = side.ceiling.Drain(load, side.way);
  figures.Add(side.name, drained.rate);
  side.server_us.push_back(drained.server_us);
  std::printf("%s: %s tasks/s, CPU for a task: server %.1f us, loop %.1f us\n", side.name,
              Count(drained.rate).c_str(), drained.server_us, drained.client_us);
  std::fflush(stdout);
}

int Run(const Options& options) {
  const BenchServer server;
  Figures figures("ceiling", "The statements of a drain in bare loops, by the schema", "tasks/s");
  figures.Fact("server", server.About());
  figures.Fact("one durable commit", Fixed(server.CommitMilliseconds(), 2) + " ms");
  Load load{.rows = options.rows, .spread = options.runs ? Spread::Runs : Spread::Random};
  figures.Fact("tasks of a drain", Count(static_cast<double>(options.rows)) +
                                       (options.runs ? ", slices in runs" : ", slices at random"));
  Side sides[] = {{kFirst, Ceiling(server, "nullable"), {}}, {kBest, Ceiling(server, "fixed_width"), {}}};
  for (Side& side : sides) {
    Load trial = load;
    trial.rows = std::min(options.tries, options.rows);
    side.way = side.ceiling.BestWay(trial);
    figures.Fact(std::string("best way, ") + side.name, side.way.Name());
    std::printf("%s: best with %s\n", side.name, side.way.Name().c_str());
  }
  for (std::size_t round = 0; round < options.rounds; ++round) {
    // In turn first and last, so that a drift of the machine favours nobody.
    Measure(sides[round % 2], load, figures);
    Measure(sides[1 - round % 2], load, figures);
  }
  for (const Side& side : sides) {
    if (Median(side.server_us) > 0)
      figures.Fact(std::string("server's CPU for a task, ") + side.name,
                   Fixed(Median(side.server_us), 1) + " us");
  }
  figures.Compare(kRatio, kBest, kFirst);
  std::printf("\n%s\n", figures.Table().c_str());
  figures.Write(options.json);
  const std::string asked =
      "rows that do not grow: the statements of a drain in bare loops, on the best schema known "
      "and on one whose claimer is nullable; at least " +
      Fixed(options.least, 2) + " by the median of alternating pairs";
  return figures.Judge("ceiling", asked, kRatio, options.least) ? 0 : 1;
}

}  // namespace
}  // namespace millrace::bench

int main(int count, char** arguments) {
  millrace::bench::Options options;
  CLI::App app("The statements of a drain in bare loops: the yardstick of all drains");
  app.add_option("--rows", options.rows, "tasks of a drain")->capture_default_str();
  app.add_option("--rounds", options.rounds, "pairs of drains")->capture_default_str();
  app.add_option("--tries", options.tries, "tasks of each drain that looks for the best way")
      ->capture_default_str();
  app.add_flag("--runs", options.runs, "slices in runs, as bulk producers give them, instead of at random");
  app.add_option("--least", options.least, "the ratio that is asked for");
  app.add_option("--json", options.json, "write the figures there");
  CLI11_PARSE(app, count, arguments);
  return millrace::bench::Run(options);
}

// One process drains no-op tasks from a SQLite file, beside the same statements in a bare loop or, with
// --beside, beside the process of another build, in alternating pairs. Exits 1 where the median of the ratios
// is below --least.
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "tests/bench/figures/figures.h"
#include "tests/bench/sqlite/bare_loop.h"
#include "tests/support/run_process.h"

namespace millrace::bench {
namespace {

constexpr const char* kProgram = "millrace run";
constexpr std::size_t kBatch = 999;

struct Options {
  std::size_t rows = 300'000;
  std::size_t rounds = 5;
  double least = 0;
  std::string millrace = MILLRACE_BINARY;
  std::string beside;  // another build's program
  std::string json;
};

class Folder {
 public:
  Folder() {
    if (mkdtemp(path_) == nullptr) Die("no folder for the file");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return std::string(path_) + "/" + name; }

 private:
  char path_[32] = "/tmp/sqlite_bench_XXXXXX";
};

double Bare(std::size_t rows) {
  const Folder folder;
  SqliteFile file(folder / "shard.db");
  MakeTables(file);
  FillNoops(file, rows);
  DrainBare(file, kBatch);
  return MiddleRate(file, rows);
}

double Program(const std::string& program, std::size_t rows) {
  const Folder folder;
  const std::string path = folder / "shard.db";
  const auto millrace = [&](const std::string& words) {
    const auto ended = engine::testing::RunProcess(program + " " + words + " --store sqlite:" + path, 1200);
    if (ended.exit_code != 0) Die("millrace " + words + ": " + ended.output);
  };
  millrace("schema apply --slices 64");
  {
    SqliteFile file(path);
    FillNoops(file, rows);
  }
  millrace("run --until-idle --state-dir " + (folder / "state"));
  SqliteFile file(path);
  return MiddleRate(file, rows);
}

// Of one row on one connection, in milliseconds: the median of some hundred.
double CommitMilliseconds() {
  const Folder folder;
  SqliteFile file(folder / "commits.db");
  file.Run("CREATE TABLE one (n INTEGER); INSERT INTO one VALUES (0)");
  std::vector<double> times;
  for (int i = 0; i < 300; ++i) {
    const auto start = std::chrono::steady_clock::now();
    file.Run("UPDATE one SET n=n+1");
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return Median(times);
}

int Run(const Options& options) {
  const bool bare = options.beside.empty();
  Figures figures(bare ? "sqlite" : "sqlite_beside",
                  std::string("One process drains a SQLite file, beside ") +
                      (bare ? "the bare statements" : "that of another build"),
                  "tasks/s");
  figures.Fact("library", std::string("SQLite ") + sqlite3_libversion() + ", WAL, synchronous=FULL");
  figures.Fact("one durable commit", Fixed(CommitMilliseconds(), 2) + " ms");
  figures.Fact("tasks of a drain", Count(static_cast<double>(options.rows)));
  const std::string other = bare ? "bare loop" : "the other millrace run";
  const std::string ratio = std::string(kProgram) + " / " + other;
  const auto add_other = [&] {
    figures.Add(other, bare ? Bare(options.rows) : Program(options.beside, options.rows));
  };
  for (std::size_t round = 0; round < options.rounds; ++round) {
    // In turn first and last, so that a drift of the machine favours nobody.
    const bool first = round % 2 == 0;
    if (first) add_other();
    figures.Add(kProgram, Program(options.millrace, options.rows));
    if (!first) add_other();
    std::printf("%s %s tasks/s, %s %s tasks/s\n", other.c_str(), Count(figures.Values(other).back()).c_str(),
                kProgram, Count(figures.Values(kProgram).back()).c_str());
    std::fflush(stdout);
  }
  figures.Compare(ratio, kProgram, other);
  std::printf("\n%s\n", figures.Table().c_str());
  figures.Write(options.json);
  const std::string asked = "on SQLite one process drains no-op tasks at " + Fixed(options.least, 2) +
                            " of the rate of the " + (bare ? "bare statements" : "other build's") +
                            ", at least, by the median of alternating drains";
  return figures.Judge("sqlite drain", asked, ratio, options.least) ? 0 : 1;
}

}  // namespace
}  // namespace millrace::bench

int main(int count, char** arguments) {
  millrace::bench::Options options;
  CLI::App app("One process drains a SQLite file, beside the bare statements");
  app.add_option("--rows", options.rows, "no-op tasks of a drain")->capture_default_str();
  app.add_option("--rounds", options.rounds, "pairs of drains")->capture_default_str();
  app.add_option("--least", options.least,
                 "the part of the bare loop, or of the other's rate, that is asked for");
  app.add_option("--millrace", options.millrace, "another program to measure")->check(CLI::ExistingFile);
  app.add_option("--beside", options.beside, "another build's program, in place of the bare loop")
      ->check(CLI::ExistingFile);
  app.add_option("--json", options.json, "write the figures there");
  CLI11_PARSE(app, count, arguments);
  return millrace::bench::Run(options);
}

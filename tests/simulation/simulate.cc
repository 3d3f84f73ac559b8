// Runs simulated clusters, one for each seed, on every processor; prints what they did in all, and what must
// never happen and did.
//   millrace_simulate --seeds 10000 [--first 1] [--bug NAME]
//   millrace_simulate --seed 4711 [--trace] [--bug NAME]
//   millrace_simulate --seeds 2000 --bug NAME --must-find WORDS
//     stops at the first find that says these words; exit 1 if there is none
#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/testing/simulation.h"

namespace {

using millrace::engine::PlantedBug;
using millrace::engine::Simulate;
using millrace::engine::SimulationOptions;
using millrace::engine::SimulationReport;

constexpr std::size_t kMostTold = 10;  // of the seeds that fail
constexpr std::size_t kMany = 50;      // seeds

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  bool trace = false;
  std::optional<std::string> must_find;  // words of a violation
  PlantedBug bug = PlantedBug::None;
};

[[noreturn]] void Usage(const std::string& why) {
  std::fprintf(stderr,
               "%s\nusage: millrace_simulate [--seeds N [--first N] | --seed N [--trace]] [--bug NAME "
               "[--must-find WORDS]]\n",
               why.c_str());
  for (const auto& [bug, name] : millrace::engine::kPlantedBugs)
    std::fprintf(stderr, "  --bug %s\n", name.data());
  std::exit(2);
}

PlantedBug BugNamed(std::string_view name) {
  for (const auto& planted : millrace::engine::kPlantedBugs) {
    if (planted.name == name) return planted.bug;
  }
  Usage("there is no planted bug '" + std::string(name) + "'");
}

std::uint64_t NumberOf(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) {
    Usage("'" + text + "' is not a number");
  }
  return std::stoull(text);
}

Arguments Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto value = [&] { return i + 1 < words.size() ? words[++i] : std::string(); };
    if (words[i] == "--seeds") {
      arguments.seeds = NumberOf(value());
    } else if (words[i] == "--first") {
      arguments.first = NumberOf(value());
    } else if (words[i] == "--seed") {
      arguments.first = NumberOf(value());
      arguments.seeds = 1;
    } else if (words[i] == "--trace") {
      arguments.trace = true;
    } else if (words[i] == "--must-find") {
      arguments.must_find = value();
    } else if (words[i] == "--bug") {
      arguments.bug = BugNamed(value());
    } else {
      Usage("unknown option '" + words[i] + "'");
    }
  }
  if (arguments.trace && arguments.seeds != 1) Usage("--trace is for one --seed");
  if (arguments.must_find && arguments.must_find->empty()) Usage("--must-find wants words of a violation");
  return arguments;
}

// What many simulations did. Thread-safe.
class Totals {
 public:
  explicit Totals(std::optional<std::string> wanted) : wanted_(std::move(wanted)) {}

  void Add(std::uint64_t seed, const SimulationReport& report) {
    const std::lock_guard lock(mutex_);
    ++simulations_;
    simulated_ += report.simulated;
    shortest_ = std::min(shortest_, report.simulated);
    steps_ += report.steps;
    faults_ += report.faults;
    tasks_ += report.tasks;
    ahead_ += report.ahead;
    parts_ += report.parts;
    rescued_ += report.rescued;
    refused_ += report.refused;
    marked_dead_ += report.marked_dead;
    moves_ += report.moves;
    multis_ += report.multis;
    changes_ += report.changes;
    terms_ += report.terms;
    limited_ += report.limited;
    overlaps_ += report.overlaps;
    paced_ += report.paced;
    longest_unowned_ = std::max(longest_unowned_, report.longest_unowned);
    if (report.violation.empty()) return;
    if (wanted_ && report.violation.find(*wanted_) != std::string::npos) found_ = true;
    if (violations_++ < kMostTold) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), report.violation.c_str());
    }
  }

  // Whether a violation said the words that were wanted.
  bool Found() const {
    const std::lock_guard lock(mutex_);
    return found_;
  }

  // Many in which something never happened have not shown what may come of it.
  bool ShowsEnough() const {
    const std::pair<std::size_t, const char*> happened[] = {{ahead_, "claim was sent ahead"},
                                                            {parts_, "due map was a part"},
                                                            {rescued_, "task was rescued"},
                                                            {refused_, "late settle was refused"},
                                                            {marked_dead_, "life was marked dead"},
                                                            {moves_, "slice was moved"},
                                                            {multis_, "plan took several multis"},
                                                            {changes_, "configuration was changed"},
                                                            {limited_, "type was limited to a few at once"},
                                                            {paced_, "type had a rate"}};
    bool all = true;
    for (const auto& [count, what] : happened) {
      if (simulations_ < kMany || count > 0) continue;
      std::printf("no %s\n", what);
      all = false;
    }
    return all;
  }

  // Whether nothing was violated.
  bool Print(double took) const {
    using Seconds = std::chrono::duration<double>;
    const auto a_seed = [this](auto all) {
      return static_cast<double>(all) / static_cast<double>(std::max<std::size_t>(simulations_, 1));
    };
    std::printf(
        "%zu simulations of %.0f virtual seconds (the shortest %.0f) in %.1f s: %llu steps, %zu faults, %zu "
        "tasks (a seed: %.0f, %.1f, %.1f); %zu claims sent ahead, %zu parts of due maps, %zu tasks rescued, "
        "%zu late settles refused, %zu lives marked dead, %zu slices moved, %zu "
        "further multis of a plan, %zu changes of configuration, %llu terms; a slice without an owner for "
        "%.1f s at the longest; %zu runs of types limited to a few at once, of which %zu beside one of a "
        "stopped process, a deaf handler or a failover; %zu runs at a rate; %zu violations\n",
        simulations_, Seconds(simulated_).count(), Seconds(shortest_).count(), took,
        static_cast<unsigned long long>(steps_), faults_, tasks_, a_seed(steps_), a_seed(faults_),
        a_seed(tasks_), ahead_, parts_, rescued_, refused_, marked_dead_, moves_, multis_, changes_,
        static_cast<unsigned long long>(terms_), Seconds(longest_unowned_).count(), limited_, overlaps_,
        paced_, violations_);
    return violations_ == 0;
  }

 private:
  const std::optional<std::string> wanted_;
  mutable std::mutex mutex_;
  bool found_ = false;
  std::size_t simulations_ = 0;
  millrace::engine::Micros simulated_{0};
  millrace::engine::Micros shortest_ = millrace::engine::Micros::max();
  std::uint64_t steps_ = 0;
  std::size_t faults_ = 0;
  std::size_t tasks_ = 0;
  std::size_t ahead_ = 0;
  std::size_t parts_ = 0;
  std::size_t rescued_ = 0;
  std::size_t refused_ = 0;
  std::size_t marked_dead_ = 0;
  std::size_t moves_ = 0;
  std::size_t multis_ = 0;
  std::size_t changes_ = 0;
  std::uint64_t terms_ = 0;
  millrace::engine::Micros longest_unowned_{0};
  std::size_t limited_ = 0;
  std::size_t overlaps_ = 0;
  std::size_t paced_ = 0;
  std::size_t violations_ = 0;
};

bool Run(const Arguments& arguments) {
  Totals totals(arguments.must_find);
  const auto began = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next{arguments.first};
  const auto work = [&] {
    for (std::uint64_t seed = next++; seed < arguments.first + arguments.seeds; seed = next++) {
      if (totals.Found()) return;
      SimulationOptions options{.seed = seed, .bug = arguments.bug};
      if (arguments.trace) options.trace = [](const std::string& line) { std::puts(line.c_str()); };
      totals.Add(seed, Simulate(options));
    }
  };
  std::vector<std::thread> threads(
      std::min<std::uint64_t>(std::thread::hardware_concurrency(), arguments.seeds));
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const bool well = totals.Print(took.count());
  if (!arguments.must_find) return well && totals.ShowsEnough();
  if (!totals.Found()) std::printf("no seed says '%s'\n", arguments.must_find->c_str());
  return totals.Found();
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_minloglevel = google::GLOG_FATAL;  // the product's machines say what they do; the trace does so here
  return Run(Parse({argv + 1, argv + argc})) ? 0 : 1;
}

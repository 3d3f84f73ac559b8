// The driver: see README.md.
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/fuzz/mutator.h"

namespace millrace::engine::fuzz {
namespace {

struct Options {
  std::uint64_t mutants = 10'000;
  std::uint64_t seed = 1;
  double minutes = 0;  // 0: one round
  std::string target;  // empty: all
  std::string input;   // a file to be run alone
};

// What is under way, for a signal handler to tell.
const std::string* current_input = nullptr;
char current_name[128];
char current_place[256];

void Say(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

// Async-signal-safe: the input goes into a file as it is.
void Report(const char* what) {
  Say("fuzz: ");
  Say(current_place);
  Say(": ");
  Say(what);
  Say("; the input is in ");
  Say(current_name);
  Say("\n");
  const int file = open(current_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || current_input == nullptr) return;
  (void)!write(file, current_input->data(), current_input->size());
  close(file);
}

void OnSignal(int signal) {
  Report(signal == SIGVTALRM ? "it takes longer than its time" : strsignal(signal));
  _exit(1);
}

// On a stack of its own: a parser that goes too deep has none left.
void CatchSignals() {
  static char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGVTALRM})
    sigaction(signal, &action, nullptr);
}

// The process's own time, so that a busy machine proves nothing. Sanitizers take their share of it.
void Limit(int seconds) {
  itimerval limit{};
  limit.it_value.tv_sec = seconds;
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
}

bool Holds(const Target& target, const std::string& input, const std::string& place) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kSeconds = 10;
#else
  constexpr int kSeconds = 2;
#endif
  std::snprintf(current_name, sizeof current_name, "fuzz-%s.input", target.name.c_str());
  std::snprintf(current_place, sizeof current_place, "%s", place.c_str());
  current_input = &input;
  Limit(kSeconds);
  try {
    target.run(input);
  } catch (const std::exception& thrown) {
    Limit(0);
    Report(thrown.what());
    return false;
  }
  Limit(0);
  return true;
}

bool RunRound(const Target& target, const Options& options, std::uint64_t seed) {
  std::vector<std::string> samples = target.seeds;
  samples.insert(samples.end(), target.samples.begin(), target.samples.end());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!Holds(target, samples[i], target.name + ", sample " + std::to_string(i))) return false;
  }
  Mutator mutator(target, seed);
  for (std::uint64_t number = 0; number < options.mutants; ++number) {
    const std::string place =
        target.name + ", --seed " + std::to_string(seed) + ", mutant " + std::to_string(number);
    if (!Holds(target, mutator.Make(number), place)) return false;
  }
  return true;
}

bool RunFile(const Target& target, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::invalid_argument(path + " can't be read");
  return Holds(target, std::string(std::istreambuf_iterator<char>(file), {}), path);
}

Options Read(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--mutants")
      options.mutants = std::stoull(value);
    else if (name == "--seed")
      options.seed = std::stoull(value);
    else if (name == "--minutes")
      options.minutes = std::stod(value);
    else if (name == "--target")
      options.target = value;
    else if (name == "--input")
      options.input = value;
    else
      throw std::invalid_argument("there is no option " + std::string(name));
  }
  if (argc % 2 == 0) throw std::invalid_argument("an option lacks its value");
  return options;
}

int Run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double, std::ratio<60>>(options.minutes);
  std::uint64_t rounds = 0;
  std::uint64_t tried = 0;
  do {
    std::size_t chosen = 0;
    for (const Target& target : Targets()) {
      if (!options.target.empty() && options.target != target.name) continue;
      ++chosen;
      const auto began = Clock::now();
      const bool held = options.input.empty() ? RunRound(target, options, options.seed + rounds)
                                              : RunFile(target, options.input);
      if (!held) return 1;
      if (options.minutes > 0 && Clock::now() >= end) break;
      if (rounds == 0)
        std::printf("%-16s %6.2f s\n", target.name.c_str(),
                    std::chrono::duration<double>(Clock::now() - began).count());
    }
    if (chosen == 0) throw std::invalid_argument("there is no target " + options.target);
    tried += chosen * options.mutants;
    ++rounds;
  } while (options.minutes > 0 && Clock::now() < end);
  std::printf("%llu mutants, every promise held\n", static_cast<unsigned long long>(tried));
  return 0;
}

}  // namespace

void Require(bool holds, const char* promise) {
  if (!holds) throw std::logic_error(std::string("this must hold: ") + promise);
}

}  // namespace millrace::engine::fuzz

int main(int argc, char** argv) {
  using namespace millrace::engine::fuzz;
  try {
    const Options options = Read(argc, argv);
    CatchSignals();
    return Run(options);
  } catch (const std::exception& wrong) {
    std::fprintf(
        stderr, "fuzz: %s; the options are --mutants N, --seed N, --minutes M, --target NAME, --input FILE\n",
        wrong.what());
    return 2;
  }
}

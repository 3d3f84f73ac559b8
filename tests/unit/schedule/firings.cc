// Prints the firings of cron expressions, for year_test.py: reads lines of ZONE, FROM, UNTIL (seconds since
// 1970; from inclusive, until exclusive) and an expression, separated by tabs; answers each with a line of
// seconds.
#include <iostream>
#include <sstream>
#include <string>

#include "framework/schedule/timing.h"

namespace millrace::engine {
namespace {

WallTime Seconds(const std::string& text) { return WallTime(std::chrono::seconds(std::stoll(text))); }

int Run() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    std::string name, from, until, expression;
    std::getline(fields, name, '\t');
    std::getline(fields, from, '\t');
    std::getline(fields, until, '\t');
    std::getline(fields, expression);
    auto cron = Cron::Parse(expression);
    auto zone = TimeZone::Find(name);
    if (!cron || !zone) {
      std::cerr << (cron ? zone.error().message : cron.error().message) << "\n";
      return 2;
    }
    const Timing timing{*cron, *zone};
    auto next = NextFiring(timing, WallTime(), Seconds(from) - Micros(1));
    for (; next && *next < Seconds(until); next = NextFiring(timing, WallTime(), *next)) {
      const auto count = next->time_since_epoch().count();
      if (count % 1'000'000 != 0) return 3;
      std::cout << count / 1'000'000 << ' ';
    }
    std::cout << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace millrace::engine

int main() { return millrace::engine::Run(); }

// What Howard Hinnant's library says that a zone's clock shows, for schedule_year_test.py: reads lines of
// ZONE and an instant (seconds since 1970), separated by a tab; answers each as `schedule show` writes it.
#include <date/tz.h>

#include <chrono>
#include <iostream>
#include <sstream>
#include <string>

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    std::string zone;
    long long instant = 0;
    std::getline(fields, zone, '\t');
    fields >> instant;
    const std::chrono::sys_seconds at{std::chrono::seconds(instant)};
    std::cout << date::format("%F %H:%M %z", date::make_zoned(zone, at)) << '\n';
  }
  return 0;
}

#include "tests/bench/figures/figures.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/support/report.h"

namespace millrace::bench {
namespace {

constexpr double kSureEnough = 0.9;

// How probable it is that of `count` values fewer than `below` lie on one side of their median.
double Tail(std::size_t count, std::size_t below) {
  double sum = 0;
  double ways = 1;  // of choosing i of them
  for (std::size_t i = 0; i < below; ++i) {
    sum += ways;
    ways = ways * static_cast<double>(count - i) / static_cast<double>(i + 1);
  }
  return sum * std::pow(0.5, static_cast<double>(count));
}

std::string ReadLine(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    return colon == std::string::npos ? line : line.substr(line.find_first_not_of(" \t", colon + 1));
  }
  return {};
}

std::string Machine() {
  utsname system{};
  uname(&system);
  std::ostringstream text;
  text << std::thread::hardware_concurrency() << " cores of " << ReadLine("/proc/cpuinfo", "model name")
       << ", " << sysconf(_SC_PHYS_PAGES) / (1024 * 1024 * 1024 / sysconf(_SC_PAGE_SIZE)) << " GiB, "
       << system.sysname << " " << system.release;
  return text.str();
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

// Rates are told in whole numbers, times and ratios by their leading digits.
std::string Short(double value) { return value >= 1000 ? Count(value) : Fixed(value, value >= 100 ? 0 : 2); }

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = std::ceil(share * static_cast<double>(values.size()));
  return values[std::min(values.size(), static_cast<std::size_t>(std::max(place, 1.0))) - 1];
}

Interval MedianInterval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  std::size_t cut = 1;
  while (2 * (cut + 1) <= count && 1 - 2 * Tail(count, cut + 1) >= kSureEnough) ++cut;
  return {values[cut - 1], values[count - cut], std::max(0.0, 1 - 2 * Tail(count, cut))};
}

std::string Count(double value) {
  std::string digits = std::to_string(std::llround(value));
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

Figures::Figures(std::string name, std::string title, std::string unit)
    : name_(std::move(name)), title_(std::move(title)), unit_(std::move(unit)) {
  Fact("machine", Machine());
}

void Figures::Fact(const std::string& what, const std::string& value) { facts_.emplace_back(what, value); }

void Figures::Add(const std::string& series, double value) {
  const auto found =
      std::find_if(series_.begin(), series_.end(), [&](const Series& one) { return one.name == series; });
  if (found == series_.end()) {
    series_.push_back({series, {value}});
  } else {
    found->values.push_back(value);
  }
}

void Figures::Compare(const std::string& what, const std::string& series, const std::string& with) {
  ratios_.push_back({what, series, with});
}

const std::vector<double>& Figures::Values(const std::string& series) const {
  for (const Series& one : series_) {
    if (one.name == series) return one.values;
  }
  std::fprintf(stderr, "figures: there is no series '%s'\n", series.c_str());
  std::exit(1);
}

std::vector<double> Figures::Ratios(const std::string& what) const {
  for (const Ratio& one : ratios_) {
    if (one.name != what) continue;
    std::vector<double> ratios = Values(one.series);
    const std::vector<double>& with = Values(one.with);
    for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= with.at(i);
    return ratios;
  }
  std::fprintf(stderr, "figures: there is no ratio '%s'\n", what.c_str());
  std::exit(1);
}

std::string Figures::Table() const {
  std::size_t width = 0;
  for (const auto& [what, value] : facts_) width = std::max(width, what.size());
  for (const Series& one : series_) width = std::max(width, one.name.size());
  for (const Ratio& one : ratios_) width = std::max(width, one.name.size());
  std::ostringstream text;
  const auto line = [&](const std::string& what, const std::string& value) {
    text << what << std::string(width + 2 - what.size(), ' ') << value << "\n";
  };
  const auto median = [](const std::vector<double>& values, const std::string& unit) {
    if (values.size() == 1) return Short(values[0]) + unit + "  (one round)";
    const Interval sure = MedianInterval(values);
    return Short(Median(values)) + unit + "  (" + Short(sure.low) + " to " + Short(sure.high) + ", " +
           Fixed(100 * sure.sure, 0) + " % sure; " + std::to_string(values.size()) + " rounds)";
  };
  text << title_ << "\n";
  for (const auto& [what, value] : facts_) line(what, value);
  for (const Series& one : series_) line(one.name, median(one.values, " " + unit_));
  for (const Ratio& one : ratios_) line(one.name, median(Ratios(one.name), ""));
  return text.str();
}

void Figures::Write(const std::string& path) const {
  if (path.empty()) return;
  nlohmann::ordered_json json = {{"name", name_}, {"title", title_}, {"unit", unit_}, {"at", Now()}};
  for (const auto& [what, value] : facts_) json["facts"][what] = value;
  json["series"] = nlohmann::ordered_json::array();
  for (const Series& one : series_) json["series"].push_back({{"name", one.name}, {"values", one.values}});
  json["ratios"] = nlohmann::ordered_json::array();
  for (const Ratio& one : ratios_) {
    const std::vector<double> values = Ratios(one.name);
    const Interval sure = MedianInterval(values);
    json["ratios"].push_back({{"name", one.name},
                              {"values", values},
                              {"median", Median(values)},
                              {"low", sure.low},
                              {"high", sure.high},
                              {"sure", sure.sure}});
  }
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  if (file.flush()) return;
  std::fprintf(stderr, "figures: can't write %s\n", path.c_str());
  std::exit(1);
}

bool Figures::Judge(const std::string& scenario, const std::string& asked, const std::string& ratio,
                    double least) const {
  const auto compared =
      std::find_if(ratios_.begin(), ratios_.end(), [&](const Ratio& known) { return known.name == ratio; });
  const std::vector<double> ratios = Ratios(ratio);
  const Interval sure = MedianInterval(ratios);
  const bool pass = Median(ratios) >= least;
  engine::Report(scenario, asked,
                 Count(Median(Values(compared->series))) + " and " + Count(Median(Values(compared->with))) +
                     " " + unit_ + ", ratio " + Fixed(Median(ratios), 2) + " (" + Fixed(sure.low, 2) +
                     " to " + Fixed(sure.high, 2) + ")",
                 pass);
  return pass;
}

double CpuSecondsOf(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return 0;
  std::istringstream rest(text.substr(text.rfind(')') + 1));  // a program's name may have spaces in it
  std::string skipped;
  double user = 0;
  double system = 0;
  for (int i = 0; i < 11; ++i) rest >> skipped;
  rest >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace millrace::bench

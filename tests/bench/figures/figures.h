// How a benchmark tells what it measured: medians, between which values they lie for sure, and a JSON file
// that plot.py draws. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace::bench {

// Of at least one value. With an even number of them, the mean of the middle two.
double Median(std::vector<double> values);
// The least value that is not below the `share` (0 to 1) of them, of at least one.
double Percentile(std::vector<double> values, double share);

// Where the median of what the values were drawn from lies, whatever its distribution: between two of them.
struct Interval {
  double low = 0;
  double high = 0;
  double sure = 0;  // how probable that is, 0 to 1
};
// The narrowest that is sure by 0.9; of fewer than five values the widest, which is less sure.
Interval MedianInterval(std::vector<double> values);

// "87,654" and "1.37", as they stand in tables.
std::string Count(double value);
std::string Fixed(double value, int digits);

// The figures of one run. Series have a value for each round; a ratio is taken round by round.
class Figures {
 public:
  // `name` names the file, `title` the picture.
  Figures(std::string name, std::string title, std::string unit);

  // What holds for the whole run: the server's version, the time of a durable commit.
  void Fact(const std::string& what, const std::string& value);
  void Add(const std::string& series, double value);
  // Both have as many values.
  void Compare(const std::string& what, const std::string& series, const std::string& with);

  const std::vector<double>& Values(const std::string& series) const;
  std::vector<double> Ratios(const std::string& what) const;

  // The table, as people read it.
  std::string Table() const;
  // Nothing is written where the path is empty. Exits with a message where it can't be.
  void Write(const std::string& path) const;
  // Reports whether the median of the ratios is `least` or more, with both rates.
  bool Judge(const std::string& scenario, const std::string& asked, const std::string& ratio,
             double least) const;

 private:
  struct Series {
    std::string name;
    std::vector<double> values;
  };
  struct Ratio {
    std::string name, series, with;
  };

  const std::string name_, title_, unit_;
  std::vector<std::pair<std::string, std::string>> facts_;
  std::vector<Series> series_;
  std::vector<Ratio> ratios_;
};

// The seconds of CPU that a process has used, or zero where there is none of that number.
double CpuSecondsOf(std::int64_t pid);

}  // namespace millrace::bench

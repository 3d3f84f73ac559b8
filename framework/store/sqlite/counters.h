// Sums for millrace_counters, gathered over a transaction and written once. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "framework/store/sqlite/connection.h"

namespace millrace::engine {

struct CounterDelta {
  std::int64_t succeeded = 0;
  std::int64_t cancelled = 0;
  std::int64_t failed = 0;
  std::int64_t attempts_failed = 0;
};

class CounterSums {
 public:
  // `table` is a value of the counters' own: those of the dead are summed up whatever they name.
  CounterDelta& Of(std::string_view table, const std::string& handler, const std::string& batch) {
    return sums_[{std::string(table), handler, batch}];
  }
  // `incarnation` is empty for what people change.
  Status Write(SqliteConnection& db, const std::string& incarnation) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, CounterDelta> sums_;
};

}  // namespace millrace::engine

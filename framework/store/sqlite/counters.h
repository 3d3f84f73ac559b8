// Sums for millrace_counters, gathered over a transaction and written once. Not thread-safe.
#pragma once

#include <map>
#include <string>
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
  CounterDelta& Of(const std::string& table, const std::string& handler, const std::string& batch) {
    return sums_[{table, handler, batch}];
  }
  // `incarnation` is empty for what people change.
  Status Write(SqliteConnection& db, const std::string& incarnation) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, CounterDelta> sums_;
};

}  // namespace millrace::engine

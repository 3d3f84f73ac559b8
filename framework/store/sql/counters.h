// Sums for millrace_counters, gathered over a transaction and written once. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

struct CounterDelta {
  std::int64_t succeeded = 0;
  std::int64_t cancelled = 0;
  std::int64_t failed = 0;
  std::int64_t attempts_failed = 0;
};

class CounterSums {
 public:
  CounterDelta& Of(const TableName& table, const std::string& handler, const std::string& batch) {
    return sums_[{table, handler, batch}];
  }
  // `incarnation` is empty for what people change.
  Status Write(Connection& db, const std::string& incarnation) const;

 private:
  std::map<std::tuple<TableName, std::string, std::string>, CounterDelta> sums_;
};

}  // namespace millrace::engine::sql

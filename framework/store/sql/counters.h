// Sums for millrace_counters, gathered over a transaction and written once. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

// Whose sums a session of an incarnation adds to: a settle holds its row until its COMMIT is through the log,
// and the next one need not wait for that. All the rows of an incarnation are summed up by whoever reads
// them.
inline constexpr unsigned kCounterRows = 8;
std::string CounterOwner(const std::string& incarnation, unsigned session);
// All that there may be.
std::vector<std::string> CounterOwners(const std::string& incarnation);

struct CounterDelta {
  std::int64_t succeeded = 0;
  std::int64_t cancelled = 0;
  std::int64_t failed = 0;
  std::int64_t attempts_failed = 0;
};

class CounterSums {
 public:
  CounterSums() = default;
  CounterSums(const CounterSums&) = delete;
  CounterSums& operator=(const CounterSums&) = delete;

  // What most rows have in common with the one before is not looked for again.
  CounterDelta& Of(const TableName& table, const std::string& handler, const std::string& batch) {
    if (last_ == nullptr || last_->first != std::tie(table, handler, batch))
      last_ = &*sums_.try_emplace({table, handler, batch}).first;
    return last_->second;
  }
  void Add(const Settlement& settlement);
  // `incarnation` is empty for what people change.
  Status Write(Connection& db, const std::string& incarnation) const;

 private:
  using Groups = std::map<std::tuple<TableName, std::string, std::string>, CounterDelta>;
  Groups sums_;
  Groups::value_type* last_ = nullptr;
};

}  // namespace millrace::engine::sql

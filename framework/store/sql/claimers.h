// The incarnations as the rows of task tables name them: by a number that each draws for itself when it
// registers. All that is above the store names them by their ids; here the one becomes the other.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/base/mutex.h"
#include "framework/base/random.h"
#include "framework/base/result.h"
#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

inline constexpr std::uint64_t kNobody = 0;
// Rows that ran under a name that nobody knew any more when it was to become a number.
inline constexpr std::uint64_t kForgotten = 1;

struct Claimer {
  std::uint64_t number = kNobody;
  std::string name;
};

// What the sessions of one store know of them. A name keeps its number for good, so nothing of it gets out of
// date. Thread-safe.
class Claimers {
 public:
  // Its number is kNobody where the shard has no such incarnation: nothing runs under it.
  Result<Claimer> ByName(Connection& db, const std::string& name);
  // `#<number>`, which ByName takes back, where the shard has no such incarnation.
  Result<std::string> NameOf(Connection& db, std::uint64_t number);
  void Learn(const std::string& name, std::uint64_t number);

 private:
  Mutex mutex_;
  std::map<std::string, std::uint64_t, std::less<>> numbers_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::string> names_ MILLRACE_GUARDED_BY(mutex_);
};

// A number for a new incarnation: 63 bits, which every database has as a whole number.
std::uint64_t DrawNumber(Random& random);
// What stands for the name of an incarnation that is gone.
std::string NumberText(std::uint64_t number);

}  // namespace millrace::engine::sql

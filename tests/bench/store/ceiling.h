// The ceiling of a drain: the statements that a task needs on its way, with all their guards, in bare loops
// with nothing around them. Due map with the pauses, keyset scan, claim (still waiting, attempt as seen, due,
// the claimer not marked dead, held in share mode), settle (the copy under FOR UPDATE, the DELETE and the
// counters in one transaction that is committed only where each hit every row).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/store/drain.h"

namespace millrace::bench {

// How the loop takes its rows; which way is the fastest is tried out.
struct Way {
  std::size_t batch = 999;
  std::size_t groups = 8;    // of which a batch is gathered, by one statement
  bool read_in_scan = true;  // what a run needs comes with the scan; otherwise it is read after the claim
  std::size_t connections = 2;

  std::string Name() const;
};

// The tables of one schema in a database of their own.
class Ceiling {
 public:
  // `schema` is nullable or fixed_width: the name of a file of DDL beside this one.
  Ceiling(const BenchServer& server, const std::string& schema);

  // Fills, drains, and checks that everything has ended.
  Drained Drain(const Load& load, const Way& way);
  // The fastest of the ways that are tried with this load.
  Way BestWay(const Load& load);

 private:
  const BenchServer& server_;
  engine::TestDatabase database_;
  std::vector<std::string> claimers_;  // as literals, one for each connection
};

}  // namespace millrace::bench

// Which slices new tasks go to. Rows of one slice lie side by side and are claimed together, so many tasks go
// in runs of one slice; few are spread, so that slow ones have many workers. Pure but for the random numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/base/random.h"

namespace millrace::engine {

// How many tasks in a row go to one slice, of `rows` in all: min(1000, rows / (8 × slices)), and 1 at least.
std::uint64_t SliceRun(std::uint64_t rows, std::uint32_t slices);

// The slice of all tasks that are to be together by this text: its CRC-32 modulo the number of slices, which
// is CRC32() of MySQL and MariaDB.
std::uint32_t SliceOfKey(std::string_view key, std::uint32_t slices);

// The slices of one submission, task by task. Each slice has its run once in a round; the order of a round is
// drawn. Not thread-safe.
class SliceRuns {
 public:
  // `rows`: how many there will be; 0: it is not known, so those so far stand for all of them, and the runs
  // grow. `slices` is 1 or more.
  SliceRuns(std::uint32_t slices, std::uint64_t rows, Random random);
  std::uint32_t Next();

 private:
  const std::uint64_t expected_;
  Random random_;
  std::vector<std::uint32_t> order_;
  std::size_t drawn_ = 0;  // of this round
  std::uint64_t given_ = 0;
  std::uint64_t left_ = 0;  // of this run
};

}  // namespace millrace::engine

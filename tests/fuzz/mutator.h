// Makes inputs of inputs: the same from the same seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace millrace::engine::fuzz {

class Mutator {
 public:
  Mutator(const Target& target, std::uint64_t seed);
  // The mutant of this number; it does not depend on which others were asked for.
  std::string Make(std::uint64_t number);

 private:
  std::uint64_t Next();
  std::size_t Below(std::size_t bound);  // 0 where the bound is 0
  const std::string& Word();
  void Change(std::string& text);

  const Target& target_;
  const std::uint64_t seed_;
  std::vector<std::string> words_;
  std::uint64_t state_ = 0;
};

}  // namespace millrace::engine::fuzz

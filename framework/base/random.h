// Randomness that a test can fix by its seed. Not thread-safe: one owner.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace millrace::engine {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  static Random FromSystem();

  std::uint64_t Next() { return engine_(); }
  double Unit() { return std::uniform_real_distribution<double>(0.0, 1.0)(engine_); }  // [0, 1)
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }                  // bound > 0
  std::string Hex(int digits);                                                         // digits in 1..16

 private:
  std::mt19937_64 engine_;
};

}  // namespace millrace::engine

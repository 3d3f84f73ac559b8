// How full workers are, compared exactly. The t-th slice of a worker of weight c adds (2t−1)/c to Σ t²/c; the
// sum is smallest when slices go one after another to where they add least. That is the rule of Sainte-Laguë
// for seats of a parliament.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::engine {

// What one slice adds: odd/weight. A fraction that is never reduced or rounded.
struct Level {
  std::int64_t odd = 1;
  std::int64_t weight = 1;
};

inline Level LevelOfSlice(std::int64_t nth, std::int64_t weight) { return {2 * nth - 1, weight}; }
inline bool operator<(const Level& a, const Level& b) { return a.odd * b.weight < b.odd * a.weight; }

// How many slices a worker of `weight` takes that each add less than `level`, or at most as much.
std::int64_t SlicesBelow(const Level& level, std::int64_t weight);
std::int64_t SlicesWithin(const Level& level, std::int64_t weight);

// The lowest level within which workers of these weights take `slices` of them; at least 1 of each.
Level LowestLevel(std::span<const std::uint32_t> weights, std::int64_t slices);

}  // namespace millrace::engine

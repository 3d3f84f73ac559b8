// How many threads a lane keeps: as many as it needed at once at some moment within the keep-alive, and never
// fewer than the least. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "framework/base/clock.h"

namespace millrace::engine {

// Not thread-safe.
class LaneSize {
 public:
  struct Bounds {
    std::size_t least = 0;
    std::size_t most = 0;
    Micros keep_alive{};
  };

  void Follow(const Bounds& bounds) {
    bounds_ = bounds;
    needed_.resize(bounds.most);
  }
  std::size_t most() const { return bounds_.most; }
  bool Varies() const { return bounds_.least < bounds_.most; }

  // So many threads had work until now; from now on one fewer has.
  void Freed(std::size_t busy, BootTime now) {
    if (busy > 0 && busy <= needed_.size()) needed_[busy - 1] = now;
  }
  // For so many that have work, and tasks that wait.
  std::size_t For(std::size_t busy, std::size_t waiting) const {
    return std::clamp(busy + std::min(waiting, bounds_.most), bounds_.least, bounds_.most);
  }
  // Likewise, with those that are kept.
  std::size_t Kept(std::size_t busy, std::size_t waiting, BootTime now) const {
    std::size_t kept = bounds_.most;
    while (kept > 0 && !IsKept(needed_[kept - 1], now)) --kept;
    return std::max(kept, For(busy, waiting));
  }

 private:
  bool IsKept(const std::optional<BootTime>& needed, BootTime now) const {
    return needed && now - *needed < bounds_.keep_alive;
  }

  Bounds bounds_;
  std::vector<std::optional<BootTime>> needed_;  // when so many were busy last, less one
};

}  // namespace millrace::engine

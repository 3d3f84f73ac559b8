// What a simulation tells: the first thing that must never happen and did, and, where somebody wants to read
// it, every step on the way.
#pragma once

#include <functional>
#include <string>

#include "coordinator/testing/timeline.h"

namespace millrace::engine {

// Not thread-safe.
class Journal {
 public:
  using Sink = std::function<void(const std::string& line)>;

  // `trace` may be empty: then steps are not written down.
  Journal(const Timeline& timeline, Sink trace) : timeline_(timeline), trace_(std::move(trace)) {}

  bool Traces() const { return static_cast<bool>(trace_); }
  void Trace(const std::string& line) {
    if (trace_) trace_(Stamped(line));
  }
  void Violation(const std::string& what) {
    if (violation_.empty()) violation_ = Stamped(what);
    Trace("VIOLATION " + what);
  }
  // Empty: none.
  const std::string& FirstViolation() const { return violation_; }

 private:
  std::string Stamped(const std::string& line) const;

  const Timeline& timeline_;
  const Sink trace_;
  std::string violation_;
};

}  // namespace millrace::engine

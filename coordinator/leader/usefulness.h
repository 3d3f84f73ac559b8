// Whether a leader should give way to another candidate: one that never comes to a plan, or that can't read a
// shard which another can read. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "framework/base/clock.h"

namespace millrace::engine {

// Not thread-safe.
class Usefulness {
 public:
  explicit Usefulness(Micros session_timeout)
      : longest_step_(session_timeout), patience_(3 * session_timeout), wait_(patience_) {}

  void SessionsLast(Micros timeout);
  // Which shards this process can't read, as of now; nullopt: that is not known, which is as bad as none.
  void Reads(const std::optional<std::vector<std::string>>& unread, BootTime now);
  void Begin(BootTime now);  // to lead
  // Everything was written as it should be, or nothing had to be.
  void Useful();
  // While there is no connection nobody could be of use: that time does not count.
  void Disconnected() { connected_ = false; }
  void Connected() { connected_ = true; }
  // Why another should lead; empty: none should, or none would do better. To be asked about once a second:
  // what passes without being asked for longer than a session time-out does not count as tried.
  std::string WhyNot(const std::vector<CandidateDocument>& others, BootTime now);
  // It gave way: the next time it takes twice the time for no plan to be made, lest the lead goes round where
  // a plan takes its time with everybody.
  void GaveWay();
  // How long it does not stand after that, where others do.
  Micros Rest() const { return 2 * patience_; }

 private:
  Micros longest_step_;
  Micros patience_;
  Micros wait_;  // for a plan
  bool connected_ = true;
  BootTime asked_{};
  Micros tried_{0};  // to come to a plan, since it was of use
  std::optional<std::vector<std::string>> unread_;
  std::optional<BootTime> unread_since_;  // not all can be read; it may be told apart from a short trouble
};

}  // namespace millrace::engine

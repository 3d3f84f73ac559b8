// A shard that wants nothing of its attempts; tests override what they look at.
#pragma once

#include "framework/mill/attempt.h"

namespace millrace::engine {

class NoHost : public AttemptHost {
 public:
  bool StopAsked() const override { return false; }
  StartDecision StartDecisionOf(const Attempt&) const override { return StartDecision::Start; }
  bool Over() const override { return false; }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros) override { return nullptr; }
  void SaveProgress(Attempt&, std::string) override {}
  void Log(const Attempt&, LogLevel, std::string_view) override {}
  void RoomAgain() override {}
  void Park(AttemptPtr) override {}
  void Ended(AttemptResult) override {}
  void Settled(Attempt&, const Settlement&) override {}
  void Drop(Attempt&) override {}
};

}  // namespace millrace::engine

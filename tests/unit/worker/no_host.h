// A shard that wants nothing of its flights; tests override what they look at.
#pragma once

#include "framework/worker/flight.h"

namespace millrace::engine {

class NoHost : public FlightHost {
 public:
  bool StopAsked() const override { return false; }
  Fate FateOf(const Flight&) const override { return Fate::Start; }
  bool Over() const override { return false; }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros) override { return nullptr; }
  void SaveProgress(const Flight&, std::string) override {}
  void RoomAgain() override {}
  void Park(FlightPtr) override {}
  void Land(Landing) override {}
  void Settled(const Flight&, const Settlement&) override {}
  void Drop(const Flight&) override {}
};

}  // namespace millrace::engine

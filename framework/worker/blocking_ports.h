// The ports of the mill's strands as threads have them: what is asked for is done at once, on the strand's
// own thread, so that no strand is ever suspended.
#pragma once

#include <memory>

#include "framework/exec/signal.h"
#include "framework/mill/settle.h"

namespace millrace::engine {

template <class Port>
class Blocking : public Port {
 public:
  Reply<bool> Rest(Micros limit) final { return signal_.WaitFor(limit); }
  void Wake() final { signal_.Notify(); }

 private:
  Signal signal_;
};

class BlockingSettle final : public Blocking<SettlePort> {
 public:
  explicit BlockingSettle(std::unique_ptr<TaskStore> store) : store_(std::move(store)) {}

  Reply<Result<SettleReport>> Settle(const std::string& incarnation,
                                     std::span<const Settlement> batch) override {
    return store_->Settle(incarnation, batch);
  }
  Reply<Result<std::vector<bool>>> StillRunning(const std::string& incarnation,
                                                std::span<const Settlement> batch) override {
    return store_->StillRunning(incarnation, batch);
  }

 private:
  const std::unique_ptr<TaskStore> store_;
};

}  // namespace millrace::engine

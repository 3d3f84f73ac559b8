// The ports of the mill's strands in virtual time: what is asked for goes to the modelled database, and its
// answer goes on with the strand when it arrives.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "coordinator/testing/mill_parts.h"
#include "framework/mill/settle.h"

namespace millrace::engine {

// Not thread-safe.
template <class Port>
class Simulated : public Port {
 public:
  Simulated(MillParts parts, ThreadName thread) : parts_(parts), thread_(thread) {}

  Reply<bool> Rest(Micros limit) final {
    rest_ = std::make_shared<Mail<bool>>();
    const Micros delay = std::exchange(woken_, false) ? kWaking : std::max(limit, kWaking);
    EndRest(delay, delay < limit);
    return Reply<bool>(rest_);
  }
  void Wake() final {
    if (rest_) {
      EndRest(kWaking, true);
    } else {
      woken_ = true;
    }
  }

 protected:
  template <class T>
  Reply<T> Read(std::function<T(CheckedShard&)> statement) {
    auto mail = std::make_shared<Mail<T>>();
    parts_.Read<T>(thread_, std::move(statement), [mail](T reply) { mail->Deliver(std::move(reply)); });
    return Reply<T>(std::move(mail));
  }
  template <class T>
  Reply<T> Write(std::function<T(CheckedShard&)> statement) {
    auto mail = std::make_shared<Mail<T>>();
    parts_.Write<T>(thread_, std::move(statement), [mail](T reply) { mail->Deliver(std::move(reply)); });
    return Reply<T>(std::move(mail));
  }

  const MillParts parts_;
  const ThreadName thread_;

 private:
  static constexpr Micros kWaking{50};

  void EndRest(Micros delay, bool woken) {
    parts_.After(thread_, delay, [this, rest = rest_, woken] {
      if (rest != rest_) return;  // it has ended already
      rest_.reset();
      rest->Deliver(woken);
    });
  }

  std::shared_ptr<Mail<bool>> rest_;  // the strand rests; null: it does not
  bool woken_ = false;
};

class SimulatedSettle final : public Simulated<SettlePort> {
 public:
  explicit SimulatedSettle(MillParts parts) : Simulated(parts, ThreadName::Settle) {}

  Reply<Result<SettleReport>> Settle(const std::string& incarnation,
                                     std::span<const Settlement> batch) override {
    return Write<Result<SettleReport>>([incarnation, copy = std::vector(batch.begin(), batch.end())](
                                           CheckedShard& shard) { return shard.Settle(incarnation, copy); });
  }
  Reply<Result<std::vector<bool>>> StillRunning(const std::string& incarnation,
                                                std::span<const Settlement> batch) override {
    return Read<Result<std::vector<bool>>>(
        [incarnation, copy = std::vector(batch.begin(), batch.end())](CheckedShard& shard) {
          return shard.shard().StillRunning(incarnation, copy);
        });
  }
};

}  // namespace millrace::engine

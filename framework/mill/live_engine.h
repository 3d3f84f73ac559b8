// What the mills of a worker read of the configuration in force.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/config/config.h"

namespace millrace::engine {

// In which order and how often the scan comes to task types, where that is configured; by type.
struct ScanOrder {
  std::map<std::string, std::uint32_t> weights;          // of those that have one
  std::map<std::string, std::vector<BandConfig>> bands;  // in force
  bool operator==(const ScanOrder&) const = default;

  static ScanOrder Of(const Config& config) {
    ScanOrder order;
    for (const auto& [type, handler] : config.handlers) {
      if (handler.weight != 1) order.weights[type] = handler.weight;
      if (auto bands = handler.BandsInForce(); !bands.empty()) order.bands[type] = std::move(bands);
    }
    return order;
  }
  std::uint32_t WeightOf(const std::string& type) const {
    const auto weight = weights.find(type);
    return weight == weights.end() ? 1 : weight->second;
  }
};

// Thread-safe. Read it anew for each round of work.
class LiveEngine {
 public:
  explicit LiveEngine(EngineConfig engine, ScanRules scans = {}, ScanOrder order = {})
      : engine_(std::move(engine)),
        scans_(std::make_shared<const ScanRules>(std::move(scans))),
        order_(std::make_shared<const ScanOrder>(std::move(order))) {}

  EngineConfig Get() const {
    MutexLock lock(mutex_);
    return engine_;
  }
  // Never null; another one says something else.
  std::shared_ptr<const ScanRules> Scans() const {
    MutexLock lock(mutex_);
    return scans_;
  }
  std::shared_ptr<const ScanOrder> Order() const {
    MutexLock lock(mutex_);
    return order_;
  }
  void Set(EngineConfig engine) {
    MutexLock lock(mutex_);
    engine_ = std::move(engine);
  }
  void SetScans(ScanRules scans) {
    MutexLock lock(mutex_);
    if (scans != *scans_) scans_ = std::make_shared<const ScanRules>(std::move(scans));
  }
  void SetOrder(ScanOrder order) {
    MutexLock lock(mutex_);
    if (order != *order_) order_ = std::make_shared<const ScanOrder>(std::move(order));
  }

 private:
  mutable Mutex mutex_;
  EngineConfig engine_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const ScanRules> scans_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const ScanOrder> order_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine

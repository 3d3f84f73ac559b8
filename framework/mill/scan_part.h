// What of one shard a scan strand scans: everything, or the tables or priorities that were dealt to it
// (`engine.scanners`).
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/config/config.h"
#include "framework/mill/scope.h"
#include "framework/policy/scan_deal.h"

namespace millrace::engine {

// Thread-safe.
class ScanPart {
 public:
  // Among how many strands what is dealt by which rule. Handlers that are scanned in rounds are the first
  // strand's, since a round goes through all of a shard.
  struct Deal {
    ScannersConfig::By by = ScannersConfig::By::Shard;
    std::size_t strands = 1;
    TableDeal tables;
    std::shared_ptr<const ScanRules> rounds;
  };

  // The first has everything until something is dealt; the others have nothing.
  ScanPart(const Scope& scope, std::size_t number) : scope_(scope), number_(number) {}

  bool IsFirst() const { return number_ == 0; }
  void Set(std::shared_ptr<const Deal> deal);
  // Changes with each deal.
  std::uint64_t Version() const { return version_.load(std::memory_order_acquire); }

  // What is to be asked for: this worker's own, as far as it may be this strand's.
  std::vector<TableSlices> Slices() const;
  // Whether the worker's own groups of this table, type and urgency are this strand's.
  bool Has(const DueGroup& group) const;
  bool Owns(const DueGroup& group) const { return Has(group) && scope_.Owns(group); }
  // Whether something in this table may be; nullopt: in any.
  bool Touches(const std::optional<TableName>& table) const;

 private:
  std::shared_ptr<const Deal> Dealt() const {
    MutexLock lock(mutex_);
    return deal_;
  }

  const Scope& scope_;
  const std::size_t number_;
  std::atomic<std::uint64_t> version_{1};
  std::atomic<bool> dealt_{false};
  mutable Mutex mutex_;
  std::shared_ptr<const Deal> deal_ MILLRACE_GUARDED_BY(mutex_);  // null: none
};

}  // namespace millrace::engine

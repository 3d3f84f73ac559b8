#include "framework/mill/scan_part.h"

#include <algorithm>

namespace millrace::engine {
namespace {

bool IsTableOf(const ScanPart::Deal& deal, const TableName& table, std::size_t number) {
  const auto strand = deal.tables.find(table);
  return (strand == deal.tables.end() ? 0 : strand->second) == number;
}

// What of it is scanned in rounds; false: nothing.
bool KeepRounds(TableSlices& part, const ScanRules& rounds) {
  std::vector<std::string> handlers;
  for (const auto& [handler, rule] : rounds) {
    if (part.CoversHandler(handler)) handlers.push_back(handler);
  }
  part.handlers = std::move(handlers);
  return !part.handlers->empty();
}

}  // namespace

void ScanPart::Set(std::shared_ptr<const Deal> deal) {
  MutexLock lock(mutex_);
  deal_ = std::move(deal);
  dealt_.store(deal_ != nullptr && deal_->strands > 1, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

std::vector<TableSlices> ScanPart::Slices() const {
  if (!dealt_.load(std::memory_order_acquire)) {
    return number_ == 0 ? scope_.Slices() : std::vector<TableSlices>();
  }
  const auto deal = Dealt();
  if (number_ >= deal->strands) return {};
  std::vector<TableSlices> slices = scope_.Slices();
  if (deal->by != ScannersConfig::By::Table) return slices;
  std::erase_if(slices, [&](TableSlices& part) {
    if (IsTableOf(*deal, part.table, number_)) return false;
    return number_ != 0 || !KeepRounds(part, *deal->rounds);
  });
  return slices;
}

bool ScanPart::Has(const DueGroup& group) const {
  if (!dealt_.load(std::memory_order_acquire)) return number_ == 0;
  const auto deal = Dealt();
  if (deal->rounds->contains(group.handler)) return number_ == 0;
  if (deal->by == ScannersConfig::By::Table) return IsTableOf(*deal, group.table, number_);
  return StrandOfPriority(PriorityOf(group.urgency), deal->strands) == number_;
}

bool ScanPart::Touches(const std::optional<TableName>& table) const {
  if (!dealt_.load(std::memory_order_acquire)) return number_ == 0;
  const auto deal = Dealt();
  if (number_ >= deal->strands) return false;
  if (!table || deal->by != ScannersConfig::By::Table) return true;
  return IsTableOf(*deal, *table, number_) || (number_ == 0 && !deal->rounds->empty());
}

}  // namespace millrace::engine

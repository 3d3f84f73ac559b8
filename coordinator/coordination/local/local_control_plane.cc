#include "coordinator/coordination/local/local_control_plane.h"

#include <algorithm>

#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

// The numbers that the table has; nothing where it has none of them.
std::vector<TableSlices> SlicesOf(const TableInfo& table, const std::vector<std::uint32_t>& numbers) {
  if (numbers.empty()) return {TableSlices{table.table, true, {}}};
  TableSlices some{table.table, false, {}};
  const auto end = std::lower_bound(numbers.begin(), numbers.end(), table.slices);
  some.slices.assign(numbers.begin(), end);
  if (some.slices.empty()) return {};
  if (some.slices.size() == table.slices) return {TableSlices{table.table, true, {}}};
  return {std::move(some)};
}

}  // namespace

Result<LocalControlPlane> LocalControlPlane::Make(const std::map<std::string, Shard>& shards, Config config,
                                                  const std::vector<std::uint32_t>& numbers,
                                                  std::vector<std::string> handlers) {
  LocalControlPlane plane;
  plane.SetConfig(std::move(config));
  std::sort(handlers.begin(), handlers.end());
  std::size_t found = 0;
  std::uint32_t most = 0;
  for (const auto& [name, shard] : shards) {
    plane.stores_[name] = shard.store;
    std::vector<TableSlices>& slices = plane.slices_[name];
    for (const TableInfo& info : shard.tables) {
      most = std::max(most, info.slices);
      for (TableSlices& some : SlicesOf(info, numbers)) {
        if (!handlers.empty()) some.handlers = handlers;
        slices.push_back(std::move(some));
      }
    }
    found += slices.size();
  }
  if (found == 0 && !numbers.empty()) {
    return Fail(ErrorCode::Invalid, "no table has a slice with a load-balance number of " +
                                        FormatLoadBalance(numbers) + ": the tables have 0 to " +
                                        std::to_string(most == 0 ? 0 : most - 1));
  }
  return plane;
}

std::shared_ptr<const Config> LocalControlPlane::CurrentConfig() {
  MutexLock lock(current_->mutex);
  return current_->config;
}

void LocalControlPlane::SetConfig(Config config) {
  auto next = std::make_shared<const Config>(std::move(config));
  MutexLock lock(current_->mutex);
  current_->config = std::move(next);
}

std::vector<TableSlices> LocalControlPlane::Slices(const std::string& shard) {
  const auto found = slices_.find(shard);
  return found == slices_.end() ? std::vector<TableSlices>{} : found->second;
}

}  // namespace millrace::engine

#include "framework/policy/group_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace millrace::engine {

std::vector<std::size_t> OrderGroups(std::span<const GroupRank> groups, std::uint64_t turn) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool oldest_first = IsOldestTurn(turn);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      const GroupRank& group = groups[i];
      return oldest_first ? std::make_tuple(0u, std::uint64_t{0}, group.waiting_since)
                          : std::make_tuple(group.urgency, group.served, group.waiting_since);
    };
    return key(a) < key(b);
  });
  return order;
}

}  // namespace millrace::engine

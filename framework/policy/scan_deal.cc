#include "framework/policy/scan_deal.h"

#include <algorithm>

namespace millrace::engine {

TableDeal DealTables(const TableDeal& before, const std::vector<TableName>& tables, std::size_t strands) {
  TableDeal dealt;
  std::vector<std::size_t> counts(strands);
  const std::size_t most = (tables.size() + strands - 1) / strands;
  for (const TableName& table : tables) {
    const auto known = before.find(table);
    if (known == before.end() || known->second >= strands || dealt.contains(table)) continue;
    if (counts[known->second] == most) continue;  // there is a strand with fewer now
    dealt.emplace(table, known->second);
    ++counts[known->second];
  }
  for (const TableName& table : tables) {
    if (dealt.contains(table)) continue;
    const auto least = std::min_element(counts.begin(), counts.end());
    dealt.emplace(table, static_cast<std::size_t>(least - counts.begin()));
    ++*least;
  }
  return dealt;
}

}  // namespace millrace::engine

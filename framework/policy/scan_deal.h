// Which of a shard's scan strands has which tables, or which priorities (`engine.scanners`). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "framework/task/table_name.h"

namespace millrace::engine {

inline constexpr std::uint32_t kPriorities = 10;

using TableDeal = std::map<TableName, std::size_t>;  // by table: its strand

// No strand has more tables than an even deal would give it; as far as that allows, a table stays where it
// was before.
TableDeal DealTables(const TableDeal& before, const std::vector<TableName>& tables, std::size_t strands);

// Neighbouring priorities are one strand's; the most urgent are the first one's.
constexpr std::size_t StrandOfPriority(std::uint32_t priority, std::size_t strands) {
  const std::size_t parts = strands < kPriorities ? strands : kPriorities;
  const std::size_t place = priority < kPriorities ? priority : kPriorities - 1;
  return place * parts / kPriorities;
}

}  // namespace millrace::engine

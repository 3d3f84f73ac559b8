// What one poll asks of one table. A plan may name a table several times, with other handlers for other
// slices; the table is asked once, for the union, and what belongs to none of the parts is left out
// afterwards. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/store/task_store.h"

namespace millrace::engine {

struct DueScope {
  TableName table;
  bool all = false;
  std::vector<std::uint32_t> slices = {};                 // sorted, each once; meaningless where `all`
  std::optional<std::vector<std::string>> handlers = {};  // sorted, each once; nullopt: every task type
  // Borrowed from the request; empty where the union is exact.
  std::vector<const TableSlices*> parts = {};

  // The slices as few ranges, first and last; one over everything where `all`.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> Ranges() const;
  bool WantsHandler(const std::string& handler) const;
  // Whether one of the parts asks for the group, which lies within the union.
  bool Covers(const DueGroup& group) const;
};

// One scope for each table of which something is asked, by name. `tables` must outlive it.
std::vector<DueScope> ScopesOf(std::span<const TableSlices> tables);

}  // namespace millrace::engine

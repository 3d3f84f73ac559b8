// Which slices the workers' limits tell apart. Slices of one kind are accepted by the same workers, so that
// the planner hears of kinds: a worker with limits costs as many comparisons as there are kinds, not slices.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "coordinator/planner/handler_groups.h"
#include "coordinator/planner/planner.h"
#include "coordinator/upkeep/table_catalog.h"

namespace millrace::engine {

// Not thread-safe. The tables and groups outlive it.
class SliceKinds {
 public:
  SliceKinds(const std::vector<PlannedTable>& tables, const std::vector<HandlerGroup>& groups,
             const std::map<std::string, WorkerDocument>& workers);

  // The kind of a slice, by the places of its table and its group in what the constructor was given.
  GroupIndex Of(std::uint32_t table, std::uint32_t group, std::uint32_t number);
  // Those of the kinds that Of has named whose slices a worker with these limits may own, sorted; nullopt:
  // every kind.
  std::optional<std::vector<GroupIndex>> AcceptedBy(const WorkerLimits& limits) const;

 private:
  struct Example {  // one slice of a kind
    std::uint32_t table = 0;
    std::uint32_t group = 0;
    std::uint32_t number = 0;
  };

  const std::vector<PlannedTable>& tables_;
  const std::vector<HandlerGroup>& groups_;
  std::vector<std::uint32_t> table_classes_;   // by table; the same limits allow tables of one class
  std::vector<std::uint32_t> number_classes_;  // by load-balance number; those beyond are in the last class
  std::unordered_map<std::uint64_t, GroupIndex> known_;
  std::vector<Example> kinds_;
};

}  // namespace millrace::engine

#include "coordinator/leader/slices_duty.h"

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

// Small steps, so that nobody waits for their locks; as many in a round as leave the database its breath.
constexpr std::size_t kRowsInAStep = 200;
constexpr int kStepsInARound = 10;

}  // namespace

bool SlicesDuty::Do(SchemaStore& schema, const std::vector<TableInfo>& tables, std::uint32_t wanted) {
  bool changed = false;
  for (const TableInfo& table : tables) {
    if (wanted > 0 && wanted != table.slices) changed = Resize(schema, table, wanted) || changed;
    if (!table.beyond.empty()) {
      Renumber(schema, table);
      changed = true;
    }
  }
  return changed;
}

bool SlicesDuty::Resize(SchemaStore& schema, const TableInfo& table, std::uint32_t wanted) {
  const Status resized = schema.Resize(table.table, wanted);
  const std::string trouble = resized ? "" : resized.error().message;
  if (resized) {
    LogInfo("a table has another number of slices",
            {{"shard", shard_}, {"table", table.table}, {"from", table.slices}, {"to", wanted}});
  } else if (trouble != trouble_[table.table]) {
    LogWarning("a table's slices can't be changed now; it is tried again",
               {{"shard", shard_}, {"table", table.table}, {"why", trouble}});
  }
  trouble_[table.table] = trouble;
  return static_cast<bool>(resized);
}

void SlicesDuty::Renumber(SchemaStore& schema, const TableInfo& table) {
  std::size_t rows = 0;
  for (int step = 0; step < kStepsInARound; ++step) {
    const auto moved = schema.RenumberStep(table.table, kRowsInAStep);
    if (!moved) break;
    rows += *moved;
    if (*moved < kRowsInAStep) break;
  }
  if (rows == 0) return;
  LogInfo("rows beyond a table's slices were given a slice of their own",
          {{"shard", shard_}, {"table", table.table}, {"rows", rows}});
}

}  // namespace millrace::engine

#include "framework/store/sqlite/plan_check.h"

namespace millrace::engine::sqlite {
namespace {

std::optional<std::string> StepFault(const std::string& step, const std::string& bounds) {
  if (step.find("TEMP B-TREE") != std::string::npos) return "it sorts: " + step;
  if (step.starts_with("SCAN")) return "it scans: " + step;
  if (!step.ends_with("(" + bounds + ")")) return "it does not search by " + bounds + ": " + step;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> PlanFault(Session& db, const HotStatement& hot) {
  const std::vector<sql::Value> values(hot.values, sql::Value(nullptr));
  auto rows = db.Start("EXPLAIN QUERY PLAN " + hot.sql, values.data(), values.size());
  std::optional<std::string> fault;
  while (rows.Next() && !fault) fault = StepFault(rows.Text(3), hot.bounds);
  // A plan that the forced index can't serve is refused when it is prepared.
  if (rows.error()) return rows.error()->message;
  return fault;
}

}  // namespace millrace::engine::sqlite

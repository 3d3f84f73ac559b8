#include "framework/store/sql/counters.h"

#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

constexpr std::size_t kLongestOwner = 64;  // what the column holds

}  // namespace

std::string CounterOwner(const std::string& incarnation, unsigned session) {
  const unsigned row = session % kCounterRows;
  if (row == 0 || incarnation.empty() || incarnation.size() + 2 > kLongestOwner) return incarnation;
  return incarnation + "+" + std::to_string(row);
}

std::vector<std::string> CounterOwners(const std::string& incarnation) {
  std::vector<std::string> owners;
  for (unsigned session = 0; session < kCounterRows; ++session)
    owners.push_back(CounterOwner(incarnation, session));
  return owners;
}

void CounterSums::Add(const Settlement& settlement) {
  using To = Settlement::To;
  if (StaysHot(settlement.to) && !settlement.failed_attempt) return;
  CounterDelta& delta = Of(settlement.key.table, settlement.handler, settlement.batch);
  delta.succeeded += settlement.to == To::Succeeded;
  delta.cancelled += settlement.to == To::Cancelled;
  delta.failed += settlement.to == To::Failed;
  delta.attempts_failed += settlement.failed_attempt;
}

Status CounterSums::Write(Connection& db, const std::string& incarnation) const {
  if (sums_.empty()) return {};
  std::vector<Value> values;
  for (const auto& [group, delta] : sums_) {
    const auto& [table, handler, batch] = group;
    values.insert(values.end(), {table, handler, batch, incarnation, delta.succeeded, delta.cancelled,
                                 delta.failed, delta.attempts_failed});
  }
  BOOST_OUTCOME_TRYV(db.Write(
      "INSERT INTO millrace_counters (task_table,handler,batch,incarnation,succeeded,cancelled,failed,"
      "attempts_failed) VALUES " +
          Repeat("(?,?,?,?,?,?,?,?)", sums_.size()) +
          "$upsert succeeded=succeeded+$brought(succeeded), cancelled=cancelled+$brought(cancelled), "
          "failed=failed+$brought(failed), attempts_failed=attempts_failed+$brought(attempts_failed)",
      Connection::Values(values)));
  return {};
}

}  // namespace millrace::engine::sql

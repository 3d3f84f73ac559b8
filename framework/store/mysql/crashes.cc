#include <algorithm>
#include <map>
#include <set>

#include "framework/store/mysql/mysql_incarnation_store.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

// Attempts of one table, at most as many as a statement takes.
using Runs = std::set<std::pair<std::uint64_t, std::uint32_t>>;  // task id, attempt

std::vector<std::uint64_t> IdsOf(const Runs& runs) {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, attempt] : runs) ids.push_back(id);
  return Sorted(ids);
}

// An attempt counts as this incarnation's while its row runs under it, or when a rescue has noted so. Any
// other attempt has ended in good order and is not charged.
Result<Runs> Chargeable(Session& session, const TableName& table, const std::string& id, const Runs& runs) {
  const std::string list = List(IdsOf(runs));
  std::map<std::uint64_t, std::uint32_t> rows;  // present tasks; the attempt that runs under `id`, or 0
  BOOST_OUTCOME_TRYV(session.Query(
      "SELECT id,IF(state=2 AND claimed_by=" + Quote(id) + ",attempt,0) FROM " + table +
          " FORCE INDEX (PRIMARY) WHERE id IN (" + list + ") ORDER BY id FOR UPDATE",
      [&](const Row& row) { rows[row.Number(1)] = static_cast<std::uint32_t>(row.Number(2)); }));
  Runs chargeable;
  for (const auto& [task, attempt] : runs) {
    const auto row = rows.find(task);
    if (row != rows.end() && attempt != 0 && row->second == attempt) chargeable.insert({task, attempt});
  }
  BOOST_OUTCOME_TRYV(
      session.Query("SELECT task_id,attempt,kind='rescued' AND incarnation=" + Quote(id) +
                        " FROM millrace_attempts FORCE INDEX (PRIMARY) WHERE task_table=" + Quote(table) +
                        " AND task_id IN (" + list + ") FOR UPDATE",
                    [&](const Row& row) {
                      const Runs::value_type run{row.Number(1), static_cast<std::uint32_t>(row.Number(2))};
                      chargeable.erase(run);
                      if (row.Number(3) != 0 && runs.contains(run) && rows.contains(run.first))
                        chargeable.insert(run);
                    }));
  return chargeable;
}

Status Note(Session& session, const TableName& table, const std::string& id, const Runs& charged) {
  std::string values;
  for (const auto& [task, attempt] : charged) {
    values += (values.empty() ? "(" : ",(") + Quote(table) + "," + std::to_string(task) + "," +
              std::to_string(attempt) + "," + Quote(id) +
              ",'crashed','crash','the worker died while the handler was running')";
  }
  BOOST_OUTCOME_TRYV(session.Write(
      "INSERT INTO millrace_attempts (task_table,task_id,attempt,incarnation,kind,error_class,message) "
      "VALUES " +
      values +
      " ON DUPLICATE KEY UPDATE kind=VALUES(kind), error_class=VALUES(error_class), "
      "message=VALUES(message)"));
  return {};
}

Status Raise(Session& session, const TableName& table, const Runs& charged) {
  std::map<std::uint64_t, int> counts;
  for (const auto& [task, attempt] : charged) ++counts[task];
  std::map<int, std::vector<std::uint64_t>> tasks;  // nearly always one entry: one crash each
  for (const auto& [task, count] : counts) tasks[count].push_back(task);
  for (const auto& [count, ids] : tasks) {
    BOOST_OUTCOME_TRYV(session.Write("UPDATE " + table +
                                     " FORCE INDEX (PRIMARY) SET crashes=LEAST(crashes,4294967295-" +
                                     std::to_string(count) + ")+" + std::to_string(count) +
                                     ", updated_at=UTC_TIMESTAMP(6) WHERE id IN (" + List(ids) + ")"));
  }
  return {};
}

Result<std::size_t> Charge(Session& session, const TableName& table, const std::string& id,
                           const Runs& runs) {
  BOOST_OUTCOME_TRY(charged, Chargeable(session, table, id, runs));
  if (charged.empty()) return std::size_t{0};
  BOOST_OUTCOME_TRYV(Note(session, table, id, charged));
  BOOST_OUTCOME_TRYV(Raise(session, table, charged));
  return charged.size();
}

}  // namespace

Result<std::size_t> MysqlIncarnationStore::ChargeCrashes(const std::string& id,
                                                         std::span<const Crash> crashes) {
  std::map<TableName, Runs> tables;
  for (const Crash& crash : crashes) tables[crash.key.table].insert({crash.key.id, crash.attempt});
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  std::size_t charged = 0;
  for (const auto& [table, runs] : tables) {
    for (auto from = runs.begin(); from != runs.end();) {
      Runs part;
      while (from != runs.end() && part.size() < kMaxBatchRows) part.insert(*from++);
      BOOST_OUTCOME_TRY(some, Charge(session_, table, id, part));
      charged += some;
    }
  }
  BOOST_OUTCOME_TRYV(session_.Commit());
  return charged;
}

}  // namespace millrace::engine::mysql

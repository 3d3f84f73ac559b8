#include <algorithm>
#include <cstdlib>

#include "framework/store/sql/counters.h"
#include "framework/store/sql/held.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/sessions.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

bool IsOverdue(const KeepRule& rule, const std::string& handler, std::optional<WallTime> finished_at,
               std::optional<WallTime> now) {
  const auto own = rule.by_handler.find(handler);
  const std::optional<Micros> keep =
      own == rule.by_handler.end() ? rule.otherwise : std::optional<Micros>(own->second);
  return keep && finished_at && now && *finished_at < *now - *keep;
}

class SqlPruneStore final : public PruneStore {
 public:
  explicit SqlPruneStore(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), db_(*connection_) {}

  Result<PruneStep> PruneEnded(const KeepRule& rule, const std::string& after, std::size_t limit) override;
  Result<PruneStep> EndHeld(const HoldRule& rule, const std::string& after, std::size_t limit) override {
    return held_.Step(rule, after, limit);
  }
  Result<PruneStep> PruneKeys(const std::string& after, std::size_t limit) override;
  Result<std::size_t> PruneIncarnations(Micros age, std::size_t limit) override;

 private:
  struct Entry {
    std::string handler;
    std::string key;
    bool overdue = false;
  };
  Status ReadEntries(const std::string& where, Connection::Values values, std::vector<Entry>& entries);
  using Counter = std::vector<std::string>;  // the primary key of its row
  // Adds these rows to those without an incarnation, and removes them.
  Result<std::size_t> Fold(const std::vector<Counter>& counters);

  // Those of the ids, by handler, that may go once they were handed out.
  Result<std::vector<std::uint64_t>> HandOut(
      const KeepRule& rule, const std::map<std::string, std::vector<std::uint64_t>>& overdue);

  const std::unique_ptr<Connection> connection_;
  Connection& db_;
  HeldWalk held_{db_};
};

Result<PruneStep> SqlPruneStore::PruneEnded(const KeepRule& rule, const std::string& after,
                                            std::size_t limit) {
  const std::string pool = rule.table + "_done";
  PruneStep step;
  std::map<std::string, std::vector<std::uint64_t>> overdue;
  std::size_t seen = 0;
  limit = std::min(limit, kMaxBatchRows);
  BOOST_OUTCOME_TRYV(db_.Query(
      "SELECT id,handler,finished_at,$now FROM " + pool + "$primary WHERE id>? ORDER BY id LIMIT ?",
      {std::uint64_t{std::strtoull(after.c_str(), nullptr, 10)}, std::uint64_t{limit}}, [&](const Row& row) {
        ++seen;
        step.next = row.Text(1);
        const std::string handler = row.Text(2);
        if (IsOverdue(rule, handler, row.Time(3), row.Time(4))) overdue[handler].push_back(row.Number(1));
      }));
  if (seen < limit) step.next.clear();
  BOOST_OUTCOME_TRY(going, HandOut(rule, overdue));
  if (going.empty()) return step;
  const std::string ids = List(Sorted(going));
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(removed, db_.Write("$remove(" + pool + ") WHERE id IN (" + ids + ")"));
  BOOST_OUTCOME_TRYV(
      db_.Write("$remove(millrace_attempts) WHERE task_table=? AND task_id IN (" + ids + ")", {rule.table}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  step.removed = removed;
  return step;
}

Result<std::vector<std::uint64_t>> SqlPruneStore::HandOut(
    const KeepRule& rule, const std::map<std::string, std::vector<std::uint64_t>>& overdue) {
  std::vector<std::uint64_t> going;
  for (const auto& [handler, ids] : overdue) {
    if (rule.handed_out.contains(handler)) {
      BOOST_OUTCOME_TRY(records, ReadFinished(db_, rule.table, ids));
      if (!rule.hand_out || !rule.hand_out(handler, records)) continue;
    }
    going.insert(going.end(), ids.begin(), ids.end());
  }
  return going;
}

Status SqlPruneStore::ReadEntries(const std::string& where, Connection::Values values,
                                  std::vector<Entry>& entries) {
  return db_.Query("SELECT handler,biz_key,COALESCE(keep_until<=$now,0) FROM tasks_keys$primary" + where +
                       " ORDER BY handler,biz_key LIMIT ?",
                   values, [&](const Row& row) {
                     entries.push_back({row.Text(1), row.Text(2), row.Number(3) != 0});
                   });
}

Result<PruneStep> SqlPruneStore::PruneKeys(const std::string& after, std::size_t limit) {
  limit = std::min(limit, kMaxBatchRows);
  std::vector<Entry> entries;
  // The rest of a handler's keys, then those of the handlers behind it: SQLite would read and sort everything
  // for the two in one statement. A handler's name holds no colon; a key may hold any byte.
  const std::size_t colon = std::min(after.find(':'), after.size());
  const std::string handler = after.substr(0, colon);
  if (colon < after.size()) {
    const std::string key = after.substr(colon + 1);
    const Value values[] = {handler, Value::Bytes(key), std::uint64_t{limit}};
    BOOST_OUTCOME_TRYV(ReadEntries(" WHERE handler=? AND biz_key>?", values, entries));
  }
  if (entries.size() < limit) {
    const Value values[] = {handler, std::uint64_t{limit - entries.size()}};
    BOOST_OUTCOME_TRYV(ReadEntries(" WHERE handler>?", values, entries));
  }
  PruneStep step;
  if (entries.size() == limit && limit > 0) step.next = entries.back().handler + ":" + entries.back().key;
  std::vector<Value> overdue;
  for (const Entry& entry : entries) {
    if (entry.overdue) overdue.insert(overdue.end(), {Value(entry.handler), Value::Bytes(entry.key)});
  }
  if (overdue.empty()) return step;
  // Asked again: a void entry may have been taken over since.
  BOOST_OUTCOME_TRY(removed, db_.Write("$remove(tasks_keys) WHERE (handler,biz_key)" +
                                           InTuples("(?,?)", overdue.size() / 2) + " AND keep_until<=$now",
                                       Connection::Values(overdue)));
  step.removed = removed;
  return step;
}

Result<std::size_t> SqlPruneStore::PruneIncarnations(Micros age, std::size_t limit) {
  const std::uint64_t most = std::min(limit, kMaxBatchRows / kCounterRows);
  std::vector<std::string> gone;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT id FROM millrace_incarnations WHERE dead=1 AND started_at<$after(?) LIMIT ?",
                {-age.count(), most}, [&](const Row& row) { gone.push_back(row.Text(1)); }));
  if (gone.empty()) return std::size_t{0};
  std::vector<std::string> owners;
  for (const std::string& id : gone) {
    for (std::string& owner : CounterOwners(id)) owners.push_back(std::move(owner));
  }
  std::vector<Value> values(owners.begin(), owners.end());
  values.emplace_back(most);
  std::vector<Counter> counters;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT task_table,handler,batch,incarnation FROM millrace_counters WHERE incarnation IN (" +
                    Repeat("?", owners.size()) + ") LIMIT ?",
                Connection::Values(values), [&](const Row& row) {
                  counters.push_back({row.Text(1), row.Text(2), row.Text(3), row.Text(4)});
                }));
  if (!counters.empty()) return Fold(counters);
  const std::vector<Value> ids(gone.begin(), gone.end());
  BOOST_OUTCOME_TRY(removed, db_.Write("$remove(millrace_incarnations) WHERE id IN (" +
                                           Repeat("?", ids.size()) + ") AND dead=1",
                                       Connection::Values(ids)));
  return removed;
}

Result<std::size_t> SqlPruneStore::Fold(const std::vector<Counter>& counters) {
  std::vector<Value> values;
  for (const Counter& row : counters) values.insert(values.end(), row.begin(), row.end());
  const std::string where =
      " WHERE (task_table,handler,batch,incarnation)" + InTuples("(?,?,?,?)", counters.size());
  const std::string these = " FROM millrace_counters$primary" + where;
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  // One that is marked dead may still settle what nobody has rescued yet.
  BOOST_OUTCOME_TRYV(db_.Query("SELECT 1" + these + "$lock", Connection::Values(values), [](const Row&) {}));
  std::string added;
  for (const char* sum : {"succeeded", "cancelled", "failed", "attempts_failed"}) {
    added += (added.empty() ? "" : ", ") + std::string(sum) + "=millrace_counters." + sum + "+$brought(" +
             sum + ")";
  }
  BOOST_OUTCOME_TRYV(db_.Write(
      "INSERT INTO millrace_counters (task_table,handler,batch,incarnation,succeeded,cancelled,failed,"
      "attempts_failed) SELECT * FROM (SELECT task_table,handler,batch,'',SUM(succeeded) s,SUM(cancelled) c,"
      "SUM(failed) f,SUM(attempts_failed) a" +
          these + " GROUP BY task_table,handler,batch) sums WHERE 1 $upsert " + added,
      Connection::Values(values)));
  BOOST_OUTCOME_TRY(removed, db_.Write("$remove(millrace_counters)" + where, Connection::Values(values)));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return removed;
}

}  // namespace

std::unique_ptr<PruneStore> OpenPruning(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlPruneStore>(std::move(connection));
}

}  // namespace millrace::engine::sql

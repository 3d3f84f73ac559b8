#include <algorithm>
#include <map>
#include <set>

#include "framework/store/sql/sessions.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

// Attempts of one table, at most as many as a statement takes.
using Runs = std::set<std::pair<std::uint64_t, std::uint32_t>>;  // task id, attempt

std::vector<std::uint64_t> IdsOf(const Runs& runs) {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, attempt] : runs) ids.push_back(id);
  return Sorted(ids);
}

class SqlIncarnationStore final : public IncarnationStore {
 public:
  SqlIncarnationStore(std::unique_ptr<Connection> connection, Claimers& claimers, Random random)
      : connection_(std::move(connection)), db_(*connection_), claimers_(claimers), random_(random) {}

  Status Register(const Incarnation& incarnation) override;
  Result<bool> Renew(const std::string& id) override;
  Result<std::vector<PeerBeat>> Peers() override;
  Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) override;
  Result<bool> Retire(const std::string& id) override {
    return End(id, std::nullopt, std::nullopt, Cause::Left);
  }
  Result<bool> Bury(const std::string& id) override {
    return End(id, std::nullopt, std::nullopt, Cause::Lost);
  }
  Result<std::size_t> ChargeCrashes(const std::string& id, std::span<const Crash> crashes) override;

 private:
  enum class Cause { Left, Lost };

  // False: somebody has the number already.
  Result<bool> RegisterAs(std::uint64_t number, const Incarnation& incarnation);
  // Deletes its beat, if that shows what was seen, and marks its row. False, and nothing done: there were not
  // as many beats as expected (nullopt: 0 or 1), or the row is dead already.
  Result<bool> End(const std::string& id, std::optional<std::uint64_t> seen_beat,
                   std::optional<std::uint64_t> expected, Cause cause);
  Result<Runs> Chargeable(const TableName& table, const Claimer& claimer, const Runs& runs);
  Status Note(const TableName& table, const std::string& id, const Runs& charged);
  Status Raise(const TableName& table, const Runs& charged);
  Status AddSubjects(const TableName& table, const Runs& charged, std::vector<EventSubject>& subjects);

  const std::unique_ptr<Connection> connection_;
  Connection& db_;
  Claimers& claimers_;
  Random random_;
};

// One of 63 bits is hardly ever somebody's already; what is drawn again and again is no chance.
Status SqlIncarnationStore::Register(const Incarnation& incarnation) {
  constexpr int kDraws = 10;
  for (int draw = 0; draw < kDraws; ++draw) {
    BOOST_OUTCOME_TRY(registered, RegisterAs(DrawNumber(random_), incarnation));
    if (registered) return {};
  }
  return Fail(ErrorCode::Internal, db_.where() + ": no number can be drawn for " + incarnation.id);
}

Result<bool> SqlIncarnationStore::RegisterAs(std::uint64_t number, const Incarnation& incarnation) {
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  auto added = db_.Write(
      "INSERT INTO millrace_incarnations (id,number,worker,host,pid,lease_us,slices,started_at,dead) VALUES "
      "(?,?,?,?,?,?,?,$now,0)",
      {incarnation.id, number, incarnation.worker, incarnation.host, incarnation.pid,
       std::int64_t{incarnation.lease.count()}, incarnation.slices});
  if (!added) {
    if (db_.refusal() != Refusal::Duplicate) return Fail(added.error());
    bool known = false;
    BOOST_OUTCOME_TRYV(db_.Query("SELECT 1 FROM millrace_incarnations WHERE id=?", {incarnation.id},
                                 [&](const Row&) { known = true; }));
    if (!known) return false;
    return Fail(ErrorCode::Conflict, db_.where() + ": the incarnation " + incarnation.id + " exists already");
  }
  BOOST_OUTCOME_TRYV(db_.Write("INSERT INTO millrace_beats (id,beat) VALUES (?,0)", {incarnation.id}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  claimers_.Learn(incarnation.id, number);
  return true;
}

// The row is read without a lock: claims hold it in share mode, and a beat waits for nobody. A takeover that
// is under way deletes the beat first, so it is missed by neither.
Result<bool> SqlIncarnationStore::Renew(const std::string& id) {
  BOOST_OUTCOME_TRY(hit, db_.Write("UPDATE millrace_beats SET beat=beat+1 WHERE id=? AND EXISTS (SELECT 1 "
                                   "FROM millrace_incarnations WHERE id=? AND dead=0)",
                                   {id, id}));
  return hit == 1;
}

Result<std::vector<PeerBeat>> SqlIncarnationStore::Peers() {
  std::vector<PeerBeat> peers;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT i.id,i.worker,i.host,i.pid,i.lease_us,i.slices,b.beat FROM millrace_incarnations i "
                "LEFT JOIN millrace_beats b ON b.id=i.id WHERE i.dead=0 ORDER BY i.id",
                {}, [&](const Row& row) {
                  PeerBeat& peer = peers.emplace_back();
                  peer.incarnation = {row.Text(1),   row.Text(2),           row.Text(3),
                                      row.Signed(4), Micros(row.Signed(5)), row.Text(6)};
                  if (!row.Null(7)) peer.beat = row.Number(7);
                }));
  return peers;
}

Result<bool> SqlIncarnationStore::MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) {
  return End(id, seen_beat, seen_beat ? 1 : 0, Cause::Lost);
}

Result<bool> SqlIncarnationStore::End(const std::string& id, std::optional<std::uint64_t> seen_beat,
                                      std::optional<std::uint64_t> expected, Cause cause) {
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  const std::string its_beat = "DELETE FROM millrace_beats WHERE id=?";
  BOOST_OUTCOME_TRY(
      beats, seen_beat ? db_.Write(its_beat + " AND beat=?", {id, *seen_beat}) : db_.Write(its_beat, {id}));
  if (expected && beats != *expected) return false;  // rolled back
  BOOST_OUTCOME_TRY(dead, db_.Write("UPDATE millrace_incarnations SET dead=1 WHERE id=? AND dead=0", {id}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  // Behind the transaction, since an audit that can't be written must not keep the dead alive.
  if (dead == 1 && cause == Cause::Lost) (void)NoteEvents(db_, kWorkerLost, "", {{id}});
  return dead == 1;
}

// An attempt counts as this incarnation's while its row runs under it, or when a rescue has noted so. Any
// other attempt has ended in good order and is not charged.
Result<Runs> SqlIncarnationStore::Chargeable(const TableName& table, const Claimer& claimer,
                                             const Runs& runs) {
  const std::string list = List(IdsOf(runs));
  std::map<std::uint64_t, std::uint32_t> rows;  // present tasks; the attempt that runs under `id`, or 0
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id,CASE WHEN state=2 AND claimed_by=? THEN attempt ELSE 0 END FROM " +
                                   table + "$primary WHERE id IN (" + list + ") ORDER BY id$lock",
                               {claimer.number}, [&](const Row& row) {
                                 rows[row.Number(1)] = static_cast<std::uint32_t>(row.Number(2));
                               }));
  Runs chargeable;
  for (const auto& [task, attempt] : runs) {
    const auto row = rows.find(task);
    if (row != rows.end() && attempt != 0 && row->second == attempt) chargeable.insert({task, attempt});
  }
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT task_id,attempt,kind='rescued' AND incarnation=? FROM millrace_attempts$primary "
                "WHERE task_table=? "
                "AND task_id IN (" +
                    list + ")$lock",
                {claimer.name, table}, [&](const Row& row) {
                  const Runs::value_type run{row.Number(1), static_cast<std::uint32_t>(row.Number(2))};
                  chargeable.erase(run);
                  if (row.Number(3) != 0 && runs.contains(run) && rows.contains(run.first))
                    chargeable.insert(run);
                }));
  return chargeable;
}

Status SqlIncarnationStore::Note(const TableName& table, const std::string& id, const Runs& charged) {
  std::vector<Value> values;
  for (const auto& [task, attempt] : charged) values.insert(values.end(), {table, task, attempt, id});
  const std::string row = "(?,?,?,$now,?,'crashed','crash','the worker died while the handler was running')";
  BOOST_OUTCOME_TRYV(db_.Write(
      "INSERT INTO millrace_attempts (task_table,task_id,attempt,at,incarnation,kind,error_class,message) "
      "VALUES " +
          Repeat(row, charged.size()) +
          "$upsert kind=$brought(kind), error_class=$brought(error_class), message=$brought(message)",
      Connection::Values(values)));
  return {};
}

Status SqlIncarnationStore::Raise(const TableName& table, const Runs& charged) {
  std::map<std::uint64_t, int> counts;
  for (const auto& [task, attempt] : charged) ++counts[task];
  std::map<int, std::vector<std::uint64_t>> tasks;  // nearly always one entry: one crash each
  for (const auto& [task, count] : counts) tasks[count].push_back(task);
  constexpr std::int64_t kMost = 4'294'967'295;
  for (const auto& [count, ids] : tasks) {
    BOOST_OUTCOME_TRYV(
        db_.Write("UPDATE " + table +
                      "$primary SET crashes=CASE WHEN crashes>? THEN ? ELSE crashes+? END, updated_at=$now "
                      "WHERE id IN (" +
                      List(ids) + ")",
                  {kMost - count, kMost, count}));
  }
  return {};
}

// The rows are locked by now, and stand there.
Status SqlIncarnationStore::AddSubjects(const TableName& table, const Runs& charged,
                                        std::vector<EventSubject>& subjects) {
  std::map<std::uint64_t, std::string> types;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT id,handler FROM " + table + "$primary WHERE id IN (" + List(IdsOf(charged)) + ")", {},
                [&](const Row& row) { types[row.Number(1)] = row.Text(2); }));
  for (const auto& [task, attempt] : charged)
    subjects.push_back({ToString(TaskKey{table, task}), types[task]});
  return {};
}

Result<std::size_t> SqlIncarnationStore::ChargeCrashes(const std::string& id,
                                                       std::span<const Crash> crashes) {
  std::map<TableName, Runs> tables;
  for (const Crash& crash : crashes) tables[crash.key.table].insert({crash.key.id, crash.attempt});
  BOOST_OUTCOME_TRY(claimer, claimers_.ByName(db_, id));
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  std::size_t charged = 0;
  std::vector<EventSubject> subjects;
  for (const auto& [table, runs] : tables) {
    for (auto from = runs.begin(); from != runs.end();) {
      Runs part;
      while (from != runs.end() && part.size() < kMaxBatchRows) part.insert(*from++);
      BOOST_OUTCOME_TRY(some, Chargeable(table, claimer, part));
      if (some.empty()) continue;
      BOOST_OUTCOME_TRYV(Note(table, id, some));
      BOOST_OUTCOME_TRYV(Raise(table, some));
      BOOST_OUTCOME_TRYV(AddSubjects(table, some, subjects));
      charged += some.size();
    }
  }
  BOOST_OUTCOME_TRYV(transaction.Commit());
  (void)NoteEvents(db_, kHandlerCrashed, id, subjects);  // see End
  return charged;
}

}  // namespace

std::unique_ptr<IncarnationStore> OpenIncarnations(std::unique_ptr<Connection> connection, Claimers& claimers,
                                                   Random random) {
  return std::make_unique<SqlIncarnationStore>(std::move(connection), claimers, random);
}

}  // namespace millrace::engine::sql

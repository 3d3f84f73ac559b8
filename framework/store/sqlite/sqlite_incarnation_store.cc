#include "framework/store/sqlite/sqlite_incarnation_store.h"

#include "framework/store/sqlite/rows.h"

namespace millrace::engine {

Status SqliteIncarnationStore::Register(const Incarnation& incarnation) {
  BOOST_OUTCOME_TRYV(db_.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRY(row, db_.Run("INSERT OR IGNORE INTO millrace_incarnations (id, worker, host, pid, "
                                   "lease_us, slices, started_at)"
                                   " VALUES (?,?,?,?,?,?,?)",
                                   incarnation.id, incarnation.worker, incarnation.host, incarnation.pid,
                                   static_cast<std::int64_t>(incarnation.lease.count()), incarnation.slices,
                                   TimeText(StoreNow())));
    if (row == 0)
      return Fail(ErrorCode::Conflict, "the incarnation " + incarnation.id + " is registered already");
    BOOST_OUTCOME_TRYV(db_.Run("INSERT INTO millrace_beats (id, beat) VALUES (?, 1)", incarnation.id));
    return true;
  }));
  return {};
}

Result<bool> SqliteIncarnationStore::Renew(const std::string& id) {
  return db_.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRY(done, db_.Run("UPDATE millrace_beats SET beat=beat+1 WHERE id=? AND EXISTS"
                                    " (SELECT 1 FROM millrace_incarnations WHERE id=? AND dead=0)",
                                    id, id));
    return done == 1;
  });
}

Result<std::vector<PeerBeat>> SqliteIncarnationStore::Peers() {
  auto rows = db_.Select(
      "SELECT i.id, worker, host, pid, lease_us, slices, beat FROM millrace_incarnations i LEFT JOIN"
      " millrace_beats b ON b.id=i.id WHERE dead=0 ORDER BY i.id");
  std::vector<PeerBeat> peers;
  while (rows.Next()) {
    PeerBeat& peer = peers.emplace_back();
    peer.incarnation = {rows.Text(0), rows.Text(1), rows.Text(2), rows.Integer(3), Micros(rows.Integer(4)),
                        rows.Text(5)};
    if (!rows.IsNull(6)) peer.beat = rows.Id(6);
  }
  if (rows.error()) return Fail(*rows.error());
  return peers;
}

Result<bool> SqliteIncarnationStore::MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) {
  return db_.Write([&]() -> Result<bool> {
    if (seen_beat) {
      BOOST_OUTCOME_TRY(stood, db_.Run("DELETE FROM millrace_beats WHERE id=? AND beat=?", id, *seen_beat));
      if (stood == 0) return false;
    }
    BOOST_OUTCOME_TRY(dead,
                      db_.Run("UPDATE millrace_incarnations SET dead=1 WHERE id=? AND dead=0 AND NOT EXISTS"
                              " (SELECT 1 FROM millrace_beats WHERE id=?)",
                              id, id));
    return dead == 1;
  });
}

Result<bool> SqliteIncarnationStore::Retire(const std::string& id) {
  return db_.Write([&]() -> Result<bool> {
    BOOST_OUTCOME_TRYV(db_.Run("DELETE FROM millrace_beats WHERE id=?", id));
    BOOST_OUTCOME_TRY(dead, db_.Run("UPDATE millrace_incarnations SET dead=1 WHERE id=? AND dead=0", id));
    return dead == 1;
  });
}

Result<bool> SqliteIncarnationStore::IsChargeable(const std::string& id, const Crash& crash) {
  auto noted = db_.Select(
      "SELECT kind='rescued' AND incarnation=? FROM millrace_attempts WHERE task_table=? AND task_id=? AND "
      "attempt=?",
      id, crash.key.table, crash.key.id, crash.attempt);
  if (noted.Next()) return noted.Integer(0) != 0;
  if (noted.error()) return Fail(*noted.error());
  auto running = db_.Select(
      "SELECT 1 FROM " + crash.key.table + " WHERE id=? AND state=2 AND claimed_by=? AND attempt=?",
      crash.key.id, id, crash.attempt);
  const bool found = running.Next();
  if (running.error()) return Fail(*running.error());
  return found;
}

Result<std::size_t> SqliteIncarnationStore::ChargeCrashes(const std::string& id,
                                                          std::span<const Crash> crashes) {
  return db_.Write([&]() -> Result<std::size_t> {
    std::size_t charged = 0;
    for (const Crash& crash : crashes) {
      BOOST_OUTCOME_TRY(chargeable, IsChargeable(id, crash));
      if (!chargeable) continue;
      BOOST_OUTCOME_TRY(
          raised, db_.Run("UPDATE " + crash.key.table + " SET crashes=min(crashes, 4294967294)+1 WHERE id=?",
                          crash.key.id));
      if (raised == 0) continue;
      BOOST_OUTCOME_TRYV(db_.Run(
          "INSERT OR REPLACE INTO millrace_attempts (task_table, task_id, attempt, at, incarnation, kind, "
          "error_class,"
          " message) VALUES (?,?,?,?,?,'crashed','crash','the worker died while the handler was running')",
          crash.key.table, crash.key.id, crash.attempt, TimeText(StoreNow()), id));
      ++charged;
    }
    return charged;
  });
}

}  // namespace millrace::engine

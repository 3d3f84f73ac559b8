#include <algorithm>

#include "framework/store/mysql/mysql_incarnation_store.h"
#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

// A connection that went silent must not cost the lease: the beat gives it up after a fifth and takes
// another.
Endpoint Impatient(Endpoint endpoint) {
  const Micros patience = std::max<Micros>(endpoint.options.lease / 5, std::chrono::seconds(1));
  endpoint.options.connect_timeout = std::min(endpoint.options.connect_timeout, patience);
  endpoint.options.io_timeout = std::min(endpoint.options.io_timeout, patience);
  return endpoint;
}

}  // namespace

MysqlIncarnationStore::MysqlIncarnationStore(const Endpoint& endpoint)
    : endpoint_(Impatient(endpoint)), session_(endpoint_, endpoint.options.lease) {}

Status MysqlIncarnationStore::Register(const Incarnation& incarnation) {
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  auto added = session_.Write(
      "INSERT INTO millrace_incarnations (id,worker,host,pid,lease_us,slices,started_at,dead) VALUES (" +
      Quote(incarnation.id) + "," + Quote(incarnation.worker) + "," + Quote(incarnation.host) + "," +
      std::to_string(incarnation.pid) + "," + std::to_string(incarnation.lease.count()) + "," +
      Quote(incarnation.slices) + ",UTC_TIMESTAMP(6),0)");
  if (!added) {
    if (session_.last_code() != kDuplicateEntry) return Fail(added.error());
    return Fail(ErrorCode::Conflict,
                session_.where() + ": the incarnation " + incarnation.id + " exists already");
  }
  BOOST_OUTCOME_TRYV(
      session_.Write("INSERT INTO millrace_beats (id,beat) VALUES (" + Quote(incarnation.id) + ",0)"));
  return session_.Commit();
}

// The row is read without a lock: claims hold it in share mode, and a beat waits for nobody. A takeover that
// is under way deletes the beat first, so it is missed by neither.
Result<bool> MysqlIncarnationStore::Renew(const std::string& id) {
  const std::string me = Quote(id);
  BOOST_OUTCOME_TRY(hit, session_.Write("UPDATE millrace_beats SET beat=beat+1 WHERE id=" + me +
                                        " AND EXISTS (SELECT 1 FROM millrace_incarnations WHERE id=" + me +
                                        " AND dead=0)"));
  return hit == 1;
}

Result<std::vector<PeerBeat>> MysqlIncarnationStore::Peers() {
  std::vector<PeerBeat> peers;
  BOOST_OUTCOME_TRYV(session_.Query(
      "SELECT i.id,i.worker,i.host,i.pid,i.lease_us,i.slices,b.beat FROM millrace_incarnations i LEFT JOIN "
      "millrace_beats b ON b.id=i.id WHERE i.dead=0 ORDER BY i.id",
      [&](const Row& row) {
        PeerBeat& peer = peers.emplace_back();
        peer.incarnation = {row.Text(1),   row.Text(2),           row.Text(3),
                            row.Signed(4), Micros(row.Signed(5)), row.Text(6)};
        if (!row.Null(7)) peer.beat = row.Number(7);
      }));
  return peers;
}

Result<bool> MysqlIncarnationStore::MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) {
  if (seen_beat) return End(id, " AND beat=" + std::to_string(*seen_beat), 1);
  return End(id, "", 0);
}

Result<bool> MysqlIncarnationStore::Retire(const std::string& id) { return End(id, "", std::nullopt); }

Result<bool> MysqlIncarnationStore::End(const std::string& id, const std::string& beat_condition,
                                        std::optional<std::uint64_t> expected) {
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  BOOST_OUTCOME_TRY(beats,
                    session_.Write("DELETE FROM millrace_beats WHERE id=" + Quote(id) + beat_condition));
  if (expected && beats != *expected) return false;  // rolled back
  BOOST_OUTCOME_TRY(
      dead, session_.Write("UPDATE millrace_incarnations SET dead=1 WHERE id=" + Quote(id) + " AND dead=0"));
  BOOST_OUTCOME_TRYV(session_.Commit());
  return dead == 1;
}

std::unique_ptr<IncarnationStore> OpenIncarnations(const Endpoint& endpoint) {
  return std::make_unique<MysqlIncarnationStore>(endpoint);
}

}  // namespace millrace::engine::mysql

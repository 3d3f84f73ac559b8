#include <algorithm>

#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::mysql {
namespace {

// A connection that went silent must not cost the lease: the beat gives it up after a fifth and takes
// another.
Endpoint Impatient(Endpoint endpoint) {
  const Micros patience = std::max<Micros>(endpoint.options.lease / 5, std::chrono::seconds(1));
  endpoint.options.connect_timeout = std::min(endpoint.options.connect_timeout, patience);
  endpoint.options.io_timeout = std::min(endpoint.options.io_timeout, patience);
  return endpoint;
}

class MysqlIncarnationStore final : public IncarnationStore {
 public:
  explicit MysqlIncarnationStore(const Endpoint& endpoint)
      : endpoint_(Impatient(endpoint)), session_(endpoint_, endpoint.options.lease) {}

  Status Register(const Incarnation& incarnation) override;
  Result<bool> Renew(const std::string& id) override;
  Result<std::vector<PeerBeat>> Peers() override;
  Result<bool> MarkDead(const std::string& id, std::uint64_t seen_beat) override;
  Result<bool> Retire(const std::string& id) override;
  Result<std::size_t> ChargeCrashes(const std::string& id, std::span<const Crash> crashes) override;

 private:
  Result<bool> End(const std::string& id, const std::string& beat_condition, bool needs_beat);
  Result<bool> Charge(const std::string& id, const Crash& crash);

  const Endpoint endpoint_;
  Session session_;
};

Status MysqlIncarnationStore::Register(const Incarnation& incarnation) {
  Transaction transaction(session_);
  if (Status begun = session_.Begin(); !begun) return begun;
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
  auto beat = session_.Write("INSERT INTO millrace_beats (id,beat) VALUES (" + Quote(incarnation.id) + ",0)");
  if (!beat) return Fail(beat.error());
  return session_.Commit();
}

Result<bool> MysqlIncarnationStore::Renew(const std::string& id) {
  auto hit = session_.Write("UPDATE millrace_beats SET beat=beat+1 WHERE id=" + Quote(id));
  if (!hit) return Fail(hit.error());
  return *hit == 1;
}

Result<std::vector<PeerBeat>> MysqlIncarnationStore::Peers() {
  std::vector<PeerBeat> peers;
  Status read = session_.Query(
      "SELECT i.id,i.worker,i.host,i.pid,i.lease_us,i.slices,b.beat FROM millrace_beats b JOIN "
      "millrace_incarnations i ON i.id=b.id ORDER BY i.id",
      [&](const Row& row) {
        PeerBeat& peer = peers.emplace_back();
        peer.incarnation = {row.Text(1),   row.Text(2),           row.Text(3),
                            row.Signed(4), Micros(row.Signed(5)), row.Text(6)};
        peer.beat = row.Number(7);
      });
  if (!read) return Fail(read.error());
  return peers;
}

Result<bool> MysqlIncarnationStore::MarkDead(const std::string& id, std::uint64_t seen_beat) {
  return End(id, " AND beat=" + std::to_string(seen_beat), true);
}

Result<bool> MysqlIncarnationStore::Retire(const std::string& id) { return End(id, "", false); }

Result<bool> MysqlIncarnationStore::End(const std::string& id, const std::string& beat_condition,
                                        bool needs_beat) {
  Transaction transaction(session_);
  if (Status begun = session_.Begin(); !begun) return Fail(begun.error());
  auto beats = session_.Write("DELETE FROM millrace_beats WHERE id=" + Quote(id) + beat_condition);
  if (!beats) return Fail(beats.error());
  if (needs_beat && *beats == 0) return false;
  auto dead = session_.Write("UPDATE millrace_incarnations SET dead=1 WHERE id=" + Quote(id) + " AND dead=0");
  if (!dead) return Fail(dead.error());
  if (Status done = session_.Commit(); !done) return Fail(done.error());
  return *dead == 1;
}

Result<std::size_t> MysqlIncarnationStore::ChargeCrashes(const std::string& id,
                                                         std::span<const Crash> crashes) {
  std::vector<Crash> sorted(crashes.begin(), crashes.end());
  std::sort(sorted.begin(), sorted.end(), [](const Crash& a, const Crash& b) { return a.key < b.key; });
  Transaction transaction(session_);
  if (Status begun = session_.Begin(); !begun) return Fail(begun.error());
  std::size_t charged = 0;
  for (const Crash& crash : sorted) {
    auto one = Charge(id, crash);
    if (!one) return Fail(one.error());
    charged += *one ? 1 : 0;
  }
  if (Status done = session_.Commit(); !done) return Fail(done.error());
  return charged;
}

// An attempt counts as this incarnation's while its row runs under it, or when a rescue has noted so. Any
// other attempt has ended in good order and is not charged.
Result<bool> MysqlIncarnationStore::Charge(const std::string& id, const Crash& crash) {
  const std::string task = std::to_string(crash.key.id);
  const std::string attempt = std::to_string(crash.attempt);
  const std::string& table = crash.key.table;
  bool running = false;
  bool present = false;
  Status read =
      session_.Query("SELECT state=2 AND claimed_by=" + Quote(id) + " AND attempt=" + attempt + " FROM " +
                         table + " FORCE INDEX (PRIMARY) WHERE id=" + task + " FOR UPDATE",
                     [&](const Row& row) {
                       present = true;
                       running = row.Number(1) != 0;
                     });
  if (!read) return Fail(read.error());
  if (!present) return false;
  const std::string where =
      " WHERE task_table=" + Quote(table) + " AND task_id=" + task + " AND attempt=" + attempt;
  std::string kind;
  std::string owner;
  read = session_.Query("SELECT kind,incarnation FROM millrace_attempts" + where + " FOR UPDATE",
                        [&](const Row& row) {
                          kind = row.Text(1);
                          owner = row.Text(2);
                        });
  if (!read) return Fail(read.error());
  constexpr const char* kMessage = "the worker's process died while the handler was running";
  Result<std::uint64_t> noted;
  if (kind == "rescued" && owner == id) {
    noted = session_.Write("UPDATE millrace_attempts SET kind='crashed', message=" + Quote(kMessage) + where);
  } else if (kind.empty() && running) {
    noted = session_.Write(
        "INSERT INTO millrace_attempts (task_table,task_id,attempt,at,incarnation,kind,error_class,message) "
        "VALUES (" +
        Quote(table) + "," + task + "," + attempt + ",UTC_TIMESTAMP(6)," + Quote(id) + ",'crashed','crash'," +
        Quote(kMessage) + ")");
  } else {
    return false;
  }
  if (!noted) return Fail(noted.error());
  auto raised = session_.Write("UPDATE " + table +
                               " SET crashes=crashes+1, updated_at=UTC_TIMESTAMP(6) WHERE id=" + task);
  if (!raised) return Fail(raised.error());
  return true;
}

}  // namespace

std::unique_ptr<IncarnationStore> OpenIncarnations(const Endpoint& endpoint) {
  return std::make_unique<MysqlIncarnationStore>(endpoint);
}

}  // namespace millrace::mysql

#include "framework/store/mysql/settle.h"

#include <map>
#include <set>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/task_store.h"
#include "framework/store/sql/counters.h"
#include "framework/store/sql/keys.h"

namespace millrace::engine::mysql {
namespace {

using Batch = std::vector<const Settlement*>;

constexpr std::size_t kMostBusy = 10'000;

// Whether the statement hit `rows` rows.
Result<bool> Hits(Session& session, const std::string& sql, std::size_t rows) {
  BOOST_OUTCOME_TRY(hit, session.Write(sql));
  return hit == rows;
}

Result<bool> MoveGroup(Session& session, const sql::Claimer& claimer, const SettleGroup& group) {
  const std::string ids = WithIdsOf(group);
  if (StaysHot(group.to)) {
    return Hits(session, WaitText(group, claimer.number, ids), group.rows.size());
  }
  if (!group.leaves_no_row) {
    auto moved = Hits(session, MoveText(group, claimer, ids), group.rows.size());
    if (!moved || !*moved) return moved;
  }
  return Hits(session, DeleteText(group, claimer.number, ids), group.rows.size());
}

// Settles a batch in one transaction, and in smaller ones where that can't be.
class Settler {
 public:
  Settler(Session& session, const sql::Claimer& claimer, std::span<const Settlement> batch)
      : session_(session), claimer_(claimer), first_(batch.data()) {
    report_.verdicts.assign(batch.size(), SettleVerdict::Busy);
    report_.errors.assign(batch.size(), "");
  }

  // `busy`: those that were found locked the last time. Nobody waits for them: one that is still locked is
  // Busy again at once.
  Result<SettleReport> Run(const Batch& batch, const std::set<TaskKey>& busy);

 private:
  Status Step(const Batch& batch, int depth);
  Status Narrow(const Batch& batch, int depth);
  Status Unlocked(const Batch& batch);
  Status ByTable(const Batch& batch, const Error& refused);
  Status Halves(const Batch& batch, int depth);
  // True: committed. False: refused.
  Result<bool> Once(const Batch& batch);
  // Those of the batch that still run and that nobody else has locked, neither them nor their keys.
  Result<Batch> Free(const Batch& batch);
  Status DropLockedKeys(Batch& batch);
  Status Probe(Batch& batch, const std::set<TaskKey>& busy);
  // It is locked as a whole, or we lack a right on it, by the statement that was just refused.
  bool IsOfTheTable(const Error& refused) const {
    return mysql::IsOfTheTable(refused.code, session_.last_code());
  }

  void Note(const Settlement* one, SettleVerdict verdict, std::string error = {}) {
    const auto index = static_cast<std::size_t>(one - first_);
    report_.verdicts[index] = verdict;
    report_.errors[index] = std::move(error);
  }

  Session& session_;
  const sql::Claimer& claimer_;
  const Settlement* const first_;
  SettleReport report_;
  bool settled_ = false;
};

Result<SettleReport> Settler::Run(const Batch& batch, const std::set<TaskKey>& busy) {
  Batch rest = batch;
  BOOST_OUTCOME_TRYV(Probe(rest, busy));
  Status done = Step(rest, 0);
  if (done) return report_;
  // Short of a lost COMMIT, the steps that failed have changed nothing: those rows are still to be settled.
  if (settled_ && done.error().code != ErrorCode::Unknown) return report_;
  return Fail(done.error());
}

Status Settler::Probe(Batch& batch, const std::set<TaskKey>& busy) {
  if (busy.empty()) return {};
  Batch suspects;
  for (const Settlement* one : batch) {
    if (busy.contains(one->key)) suspects.push_back(one);
  }
  BOOST_OUTCOME_TRY(free, Free(suspects));
  std::set<const Settlement*> out(suspects.begin(), suspects.end());
  for (const Settlement* one : free) out.erase(one);
  // One that has ended is left in the batch, to be refused there.
  for (const SettleGroup& group : GroupSettlements({out.begin(), out.end()})) {
    auto running = ReadRunning(session_, claimer_.number, group.rows, false);
    if (!running && IsOfTheTable(running.error())) continue;
    if (!running) return Fail(running.error());
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      if (!running->at(i)) out.erase(group.rows[i]);
    }
  }
  std::erase_if(batch, [&](const Settlement* one) { return out.contains(one); });
  return {};
}

Result<bool> Settler::Once(const Batch& batch) {
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  BOOST_OUTCOME_TRY(step, RunSettle(session_, claimer_, batch));
  if (step == SettleStep::Refused) return false;
  BOOST_OUTCOME_TRYV(session_.Commit());
  return true;
}

Status Settler::Step(const Batch& batch, int depth) {
  if (batch.empty()) return {};
  auto done = Once(batch);
  if (done && *done) {
    for (const Settlement* one : batch) Note(one, SettleVerdict::Settled);
    settled_ = true;
    return {};
  }
  if (done) return Narrow(batch, depth);
  const bool is_locked = done.error().code == ErrorCode::Conflict;
  if (is_locked && depth == 0) return Unlocked(batch);
  if (IsOfTheTable(done.error())) return ByTable(batch, done.error());
  if (done.error().code != ErrorCode::Invalid) return Fail(done.error());
  if (batch.size() > 1) return Halves(batch, depth);
  Note(batch[0], SettleVerdict::Broken, done.error().message);
  return {};
}

// Some attempts are no longer ours: the database says which, and the rest settle together. An attempt that
// has ended never comes back. Should the count be wrong again, halves find the row.
Status Settler::Narrow(const Batch& batch, int depth) {
  BOOST_OUTCOME_TRY(running, ReadRunning(session_, claimer_.number, batch, false));
  Batch ours;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (running[i]) {
      ours.push_back(batch[i]);
    } else {
      Note(batch[i], SettleVerdict::Refused);
    }
  }
  if (ours.size() < batch.size()) return Step(ours, depth + 1);
  return batch.size() > 1 ? Halves(batch, depth) : Status{};
}

Result<Batch> Settler::Free(const Batch& batch) {
  Batch free;
  for (const SettleGroup& group : GroupSettlements(batch)) {
    std::map<std::uint64_t, const Settlement*> rows;
    for (const Settlement* row : group.rows) rows[row->key.id] = row;
    const Status read = session_.Query(
        "SELECT id" + RunningRows(group.table, WithIdsOf(group), claimer_.number, group.attempt) +
            " ORDER BY id FOR UPDATE SKIP LOCKED",
        [&](const Row& row) { free.push_back(rows[row.Number(1)]); });
    // Somebody has the table as a whole, or we may not read it. The other tables' rows need not wait for it.
    if (!read && !IsOfTheTable(read.error())) return Fail(read.error());
    for (const Settlement* row : group.rows) {
      if (!read) Note(row, SettleVerdict::Busy, read.error().message);
    }
  }
  BOOST_OUTCOME_TRYV(DropLockedKeys(free));
  return free;
}

Status Settler::DropLockedKeys(Batch& batch) {
  std::vector<sql::LedgerKey> keys;
  for (const Settlement* one : batch) {
    if (sql::FateOf(*one)) keys.emplace_back(one->handler, one->biz_key);
  }
  const auto locked = sql::LockedKeys(session_, keys);
  if (!locked && locked.error().code != ErrorCode::Conflict) return Fail(locked.error());
  std::erase_if(batch, [&](const Settlement* one) {
    return sql::FateOf(*one) && (!locked || locked->contains({one->handler, one->biz_key}));
  });
  return {};
}

// Somebody holds a row of ours (a person's edit, a rescue that waits), or its key, since he has met that as a
// duplicate: the others need not wait for it.
Status Settler::Unlocked(const Batch& batch) {
  BOOST_OUTCOME_TRY(free, Free(batch));
  return Step(free, 1);
}

// The table of a pool is locked as a whole, gone or damaged, or we lack a right on it, or it has a trigger
// that the database can't carry out: that says nothing of the other tables, so each is settled by itself.
// What is refused even then stays Busy, with the reason: others are not kept behind it.
Status Settler::ByTable(const Batch& batch, const Error& refused) {
  std::map<TableName, Batch> parts;
  for (const Settlement* one : batch) parts[one->key.table].push_back(one);
  if (parts.size() == 1) {
    for (const Settlement* one : batch) Note(one, SettleVerdict::Busy, refused.message);
    return {};
  }
  for (const auto& [table, part] : parts) {
    BOOST_OUTCOME_TRYV(Step(part, 1));
  }
  return {};
}

Status Settler::Halves(const Batch& batch, int depth) {
  const auto middle = batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2);
  BOOST_OUTCOME_TRYV(Step(Batch(batch.begin(), middle), depth + 1));
  return Step(Batch(middle, batch.end()), depth + 1);
}

Batch Pointers(std::span<const Settlement> batch) {
  Batch pointers;
  pointers.reserve(batch.size());
  for (const Settlement& one : batch) pointers.push_back(&one);
  return pointers;
}

}  // namespace

Result<SettleStep> RunSettle(Session& session, const sql::Claimer& claimer, const Batch& batch) {
  for (const SettleGroup& group : GroupSettlements(batch)) {
    BOOST_OUTCOME_TRY(moved, MoveGroup(session, claimer, group));
    if (!moved) return SettleStep::Refused;
  }
  BOOST_OUTCOME_TRYV(sql::EndKeys(session, batch));
  if (const std::string attempts = AttemptsText(claimer.name, batch); !attempts.empty()) {
    BOOST_OUTCOME_TRYV(session.Write(attempts));
  }
  // The counters come last: sessions of one worker may share their rows.
  sql::CounterSums sums;
  for (const Settlement* one : batch) sums.Add(*one);
  BOOST_OUTCOME_TRYV(sums.Write(session, sql::CounterOwner(claimer.name, session.number())));
  return SettleStep::Done;
}

Result<std::vector<bool>> ReadRunning(Session& session, std::uint64_t claimer, const Batch& batch,
                                      bool locking) {
  std::map<std::pair<TaskKey, std::uint32_t>, bool> running;
  for (const SettleGroup& group : GroupSettlements(batch)) {
    BOOST_OUTCOME_TRYV(session.Query("SELECT id" +
                                         RunningRows(group.table, WithIdsOf(group), claimer, group.attempt) +
                                         (locking ? " LOCK IN SHARE MODE" : ""),
                                     [&](const Row& row) {
                                       running[{{group.table, row.Number(1)}, group.attempt}] = true;
                                     }));
  }
  std::vector<bool> answer;
  for (const Settlement* one : batch) answer.push_back(running.contains({one->key, one->attempt}));
  return answer;
}

Result<SettleReport> MysqlTaskStore::Settle(const std::string& incarnation,
                                            std::span<const Settlement> batch) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  auto report = Settler(session_, claimer, batch).Run(Pointers(batch), busy_);
  for (std::size_t i = 0; report && i < batch.size(); ++i) {
    if (report->verdicts[i] == SettleVerdict::Busy) {
      busy_.insert(batch[i].key);
    } else if (!busy_.empty()) {
      busy_.erase(batch[i].key);
    }
  }
  // What another session of the worker has settled since stays here: it is a hint, and may go with the
  // others.
  if (busy_.size() > kMostBusy) busy_.clear();
  return report;
}

Result<std::vector<bool>> MysqlTaskStore::StillRunning(const std::string& incarnation,
                                                       std::span<const Settlement> batch) {
  // A new connection, since the old one may be behind. A COMMIT whose connection was cut may still be under
  // way at the server: a plain read would not see it, a locking one waits for it.
  session_.Drop();
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  auto running = ReadRunning(session_, claimer.number, Pointers(batch), true);
  if (running || running.error().code != ErrorCode::Conflict) return running;
  // Some row is locked, by that COMMIT or by a stranger. As the tables show them they still run: settled
  // again they are refused if the COMMIT comes through after all, and are busy while the lock stands.
  return ReadRunning(session_, claimer.number, Pointers(batch), false);
}

}  // namespace millrace::engine::mysql

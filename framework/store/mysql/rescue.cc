#include <algorithm>
#include <map>

#include "framework/base/utf8.h"
#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/task_store.h"

namespace millrace::engine::mysql {
namespace {

// The keys of tasks that a dead worker had in its hands: nobody can tell whether their handlers were called.
std::string MarkInDoubtText(const TableName& table, const std::string& ids) {
  return "UPDATE " + table +
         " t FORCE INDEX (PRIMARY) STRAIGHT_JOIN tasks_keys k FORCE INDEX (PRIMARY) ON k.handler=t.handler "
         "AND k.biz_key=t.biz_key SET k.keep_until='9999-12-31' WHERE t.id IN (" +
         ids + ") AND k.task_id=t.id AND k.task_table=" + Quote(table) +
         " AND k.keep_until IS NULL AND k.ended_at IS NULL";
}

std::string ProgressText(const TableName& table, std::uint64_t claimer, std::uint32_t attempt,
                         const std::map<std::uint64_t, std::string>& texts) {
  std::vector<std::uint64_t> ids;
  std::string cases;
  for (const auto& [id, text] : texts) {
    ids.push_back(id);
    cases += " WHEN " + std::to_string(id) + " THEN " + Quote(text);
  }
  return "UPDATE " + table + " FORCE INDEX (PRIMARY) SET progress=CASE id" + cases +
         " END, updated_at=UTC_TIMESTAMP(6) WHERE id IN (" + List(ids) +
         ") AND state=2 AND claimed_by=" + std::to_string(claimer) +
         " AND attempt=" + std::to_string(attempt);
}

}  // namespace

Result<std::vector<std::uint64_t>> MysqlTaskStore::Rescue(const RescueRequest& request) {
  std::vector<std::uint64_t> ids = Sorted(request.ids);
  std::vector<std::uint64_t> rescued;
  if (ids.empty()) return rescued;
  BOOST_OUTCOME_TRY(claimer, ByName(request.claimed_by));
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  const std::string number = std::to_string(claimer.number);
  bool alive = false;
  BOOST_OUTCOME_TRYV(session_.Query(
      "SELECT 1 FROM millrace_incarnations WHERE number=" + number + " AND dead=0 LOCK IN SHARE MODE",
      [&](const Row&) { alive = true; }));
  if (alive) return rescued;
  // Rows that a settle or an open transaction of the dead one still holds are left for the next sweep.
  const std::string attempt = std::to_string(request.attempt);
  bool keyed = false;
  BOOST_OUTCOME_TRYV(session_.Query("SELECT id,biz_key IS NOT NULL FROM " + request.table +
                                        " FORCE INDEX (PRIMARY) WHERE id IN (" + List(ids) +
                                        ") AND state=2 AND claimed_by=" + number + " AND attempt=" + attempt +
                                        " ORDER BY id FOR UPDATE SKIP LOCKED",
                                    [&](const Row& row) {
                                      rescued.push_back(row.Number(1));
                                      keyed = keyed || row.Number(2) != 0;
                                    }));
  if (rescued.empty()) return rescued;
  const std::string list = List(rescued);
  if (keyed) {
    BOOST_OUTCOME_TRYV(session_.Write(MarkInDoubtText(request.table, list)));
  }
  BOOST_OUTCOME_TRYV(session_.Write(
      "INSERT INTO millrace_attempts (task_table,task_id,attempt,at,incarnation,kind,error_class,message) "
      "SELECT " +
      Quote(request.table) + ",id,attempt,UTC_TIMESTAMP(6)," + Quote(claimer.name) +
      ",'rescued','lost_worker'," + Quote("the worker " + claimer.name + " is dead; the task waits again") +
      " FROM " + request.table + " FORCE INDEX (PRIMARY) WHERE id IN (" + list +
      ") ON DUPLICATE KEY UPDATE task_id=VALUES(task_id)"));
  BOOST_OUTCOME_TRYV(
      session_.Write("UPDATE " + request.table +
                     " FORCE INDEX (PRIMARY) SET state=0, claimed_by=0, "
                     "run_at=LEAST(run_at,UTC_TIMESTAMP(6)), updated_at=UTC_TIMESTAMP(6) WHERE id IN (" +
                     list + ")"));
  BOOST_OUTCOME_TRYV(session_.Commit());
  return rescued;
}

Result<std::vector<TaskKey>> MysqlTaskStore::Cancelled(const std::string& incarnation,
                                                       std::span<const TaskKey> running) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  std::map<TableName, std::vector<std::uint64_t>> tables;
  for (const TaskKey& key : running) tables[key.table].push_back(key.id);
  std::vector<TaskKey> cancelled;
  for (const auto& [table, ids] : tables) {
    for (std::size_t at = 0; at < ids.size(); at += kMaxBatchRows) {
      const auto part = std::span(ids).subspan(at, std::min(kMaxBatchRows, ids.size() - at));
      BOOST_OUTCOME_TRYV(session_.Query(
          "SELECT id FROM " + table + " FORCE INDEX (PRIMARY) WHERE id IN (" + List(Sorted(part)) +
              ") AND state=2 AND cancel<>0 AND claimed_by=" + std::to_string(claimer.number),
          [&, &table = table](const Row& row) {
            cancelled.push_back({table, row.Number(1)});
          }));
    }
  }
  return cancelled;
}

Result<std::vector<TaskKey>> MysqlTaskStore::SaveProgress(const std::string& incarnation,
                                                          std::span<const TaskProgress> progress) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  std::map<std::pair<TableName, std::uint32_t>, ProgressTexts> groups;
  for (const TaskProgress& one : progress) {
    // A text that the database refuses would keep the others' away.
    if (!IsUtf8(one.progress)) continue;
    groups[{one.key.table, one.attempt}][one.key.id] = Shorten(one.progress);
  }
  std::vector<TaskKey> locked;
  for (auto& [group, texts] : groups) {
    // A text takes up to 8 KiB where each of its bytes is escaped: a batch of them fits into 16 MiB, the
    // servers' smallest default of max_allowed_packet.
    while (!texts.empty()) {
      ProgressTexts part;
      while (!texts.empty() && part.size() < kMaxBatchRows) part.insert(texts.extract(texts.begin()));
      BOOST_OUTCOME_TRY(left_out, SavePart(group.first, claimer, group.second, std::move(part)));
      locked.insert(locked.end(), left_out.begin(), left_out.end());
    }
  }
  return locked;
}

Result<std::vector<TaskKey>> MysqlTaskStore::SavePart(const TableName& table, const sql::Claimer& claimer,
                                                      std::uint32_t attempt, ProgressTexts texts) {
  std::vector<TaskKey> locked;
  auto saved = session_.Write(ProgressText(table, claimer.number, attempt, texts));
  if (!saved && saved.error().code == ErrorCode::Conflict) {
    // Somebody holds one of them (a person's edit, a rescue that waits): the others need not wait for it.
    BOOST_OUTCOME_TRY(left_out, LeaveOutLocked(table, texts));
    locked = std::move(left_out);
    if (texts.empty()) return locked;
    saved = session_.Write(ProgressText(table, claimer.number, attempt, texts));
  }
  if (!saved) return Fail(saved.error());
  return locked;
}

Result<std::vector<TaskKey>> MysqlTaskStore::LeaveOutLocked(const TableName& table, ProgressTexts& texts) {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, text] : texts) ids.push_back(id);
  BOOST_OUTCOME_TRY(free, FreeIds(table, ids));
  std::vector<TaskKey> locked;
  for (const std::uint64_t id : ids) {
    if (std::binary_search(free.begin(), free.end(), id)) continue;
    locked.push_back({table, id});
    texts.erase(id);
  }
  return locked;
}

}  // namespace millrace::engine::mysql

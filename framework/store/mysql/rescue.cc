#include <map>

#include "framework/base/utf8.h"
#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/mysql_task_store.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::mysql {

Result<std::vector<std::uint64_t>> MysqlTaskStore::Rescue(const RescueRequest& request) {
  std::vector<std::uint64_t> ids = Sorted(request.ids);
  std::vector<std::uint64_t> rescued;
  if (ids.empty()) return rescued;
  Transaction transaction(session_);
  if (Status begun = session_.Begin(); !begun) return Fail(begun.error());
  const std::string claimer = Quote(request.claimed_by);
  bool alive = false;
  Status read = session_.Query(
      "SELECT 1 FROM millrace_incarnations WHERE id=" + claimer + " AND dead=0 LOCK IN SHARE MODE",
      [&](const Row&) { alive = true; });
  if (!read) return Fail(read.error());
  if (alive) return rescued;
  // Rows that a settle or an open transaction of the dead one still holds are left for the next sweep.
  const std::string attempt = std::to_string(request.attempt);
  read = session_.Query("SELECT id FROM " + request.table + " FORCE INDEX (PRIMARY) WHERE id IN (" +
                            List(ids) + ") AND state=2 AND COALESCE(claimed_by,'')=" + claimer +
                            " AND attempt=" + attempt + " ORDER BY id FOR UPDATE SKIP LOCKED",
                        [&](const Row& row) { rescued.push_back(row.Number(1)); });
  if (!read) return Fail(read.error());
  if (rescued.empty()) return rescued;
  const std::string list = List(rescued);
  auto noted = session_.Write(
      "INSERT INTO millrace_attempts (task_table,task_id,attempt,at,incarnation,kind,error_class,message) "
      "SELECT " +
      Quote(request.table) + ",id,attempt,UTC_TIMESTAMP(6)," + claimer + ",'rescued','lost_worker'," +
      Quote("the worker " + request.claimed_by + " is dead; the task waits again") + " FROM " +
      request.table + " FORCE INDEX (PRIMARY) WHERE id IN (" + list +
      ") ON DUPLICATE KEY UPDATE task_id=VALUES(task_id)");
  if (!noted) return Fail(noted.error());
  auto waiting =
      session_.Write("UPDATE " + request.table +
                     " FORCE INDEX (PRIMARY) SET state=0, claimed_by=NULL, claimed_at=NULL, "
                     "run_at=LEAST(run_at,UTC_TIMESTAMP(6)), updated_at=UTC_TIMESTAMP(6) WHERE id IN (" +
                     list + ")");
  if (!waiting) return Fail(waiting.error());
  if (Status done = session_.Commit(); !done) return Fail(done.error());
  return rescued;
}

Result<std::vector<TaskKey>> MysqlTaskStore::Attend(const std::string& incarnation,
                                                    std::span<const TaskKey> running,
                                                    std::span<const TaskProgress> progress) {
  if (Status saved = SaveProgress(incarnation, progress); !saved) return Fail(saved.error());
  std::map<std::string, std::vector<std::uint64_t>> tables;
  for (const TaskKey& key : running) tables[key.table].push_back(key.id);
  std::vector<TaskKey> cancelled;
  for (const auto& [table, ids] : tables) {
    for (std::size_t at = 0; at < ids.size(); at += kMaxBatchRows) {
      const auto part = std::span(ids).subspan(at, std::min(kMaxBatchRows, ids.size() - at));
      Status read = session_.Query("SELECT id FROM " + table + " FORCE INDEX (PRIMARY) WHERE id IN (" +
                                       List(Sorted(part)) +
                                       ") AND state=2 AND cancel<>0 AND claimed_by=" + Quote(incarnation),
                                   [&, &table = table](const Row& row) {
                                     cancelled.push_back({table, row.Number(1)});
                                   });
      if (!read) return Fail(read.error());
    }
  }
  return cancelled;
}

Status MysqlTaskStore::SaveProgress(const std::string& incarnation, std::span<const TaskProgress> progress) {
  std::map<std::pair<std::string, std::uint32_t>, std::map<std::uint64_t, std::string>> groups;
  for (const TaskProgress& one : progress) {
    // A text that the database refuses would keep the others', and the answer, away.
    if (!IsUtf8(one.progress)) continue;
    groups[{one.key.table, one.attempt}][one.key.id] = Shorten(one.progress);
  }
  for (const auto& [group, texts] : groups) {
    std::vector<std::uint64_t> ids;
    std::string cases;
    for (const auto& [id, text] : texts) {
      ids.push_back(id);
      cases += " WHEN " + std::to_string(id) + " THEN " + Quote(text);
    }
    auto saved = session_.Write("UPDATE " + group.first + " FORCE INDEX (PRIMARY) SET progress=CASE id" +
                                cases + " END, updated_at=UTC_TIMESTAMP(6) WHERE id IN (" + List(ids) +
                                ") AND state=2 AND claimed_by=" + Quote(incarnation) +
                                " AND attempt=" + std::to_string(group.second));
    if (!saved) return Fail(saved.error());
  }
  return {};
}

}  // namespace millrace::mysql

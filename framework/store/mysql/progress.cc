#include <algorithm>
#include <map>

#include "framework/base/utf8.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/task_store.h"

namespace millrace::engine::mysql {
namespace {

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

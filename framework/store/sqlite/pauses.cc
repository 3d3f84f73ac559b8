#include "framework/store/sqlite/rows.h"
#include "framework/store/sqlite/sqlite_task_desk.h"

namespace millrace::engine {

Result<bool> SqliteTaskDesk::SetPause(const std::string& what, const std::string& actor, bool on) {
  BOOST_OUTCOME_TRYV(CheckPauseName(what));
  return db_.Write([&]() -> Result<bool> {
    const std::string now = TimeText(StoreNow());
    BOOST_OUTCOME_TRY(
        changed, on ? db_.Run("INSERT OR IGNORE INTO millrace_pauses (what, actor, since) VALUES (?,?,?)",
                              what, actor, now)
                    : db_.Run("DELETE FROM millrace_pauses WHERE what=?", what));
    if (changed == 0) return false;
    BOOST_OUTCOME_TRYV(
        db_.Run("INSERT INTO millrace_audit (at, actor, action, subject, detail) VALUES (?,?,?,?,'')", now,
                actor, on ? "pause" : "resume", what));
    return true;
  });
}

Result<std::vector<PauseRecord>> SqliteTaskDesk::Pauses() {
  auto rows = db_.Select("SELECT what, actor, since FROM millrace_pauses ORDER BY what");
  std::vector<PauseRecord> pauses;
  while (rows.Next()) pauses.push_back({rows.Text(0), rows.Text(1), TimeOf(rows.Text(2))});
  if (rows.error()) return Fail(*rows.error());
  return pauses;
}

}  // namespace millrace::engine

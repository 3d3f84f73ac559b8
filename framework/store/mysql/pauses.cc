#include "framework/store/mysql/mysql_desk.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {

Result<bool> MysqlTaskDesk::SetPause(const std::string& what, const std::string& actor, bool on) {
  if (Status named = CheckPauseName(what); !named) return Fail(named.error());
  const std::string who = Quote(Shorten(actor, 190));
  Transaction transaction(session_);
  if (Status begun = session_.Begin(); !begun) return Fail(begun.error());
  bool was = false;
  Status read = session_.Query("SELECT 1 FROM millrace_pauses WHERE what=" + Quote(what) + " FOR UPDATE",
                               [&](const Row&) { was = true; });
  if (!read) return Fail(read.error());
  if (was == on) return false;
  auto set = session_.Write(on ? "INSERT INTO millrace_pauses (what,actor) VALUES (" + Quote(what) + "," +
                                     who + ") ON DUPLICATE KEY UPDATE what=VALUES(what)"
                               : "DELETE FROM millrace_pauses WHERE what=" + Quote(what));
  if (!set) return Fail(set.error());
  auto noted = session_.Write("INSERT INTO millrace_audit (actor,action,subject) VALUES (" + who + "," +
                              (on ? "'pause'" : "'resume'") + "," + Quote(what) + ")");
  if (!noted) return Fail(noted.error());
  if (Status done = session_.Commit(); !done) return Fail(done.error());
  return true;
}

Result<std::vector<PauseRecord>> MysqlTaskDesk::Pauses() {
  std::vector<PauseRecord> pauses;
  Status read =
      session_.Query("SELECT what,actor,since FROM millrace_pauses ORDER BY what", [&](const Row& row) {
        pauses.push_back({row.Text(1), row.Text(2), row.Time(3).value_or(WallTime{})});
      });
  if (!read) return Fail(read.error());
  return pauses;
}

}  // namespace millrace::engine::mysql

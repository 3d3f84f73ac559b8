#include "framework/store/mysql/mysql_desk.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {

Result<bool> MysqlTaskDesk::SetPause(const std::string& what, const std::string& actor, bool on) {
  BOOST_OUTCOME_TRYV(CheckPauseName(what));
  const std::string who = Quote(Shorten(actor, 190));
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  bool was = false;
  BOOST_OUTCOME_TRYV(session_.Query("SELECT 1 FROM millrace_pauses WHERE what=" + Quote(what) + " FOR UPDATE",
                                    [&](const Row&) { was = true; }));
  if (was == on) return false;
  BOOST_OUTCOME_TRYV(session_.Write(on ? "INSERT INTO millrace_pauses (what,actor) VALUES (" + Quote(what) +
                                             "," + who + ") ON DUPLICATE KEY UPDATE what=VALUES(what)"
                                       : "DELETE FROM millrace_pauses WHERE what=" + Quote(what)));
  BOOST_OUTCOME_TRYV(session_.Write("INSERT INTO millrace_audit (actor,action,subject) VALUES (" + who + "," +
                                    (on ? "'pause'" : "'resume'") + "," + Quote(what) + ")"));
  BOOST_OUTCOME_TRYV(session_.Commit());
  return true;
}

Result<std::vector<PauseRecord>> MysqlTaskDesk::Pauses() {
  std::vector<PauseRecord> pauses;
  BOOST_OUTCOME_TRYV(
      session_.Query("SELECT what,actor,since FROM millrace_pauses ORDER BY what", [&](const Row& row) {
        pauses.push_back({row.Text(1), row.Text(2), row.Time(3).value_or(WallTime{})});
      }));
  return pauses;
}

}  // namespace millrace::engine::mysql

#include <algorithm>

#include "framework/store/schedule_store.h"
#include "framework/store/sql/sessions.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

constexpr std::uint64_t kRowsLookedAt = 10'000;

// How long before `now` a time was; a clock that was set back makes it 0.
Micros Since(const Row& row, unsigned at, unsigned now) {
  const auto then = row.Time(at);
  const auto present = row.Time(now);
  return then && present ? std::max(Micros(0), *present - *then) : Micros(0);
}

class SqlAlertStore final : public AlertStore {
 public:
  explicit SqlAlertStore(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), db_(*connection_) {}

  Result<std::vector<KeyedTask>> Keyed(const std::string& handler, const std::string& prefix,
                                       std::size_t limit) override;
  Result<ShardEvents> Events(std::uint64_t after) override;
  Status Note(std::string_view kind, const std::string& actor, const std::string& subject,
              const std::string& type) override {
    return NoteEvents(db_, kind, actor, {{subject, type}});
  }
  Result<std::map<std::string, std::uint64_t>> Failed() override;

 private:
  const std::unique_ptr<Connection> connection_;
  Connection& db_;
};

// A range of the primary key, read from its end: others' keys that begin alike hide none of them.
Result<std::vector<KeyedTask>> SqlAlertStore::Keyed(const std::string& handler, const std::string& prefix,
                                                    std::size_t limit) {
  std::vector<KeyedTask> keyed;
  std::string end = prefix;
  if (end.empty()) return Fail(ErrorCode::Invalid, "keys without a prefix were asked for");
  ++end.back();
  BOOST_OUTCOME_TRYV(db_.Query(
      "SELECT handler,biz_key,task_table,task_id,entered_at,$now FROM tasks_keys$primary WHERE handler=? AND "
      "biz_key>=? AND biz_key<? ORDER BY biz_key DESC LIMIT ?",
      {handler, prefix, end, std::uint64_t{limit}}, [&](const Row& row) {
        const auto table = ParseTableName(row.Text(3));
        if (!table) return;
        keyed.push_back({{*table, row.Number(4)}, row.Text(1), row.Text(2), Since(row, 5, 6)});
      }));
  return keyed;
}

// All that are among those rows, since alerts count each kind by itself.
Result<ShardEvents> SqlAlertStore::Events(std::uint64_t after) {
  ShardEvents found;
  BOOST_OUTCOME_TRY(greatest, AuditFloor(db_, 0));
  found.greatest = greatest;
  const std::uint64_t floor = greatest - std::min(greatest, kRowsLookedAt);
  BOOST_OUTCOME_TRYV(db_.Query(
      "SELECT id,action,actor,subject,detail,at,$now FROM millrace_audit$primary WHERE id>? AND "
      "action IN (?,?,?,?,?) ORDER BY id",
      {std::max(after, floor), kSettleRefused, kClaimRefused, kHandlerCrashed, kWorkerLost, kScheduleLapsed},
      [&](const Row& row) {
        found.events.push_back(
            {row.Number(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5), Since(row, 6, 7)});
      }));
  return found;
}

// What people take out of a pool may have been counted where the row of its sums is gone.
Result<std::map<std::string, std::uint64_t>> SqlAlertStore::Failed() {
  std::map<std::string, std::uint64_t> failed;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT handler,SUM(failed) FROM millrace_counters GROUP BY handler", {},
                               [&](const Row& row) {
                                 const std::int64_t sum = row.Signed(2);
                                 if (sum > 0) failed[row.Text(1)] = static_cast<std::uint64_t>(sum);
                               }));
  return failed;
}

}  // namespace

Status NoteEvents(Connection& db, std::string_view action, const std::string& actor,
                  const std::vector<EventSubject>& subjects) {
  if (subjects.empty()) return {};
  std::vector<Value> values;
  for (const EventSubject& subject : subjects)
    values.insert(values.end(), {actor, action, subject.name, subject.detail});
  BOOST_OUTCOME_TRYV(db.Write("INSERT INTO millrace_audit (at,actor,action,subject,detail) VALUES " +
                                  Repeat("($now,?,?,?,?)", subjects.size()),
                              Connection::Values(values)));
  return {};
}

Result<std::uint64_t> AuditFloor(Connection& db, std::uint64_t rows) {
  std::uint64_t last = 0;
  BOOST_OUTCOME_TRYV(db.Query("SELECT COALESCE(MAX(id),0) FROM millrace_audit", {},
                              [&](const Row& row) { last = row.Number(1); }));
  return last > rows ? last - rows : 0;
}

std::unique_ptr<AlertStore> OpenAlerts(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlAlertStore>(std::move(connection));
}

}  // namespace millrace::engine::sql

#include <cstdio>

#include "framework/base/time_text.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/sessions.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

constexpr std::uint64_t kMostFanOuts = 1'000;
constexpr std::uint64_t kEventsLookedAt = 20'000;

std::string EndText(const EndedFanOut& ended) {
  return std::to_string(ended.submitted) + " submitted, " + std::to_string(ended.refused) + " refused" +
         (ended.taken > 0 ? ", " + std::to_string(ended.taken) + " taken already" : "");
}

// Of `schedule/NAME/TIME` and what EndText wrote; false: a person has.
bool ReadEnd(const std::string& subject, const std::string& detail, std::string& schedule,
             EndedFanOut& ended) {
  const std::size_t begin = subject.find('/') + 1;
  const std::size_t end = subject.rfind('/');
  if (begin == 0 || end == std::string::npos || end < begin) return false;
  schedule = subject.substr(begin, end - begin);
  const auto firing = ParseTime(subject.substr(end + 1));
  unsigned long long numbers[3] = {};
  const int read = std::sscanf(detail.c_str(), "%llu submitted, %llu refused, %llu taken", &numbers[0],
                               &numbers[1], &numbers[2]);
  if (!firing || read < 2) return false;
  ended = {*firing, numbers[0], numbers[1], numbers[2]};
  return true;
}

class SqlFanOutStore final : public FanOutStore {
 public:
  explicit SqlFanOutStore(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), db_(*connection_) {}

  Result<std::vector<FanOut>> UnderWay() override;
  Result<FanOutStep> Step(const FanOut& seen, const FanOutPage& page) override;
  Result<std::map<std::string, EndedFanOut>> Ended() override;
  Result<std::uint64_t> Stop(const std::string& schedule, const std::string& actor) override;

 private:
  Result<bool> LockAsSeen(const FanOut& seen);
  Status MoveOn(const FanOut& seen, const FanOutPage& page, std::uint64_t added);
  Status End(const FanOut& seen, const FanOutPage& page, std::uint64_t added);

  const std::unique_ptr<Connection> connection_;
  Connection& db_;
};

Result<std::vector<FanOut>> SqlFanOutStore::UnderWay() {
  std::vector<FanOut> all;
  const Status read = db_.Query(
      "SELECT "
      "schedule,firing,handler,task_table,from_query,key_template,zone,place,submitted,refused,started_at "
      "FROM "
      "millrace_fan_outs ORDER BY ROW_NUMBER() OVER (PARTITION BY schedule ORDER BY firing),firing,schedule "
      "LIMIT ?",
      {kMostFanOuts}, [&](const Row& row) {
        const auto firing = row.Time(2);
        const auto table = ParseTableName(row.Text(4));
        if (!firing || !table) return;
        FanOut one{.schedule = row.Text(1),
                   .firing = *firing,
                   .handler = row.Text(3),
                   .table = *table,
                   .query = row.Text(5),
                   .key = row.Text(6),
                   .zone = row.Text(7),
                   .submitted = row.Number(9),
                   .refused = row.Number(10),
                   .begun = row.Time(11).value_or(WallTime())};
        if (!row.Null(8)) one.place = row.Text(8);
        all.push_back(std::move(one));
      });
  if (!read && db_.refusal() != Refusal::NoTable) return Fail(read.error());
  return all;
}

// Two who have read the same page meet here: the second waits, and finds it done.
Result<bool> SqlFanOutStore::LockAsSeen(const FanOut& seen) {
  bool same = false;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT place FROM millrace_fan_outs$primary WHERE schedule=? AND firing=?$lock",
                {seen.schedule, TimeText(seen.firing)},
                [&](const Row& row) { same = row.Null(1) ? !seen.place : seen.place == row.Text(1); }));
  return same;
}

Status SqlFanOutStore::MoveOn(const FanOut& seen, const FanOutPage& page, std::uint64_t added) {
  BOOST_OUTCOME_TRYV(
      db_.Write("UPDATE millrace_fan_outs SET place=?,submitted=submitted+?,refused=refused+? WHERE "
                "schedule=? AND firing=?",
                {page.place ? Value(*page.place) : Value(nullptr), added, page.refused, seen.schedule,
                 TimeText(seen.firing)}));
  return {};
}

Status SqlFanOutStore::End(const FanOut& seen, const FanOutPage& page, std::uint64_t added) {
  BOOST_OUTCOME_TRYV(db_.Write("DELETE FROM millrace_fan_outs WHERE schedule=? AND firing=?",
                               {seen.schedule, TimeText(seen.firing)}));
  const EndedFanOut ended{seen.firing, seen.submitted + added, seen.refused + page.refused,
                          page.taken + page.tasks.size() - added};
  return NoteEvents(db_, kFanOutEnded, "",
                    {{"schedule/" + seen.schedule + "/" + FormatTime(seen.firing), EndText(ended)}});
}

Result<FanOutStep> SqlFanOutStore::Step(const FanOut& seen, const FanOutPage& page) {
  BOOST_OUTCOME_TRYV(CheckBatch(page.tasks.size()));
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(same, LockAsSeen(seen));
  if (!same) return FanOutStep{.overtaken = true};
  FanOutStep step;
  if (!page.tasks.empty()) {
    BOOST_OUTCOME_TRY(report, Submit(db_, seen.table, page.tasks));
    step.added = report.added;
  }
  BOOST_OUTCOME_TRYV(page.last ? End(seen, page, step.added) : MoveOn(seen, page, step.added));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return step;
}

Result<std::map<std::string, EndedFanOut>> SqlFanOutStore::Ended() {
  std::map<std::string, EndedFanOut> all;
  BOOST_OUTCOME_TRY(floor, AuditFloor(db_, kEventsLookedAt));
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT subject,detail FROM millrace_audit$primary WHERE id>? AND action=? ORDER BY id",
                {floor, kFanOutEnded}, [&](const Row& row) {
                  std::string schedule;
                  EndedFanOut ended;
                  if (ReadEnd(row.Text(1), row.Text(2), schedule, ended)) all[schedule] = ended;
                }));
  return all;
}

// Who is at a page of one of them finds no row any more, and takes its page back.
Result<std::uint64_t> SqlFanOutStore::Stop(const std::string& schedule, const std::string& actor) {
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(stopped, db_.Write("DELETE FROM millrace_fan_outs WHERE schedule=?", {schedule}));
  if (stopped == 0) return std::uint64_t{0};
  BOOST_OUTCOME_TRYV(NoteEvents(db_, kFanOutsStopped, ActorText(actor),
                                {{"schedule/" + schedule, std::to_string(stopped) + " under way"}}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return static_cast<std::uint64_t>(stopped);
}

}  // namespace

Status EnterFanOut(Connection& db, const FanOut& fan_out) {
  BOOST_OUTCOME_TRYV(db.Write(
      "$enter INTO millrace_fan_outs (schedule,firing,handler,task_table,from_query,key_template,zone,"
      "submitted,refused,started_at) VALUES (?,?,?,?,?,?,?,0,0,$now)",
      {fan_out.schedule, TimeText(fan_out.firing), fan_out.handler, fan_out.table, fan_out.query, fan_out.key,
       fan_out.zone}));
  return {};
}

Result<bool> IsFanningOut(Connection& db, const std::string& schedule) {
  bool is = false;
  BOOST_OUTCOME_TRYV(db.Query("SELECT 1 FROM millrace_fan_outs WHERE schedule=? LIMIT 1", {schedule},
                              [&](const Row&) { is = true; }));
  return is;
}

std::unique_ptr<FanOutStore> OpenFanOuts(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlFanOutStore>(std::move(connection));
}

}  // namespace millrace::engine::sql

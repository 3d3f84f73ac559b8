#include "framework/store/sql/acts.h"

#include <algorithm>
#include <charconv>

#include "framework/base/utf8.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/sessions.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

constexpr std::uint64_t kActsLookedAt = 20'000;  // rows of the audit
constexpr std::size_t kActsRead = 20;            // of many tasks, whose ids are looked through
constexpr const char* kIdsBegin = "; ids ";

Status CheckPauseName(const std::string& what) {
  if (!what.empty() && what.size() <= kMaxPauseName && IsUtf8(what)) return {};
  return Fail(ErrorCode::Invalid, "'" + Shorten(what, 60) + "' can't be paused: a name has 1 to " +
                                      std::to_string(kMaxPauseName) + " bytes of UTF-8");
}

// How many, what they were, what was set, what chose them, and their ids.
std::string DetailOfMany(const Author& author, const std::string& change,
                         const std::map<std::uint64_t, TaskBefore>& tasks) {
  std::map<TaskState, std::size_t> states;
  std::map<std::string, std::size_t> values;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, before] : tasks) {
    ++states[before.state];
    if (!before.values.empty()) ++values[before.values];
    ids.push_back(id);
  }
  std::string text = std::to_string(tasks.size()) + " tasks; were";
  for (const auto& [state, count] : states)
    text += std::string(" ") + ToString(state) + " (" + std::to_string(count) + ")";
  std::size_t told = 0;
  for (const auto& [value, count] : values) {
    if (told++ == 3) break;
    text += ", " + value + " (" + std::to_string(count) + ")";
  }
  if (values.size() > 3) text += ", and " + std::to_string(values.size() - 3) + " others";
  if (!change.empty()) text += "; now " + change;
  return text + "; " + Shorten(author.act, 1000) + kIdsBegin + IdRanges(ids);
}

// The first and last of `tasks/3-17` or `3-17,40`.
bool ReadRange(std::string_view text, std::uint64_t& first, std::uint64_t& last) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, first);
  if (error != std::errc()) return false;
  last = first;
  if (stop == end) return true;
  if (*stop != '-') return false;
  const auto [stopped, wrong] = std::from_chars(stop + 1, end, last);
  return wrong == std::errc() && stopped == end;
}

// Whether the act of many, of this detail, was one on the task.
bool HasId(std::string_view detail, std::uint64_t id) {
  const auto begin = detail.rfind(kIdsBegin);
  if (begin == std::string_view::npos) return false;
  std::string_view rest = detail.substr(begin + std::string_view(kIdsBegin).size());
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    if (ReadRange(rest.substr(0, comma), first, last) && first <= id && id <= last) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::string ActorText(const std::string& actor) { return Shorten(actor, 190); }

std::string IdRanges(std::span<const std::uint64_t> ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t end = i + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(ids[i]);
    if (end - i > 1) text += "-" + std::to_string(ids[end - 1]);
    i = end;
  }
  return text;
}

Status NoteAct(Connection& db, const Author& author, TaskAction action, const TableName& table,
               const std::map<std::uint64_t, TaskBefore>& tasks, const std::string& change) {
  const std::string who = ActorText(author.name);
  if (!author.act.empty()) {
    const std::string subject =
        table + "/" + std::to_string(tasks.begin()->first) + "-" + std::to_string(tasks.rbegin()->first);
    const std::string detail = DetailOfMany(author, change, tasks);
    return NoteEvents(db, ToString(action), who, {{subject, detail}});
  }
  std::vector<EventSubject> subjects;
  for (const auto& [id, before] : tasks) {
    subjects.push_back(
        {ToString(TaskKey{table, id}), std::string("was ") + ToString(before.state) +
                                           (before.values.empty() ? "" : ", " + before.values) +
                                           (change.empty() ? "" : "; now " + change)});
  }
  return NoteEvents(db, ToString(action), who, subjects);
}

Result<std::optional<ActRecord>> SqlTaskOperations::LastAct(TaskAction action, const TaskKey& key) {
  BOOST_OUTCOME_TRY(floor, AuditFloor(db_, kActsLookedAt));
  const std::string alone = ToString(key);
  const std::string begin = key.table + "/";
  std::vector<std::uint64_t> rows;  // that may be acts on it, the last one first
  BOOST_OUTCOME_TRYV(db_.Query(
      "SELECT id,subject FROM millrace_audit$primary WHERE id>? AND action=? ORDER BY id DESC",
      {floor, ToString(action)}, [&](const Row& row) {
        const std::string subject = row.Text(2);
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        const bool covers = subject.starts_with(begin) &&
                            ReadRange(std::string_view(subject).substr(begin.size()), first, last) &&
                            first <= key.id && key.id <= last;
        if (covers && rows.size() < kActsRead) rows.push_back(row.Number(1));
      }));
  std::optional<ActRecord> found;
  for (const std::uint64_t id : rows) {
    BOOST_OUTCOME_TRYV(
        db_.Query("SELECT at,actor,subject,detail FROM millrace_audit WHERE id=?", {id}, [&](const Row& row) {
          if (row.Text(3) != alone && !HasId(row.Text(4), key.id)) return;
          found = {row.Time(1).value_or(WallTime{}), row.Text(2), row.Text(4)};
        }));
    if (found) break;
  }
  return found;
}

Result<bool> SqlTaskOperations::SetPause(const std::string& what, const std::string& actor, bool on,
                                         const std::string& reason) {
  BOOST_OUTCOME_TRYV(CheckPauseName(what));
  const std::string who = ActorText(actor);
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  bool was = false;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT 1 FROM millrace_pauses WHERE what=?$lock", {what}, [&](const Row&) { was = true; }));
  if (was == on) return false;
  if (on) {
    BOOST_OUTCOME_TRYV(db_.Write(
        "INSERT INTO millrace_pauses (what,actor,since) VALUES (?,?,$now)$upsert what=$brought(what)",
        {what, who}));
  } else {
    BOOST_OUTCOME_TRYV(db_.Write("DELETE FROM millrace_pauses WHERE what=?", {what}));
  }
  BOOST_OUTCOME_TRYV(NoteEvents(db_, on ? "pause" : "resume", who, {{what, Shorten(reason, kMaxReason)}}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return true;
}

Result<std::vector<PauseRecord>> SqlTaskOperations::Pauses() {
  std::vector<PauseRecord> pauses;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT what,actor,since FROM millrace_pauses ORDER BY what", {}, [&](const Row& row) {
        pauses.push_back({row.Text(1), row.Text(2), row.Time(3).value_or(WallTime{})});
      }));
  if (pauses.empty()) return pauses;
  BOOST_OUTCOME_TRY(floor, AuditFloor(db_, kActsLookedAt));
  // The last one of a name says it: without a reason, that there is none.
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT subject,detail FROM millrace_audit$primary WHERE id>? AND action='pause' ORDER BY id",
                {floor}, [&](const Row& row) {
                  for (PauseRecord& pause : pauses) {
                    if (pause.what == row.Text(1)) pause.reason = row.Text(2);
                  }
                }));
  return pauses;
}

}  // namespace millrace::engine::sql

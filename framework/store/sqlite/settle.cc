#include "framework/base/utf8.h"
#include "framework/store/sql/counters.h"
#include "framework/store/sql/keys.h"
#include "framework/store/sqlite/task_store.h"

namespace millrace::engine::sqlite {
namespace {

// What moves unchanged from the running pool to an ended one, behind id.
constexpr char kMoved[] =
    "slice, handler, priority, run_at, params, biz_key, batch, attempt, crashes, claimed_at,"
    " created_at, expires_at";

// `text` cut to `limit` bytes; only a longer one is copied, into `room`.
std::string_view Cut(const std::string& text, std::string& room, std::size_t limit = kMaxText) {
  if (text.size() <= limit) return text;
  return room = Shorten(text, limit);
}

constexpr char kEndKey[] =
    "UPDATE tasks_keys SET ended_at=?, keep_until=? "
    "WHERE handler=? AND biz_key=? AND task_table=? AND task_id=?";
constexpr char kStartKey[] =
    "UPDATE tasks_keys SET keep_until='9999-12-31 00:00:00.000000' "
    "WHERE handler=? AND biz_key=? AND task_table=? AND task_id=? AND keep_until IS NULL AND ended_at IS "
    "NULL";
constexpr char kFreeKey[] =
    "DELETE FROM tasks_keys "
    "WHERE handler=? AND biz_key=? AND task_table=? AND task_id=? AND keep_until IS NULL AND ended_at IS "
    "NULL";

class Settler {
 public:
  Settler(Session& db, const sql::Claimer& claimer)
      : db_(db), claimer_(claimer), now_(db.Now()), now_text_(TimeText(now_)) {}

  // The number of rows ended: 1, or 0 where the attempt is not ours. One statement, which leaves nothing
  // behind where the database refuses the row's data: all that a constraint can refuse is written by it. So a
  // batch needs no savepoint for each row, which would cost a copy of every page that the row changes.
  Result<std::int64_t> End(const Settlement& settlement) {
    if (StaysHot(settlement.to)) return SetWaiting(settlement);
    return LeavesNoRow(settlement) ? Delete(settlement) : Copy(settlement);
  }

  // What follows for a row that has ended.
  Status Follow(const Settlement& settlement) {
    if (!StaysHot(settlement.to) && !LeavesNoRow(settlement)) {
      BOOST_OUTCOME_TRYV(Delete(settlement));
    }
    sums_.Add(settlement);
    BOOST_OUTCOME_TRYV(NoteFailure(settlement));
    return SetKey(settlement);
  }

  Status WriteCounters() { return sums_.Write(db_, claimer_.name); }

 private:
  static sql::Value Progress(const Settlement& settlement) {
    return settlement.progress ? sql::Value(*settlement.progress) : sql::Value(nullptr);
  }

  Result<std::int64_t> Copy(const Settlement& settlement) {
    const bool failed = settlement.to == Settlement::To::Failed;
    const bool succeeded = settlement.to == Settlement::To::Succeeded;
    const TableName& table = settlement.key.table;
    const std::string& sql = Text(table, settlement.to, [&] { return CopySql(table, settlement.to); });
    const int state = static_cast<int>(StateAfter(settlement.to));
    // The last column is the error's class in the failed pool, the result in the other.
    std::string text;
    std::string error_class;
    const sql::Value said = sql::Value::OrNull(Cut(settlement.text, text));
    const sql::Value reason = succeeded ? sql::Value(nullptr) : said;
    const sql::Value last = failed      ? sql::Value(Cut(settlement.error_class, error_class, kMaxErrorClass))
                            : succeeded ? said
                                        : sql::Value(nullptr);
    return db_.Run(sql, state, int{settlement.failed_attempt}, reason, last, now_text_, claimer_.name,
                   Progress(settlement), settlement.key.id, claimer_.number, settlement.attempt);
  }

  Result<std::int64_t> Delete(const Settlement& settlement) {
    const TableName& table = settlement.key.table;
    return db_.Run(Text(table, Settlement::To::Waiting, [&] { return DeleteSql(table); }), settlement.key.id,
                   claimer_.number, settlement.attempt);
  }

  Result<std::int64_t> SetWaiting(const Settlement& settlement) {
    std::string due;
    if (settlement.run_at) due = TimeText(*settlement.run_at);
    if (settlement.delay) due = TimeText(now_ + *settlement.delay);
    std::string text;
    return db_.Run(WaitSql(settlement.key.table), static_cast<int>(StateAfter(settlement.to)),
                   int{settlement.failed_attempt}, sql::Value::OrNull(due),
                   sql::Value::OrNull(Cut(settlement.text, text)), Progress(settlement), now_text_,
                   settlement.key.id, claimer_.number, settlement.attempt);
  }

  Status NoteFailure(const Settlement& settlement) {
    if (!settlement.failed_attempt) return {};
    std::string text;
    std::string error_class;
    BOOST_OUTCOME_TRYV(
        db_.Run("INSERT INTO millrace_attempts (task_table, task_id, attempt, at, incarnation, kind, "
                "error_class,"
                " message) VALUES (?,?,?,?,?,'failed',?,?) ON CONFLICT DO NOTHING",
                settlement.key.table, settlement.key.id, settlement.attempt, now_text_, claimer_.name,
                Cut(settlement.error_class, error_class, kMaxErrorClass), Cut(settlement.text, text)));
    return {};
  }

  // What sql::EndKeys does with one text for a whole batch (see sql/keys.h), which SQLite would have to
  // prepare anew each time: these stay prepared, and cost a batch of 999 keys a third of it.
  Status SetKey(const Settlement& settlement) {
    const auto fate = sql::FateOf(settlement);
    if (!fate) return {};
    const auto& [handler, key, table, id] =
        std::tie(settlement.handler, settlement.biz_key, settlement.key.table, settlement.key.id);
    if (*fate == sql::KeyFate::Start) {
      BOOST_OUTCOME_TRYV(db_.Run(kStartKey, handler, key, table, id));
      return {};
    }
    if (*fate == sql::KeyFate::Cancel) {
      BOOST_OUTCOME_TRYV(db_.Run(kFreeKey, handler, key, table, id));
    }
    const bool kept_for_ever = *fate == sql::KeyFate::Fail;
    BOOST_OUTCOME_TRYV(db_.Run(kEndKey, now_text_,
                               kept_for_ever ? sql::Value(nullptr) : sql::Value(keep_until_), handler, key,
                               table, id));
    return {};
  }

  // Texts are made once for each table and statement of the batch.
  template <class Make>
  const std::string& Text(const TableName& table, Settlement::To to, Make make) {
    std::string& text = texts_[{table, to}];
    if (text.empty()) text = make();
    return text;
  }

  Session& db_;
  const sql::Claimer& claimer_;
  const WallTime now_;
  const std::string now_text_;
  const std::string keep_until_ = TimeText(now_ + sql::kKeyRetention);
  sql::CounterSums sums_;
  std::map<std::pair<TableName, Settlement::To>, std::string> texts_;
};

std::string Refusal(const Settlement& settlement) {
  if (!IsUtf8(settlement.text)) return "the result or reason is not UTF-8";
  if (!IsUtf8(settlement.error_class)) return "the error's class is not UTF-8";
  return {};
}

}  // namespace

std::string CopySql(const TableName& table, Settlement::To to) {
  const bool failed = to == Settlement::To::Failed;
  return "INSERT INTO " + table + (failed ? "_failed" : "_done") + " (id, state, failures, last_error, " +
         (failed ? "error_class" : "result") + ", finished_at, claimed_by, progress, " + kMoved +
         ") SELECT id, ?, min(failures, 4294967294)+?, coalesce(?, last_error), ?, ?, ?, coalesce(?, "
         "progress), " +
         kMoved + " FROM " + table + kMine;
}

std::string DeleteSql(const TableName& table) { return "DELETE FROM " + table + kMine; }

std::string WaitSql(const TableName& table) {
  return "UPDATE " + table +
         " SET state=?, claimed_by=0, failures=min(failures, 4294967294)+?,"
         " run_at=coalesce(?, run_at), last_error=coalesce(?, last_error), "
         "progress=coalesce(?, progress), updated_at=?" +
         kMine;
}

Result<SettleReport> SettleBatch(Session& db, const sql::Claimer& claimer,
                                 std::span<const Settlement> batch) {
  SettleReport report;
  report.verdicts.resize(batch.size(), SettleVerdict::Refused);
  report.errors.resize(batch.size());
  Settler settler(db, claimer);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    report.errors[i] = Refusal(batch[i]);
    if (!report.errors[i].empty()) {
      report.verdicts[i] = SettleVerdict::Broken;
      continue;
    }
    auto ended = settler.End(batch[i]);
    if (!ended && ended.error().code != ErrorCode::Invalid) return Fail(ended.error());
    if (!ended) {
      report.verdicts[i] = SettleVerdict::Broken;
      report.errors[i] = ended.error().message;
    } else if (*ended == 1) {
      report.verdicts[i] = SettleVerdict::Settled;
      BOOST_OUTCOME_TRYV(settler.Follow(batch[i]));
    }
  }
  BOOST_OUTCOME_TRYV(settler.WriteCounters());
  return report;
}

Result<SettleReport> SqliteTaskStore::Settle(const std::string& incarnation,
                                             std::span<const Settlement> batch) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  return db_.Write([&] { return SettleBatch(db_, claimer, batch); });
}

Result<std::vector<bool>> SqliteTaskStore::StillRunning(const std::string& incarnation,
                                                        std::span<const Settlement> batch) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  return db_.Read([&]() -> Result<std::vector<bool>> {
    std::vector<bool> running;
    for (const Settlement& settlement : batch) {
      auto rows = db_.Select("SELECT 1 FROM " + settlement.key.table + kMine, settlement.key.id,
                             claimer.number, settlement.attempt);
      running.push_back(rows.Next());
      if (rows.error()) return Fail(*rows.error());
    }
    return running;
  });
}

Result<std::vector<TaskKey>> SqliteTaskStore::SaveProgress(const std::string& incarnation,
                                                           std::span<const TaskProgress> progress) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  return db_.Write([&]() -> Result<std::vector<TaskKey>> {
    const std::string now = TimeText(db_.Now());
    for (const TaskProgress& mark : progress) {
      if (!IsUtf8(mark.progress)) continue;
      BOOST_OUTCOME_TRYV(db_.Run("UPDATE " + mark.key.table + " SET progress=?, updated_at=?" + kMine,
                                 Shorten(mark.progress), now, mark.key.id, claimer.number, mark.attempt));
    }
    return std::vector<TaskKey>{};  // nobody locks a single row here
  });
}

}  // namespace millrace::engine::sqlite

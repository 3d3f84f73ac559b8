#include "framework/store/sqlite/session.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "framework/store/sql/dialects.h"

namespace millrace::engine::sqlite {
namespace {

// Handlers bring their own texts; beyond this many the cache starts anew.
constexpr std::size_t kMaxStatements = 300;
// A longer text of the shared statements has a list in it that no other has.
constexpr std::size_t kLongestKept = 1'000;

ErrorCode CodeOf(int result) {
  switch (result & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::Conflict;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
    case SQLITE_NOTADB:
      return ErrorCode::Invalid;
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
      return ErrorCode::Unavailable;
    case SQLITE_INTERRUPT:
      return ErrorCode::Cancelled;
    default:
      return ErrorCode::Internal;
  }
}

constexpr std::string_view kNoTable = "no such table: ";

bool IsOurs(const std::string& table) {
  const std::string name = table.starts_with("main.") ? table.substr(5) : table;
  return name.starts_with("tasks") || name.starts_with("millrace_");
}

Error ErrorOf(sqlite3* db, int result) {
  const ErrorCode code = CodeOf(result);
  std::string message = db == nullptr ? sqlite3_errstr(result) : sqlite3_errmsg(db);
  if (code == ErrorCode::Conflict) message = "another process kept the database locked: " + message;
  if (code == ErrorCode::Cancelled) message = "the statement ran beyond its transaction's time limit";
  if (const auto at = message.find(kNoTable);
      at != std::string::npos && IsOurs(message.substr(at + kNoTable.size())))
    message += ": run `millrace schema apply`";
  return {code, std::move(message)};
}

int Bind(sqlite3_stmt* statement, int index, const sql::Value& value) {
  switch (value.kind) {
    case sql::Value::Kind::Null:
      return sqlite3_bind_null(statement, index);
    case sql::Value::Kind::Integer:
    case sql::Value::Kind::Unsigned:
      return sqlite3_bind_int64(statement, index, value.integer);
    case sql::Value::Kind::Real:
      return sqlite3_bind_double(statement, index, value.real);
    case sql::Value::Kind::Text:
    case sql::Value::Kind::Bytes:
      // A null pointer would bind NULL; the copy outlives the caller's text.
      return sqlite3_bind_text64(statement, index, value.text.data() == nullptr ? "" : value.text.data(),
                                 value.text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  return SQLITE_MISUSE;
}

// With the store's clock, which may be a test's.
constexpr sql::Dialect kDialect = [] {
  sql::Dialect dialect = sql::kSqliteDialect;
  dialect.now = "millrace_now(0)";
  dialect.after = "millrace_now(@)";
  return dialect;
}();

// The time so many microseconds after the store's now, as it stands in the tables.
void TellNow(sqlite3_context* context, int, sqlite3_value** values) {
  const std::string text = TimeText(static_cast<Session*>(sqlite3_user_data(context))->Now() +
                                    Micros(sqlite3_value_int64(values[0])));
  sqlite3_result_text(context, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

std::string WhyNot(int system_error) {
  if (system_error == 0) return "; is it a folder, or in one that is missing or closed to this user?";
  return std::string(" (") + std::strerror(system_error) + ")";
}

int StopAtDeadline(void* deadline) {
  return BootClock::now() >= *static_cast<const BootTime*>(deadline) ? 1 : 0;
}

}  // namespace

Rows::Rows(sqlite3* db, sqlite3_stmt* statement, int* readers)
    : db_(db), statement_(statement), readers_(readers) {
  if (readers_ != nullptr) ++*readers_;
}

Rows::Rows(Rows&& other) noexcept
    : db_(other.db_),
      statement_(std::exchange(other.statement_, nullptr)),
      readers_(other.readers_),
      ended_(other.ended_),
      error_(std::move(other.error_)) {}

Rows::~Rows() {
  if (statement_ == nullptr) return;
  if (readers_ == nullptr) {
    sqlite3_finalize(statement_);
    return;
  }
  --*readers_;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

bool Rows::Next() {
  if (ended_ || statement_ == nullptr) return false;
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  ended_ = true;  // another step would run the statement anew
  if (result != SQLITE_DONE) error_ = ErrorOf(db_, result);
  return false;
}

Status Rows::Finish() {
  while (Next()) {
  }
  if (error_) return Fail(*error_);
  return {};
}

int Rows::Columns() const { return statement_ == nullptr ? 0 : sqlite3_column_count(statement_); }
std::string Rows::ColumnName(int column) const {
  const char* name = sqlite3_column_name(statement_, column);
  return name == nullptr ? "" : name;
}
bool Rows::IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
SqlKind Rows::Kind(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return SqlKind::Exact;
    case SQLITE_FLOAT:
      return SqlKind::Real;
    case SQLITE_TEXT:
      return SqlKind::Text;
    case SQLITE_BLOB:
      return SqlKind::Bytes;
    default:
      return SqlKind::Null;
  }
}
std::int64_t Rows::Integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Rows::Real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Rows::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Session::Session(File& file, bool create) : sql::Connection(kDialect), file_(file), create_(create) {}

Session::~Session() { Close(); }

Status Session::Open() {
  if (db_ != nullptr) return {};
  if (!create_ && access(path().c_str(), F_OK) != 0) {
    return Fail(ErrorCode::Invalid,
                "there is no database file " + path() +
                    ": `millrace run` makes it, or `millrace schema apply --store sqlite:" + path() + "`");
  }
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create_ ? SQLITE_OPEN_CREATE : 0);
  int result = sqlite3_open_v2(path().c_str(), &db_, flags, nullptr);
  if (result == SQLITE_OK) {
    sqlite3_extended_result_codes(db_, 1);
    sqlite3_busy_timeout(db_, static_cast<int>(kWriteWait.count() / 1'000));
    // FULL: a commit that was reported survives a power cut. A page that many batches change is copied out of
    // the log once for all of them: 16 MB of it, and not SQLite's own 4, are a sixth more tasks a second.
    result = sqlite3_exec(db_,
                          "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;"
                          "PRAGMA foreign_keys=ON; PRAGMA cache_size=-16000; PRAGMA wal_autocheckpoint=4000",
                          nullptr, nullptr, nullptr);
  }
  if (result == SQLITE_OK) {
    // Deterministic: asked once for each run of a statement, so that all its rows have the same now.
    result = sqlite3_create_function(db_, "millrace_now", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, this,
                                     TellNow, nullptr, nullptr);
  }
  if (result == SQLITE_OK) return {};
  Error error = ErrorOf(db_, result);
  error.message = "the database file " + path() + " can't be opened: " + error.message;
  if ((result & 0xFF) == SQLITE_READONLY) error.message += "; let this user write it, and its folder";
  if ((result & 0xFF) == SQLITE_CANTOPEN) error.message += WhyNot(sqlite3_system_errno(db_));
  Close();
  return Fail(error);
}

void Session::Close() {
  for (const auto& [text, statement] : statements_) sqlite3_finalize(statement);
  statements_.clear();
  sqlite3_close(db_);
  db_ = nullptr;
  LeaveGate();
}

Result<sqlite3_stmt*> Session::Prepared(std::string_view sql, bool once) {
  BOOST_OUTCOME_TRYV(Open());
  if (const auto found = statements_.find(sql); !once && found != statements_.end()) {
    // A statement that is still being read must not be started again under its reader.
    if (sqlite3_stmt_busy(found->second) == 0) return found->second;
    return Fail(ErrorCode::Internal, "a statement was started while its rows were still read");
  }
  // SQLite calls a statement idle that was read to its end, while its rows will yet reset it.
  if (!once && statements_.size() >= kMaxStatements && readers_ == 0) {
    for (const auto& [text, statement] : statements_) sqlite3_finalize(statement);
    statements_.clear();
  }
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int result = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                        once ? 0 : SQLITE_PREPARE_PERSISTENT, &statement, &rest);
  if (result != SQLITE_OK) return Fail(ErrorOf(db_, result));
  const std::string_view tail = sql.substr(static_cast<std::size_t>(rest - sql.data()));
  if (statement == nullptr || tail.find_first_not_of(" \t\r\n;") != std::string_view::npos) {
    sqlite3_finalize(statement);
    return Fail(ErrorCode::Invalid, statement == nullptr ? "the SQL text holds no statement"
                                                         : "the SQL text holds more than one statement");
  }
  if (!once) statements_.emplace(std::string(sql), statement);
  return statement;
}

Rows Session::Start(std::string_view sql, const sql::Value* values, std::size_t count, bool once) {
  const Result<sqlite3_stmt*> statement = Prepared(sql, once);
  if (!statement) return Rows(statement.error());
  Rows rows(db_, *statement, once ? nullptr : &readers_);
  const auto wanted = static_cast<std::size_t>(sqlite3_bind_parameter_count(*statement));
  if (wanted != count) {
    return Rows({ErrorCode::Invalid, "the statement has " + std::to_string(wanted) + " placeholders, and " +
                                         std::to_string(count) + " values were given"});
  }
  for (std::size_t i = 0; i < count; ++i) {
    const int result = Bind(*statement, static_cast<int>(i) + 1, values[i]);
    if (result != SQLITE_OK) return Rows(ErrorOf(db_, result));
  }
  return rows;
}

Result<std::int64_t> Session::Finish(Rows rows) {
  BOOST_OUTCOME_TRYV(rows.Finish());
  return Changed();
}

Status Session::Script(const std::string& sql) {
  BOOST_OUTCOME_TRYV(Open());
  const int result = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return Fail(ErrorOf(db_, result));
  return {};
}

std::int64_t Session::Changed() const { return sqlite3_changes64(db_); }
std::int64_t Session::TotalChanged() const { return sqlite3_total_changes64(db_); }
bool Session::InTransaction() const { return db_ != nullptr && sqlite3_get_autocommit(db_) == 0; }

sql::Refusal Session::refusal() {
  const int code = db_ == nullptr ? SQLITE_OK : sqlite3_extended_errcode(db_);
  if (code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_UNIQUE)
    return sql::Refusal::Duplicate;
  const bool no_table =
      code == SQLITE_ERROR && std::string_view(sqlite3_errmsg(db_)).starts_with("no such table: ");
  return no_table ? sql::Refusal::NoTable : sql::Refusal::Other;
}

Status Session::RunQuery(const std::string& text, Values values, const OnRow& on_row) {
  Rows rows = Start(text, values.data(), values.size(), text.size() > kLongestKept);
  const PortRow row(rows);
  while (rows.Next()) on_row(row);
  if (rows.error()) return Fail(*rows.error());
  return {};
}

Result<std::uint64_t> Session::RunWrite(const std::string& text, Values values) {
  const auto run = [&]() -> Result<std::uint64_t> {
    BOOST_OUTCOME_TRY(changed, Finish(Start(text, values.data(), values.size(), text.size() > kLongestKept)));
    return static_cast<std::uint64_t>(changed);
  };
  return in_gate_ ? run() : Write(run);
}

Status Session::Begin() {
  if (!file_.gate.Enter(kWriteWait)) {
    return Fail(ErrorCode::Conflict, "another transaction of this process kept the database locked");
  }
  in_gate_ = true;
  auto begun = Run("BEGIN IMMEDIATE");
  if (begun) return {};
  LeaveGate();
  return Fail(begun.error());
}

Status Session::Commit() {
  SetDeadline(std::nullopt);
  auto done = Run("COMMIT");
  if (done) {
    LeaveGate();
    return {};
  }
  Error error = done.error();
  if (error.code == ErrorCode::Unavailable) error.code = ErrorCode::Unknown;
  Rollback();
  return Fail(error);
}

void Session::Rollback() {
  SetDeadline(std::nullopt);
  if (InTransaction() && !Run("ROLLBACK")) Close();
  LeaveGate();
}

void Session::SetDeadline(std::optional<BootTime> deadline) {
  deadline_ = deadline;
  if (db_ == nullptr) return;
  if (deadline_) {
    sqlite3_progress_handler(db_, 1'000, StopAtDeadline, &*deadline_);
  } else {
    sqlite3_progress_handler(db_, 0, nullptr, nullptr);
  }
}

void Session::LeaveGate() {
  if (!std::exchange(in_gate_, false)) return;
  file_.gate.Leave();
}

}  // namespace millrace::engine::sqlite

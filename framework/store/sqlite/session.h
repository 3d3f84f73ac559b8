// A connection to an SQLite file, with its prepared statements and its transactions. The only file of the
// adapter, with its .cc, that speaks SQLite's C interface.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/store/sql/claimers.h"
#include "framework/store/sql/connection.h"
#include "framework/store/sql/text.h"
#include "framework/store/sqlite/write_gate.h"
#include "framework/store/task_transaction.h"
#include "framework/task/table_name.h"

struct sqlite3;
struct sqlite3_stmt;

namespace millrace::engine::sqlite {

// The longest wait for another writer, here or in another process. Longer than a handler's transaction may
// be.
inline constexpr Micros kWriteWait = std::chrono::seconds(6);

using sql::TimeText;
// The reverse; the tables' constraint keeps the form.
inline WallTime TimeOf(std::string_view text) { return sql::ParseTime(text).value_or(WallTime{}); }

// What the sessions of one store share. Thread-safe.
struct File {
  std::string path;
  const Clock* clock = nullptr;  // nullptr: the process's wall clock
  WriteGate gate = {};
  sql::Claimers claimers = {};
};

// The rows of one running statement. Reset when it goes out of scope. An error ends the rows: ask error().
class Rows {
 public:
  // `readers` counts those of statements that are kept; null: the statement goes with its rows.
  Rows(sqlite3* db, sqlite3_stmt* statement, int* readers);
  explicit Rows(Error error) : error_(std::move(error)) {}
  Rows(Rows&& other) noexcept;
  Rows& operator=(Rows&&) = delete;
  ~Rows();

  bool Next();
  const std::optional<Error>& error() const { return error_; }
  // Runs to the end.
  Status Finish();

  int Columns() const;
  std::string ColumnName(int column) const;
  bool IsNull(int column) const;
  SqlKind Kind(int column) const;  // before the value is read as another
  std::int64_t Integer(int column) const;
  double Real(int column) const;
  std::uint64_t Id(int column) const { return static_cast<std::uint64_t>(Integer(column)); }
  // Numbers beyond are taken for the nearest that fits.
  std::uint32_t Number(int column) const {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(Integer(column), 0, 0xFFFF'FFFF));
  }
  std::string Text(int column) const;  // NULL: empty

 private:
  sqlite3* db_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  int* readers_ = nullptr;
  bool ended_ = false;
  std::optional<Error> error_;
};

// The row that `rows` stand on, as what is shared between the databases reads it.
class PortRow final : public sql::Row {
 public:
  explicit PortRow(const Rows& rows) : rows_(rows) {}
  std::string Text(unsigned column) const override { return rows_.Text(At(column)); }
  std::uint64_t Number(unsigned column) const override { return rows_.Id(At(column)); }
  std::int64_t Signed(unsigned column) const override { return rows_.Integer(At(column)); }
  bool Null(unsigned column) const override { return rows_.IsNull(At(column)); }

 private:
  static int At(unsigned column) { return static_cast<int>(column) - 1; }
  const Rows& rows_;
};

// One thread at a time. Opens itself at the first use, and again after it was dropped.
class Session final : public sql::Connection {
 public:
  explicit Session(File& file, bool create = false);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override;

  Status Open();
  void Close();
  const std::string& path() const { return file_.path; }
  const std::string& where() const override { return file_.path; }
  // SQLite has no clock of its own: this is the store's now.
  WallTime Now() const { return file_.clock == nullptr ? SystemClock().WallNow() : file_.clock->WallNow(); }
  sql::Refusal refusal() override;

  // Runs a statement with its values and gives its rows. `?` in order.
  template <class... Values>
  Rows Select(std::string_view sql, const Values&... values) {
    const sql::Value bound[] = {sql::Value(values)..., sql::Value(nullptr)};
    return Start(sql, bound, sizeof...(values));
  }
  // Runs a statement that gives no rows; returns how many rows it changed.
  template <class... Values>
  Result<std::int64_t> Run(std::string_view sql, const Values&... values) {
    const sql::Value bound[] = {sql::Value(values)..., sql::Value(nullptr)};
    return Finish(Start(sql, bound, sizeof...(values)));
  }
  Rows Start(std::string_view sql, const sql::Value* values, std::size_t count, bool once = false);
  // Several statements, without values.
  Status Script(const std::string& sql);

  // How many statements stay prepared.
  std::size_t Kept() const { return statements_.size(); }
  std::int64_t Changed() const;       // by the last statement that writes
  std::int64_t TotalChanged() const;  // since the connection was opened
  // Whether a transaction is open, by SQLite's own word.
  bool InTransaction() const;

  // BEGIN IMMEDIATE behind the gate. Conflict: another writer was not done in kWriteWait. End it by Commit
  // or Rollback.
  Status Begin() override;
  // After an error everything is rolled back. Unknown where the disk failed under it.
  Status Commit() override;
  void Rollback() override;
  // Statements that are still running after this moment are interrupted; nullopt: none.
  void SetDeadline(std::optional<BootTime> deadline);
  // Within a transaction: whoever waits for the gate may evict `tenant` from then on.
  void SetTerm(GateTenant& tenant, BootTime end) { file_.gate.SetTerm(tenant, end); }

  using sql::Connection::Write;
  // Runs `body`, which returns a Result, in a write transaction: commits if it succeeds, else rolls back.
  template <class Body>
  auto Write(Body body) -> decltype(body()) {
    BOOST_OUTCOME_TRYV(Begin());
    auto result = body();
    if (!result) {
      Rollback();
      return result;
    }
    BOOST_OUTCOME_TRYV(Commit());
    return result;
  }
  // Runs `body` with one view of the data.
  template <class Body>
  auto Read(Body body) -> decltype(body()) {
    BOOST_OUTCOME_TRYV(Run("BEGIN"));
    auto result = body();
    Rollback();
    return result;
  }

 private:
  Status RunQuery(const std::string& text, Values values, const OnRow& on_row) override;
  Result<std::uint64_t> RunWrite(const std::string& text, Values values) override;
  Result<sqlite3_stmt*> Prepared(std::string_view sql, bool once);
  Result<std::int64_t> Finish(Rows rows);
  void LeaveGate();

  File& file_;
  const bool create_;
  sqlite3* db_ = nullptr;
  bool in_gate_ = false;
  std::optional<BootTime> deadline_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  int readers_ = 0;
};

}  // namespace millrace::engine::sqlite

// The port to a database: what the cold statements need of a client. Their texts are written once, with `?`
// for each value, and with what a Dialect says where the databases differ; an adapter puts the values in as
// it is safe and cheap there (SQLite binds them, MySQL's are literals: see framework/store/README.md).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/task/table_name.h"
#include "framework/task/task.h"

namespace millrace::engine::sql {

// What differs between the databases in a statement that is otherwise the same on all of them: the text says
// `$word` or `$word(argument)` there. What stands for each word; `@` for its argument.
struct Dialect {
  const char* now;      // the database's clock
  const char* after;    // $after(?): the time that lies so many microseconds after now; may be negative
  const char* primary;  // behind a table's name: search by primary key, whatever the server's figures say
  const char* lock;     // at the end of a SELECT: its rows are locked until the transaction ends
  const char* share;    // the same, for nobody to change them; and they are read as they are by now
  const char* free;     // the same, without those that somebody has locked
  const char* upsert;   // at the end of an INSERT: what to set where the row is there already
  const char* brought;  // $brought(column): behind $upsert, what the INSERT would have put there
  const char* enter;    // INSERT that leaves out the rows that are there already, and does not count them
  const char* tuples;   // in `(a,b) IN ($tuples (?,?),(?,?)$end)`: see InTuples
  const char* end;
  const char* tables;  // those of this database, by `name`
  const char* same;    // = that takes NULL for equal to NULL
  const char* due;     // $due(table), behind the table's name: search by the due index
  const char* held;    // $held(table), likewise: by the index in which held rows stand, where urgency IS NULL
  const char* remove;  // $remove(table): DELETE, searched by primary key; WHERE follows
  // No words:
  const char* inserted;     // SELECT: the id of the last INSERT's first row, and how far apart its ids are
  std::size_t insert_rows;  // at most so many new tasks in one INSERT
};

std::string Expand(const Dialect& dialect, std::string_view text);

// What stands for a `?`. A text is borrowed until its statement has run.
class Value {
 public:
  enum class Kind { Null, Integer, Unsigned, Real, Text, Bytes };
  Value(std::nullptr_t) {}                                            // NOLINT
  Value(std::int64_t value) : kind(Kind::Integer), integer(value) {}  // NOLINT
  Value(std::uint64_t value)                                          // NOLINT
      : kind(Kind::Unsigned), integer(static_cast<std::int64_t>(value)) {}
  Value(std::uint32_t value) : Value(static_cast<std::int64_t>(value)) {}  // NOLINT
  Value(int value) : Value(static_cast<std::int64_t>(value)) {}            // NOLINT
  Value(double value) : kind(Kind::Real), real(value) {}                   // NOLINT
  Value(std::string_view value) : kind(Kind::Text), text(value) {}         // NOLINT
  Value(const std::string& value) : kind(Kind::Text), text(value) {}       // NOLINT
  Value(const char* value) : kind(Kind::Text), text(value) {}              // NOLINT
  Value(const TableName& value) : kind(Kind::Text), text(value) {}         // NOLINT
  // A text that need not be UTF-8.
  static Value Bytes(std::string_view value) {
    Value bytes(value);
    bytes.kind = Kind::Bytes;
    return bytes;
  }
  // NULL where there is no value: how the tables keep an absent key or batch.
  static Value OrNull(std::string_view value) { return value.empty() ? Value(nullptr) : Value(value); }

  Kind kind = Kind::Null;
  std::int64_t integer = 0;  // of Unsigned the same bits
  double real = 0;
  std::string_view text;
};

// One row of an answer, valid within the callback. Columns count from 1. NULL reads as an empty text or 0.
class Row {
 public:
  virtual std::string Text(unsigned column) const = 0;
  virtual std::uint64_t Number(unsigned column) const = 0;
  virtual std::int64_t Signed(unsigned column) const = 0;
  virtual bool Null(unsigned column) const = 0;
  virtual std::optional<WallTime> Time(unsigned column) const;

 protected:
  ~Row() = default;
};

enum class Refusal {
  Other,
  Duplicate,  // another row has the row's key
  NoTable,
};

// One thread at a time. Connects by itself; retries nothing. Errors are those of framework/store/store.h.
class Connection {
 public:
  using OnRow = std::function<void(const Row&)>;
  using Values = std::span<const Value>;
  virtual ~Connection() = default;

  // A statement that answers with rows; locking reads too.
  Status Query(std::string_view text, Values values, const OnRow& on_row);
  Status Query(std::string_view text, std::initializer_list<Value> values, const OnRow& on_row) {
    return Query(text, Values(values.begin(), values.size()), on_row);
  }
  // A statement that changes rows; returns how many it matched. A transaction by itself outside of one.
  Result<std::uint64_t> Write(std::string_view text, Values values);
  Result<std::uint64_t> Write(std::string_view text, std::initializer_list<Value> values = {}) {
    return Write(text, Values(values.begin(), values.size()));
  }

  // A text that is written often is expanded once.
  std::string Expanded(std::string_view text) const { return Expand(dialect_, text); }
  Result<std::uint64_t> WriteExpanded(const std::string& text, Values values) {
    return RunWrite(text, values);
  }
  const Dialect& dialect() const { return dialect_; }

  virtual Status Begin() = 0;
  // After an error nothing is open any more.
  virtual Status Commit() = 0;
  // Never fails.
  virtual void Rollback() = 0;

  // Why the last failure was one, where a caller may go on from it.
  virtual Refusal refusal() = 0;
  // The database's address, as messages begin.
  virtual const std::string& where() const = 0;

 protected:
  explicit Connection(const Dialect& dialect) : dialect_(dialect) {}
  virtual Status RunQuery(const std::string& text, Values values, const OnRow& on_row) = 0;
  virtual Result<std::uint64_t> RunWrite(const std::string& text, Values values) = 0;

 private:
  const Dialect& dialect_;
};

// A transaction that is rolled back unless it was committed.
class Transaction {
 public:
  explicit Transaction(Connection& connection) : connection_(connection) {}
  ~Transaction() {
    if (open_) connection_.Rollback();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  Status Begin() {
    Status begun = connection_.Begin();
    open_ = begun.has_value();
    return begun;
  }
  Status Commit() {
    open_ = false;
    return connection_.Commit();
  }

 private:
  Connection& connection_;
  bool open_ = false;
};

}  // namespace millrace::engine::sql

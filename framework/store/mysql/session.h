// One connection at a time, made or borrowed at its first use and again after it was lost. One thread at a
// time. No write is retried.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/result.h"
#include "framework/store/mysql/connection_pool.h"
#include "framework/store/mysql/errors.h"
#include "framework/store/sql/connection.h"
#include "framework/store/store.h"
#include "framework/store/url.h"

namespace sql {
class Connection;
class ResultSet;
class SQLException;
}  // namespace sql

namespace millrace::engine::mysql {

// Makes the client library ready, which has to be done before any other use of it. Thread-safe.
void PrepareClient();

class Rehearsal;

struct Endpoint {
  StoreUrl url;
  StoreOptions options;
  Rehearsal* rehearsal = nullptr;  // takes all statements instead of a server; see rehearsal.h
  std::string Describe() const;
};

class Row final : public sql::Row {
 public:
  explicit Row(::sql::ResultSet& result) : result_(result) {}
  std::string Text(unsigned column) const override;
  std::string Named(const char* column) const;
  std::uint64_t Number(unsigned column) const override;
  std::int64_t Signed(unsigned column) const override;
  bool Null(unsigned column) const override;
  std::optional<WallTime> Time(unsigned column) const override;  // without a copy of its text

 private:
  ::sql::ResultSet& result_;
};

class Session final : public sql::Connection {
 public:
  using OnRow = std::function<void(const Row&)>;

  enum class Mode {
    Autocommit,
    Manual,  // every statement belongs to a transaction that COMMIT or ROLLBACK ends
  };

  // The server closes the connection, and frees its locks, when it falls silent for `silence`. With a pool
  // the connection is borrowed for each statement, and for each transaction as a whole; what is SET for the
  // session is lost with it. All sessions of a pool have the same mode.
  Session(const Endpoint& endpoint, Micros silence, ConnectionPool* pool = nullptr,
          Mode mode = Mode::Autocommit);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // To be called whenever a server was away, or took no writes, and one is reached again: it may be another
  // one, while other connections lead to the first still.
  void OnReturn(std::function<void()> call) { on_return_ = std::move(call); }

  // Makes sure that there is a usable connection.
  Status Connect();
  // A statement that answers with rows; locking reads too.
  Status Query(const std::string& sql, const OnRow& on_row);
  // A statement that changes rows; returns how many it matched.
  Result<std::uint64_t> Write(const std::string& sql);
  // A bound statement of a handler, all its results drained; the last result with columns is returned.
  Result<SqlResult> Bound(std::string_view sql, std::span<const SqlValue> values);

  // While one is alive, a statement that the server refuses leaves the connection open, so that it can be
  // asked what the statement did before. At its end the connection is dropped if it had to be.
  class Inspection {
   public:
    explicit Inspection(Session& session) : session_(session) { session_.inspecting_ = true; }
    ~Inspection() { session_.EndInspection(); }
    Inspection(const Inspection&) = delete;
    Inspection& operator=(const Inspection&) = delete;

   private:
    Session& session_;
  };

  // In Manual mode a connection that has died in its silence is replaced: nothing was sent before, and
  // whoever runs the transaction must know that none could be had.
  Status Begin() override;
  Status Commit() override;
  // Never fails: a connection that can't roll back is dropped.
  void Rollback() override;
  // The next statement goes over a new connection.
  void Drop();

  // Within a transaction: it has its connection still.
  bool connected() const { return connection_ != nullptr; }
  // Which of the sessions of its pool it is.
  unsigned number() const { return number_; }
  bool in_transaction() const { return in_transaction_; }
  // The native code of the last failure.
  int last_code() const { return last_code_; }
  sql::Refusal refusal() override;
  const std::string& where() const override { return where_; }

 private:
  // While one is alive the session keeps what it has borrowed.
  class Use {
   public:
    explicit Use(Session& session) : session_(session) { ++session_.uses_; }
    ~Use() {
      if (--session_.uses_ == 0) session_.GiveBack();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Session& session_;
  };

  Status RunQuery(const std::string& text, Values values, const sql::Connection::OnRow& on_row) override;
  Result<std::uint64_t> RunWrite(const std::string& text, Values values) override;
  Status Borrow();
  void GiveBack();
  Status Open();
  Status SetUp();
  void EndInspection();
  Error Failed(const ::sql::SQLException& exception, Purpose purpose);
  Status Usable();
  // These do not connect.
  ::sql::Connection& Native();
  Status Fetch(const std::string& sql, const OnRow& on_row, Purpose purpose);
  Status Run(const std::string& sql, Purpose purpose);

  const Endpoint& endpoint_;
  const Micros silence_;
  ConnectionPool* const pool_;
  const unsigned number_;
  const Mode mode_;
  const std::string where_;
  std::unique_ptr<::sql::Connection> connection_;
  BootTime last_use_{};
  std::uint64_t generation_ = 0;  // of its pool, when it was made
  std::function<void()> on_return_;
  bool away_ = false;  // since the last failure
  int uses_ = 0;
  bool borrowed_ = false;
  bool in_transaction_ = false;
  bool inspecting_ = false;
  bool must_drop_ = false;  // once the inspection is over
  int last_code_ = 0;
};

// A transaction that rolls back unless it was committed.
class Transaction {
 public:
  explicit Transaction(Session& session) : session_(session) {}
  ~Transaction() {
    if (session_.in_transaction()) session_.Rollback();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

 private:
  Session& session_;
};

}  // namespace millrace::engine::mysql

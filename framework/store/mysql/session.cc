#include "framework/store/mysql/session.h"

#include <cppconn/connection.h>
#include <cppconn/driver.h>
#include <cppconn/exception.h>
#include <cppconn/resultset.h>
#include <cppconn/statement.h>
#include <mysql_driver.h>

#include <algorithm>
#include <cassert>
#include <fstream>
#include <utility>

#include "framework/store/mysql/rehearsal.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/sql/dialects.h"

namespace millrace::engine::mysql {
namespace {

// The connector's own static is not synchronised; this one is.
::sql::Driver& Driver() {
  static ::sql::Driver* const driver = ::sql::mysql::get_driver_instance();
  return *driver;
}

int Seconds(Micros duration) {
  return static_cast<int>(
      std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(duration).count()));
}

::sql::ConnectOptionsMap Options(const StoreUrl& url, const StoreOptions& options,
                                 const std::string& password) {
  // The protocol is spelt out, since the client library takes `localhost` for a socket file.
  ::sql::ConnectOptionsMap map;
  map["hostName"] = ::sql::SQLString("tcp://" + url.host + ":" + std::to_string(url.port));
  map["userName"] = ::sql::SQLString(url.user);
  map["password"] = ::sql::SQLString(password);
  map["schema"] = ::sql::SQLString(url.database);
  map["OPT_CONNECT_TIMEOUT"] = Seconds(options.connect_timeout);
  map["OPT_READ_TIMEOUT"] = Seconds(options.io_timeout);
  map["OPT_WRITE_TIMEOUT"] = Seconds(options.io_timeout);
  map["OPT_CHARSET_NAME"] = ::sql::SQLString("utf8mb4");
  map["CLIENT_FOUND_ROWS"] = true;
  if (!url.tls_ca.empty()) {
    map["sslCA"] = ::sql::SQLString(url.tls_ca);
    map["sslVerify"] = true;
  }
  return map;
}

// A client that has waited for io_timeout gives up, and its statement would go on for nobody; with each new
// try another one beside it. The server ends it soon after. What is for the other kind of server is a
// comment.
std::string EndedAfter(Micros limit) {
  const std::string seconds = std::to_string(Seconds(limit));
  return " /*!80000 , max_execution_time=" + seconds + "000 */ /*M!100100 , max_statement_time=" + seconds +
         " */";
}

// Without the file the client library would go without TLS, or trust whom it likes.
bool CanRead(const std::string& file) { return std::ifstream(file).good(); }

}  // namespace

void PrepareClient() { (void)Driver(); }

std::string Endpoint::Describe() const {
  return "mysql://" + url.host + ":" + std::to_string(url.port) + "/" + url.database;
}

std::string Row::Text(unsigned column) const { return result_.getString(column).asStdString(); }
std::string Row::Named(const char* column) const { return result_.getString(column).asStdString(); }
std::uint64_t Row::Number(unsigned column) const { return result_.getUInt64(column); }
std::int64_t Row::Signed(unsigned column) const { return result_.getInt64(column); }
bool Row::Null(unsigned column) const { return result_.isNull(column); }
std::optional<WallTime> Row::Time(unsigned column) const {
  return sql::ParseTime(result_.getString(column).asStdString());
}

Session::Session(const Endpoint& endpoint, Micros silence, ConnectionPool* pool, Mode mode)
    : sql::Connection(sql::kMysqlDialect),
      endpoint_(endpoint),
      silence_(silence),
      pool_(pool),
      number_(pool == nullptr ? 0 : pool->NumberSession()),
      mode_(mode),
      where_(endpoint.Describe()) {}

Session::~Session() {
  const Use use(*this);
  in_transaction_ = false;
  connection_.reset();
}

void Session::Drop() {
  const Use use(*this);
  in_transaction_ = false;
  connection_.reset();
  if (pool_ != nullptr) pool_->Forget();
}

Status Session::Borrow() {
  auto lent = pool_->Borrow(endpoint_.options.connect_timeout);
  if (!lent) {
    return Fail(ErrorCode::Unavailable, where_ + ": all " + std::to_string(pool_->limit()) +
                                            " connections that handlers may use at once are in use");
  }
  borrowed_ = true;
  connection_ = std::move(lent->connection);
  generation_ = lent->generation;
  if (!connection_ || lent->silence == silence_) return {};
  return Run("SET SESSION wait_timeout=" + std::to_string(Seconds(silence_)), Purpose::Read);
}

void Session::GiveBack() {
  if (!borrowed_ || in_transaction_) return;
  borrowed_ = false;
  pool_->Return({std::move(connection_), silence_, BootClock::now(), generation_});
}

Error Session::Failed(const ::sql::SQLException& exception, Purpose purpose) {
  last_code_ = exception.getErrorCode();
  if (purpose != Purpose::Connect && MustDrop(last_code_)) {
    must_drop_ = inspecting_ && !IsGone(last_code_);
    if (!must_drop_) connection_.reset();
  }
  Error error = Translate({last_code_, exception.what()}, purpose, where_);
  // What cut this one has most likely cut the others too, or they lead to a server that takes no writes.
  const bool away = error.code == ErrorCode::Unavailable || error.code == ErrorCode::Unknown;
  if (away && pool_ != nullptr && !IsOfThisOneAlone(last_code_)) pool_->Forget();
  away_ = away_ || away;
  return error;
}

void Session::EndInspection() {
  const Use use(*this);
  inspecting_ = false;
  if (std::exchange(must_drop_, false)) connection_.reset();
}

Status Session::Open() {
  if (pool_ != nullptr) generation_ = pool_->generation();
  std::string password;
  if (!endpoint_.options.password_file.empty()) {
    auto read = ReadPasswordFile(endpoint_.options.password_file);
    if (!read) return Fail(ErrorCode::Denied, read.error().message);
    password = std::move(*read);
  }
  const std::string& authority = endpoint_.url.tls_ca;
  if (!authority.empty() && !CanRead(authority)) {
    return Fail(ErrorCode::Denied, where_ + ": " + authority + ", tls_ca of the store URL, can't be read");
  }
  try {
    auto options = Options(endpoint_.url, endpoint_.options, password);
    connection_.reset(Driver().connect(options));
  } catch (const ::sql::SQLException& exception) {
    Error error = Failed(exception, Purpose::Connect);
    if (!authority.empty()) error.message += "; tls_ca is " + authority;
    return Fail(error);
  } catch (const std::exception& exception) {
    return Fail(ErrorCode::Internal, where_ + ": the connection can't be opened: " + exception.what());
  }
  if (Status ready = SetUp(); !ready) {
    Drop();
    return ready;
  }
  last_use_ = BootClock::now();
  if (std::exchange(away_, false) && on_return_) on_return_();
  return {};
}

// A statement of a transaction that somebody else brings, a handler or a query, is limited; DDL of the
// engine's own goes on for as long as it needs. A table may be locked as a whole, by DDL that waits for a
// dump: the engine waits as long as for a row's lock, a handler for as long as there is somebody to be told.
Status Session::SetUp() {
  const Micros io_timeout = endpoint_.options.io_timeout;
  const std::string limit = mode_ == Mode::Manual ? EndedAfter(io_timeout + std::chrono::seconds(5)) : "";
  const int table_lock_wait = mode_ == Mode::Manual ? Seconds(io_timeout / 2) : 1;
  const std::string session =
      "SET SESSION sql_mode='STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', "
      "time_zone='+00:00', innodb_lock_wait_timeout=1, lock_wait_timeout=" +
      std::to_string(table_lock_wait) + ", autocommit=" + (mode_ == Mode::Manual ? "0" : "1") +
      ", wait_timeout=" + std::to_string(Seconds(silence_)) + limit;
  for (const std::string& sql :
       {std::string("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"), session}) {
    BOOST_OUTCOME_TRYV(Run(sql, Purpose::Read));
  }
  // The connector changes the isolation level behind our back, and silently goes without TLS.
  std::string isolation;
  std::string cipher;
  BOOST_OUTCOME_TRYV(Fetch(
      "SHOW VARIABLES WHERE Variable_name IN ('tx_isolation','transaction_isolation')",
      [&](const Row& row) { isolation = row.Text(2); }, Purpose::Read));
  if (isolation != "READ-COMMITTED") {
    return Fail(ErrorCode::Internal, where_ + ": the session's isolation level is " + isolation +
                                         " although READ COMMITTED was set");
  }
  if (endpoint_.url.tls_ca.empty()) return {};
  BOOST_OUTCOME_TRYV(Fetch(
      "SHOW STATUS LIKE 'Ssl_cipher'", [&](const Row& row) { cipher = row.Text(2); }, Purpose::Read));
  if (cipher.empty()) {
    return Fail(ErrorCode::Denied, where_ +
                                       ": the connection is not encrypted although the store URL names a "
                                       "tls_ca: configure TLS on the server, or leave tls_ca out");
  }
  return {};
}

Status Session::Connect() {
  const Use use(*this);
  const BootTime now = BootClock::now();
  // A server that is about to close a silent connection would make the next write's outcome unknown.
  if (connection_ && !in_transaction_ && now - last_use_ > silence_ / 2) connection_.reset();
  last_use_ = now;
  if (pool_ != nullptr && !borrowed_) {
    if (Status lent = Borrow(); !lent && (!borrowed_ || connection_)) return lent;
  }
  if (connection_) return {};
  return Open();
}

// The analyzer does not count uses: it believes that Connect's own gives back what its caller's still keeps.
::sql::Connection& Session::Native() {
  assert(connection_ != nullptr);
  return *connection_;  // NOLINT(clang-analyzer-cplusplus.Move)
}

// Within a transaction there is no connecting anew: the statements before would be missing from it.
Status Session::Usable() {
  if (!in_transaction_) return Connect();
  last_use_ = BootClock::now();
  if (connection_) return {};
  return Fail(ErrorCode::Unavailable,
              where_ + ": the connection was lost within a transaction; nothing was changed");
}

Status Session::Run(const std::string& sql, Purpose purpose) {
  try {
    std::unique_ptr<::sql::Statement> statement(Native().createStatement());
    if (statement->execute(sql)) std::unique_ptr<::sql::ResultSet>(statement->getResultSet());
    return {};
  } catch (const ::sql::SQLException& exception) {
    return Fail(Failed(exception, purpose));
  }
}

Status Session::Fetch(const std::string& sql, const OnRow& on_row, Purpose purpose) {
  try {
    std::unique_ptr<::sql::Statement> statement(Native().createStatement());
    std::unique_ptr<::sql::ResultSet> result(statement->executeQuery(sql));
    const Row row(*result);
    while (result->next()) on_row(row);
    return {};
  } catch (const ::sql::SQLException& exception) {
    return Fail(Failed(exception, purpose));
  }
}

Status Session::Query(const std::string& sql, const OnRow& on_row) {
  if (endpoint_.rehearsal != nullptr) return endpoint_.rehearsal->Query(sql, on_row);
  const Use use(*this);
  if (connection_ == nullptr || !in_transaction_) {
    BOOST_OUTCOME_TRYV(Usable());
  }
  return Fetch(sql, on_row, in_transaction_ ? Purpose::Transaction : Purpose::Read);
}

Result<std::uint64_t> Session::Write(const std::string& sql) {
  if (endpoint_.rehearsal != nullptr) return endpoint_.rehearsal->Write(sql);
  const Use use(*this);
  BOOST_OUTCOME_TRYV(Usable());
  try {
    std::unique_ptr<::sql::Statement> statement(Native().createStatement());
    if (statement->execute(sql)) {
      const std::unique_ptr<::sql::ResultSet> unasked(statement->getResultSet());
      return std::uint64_t{0};
    }
    return statement->getUpdateCount();
  } catch (const ::sql::SQLException& exception) {
    return Fail(Failed(exception, in_transaction_ ? Purpose::Transaction : Purpose::Write));
  }
}

Status Session::RunQuery(const std::string& text, Values values, const sql::Connection::OnRow& on_row) {
  return Query(WithValues(text, values), on_row);
}

Result<std::uint64_t> Session::RunWrite(const std::string& text, Values values) {
  return Write(WithValues(text, values));
}

Status Session::Begin() {
  if (endpoint_.rehearsal != nullptr) {
    in_transaction_ = true;
    return endpoint_.rehearsal->Begin();
  }
  const Use use(*this);
  BOOST_OUTCOME_TRYV(Connect());
  const char* const begin = mode_ == Mode::Manual ? "SAVEPOINT millrace" : "BEGIN";
  Status begun = Run(begin, Purpose::Transaction);
  if (!begun && !connection_ && mode_ == Mode::Manual) {
    BOOST_OUTCOME_TRYV(Open());
    begun = Run(begin, Purpose::Transaction);
  }
  in_transaction_ = begun.has_value();
  return begun;
}

Status Session::Commit() {
  if (endpoint_.rehearsal != nullptr) {
    in_transaction_ = false;
    return endpoint_.rehearsal->Commit();
  }
  const Use use(*this);
  if (Status usable = Usable(); !usable) {
    Rollback();
    return usable;
  }
  Status done = Run("COMMIT", Purpose::Commit);
  if (done) {
    in_transaction_ = false;
    return done;
  }
  if (done.error().code == ErrorCode::Unknown) {
    Drop();
  } else {
    Rollback();
  }
  return done;
}

void Session::Rollback() {
  const Use use(*this);
  in_transaction_ = false;
  if (endpoint_.rehearsal != nullptr) endpoint_.rehearsal->Rollback();
  if (connection_ && !Run("ROLLBACK", Purpose::Transaction)) connection_.reset();
}

sql::Refusal Session::refusal() {
  if (endpoint_.rehearsal != nullptr) last_code_ = endpoint_.rehearsal->last_code();
  if (last_code_ == kDuplicateEntry) return sql::Refusal::Duplicate;
  return last_code_ == kNoSuchTable ? sql::Refusal::NoTable : sql::Refusal::Other;
}

}  // namespace millrace::engine::mysql

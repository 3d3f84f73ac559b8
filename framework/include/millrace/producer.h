// Add tasks from a program of your own: in its own transaction, or over connections that are opened by a
// store's URL.
//
//   // An order and the task that follows from it commit together, or not at all.
//   auto report = millrace::producer::SubmitInTransaction(
//       millrace::producer::Dialect::Mysql, run_on_my_connection,
//       {.handler = "send_mail", .params = R"({"order":17})", .key = "order-17"});
//   if (!report) return rollback(report.error().message);
//
//   auto producer = millrace::producer::Producer::Open("mysql://app@db:3306/shop", {.password_file = "…"});
//   auto report = producer->Submit({.handler = "send_mail", .params = R"({"order":17})"});
//
// SubmitInTransaction is in the library millrace::producer, which needs nothing but the standard library;
// Producer is in millrace::producer_connected, which brings the clients of MySQL and SQLite:
// find_package(millrace COMPONENTS producer). Both are static, and built by the compiler that builds the
// program. What is refused is told by an Error; no exception is thrown but std::bad_alloc, and what a
// caller's own function throws.
//
// Keys: of all tasks of one handler with one key in a store only one ever takes effect. The key is entered in
// the ledger with the task; a task whose key is taken is not added, and the report names the one that has it.
// Where another transaction that is still open has just entered the key, its end is waited for. A key is
// taken until 30 days after its task has succeeded; cancelling a task that never started frees it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace millrace::producer {
inline namespace v1 {

using Duration = std::chrono::microseconds;
using Time = std::chrono::sys_time<Duration>;  // UTC

// A task to be added. All texts are UTF-8.
struct NewTask {
  std::string handler;                // [a-z][a-z0-9_.]*, at most 64 bytes
  std::string params = "{}";          // a JSON object, at most 64 KiB
  std::string key = {};               // at most 190 bytes; empty: none
  std::string batch = {};             // progress is counted under it; at most 64 bytes, no space at its end
  std::optional<int> priority = {};   // 0 most urgent … 9; 5 where it is not said
  std::optional<Time> run_at = {};    // when it is due
  Duration delay = Duration::zero();  // or how long after the database's now
  bool held = false;                  // not to be processed until it is released
  std::string slice_key = {};         // tasks with the same one stand in one slice; empty: see Slices
  // Where it has not started by then it is skipped: later than it is due.
  std::optional<Time> expires_at = {};
  Duration expires_in = Duration::zero();  // or how long after the database's now; zero: it does not expire
};

// Which slices, and so which workers, tasks without a slice_key go to.
enum class Slices {
  Automatic,  // many tasks in runs, few spread
  Spread,     // each to another slice: where tasks are slow
  Runs,       // many in a row to one slice: they are claimed together, which is fast where tasks are short
};

struct SubmitOptions {
  std::string table = {};  // the task table; empty: `tasks`, or a Producer's own
  Slices slices = Slices::Automatic;
};

// At most so many tasks in one call.
inline constexpr std::size_t kMostTasks = 99'900;

struct SubmittedTask {
  std::uint64_t id = 0;           // 0: it was not added, since its key is taken
  std::string duplicate_of = {};  // then: table/id of the task that has the key

  bool added() const { return id != 0; }
};

struct Report {
  std::size_t added = 0;
  std::vector<SubmittedTask> tasks;  // parallel to those that were given
};

enum class ErrorKind {
  Invalid,      // a task, URL, password or schema is wrong, and will stay wrong
  Conflict,     // somebody's lock, or a deadlock: run the whole transaction again
  Unavailable,  // the database is away; nothing was added: try again later
  Unknown,      // the connection was lost under the COMMIT: with keys it is safe to submit the same again
  Failed,       // the caller's function, or the database, refused a statement
};

struct Error {
  ErrorKind kind = ErrorKind::Failed;
  std::string message;  // what is wrong, where, and what to do
};

// A value or an error. Whoever asks for the half that is not there has a defect: the program ends.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return held_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return *Half<0>(held_); }
  const T& value() const& { return *Half<0>(held_); }
  T&& value() && { return std::move(*Half<0>(held_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return *Half<1>(held_); }

 private:
  template <std::size_t kHalf, class Variant>
  static auto Half(Variant& held) noexcept {
    auto* half = std::get_if<kHalf>(&held);
    if (half == nullptr) std::terminate();
    return half;
  }

  std::variant<T, Error> held_;
};

// What the statements are written for.
enum class Dialect {
  Mysql,  // and MariaDB
  Sqlite,
};

// A value for a `?`. Texts are UTF-8, and are bound as texts.
using SqlValue = std::variant<std::nullptr_t, std::int64_t, std::string>;

// What a statement gave.
struct SqlAnswer {
  std::vector<std::vector<std::optional<std::string>>> rows = {};  // of a SELECT, as text; NULL: nullopt
  std::uint64_t affected = 0;                                      // rows that an INSERT or DELETE changed
  std::string error = {};                                          // not empty: it failed, and why
};

// Runs one statement on the caller's connection, with its values bound: the text is never pasted together
// from them. Called on the caller's thread, while the call below runs, and not afterwards.
using RunSql = std::function<SqlAnswer(const std::string& sql, std::span<const SqlValue> values)>;

// Adds the tasks within a transaction that the caller has begun and will end: they are there once it commits.
// After an error the caller rolls back. The connection stands in the database with the task tables, speaks
// utf8mb4 (MySQL), and is not in autocommit; any isolation level will do. SQLite: begun by BEGIN IMMEDIATE,
// since a transaction that reads first may not be let to write. The tables must be there (`millrace schema
// apply`). Thread-safe: it has no state but the caller's connection.
Result<Report> SubmitInTransaction(Dialect dialect, const RunSql& run, std::span<const NewTask> tasks,
                                   const SubmitOptions& options = {});
// One task.
Result<SubmittedTask> SubmitInTransaction(Dialect dialect, const RunSql& run, const NewTask& task,
                                          const SubmitOptions& options = {});

struct ConnectOptions {
  // Holds the password of a mysql:// store; one trailing newline is dropped. Read at each connect. Refused if
  // others can read it.
  std::string password_file = {};
  std::string table = {};  // the table to submit to; empty: the only one
  Duration connect_timeout = std::chrono::seconds(5);
  Duration io_timeout = std::chrono::seconds(20);  // of reads and writes on a socket
  // Workers of a cluster that are rung after each Submit which has added something due, so that it starts at
  // once where nobody follows the server's log: IP:PORT, as they were started with
  // (`--doorbell-address 10.0.0.7:7460`); at most 100. One datagram each, and no answer: an address or shard
  // that is wrong is not noticed, and whoever is not reached polls as ever. Slices are chosen here then, of
  // as many as the table had when it was opened.
  std::vector<std::string> doorbells = {};
  std::string shard = "main";  // which a ring names: the store's name in the workers' configuration
};

// Connections to one store. Thread-safe: it has as many connections as threads submit at the same moment, and
// connects anew after one was lost. Movable while nobody uses it.
class Producer {
 public:
  // `url`: sqlite:PATH or mysql://user@host:port/database, with ?tls_ca=FILE verified TLS or nothing.
  // Connects once, and says what is wrong: no such database, a wrong password, no task tables. The tables are
  // read here; a program that outlives a change of their number of slices goes on by the former one.
  static Result<Producer> Open(const std::string& url, const ConnectOptions& options = {});
  Producer(Producer&& other) noexcept;
  Producer& operator=(Producer&& other) noexcept;
  ~Producer();

  // All in one transaction, or none. A lock that somebody holds is waited for, and a deadlock tried again; an
  // outcome that is not known is not.
  Result<Report> Submit(std::span<const NewTask> tasks, const SubmitOptions& options = {});
  Result<SubmittedTask> Submit(const NewTask& task, const SubmitOptions& options = {});

 private:
  struct Body;
  explicit Producer(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace v1
}  // namespace millrace::producer

// Test a handler in a test of your own: no worker, no server, no plugin file. Any test framework will do.
//
//   TEST(Greet, GreetsAndCounts) {
//     millrace::HandlerTest test("greet");
//     test.Configure(R"({"options":{"greeting":"good morning"}})");
//     test.UseSqlite("CREATE TABLE guests (name TEXT, greeted INT); INSERT INTO guests VALUES ('Ann', 0)");
//     const auto run = test.Run(R"({"name":"Ann"})");
//     EXPECT_EQ(run.task().end, millrace::TaskEnd::Succeeded);
//     EXPECT_EQ(run.task().text, "good morning, Ann");
//     EXPECT_EQ(test.Query("SELECT greeted FROM guests").rows[0][0], "1");
//   }
//
// The test is linked with the handler's source, MILLRACE_PLUGIN and all, and with millrace::testing, a static
// library (find_package(millrace COMPONENTS testing)) that is built by the same compiler. The tasks are run
// by the code that runs them in a worker: it opens the handler by its descriptor, hands over batches, runs
// again in parts what failed as a whole, and commits and rolls back by the same rules.
#pragma once

#include <millrace/handler.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

// Of MILLRACE_PLUGIN.
extern "C" __attribute__((visibility("default"))) const millrace_plugin* millrace_plugin_entry();

namespace millrace {
inline namespace handler_v1 {

// A task as it would be claimed.
struct TestTask {
  std::string params = "{}";  // JSON
  std::string key = {};
  std::string batch = {};
  std::string progress = {};   // what an earlier attempt saved
  std::uint32_t attempt = 1;   // claims so far, this one included
  std::uint32_t failures = 0;  // failed attempts so far
  std::uint32_t priority = 5;
};

// Where the task is once its attempt has ended.
enum class TaskEnd {
  Succeeded,
  Waiting,    // to be run again: retried, snoozed, or given back
  Failed,     // for good
  Cancelled,  // or skipped
};

enum class SqlEffect {
  None,  // nothing was sent
  Committed,
  RolledBack,
  InDoubt,  // the transaction was ended behind the context's back
};

// For the messages of test frameworks.
inline std::ostream& operator<<(std::ostream& out, TaskEnd end) {
  constexpr const char* kNames[] = {"Succeeded", "Waiting", "Failed", "Cancelled"};
  return out << kNames[static_cast<int>(end)];
}
inline std::ostream& operator<<(std::ostream& out, SqlEffect effect) {
  constexpr const char* kNames[] = {"None", "Committed", "RolledBack", "InDoubt"};
  return out << kNames[static_cast<int>(effect)];
}

// What became of a task.
struct TestedTask {
  Outcome outcome;  // what the handler said when it was last run, or what its exception stands for
  TaskEnd end = TaskEnd::Waiting;
  bool failed_attempt = false;  // it counts as a failure
  // Waiting: when it is due again, from now on or at a time; neither: at once. Not spread by the jitter.
  std::optional<Duration> delay;
  std::optional<Time> at;
  std::string text;  // the result, or why
  std::string error_class;
  SqlEffect sql = SqlEffect::None;
  std::string progress;  // what it saved last

  bool Committed() const { return sql == SqlEffect::Committed; }
};

struct TestedStatement {
  std::string sql;
  std::vector<SqlValue> values;
  std::uint64_t affected = 0;
  std::size_t rows = 0;
  std::string error;  // empty: it went well
};

struct TestedLine {
  std::int32_t level = MILLRACE_LOG_INFO;
  std::string message;
};

struct TestedRun {
  std::vector<TestedTask> tasks;  // parallel to those that were run
  std::vector<TestedLine> log;
  std::vector<TestedStatement> statements;  // of all calls, those that were rolled back too
  std::vector<NewTask> submitted;           // those whose transaction was committed
  std::size_t calls = 0;                    // of Run, those that came of a deadlock or a failed batch too

  const TestedTask& task() const { return tasks.at(0); }  // the only one
};

// What a faked statement gives.
struct SqlAnswer {
  enum class Fault {
    None,
    Refused,         // by the database, and nothing else happened: a constraint, a syntax error
    Deadlock,        // or a lock wait: the handler is run again, uncounted
    ConnectionLost,  // with the transaction
    Ended,           // the statement ended the transaction, as a procedure can
  };
  Rows rows = {};
  std::uint64_t affected = 0;
  Fault fault = Fault::None;
  std::string error = "as the test wants";  // of a fault
};
using SqlFake = std::function<SqlAnswer(std::string_view sql, std::span<const SqlValue> values)>;

// On one thread, but for Stop.
class HandlerTest {
 public:
  // Of the plugin that this program is linked with. Throws EngineError where it has no such handler.
  explicit HandlerTest(std::string_view handler) : HandlerTest(*millrace_plugin_entry(), handler) {}
  HandlerTest(const millrace_plugin& plugin, std::string_view handler);
  // By itself: HandlerTest test(millrace::Register<Greet>("greet", "")).
  explicit HandlerTest(const millrace_handler& handler);
  ~HandlerTest();
  HandlerTest(const HandlerTest&) = delete;
  HandlerTest& operator=(const HandlerTest&) = delete;

  // Its part of the configuration, as under handlers.<type> there: {"options":{…},"timeout":"1s"}, over what
  // it brings in code. Throws EngineError where a configuration could not be so.
  void Configure(std::string_view json);
  void SetSecret(std::string_view name, std::string_view value);
  // Opens it anew. Throws EngineError with what it said where it refuses. Run opens it where it is not.
  void Open();

  // Its SQL goes to an empty SQLite database in memory, on which the script is run first; the database has
  // the tables of Millrace, too. Throws EngineError where the script fails.
  void UseSqlite(std::string_view script = "");
  // Its SQL goes to a function. A COMMIT or DDL is refused before it gets there, as in a worker.
  void UseFake(SqlFake fake);
  // In between runs, in a transaction of its own. Throws EngineError.
  Rows Query(std::string_view sql, std::initializer_list<SqlValue> values = {});

  // Why the handler is to stop: from now on, in a run that is under way too. Its time limit is Configure's.
  enum class StopReason { None, Cancelled, WorkerEnds };
  void Stop(StopReason reason);

  TestedRun Run(std::string params = "{}") { return RunTask({.params = std::move(params)}); }
  TestedRun RunTask(TestTask task) { return RunTasks({std::move(task)}); }
  // In as many calls as a worker would make of them.
  TestedRun RunTasks(std::vector<TestTask> tasks);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace handler_v1
}  // namespace millrace

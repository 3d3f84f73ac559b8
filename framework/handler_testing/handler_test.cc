#include <millrace/testing.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "framework/base/log_line.h"
#include "framework/config/config.h"
#include "framework/handler_kit/local_run.h"
#include "framework/handler_testing/fake_transaction.h"
#include "framework/plugin/abi.h"
#include "framework/plugin/handler_instance.h"
#include "framework/plugin/library.h"
#include "framework/schedule/time_zone.h"
#include "framework/store/sqlite/session.h"
#include "framework/store/sqlite/store.h"

namespace millrace {

// An author's test has no use for glog: the engine's own lines go to standard error.
void engine::Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  const std::string line = LogLine(SystemClock().WallNow(), level, event, fields) + "\n";
  std::fputs(line.c_str(), stderr);
}

// Nor for the machine's time zones, since nothing is scheduled there.
engine::Result<engine::TimeZone> engine::TimeZone::Find(std::string_view name) {
  if (name == "UTC") return TimeZone();
  return Fail(ErrorCode::Unavailable, "a handler's test knows no time zone but UTC");
}

engine::TimeZone::Span engine::TimeZone::SpanAt(std::chrono::sys_seconds) const {
  using namespace std::chrono;
  return {sys_days(year(-9999) / 1 / 1), sys_days(year(9999) / 1 / 1), seconds(0)};
}

namespace {

using engine::LocalEnd;
using engine::Settlement;

// The same in every run, so that the idempotency key is, too: 2026-01-01.
constexpr engine::WallTime kCreated{std::chrono::seconds(1'767'225'600)};

template <class T>
T Checked(engine::Result<T> result) {
  if (!result) throw EngineError(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// A SQLite store whose files are in memory, where the system has such a folder, and go with it.
class MemoryStore {
 public:
  explicit MemoryStore(std::string_view script) {
    std::string folder = "/dev/shm/millrace-test-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) {
      const char* other = ::getenv("TMPDIR");
      folder = std::string(other == nullptr ? "/tmp" : other) + "/millrace-test-XXXXXX";
      if (::mkdtemp(folder.data()) == nullptr) throw EngineError("there is no folder for a test's database");
    }
    folder_ = folder;
    file_.path = folder_ + "/test.db";
    engine::StoreUrl url;
    url.path = file_.path;
    store_ = Checked(engine::sqlite::OpenStore(url, {}));
    Checked(store_->OpenSchema()->Apply({}));
    Checked(engine::sqlite::Session(file_).Script(std::string(script)));
  }
  ~MemoryStore() {
    store_.reset();
    for (const char* file : {"", "-wal", "-shm", ".lock"}) ::unlink((file_.path + file).c_str());
    ::rmdir(folder_.c_str());
  }
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  std::unique_ptr<engine::TaskTransaction> OpenTransaction(engine::Micros limit) {
    return store_->OpenTransaction(limit);
  }

 private:
  std::string folder_;
  engine::sqlite::File file_;
  std::unique_ptr<engine::Store> store_;
};

TaskEnd EndOf(Settlement::To to) {
  switch (to) {
    case Settlement::To::Succeeded:
      return TaskEnd::Succeeded;
    case Settlement::To::Cancelled:
      return TaskEnd::Cancelled;
    case Settlement::To::Failed:
      return TaskEnd::Failed;
    case Settlement::To::Waiting:
    case Settlement::To::Held:
      break;
  }
  return TaskEnd::Waiting;
}

SqlEffect EffectOf(engine::LocalEffect effect) {
  switch (effect) {
    case engine::LocalEffect::None:
      return SqlEffect::None;
    case engine::LocalEffect::Committed:
      return SqlEffect::Committed;
    case engine::LocalEffect::RolledBack:
      return SqlEffect::RolledBack;
    case engine::LocalEffect::InDoubt:
      break;
  }
  return SqlEffect::InDoubt;
}

std::int32_t LevelOf(engine::LogLevel level) {
  if (level == engine::LogLevel::Error) return MILLRACE_LOG_ERROR;
  return level == engine::LogLevel::Warning ? MILLRACE_LOG_WARNING : MILLRACE_LOG_INFO;
}

// What a handler says is one of the first five kinds, which both sides number alike.
Outcome ToPublic(const engine::Outcome& said) {
  const std::int64_t at = said.at ? said.at->time_since_epoch().count() : 0;
  return {static_cast<std::int32_t>(said.kind), said.text, said.error_class, at,
          said.delay ? said.delay->count() : -1};
}

TestedTask ToPublic(const LocalEnd& end) {
  TestedTask task;
  task.outcome = ToPublic(end.said);
  task.end = EndOf(end.end.to);
  task.failed_attempt = end.end.failed_attempt;
  task.delay = end.end.delay;
  task.at = end.end.run_at;
  task.text = end.end.text;
  task.error_class = end.end.error_class;
  task.sql = EffectOf(end.effect);
  if (!end.progress.empty()) task.progress = end.progress.back();
  return task;
}

NewTask ToPublic(const engine::NewTask& task) {
  NewTask added{task.handler, task.params, task.biz_key, task.batch};
  if (task.priority) added.priority = static_cast<int>(*task.priority);
  added.run_at = task.run_at;
  if (task.delay) added.delay = *task.delay;
  return added;
}

TestedStatement ToPublic(const engine::LocalStatement& statement) {
  TestedStatement seen{statement.sql, {}, statement.affected, statement.rows, statement.error};
  for (const engine::SqlValue& value : statement.values) seen.values.push_back(engine::ToPublic(value));
  return seen;
}

TestedRun ToPublic(const engine::LocalReport& report) {
  TestedRun run;
  for (const LocalEnd& end : report.ends) run.tasks.push_back(ToPublic(end));
  for (const engine::LocalLogLine& line : report.log) run.log.push_back({LevelOf(line.level), line.message});
  for (const auto& statement : report.statements) run.statements.push_back(ToPublic(statement));
  for (const engine::LocalSubmission& one : report.submitted) {
    if (one.kept) run.submitted.push_back(ToPublic(one.task));
  }
  run.calls = report.calls;
  return run;
}

engine::SqlValue ToEngine(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return std::monostate{};
}

const millrace_handler& Find(const millrace_plugin& plugin, std::string_view name) {
  std::string names;
  if (const std::string problem = engine::DescriptorProblem(&plugin); !problem.empty()) {
    throw EngineError("the plugin " + problem);
  }
  for (std::size_t i = 0; i < plugin.handler_count; ++i) {
    if (plugin.handlers[i]->name == name) return *plugin.handlers[i];
    names += std::string(names.empty() ? "" : ", ") + plugin.handlers[i]->name;
  }
  throw EngineError("the plugin has no handler '" + std::string(name) + "'; it has " + names);
}

}  // namespace

struct HandlerTest::Body {
  explicit Body(const millrace_handler& handler) : descriptor(handler), type(handler.name) {}

  engine::Task Claimed(const TestTask& task, std::uint64_t id) const {
    if (task.params.size() > engine::kMaxParams) throw EngineError("the parameters are longer than 64 KiB");
    engine::Task claimed;
    claimed.key = {"tasks", id};
    claimed.state = engine::TaskState::Running;
    claimed.handler = type;
    claimed.priority = task.priority;
    claimed.run_at = claimed.created_at = kCreated;
    claimed.params = task.params;
    claimed.biz_key = task.key;
    claimed.batch = task.batch;
    claimed.failures = task.failures;
    claimed.attempt = task.attempt;
    claimed.progress = task.progress;
    return claimed;
  }

  std::unique_ptr<engine::TaskTransaction> OpenTransaction(engine::Micros limit) {
    if (database) return database->OpenTransaction(limit);
    return std::make_unique<engine::FakeTransaction>(fake, keys);
  }

  const millrace_handler descriptor;
  const std::string type;
  engine::HandlerConfig config;
  std::map<std::string, std::string> secrets;
  std::shared_ptr<engine::HandlerInstance> instance;
  std::unique_ptr<MemoryStore> database;
  SqlFake fake;
  engine::FakeTransaction::Keys keys;
  engine::LocalStop stop;
};

HandlerTest::HandlerTest(const millrace_plugin& plugin, std::string_view handler)
    : HandlerTest(Find(plugin, handler)) {}
HandlerTest::HandlerTest(const millrace_handler& handler) : body_(std::make_unique<Body>(handler)) {}
HandlerTest::~HandlerTest() = default;

void HandlerTest::Configure(std::string_view json) {
  const std::string document = "{\"handlers\":{\"" + body_->type + "\":" + std::string(json) + "}}";
  body_->config = Checked(engine::ParseConfig(document, "Configure")).HandlerFor(body_->type);
  body_->instance.reset();
}

void HandlerTest::SetSecret(std::string_view name, std::string_view value) {
  body_->secrets[std::string(name)] = value;
  body_->instance.reset();
}

void HandlerTest::Open() {
  body_->instance.reset();
  const engine::Secrets secrets(body_->secrets.begin(), body_->secrets.end());
  body_->instance =
      Checked(engine::OpenHandler(body_->descriptor, body_->type, body_->config.options, secrets));
}

void HandlerTest::UseSqlite(std::string_view script) {
  body_->fake = nullptr;
  body_->database.reset();
  body_->database = std::make_unique<MemoryStore>(script);
}

void HandlerTest::UseFake(SqlFake fake) {
  body_->database.reset();
  body_->fake = std::move(fake);
}

Rows HandlerTest::Query(std::string_view sql, std::initializer_list<SqlValue> values) {
  std::vector<engine::SqlValue> bound;
  for (const SqlValue& value : values) bound.push_back(ToEngine(value));
  const auto transaction = body_->OpenTransaction(std::chrono::seconds(5));
  engine::SqlResult result = Checked(transaction->Execute(sql, bound));
  const engine::CommitReport committed = transaction->Commit("", {});
  if (committed.verdict != engine::CommitVerdict::Committed) throw EngineError(committed.message);
  return {std::move(result.columns), std::move(result.rows)};
}

void HandlerTest::Stop(StopReason reason) {
  constexpr engine::LocalStop::Reason kReasons[] = {engine::LocalStop::Reason::None,
                                                    engine::LocalStop::Reason::Cancelled,
                                                    engine::LocalStop::Reason::WorkerEnds};
  body_->stop.Set(kReasons[static_cast<int>(reason)]);
}

TestedRun HandlerTest::RunTasks(std::vector<TestTask> tasks) {
  if (!body_->instance) Open();
  engine::LocalCall call;
  for (const TestTask& task : tasks) call.tasks.push_back(body_->Claimed(task, call.tasks.size() + 1));
  call.config = engine::Over(body_->instance->Defaults(), body_->config);
  const auto transaction = body_->OpenTransaction(call.config.timeout);
  call.transaction = transaction.get();
  call.commit = true;
  call.stop = &body_->stop;
  return ToPublic(engine::RunTasks(body_->instance, call, engine::SystemClock()));
}

}  // namespace millrace

#include <millrace/producer.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "framework/base/log_line.h"
#include "framework/base/mutex.h"
#include "framework/base/result.h"
#include "framework/doorbell/datagram.h"
#include "framework/producer/batch.h"
#include "framework/store/mysql/store.h"
#include "framework/store/sqlite/store.h"
#include "framework/task/slice_name.h"

namespace millrace {

// A program of somebody else's has no use for glog: the engine's own lines go to standard error. Weak, since
// it may be linked with another library of ours that says so, too.
__attribute__((weak)) void engine::Log(LogLevel level, std::string_view event,
                                       std::initializer_list<LogField> fields) {
  const std::string line = LogLine(SystemClock().WallNow(), level, event, fields) + "\n";
  std::fputs(line.c_str(), stderr);
}

namespace producer {
namespace {

engine::Result<std::unique_ptr<engine::Store>> OpenStore(const std::string& url,
                                                         const ConnectOptions& options) {
  BOOST_OUTCOME_TRY(parsed, engine::ParseStoreUrl(url));
  const engine::StoreOptions store{.password_file = options.password_file,
                                   .connect_timeout = options.connect_timeout,
                                   .io_timeout = options.io_timeout};
  return parsed.kind == engine::StoreUrl::Kind::Sqlite ? engine::sqlite::OpenStore(parsed, store)
                                                       : engine::mysql::OpenStore(parsed, store);
}

// The table that is submitted to where a call names none.
engine::Result<engine::TableName> OwnTable(const std::vector<engine::TableInfo>& tables,
                                           const std::string& name) {
  if (name.empty() && tables.size() == 1) return tables[0].table;
  for (const engine::TableInfo& info : tables) {
    if (info.table == name) return info.table;
  }
  return engine::Fail(engine::ErrorCode::Invalid,
                      name.empty() ? "the store has " + std::to_string(tables.size()) +
                                         " task tables: say which by ConnectOptions::table"
                                   : "the store has no task table '" + engine::Shorten(name, 80) + "'");
}

constexpr std::size_t kMostDoorbells = 100;  // a ring is worth no more
constexpr Duration kSoon = std::chrono::seconds(10);

engine::Status CheckDoorbells(const ConnectOptions& options) {
  if (!engine::IsShardName(options.shard)) {
    return engine::Fail(
        engine::ErrorCode::Invalid,
        "ConnectOptions::shard: '" + engine::Shorten(options.shard, 80) + "' is not the name of a shard");
  }
  if (options.doorbells.size() > kMostDoorbells) {
    return engine::Fail(engine::ErrorCode::Invalid, "ConnectOptions::doorbells: at most " +
                                                        std::to_string(kMostDoorbells) + " workers are rung");
  }
  for (const std::string& address : options.doorbells) {
    if (engine::IsRingAddress(address)) continue;
    return engine::Fail(engine::ErrorCode::Invalid,
                        "ConnectOptions::doorbells: '" + engine::Shorten(address, 80) +
                            "' is no address of a worker: write IP:PORT, such as 10.0.0.7:7460");
  }
  return {};
}

// A worker that looks at a task which is due in a moment starts it on time.
bool IsDueSoon(const NewTask& task) {
  const Time now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  return !task.held && task.delay < kSoon && task.run_at.value_or(now) < now + kSoon;
}

}  // namespace

struct Producer::Body {
  // A session of its own for each call that is under way.
  std::unique_ptr<engine::TaskOperations> Take() {
    engine::MutexLock lock(mutex);
    if (idle.empty()) return store->OpenOperations();
    auto session = std::move(idle.back());
    idle.pop_back();
    return session;
  }
  void GiveBack(std::unique_ptr<engine::TaskOperations> session) {
    engine::MutexLock lock(mutex);
    idle.push_back(std::move(session));
  }

  engine::Result<engine::SubmitReport> Submit(std::span<const NewTask> tasks, const SubmitOptions& options);
  // Rings for those that were added, and are due or will be soon.
  void Ring(const engine::TableName& to, std::span<const NewTask> tasks,
            std::span<const engine::NewTask> placed, const engine::SubmitReport& report) const;

  // Constant.
  std::vector<std::string> doorbells;
  std::string shard;
  std::unique_ptr<engine::Store> store;
  std::vector<engine::TableInfo> tables;
  engine::TableName table = engine::kDefaultTable;

  engine::Mutex mutex;
  std::vector<std::unique_ptr<engine::TaskOperations>> idle MILLRACE_GUARDED_BY(mutex);
};

engine::Result<engine::SubmitReport> Producer::Body::Submit(std::span<const NewTask> tasks,
                                                            const SubmitOptions& options) {
  BOOST_OUTCOME_TRY(to, ParseTable(options.table, table));
  const auto known = std::find_if(tables.begin(), tables.end(),
                                  [&](const engine::TableInfo& info) { return info.table == to; });
  if (known == tables.end()) {
    return engine::Fail(engine::ErrorCode::Invalid,
                        store->Describe() + ": there is no task table '" + std::string(to) + "'");
  }
  BOOST_OUTCOME_TRY(placed, ToStore(tasks));
  if (!doorbells.empty() || ChoosesSlices(tasks, options.slices))
    ChooseSlices(tasks, options.slices, known->slices, engine::Random::FromSystem(), placed);
  auto session = Take();
  auto report = session->Submit(to, placed);
  GiveBack(std::move(session));
  if (report) Ring(to, tasks, placed, *report);
  return report;
}

void Producer::Body::Ring(const engine::TableName& to, std::span<const NewTask> tasks,
                          std::span<const engine::NewTask> placed, const engine::SubmitReport& report) const {
  if (doorbells.empty()) return;
  std::set<std::uint32_t> slices;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (report.ids[i] != 0 && IsDueSoon(tasks[i])) slices.insert(*placed[i].slice);
  }
  if (!slices.empty()) engine::SendRing(doorbells, {shard, {to, {slices.begin(), slices.end()}}});
}

Producer::Producer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Producer::Producer(Producer&& other) noexcept = default;
Producer& Producer::operator=(Producer&& other) noexcept = default;
Producer::~Producer() = default;

Result<Producer> Producer::Open(const std::string& url, const ConnectOptions& options) {
  auto body = std::make_unique<Body>();
  body->doorbells = options.doorbells;
  body->shard = options.shard;
  const auto open = [&]() -> engine::Status {
    BOOST_OUTCOME_TRYV(CheckDoorbells(options));
    BOOST_OUTCOME_TRY(store, OpenStore(url, options));
    body->store = std::move(store);
    BOOST_OUTCOME_TRYV(body->store->Ping());
    BOOST_OUTCOME_TRY(tables, body->store->OpenSchema()->Tables());
    body->tables = std::move(tables);
    BOOST_OUTCOME_TRY(table, OwnTable(body->tables, options.table));
    body->table = table;
    return {};
  };
  if (auto opened = open(); !opened) return FromStore(opened.error());
  return Producer(std::move(body));
}

Result<Report> Producer::Submit(std::span<const NewTask> tasks, const SubmitOptions& options) {
  auto report = body_->Submit(tasks, options);
  if (!report) return FromStore(report.error());
  return FromStore(std::move(*report));
}

Result<SubmittedTask> Producer::Submit(const NewTask& task, const SubmitOptions& options) {
  return Single(Submit(std::span(&task, 1), options));
}

}  // namespace producer
}  // namespace millrace

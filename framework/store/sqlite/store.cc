#include "framework/store/sqlite/store.h"

#include <algorithm>

#include "framework/store/sql/sessions.h"
#include "framework/store/sqlite/sessions.h"
#include "framework/store/sqlite/task_store.h"

namespace millrace::engine::sqlite {
namespace {

class SqliteStore final : public Store {
 public:
  SqliteStore(const std::string& path, const Clock* clock) : file_{.path = path, .clock = clock} {}

  std::string Describe() const override { return "sqlite:" + file_.path; }
  Status Ping() override {
    Session db(file_);
    auto rows = db.Select("SELECT count(*) FROM sqlite_master");
    return rows.Finish();
  }

  bool WritesInTurn() const override { return true; }

  std::unique_ptr<TaskStore> OpenTasks() override { return std::make_unique<SqliteTaskStore>(file_); }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override {
    return sql::OpenIncarnations(Connect(), file_.claimers);
  }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return sqlite::OpenTransaction(file_, std::min(limit, kLongestOfHandler));
  }
  std::unique_ptr<TaskTransaction> OpenLongTransaction(Micros limit) override {
    return sqlite::OpenTransaction(file_, limit);
  }
  std::unique_ptr<TaskOperations> OpenOperations() override { return sql::OpenOperations(Connect()); }
  std::unique_ptr<SchemaStore> OpenSchema() override { return sqlite::OpenSchema(file_); }
  std::unique_ptr<PruneStore> OpenPruning() override { return sql::OpenPruning(Connect()); }
  std::unique_ptr<OverviewStore> OpenOverview() override { return sqlite::OpenOverview(file_); }
  std::unique_ptr<AlertStore> OpenAlerts() override { return sql::OpenAlerts(Connect()); }
  std::unique_ptr<ScheduleStore> OpenSchedules() override { return sql::OpenSchedules(Connect()); }
  std::unique_ptr<FanOutStore> OpenFanOuts() override { return sql::OpenFanOuts(Connect()); }
  std::unique_ptr<BatchStore> OpenBatches() override { return sql::OpenBatches(Connect()); }
  std::unique_ptr<PermitStore> OpenPermits() override { return sql::OpenPermits(Connect(), file_.claimers); }
  std::unique_ptr<StoreDiagnosis> OpenDiagnosis() override { return sqlite::OpenDiagnosis(file_); }
  std::unique_ptr<ChangeFeed> OpenChanges(IsWatched) override { return OpenFileWatch(file_.path); }

 private:
  std::unique_ptr<sql::Connection> Connect() { return std::make_unique<Session>(file_); }

  File file_;
};

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const StoreUrl& url, const StoreOptions&, const Clock* clock) {
  if (url.kind != StoreUrl::Kind::Sqlite)
    return Fail(ErrorCode::Invalid, "the store URL does not name an SQLite file");
  if (url.path == ":memory:" || url.path.starts_with("file:")) {
    return Fail(ErrorCode::Invalid, "sqlite:" + url.path +
                                        " is no file: a store must outlive its process; write "
                                        "sqlite:PATH");
  }
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(url.path, clock));
}

}  // namespace millrace::engine::sqlite

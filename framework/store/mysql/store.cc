#include "framework/store/mysql/store.h"

#include <algorithm>
#include <limits>

#include "framework/store/mysql/sessions.h"
#include "framework/store/sql/sessions.h"

namespace millrace::engine::mysql {
namespace {

constexpr std::size_t kAsManyAsSessions = std::numeric_limits<std::size_t>::max();

// A connection that went silent must not cost the lease: the beat gives it up after a fifth and takes
// another.
Endpoint Impatient(Endpoint endpoint) {
  const Micros patience = std::max<Micros>(endpoint.options.lease / 5, std::chrono::seconds(1));
  endpoint.options.connect_timeout = std::min(endpoint.options.connect_timeout, patience);
  endpoint.options.io_timeout = std::min(endpoint.options.io_timeout, patience);
  return endpoint;
}

class MysqlStore final : public Store {
 public:
  MysqlStore(const StoreUrl& url, const StoreOptions& options)
      : endpoint_{url, options},
        handlers_(options.max_transactions == 0 ? kAsManyAsSessions : options.max_transactions) {}

  std::string Describe() const override { return endpoint_.Describe(); }
  Status Ping() override {
    Session session(endpoint_, endpoint_.options.lease);
    return session.Connect();
  }

  std::unique_ptr<TaskStore> OpenTasks() override { return mysql::OpenTasks(endpoint_, engine_, claimers_); }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override {
    // The beat alone writes whether there is work or not, and sees that a server takes no writes any more
    // because another one has taken its place. What an idle worker reads by may lead to the old one for ever.
    auto session = std::make_unique<Session>(for_beats_, endpoint_.options.lease);
    session->OnReturn([this] {
      engine_.Forget();
      handlers_.Forget();
      ++*returns_;
    });
    return sql::OpenIncarnations(std::move(session), claimers_);
  }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return mysql::OpenTransaction(endpoint_, handlers_, claimers_, limit);
  }
  std::unique_ptr<TaskOperations> OpenOperations() override { return sql::OpenOperations(Shared()); }
  std::unique_ptr<SchemaStore> OpenSchema() override { return mysql::OpenSchema(endpoint_); }
  std::unique_ptr<PruneStore> OpenPruning() override { return sql::OpenPruning(Shared()); }
  std::unique_ptr<OverviewStore> OpenOverview() override { return mysql::OpenOverview(endpoint_, engine_); }
  std::unique_ptr<AlertStore> OpenAlerts() override { return sql::OpenAlerts(Shared()); }
  std::unique_ptr<ScheduleStore> OpenSchedules() override { return sql::OpenSchedules(Shared()); }
  std::unique_ptr<FanOutStore> OpenFanOuts() override { return sql::OpenFanOuts(Shared()); }
  std::unique_ptr<BatchStore> OpenBatches() override { return sql::OpenBatches(Shared()); }
  std::unique_ptr<PermitStore> OpenPermits() override { return sql::OpenPermits(Shared(), claimers_); }
  std::unique_ptr<StoreDiagnosis> OpenDiagnosis() override { return mysql::OpenDiagnosis(endpoint_); }
  std::unique_ptr<ChangeFeed> OpenChanges(IsWatched watched) override {
    const auto& account = endpoint_.options.doorbell;
    if (!account) return nullptr;
    Endpoint follower = endpoint_;
    if (!account->user.empty()) {
      follower.url.user = account->user;
      follower.options.password_file = account->password_file;
    }
    return OpenBinlogFeed(std::move(follower), std::move(watched), returns_, writes_);
  }
  const HeardWrites& Heard() const override { return *writes_; }

 private:
  std::unique_ptr<sql::Connection> Shared() {
    return std::make_unique<Session>(endpoint_, endpoint_.options.lease, &engine_);
  }

  const Endpoint endpoint_;
  const Endpoint for_beats_ = Impatient(endpoint_);
  ConnectionPool engine_{kAsManyAsSessions};
  ConnectionPool handlers_;
  sql::Claimers claimers_;
  const HeardWritesPtr writes_ = std::make_shared<HeardWrites>();
  const Returns returns_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const StoreUrl& url, const StoreOptions& options) {
  if (url.kind != StoreUrl::Kind::Mysql) {
    return Fail(ErrorCode::Invalid, "the store URL is not a mysql:// address");
  }
  return std::make_unique<MysqlStore>(url, options);
}

}  // namespace millrace::engine::mysql

#include "framework/store/mysql/mysql_store.h"

#include <limits>

#include "framework/store/mysql/sessions.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kAsManyAsSessions = std::numeric_limits<std::size_t>::max();

class MysqlStore final : public Store {
 public:
  MysqlStore(const StoreUrl& url, const StoreOptions& options)
      : endpoint_{url, options},
        handlers_(options.max_transactions == 0 ? kAsManyAsSessions : options.max_transactions) {}

  std::string Describe() const override { return endpoint_.Describe(); }
  Status Ping() override {
    mysql::Session session(endpoint_, endpoint_.options.lease);
    return session.Connect();
  }

  std::unique_ptr<TaskStore> OpenTasks() override { return mysql::OpenTasks(endpoint_, engine_); }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override { return mysql::OpenIncarnations(endpoint_); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return mysql::OpenTransaction(endpoint_, handlers_, limit);
  }
  std::unique_ptr<TaskDesk> OpenDesk() override { return mysql::OpenDesk(endpoint_, engine_); }
  std::unique_ptr<SchemaStore> OpenSchema() override { return mysql::OpenSchema(endpoint_); }
  std::unique_ptr<PruneStore> OpenPruning() override { return mysql::OpenPruning(endpoint_, engine_); }

 private:
  const mysql::Endpoint endpoint_;
  mysql::ConnectionPool engine_{kAsManyAsSessions};
  mysql::ConnectionPool handlers_;
};

}  // namespace

Result<std::unique_ptr<Store>> OpenMysqlStore(const StoreUrl& url, const StoreOptions& options) {
  if (url.kind != StoreUrl::Kind::Mysql) {
    return Fail(ErrorCode::Invalid, "the store URL is not a mysql:// address");
  }
  return std::make_unique<MysqlStore>(url, options);
}

}  // namespace millrace::engine

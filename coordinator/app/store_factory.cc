#include "coordinator/app/store_factory.h"

#include "framework/store/mysql/mysql_store.h"
#include "framework/store/sqlite/sqlite_store.h"

namespace millrace::engine {

Result<std::unique_ptr<Store>> MakeStore(const ShardConfig& shard, Micros lease) {
  BOOST_OUTCOME_TRY(url, ParseStoreUrl(shard.url));
  StoreOptions options;
  options.password_file = shard.password_file;
  options.lease = lease;
  options.max_transactions = shard.max_transactions;
  return url.kind == StoreUrl::Kind::Sqlite ? OpenSqliteStore(url, options) : OpenMysqlStore(url, options);
}

}  // namespace millrace::engine

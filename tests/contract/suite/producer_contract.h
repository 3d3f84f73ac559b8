// The producer API in a caller's transaction: a connection with bound statements that commits and rolls back
// as its owner says. A handler's transaction serves as one here. A store takes part as in StoreContract.
#pragma once

#include <millrace/producer.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {

class ProducerContract : public TransactionContract {
 protected:
  producer::Dialect dialect() const {
    return GetParam().name == "sqlite" ? producer::Dialect::Sqlite : producer::Dialect::Mysql;
  }
  static producer::RunSql On(TaskTransaction& transaction);
  producer::Report Submit(const std::vector<producer::NewTask>& tasks);
  void CommitAll();
  // Who has the key by now; empty: a task that was just added by the store's own operations.
  std::string HolderOf(const std::string& key);
  std::string Tasks();
};

}  // namespace millrace::engine

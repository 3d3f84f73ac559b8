#include "coordinator/leader/shard_keeper.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace {
namespace {

constexpr Micros kRound = std::chrono::seconds(1);

}  // namespace

ShardKeeper::ShardKeeper(Parts parts) : parts_(std::move(parts)) {}

void ShardKeeper::Start() {
  thread_ = Thread("keep " + parts_.name, [this] { Run(); });
}

void ShardKeeper::Stop() {
  stopping_.store(true);
  wake_.Notify();
  thread_.Join();
}

std::optional<std::vector<TableInfo>> ShardKeeper::Tables() const {
  MutexLock lock(mutex_);
  return tables_;
}

void ShardKeeper::Run() {
  std::unique_ptr<SchemaStore> schema;
  while (!stopping_.load()) {
    if (parts_.leading()) {
      if (!schema) schema = parts_.store->OpenSchema();
      ReadTables(*schema);
    } else {
      schema.reset();
    }
    wake_.WaitFor(kRound);
  }
}

void ShardKeeper::ReadTables(SchemaStore& schema) {
  auto tables = schema.Tables();
  const std::string trouble = tables ? "" : tables.error().message;
  if (trouble != trouble_) {
    if (!trouble.empty()) {
      LogWarning("the leader can't read a shard's tables: what is assigned of it stays so",
                 {{"shard", parts_.name}, {"why", trouble}});
    } else {
      LogInfo("the leader reads a shard's tables again", {{"shard", parts_.name}});
    }
    trouble_ = trouble;
  }
  if (tables) Keep(std::move(*tables));
}

void ShardKeeper::Keep(std::vector<TableInfo> tables) {
  const std::vector<std::string> wanted = parts_.wanted();
  if (!wanted.empty()) {
    std::erase_if(tables, [&](const TableInfo& info) {
      return std::find(wanted.begin(), wanted.end(), info.table) == wanted.end();
    });
  }
  {
    MutexLock lock(mutex_);
    if (tables_ == tables) return;
    tables_ = std::move(tables);
  }
  parts_.changed();
}

}  // namespace millrace

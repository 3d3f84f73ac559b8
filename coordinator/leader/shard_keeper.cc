#include "coordinator/leader/shard_keeper.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace {
namespace {

constexpr Micros kRound = std::chrono::seconds(1);
constexpr Micros kLookForLeftovers = std::chrono::seconds(5);

}  // namespace

ShardKeeper::ShardKeeper(Parts parts) : parts_(std::move(parts)), slices_(parts_.name) {}

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

std::vector<std::string> ShardKeeper::Unrunnable() const {
  MutexLock lock(mutex_);
  return unrunnable_;
}

void ShardKeeper::Run() {
  std::unique_ptr<SchemaStore> schema;
  std::unique_ptr<LeftoversDuty> leftovers;
  while (!stopping_.load()) {
    if (!parts_.leading()) {
      schema.reset();
      leftovers.reset();
    } else {
      if (!schema) schema = parts_.store->OpenSchema();
      if (!leftovers) leftovers = std::make_unique<LeftoversDuty>(parts_.name, *parts_.store);
      Round(*schema, *leftovers);
    }
    wake_.WaitFor(kRound);
  }
}

void ShardKeeper::Round(SchemaStore& schema, LeftoversDuty& leftovers) {
  if (!ReadTables(schema)) return;
  const std::vector<TableInfo> tables = *Tables();
  if (slices_.Do(schema, tables, parts_.config().slices)) ReadTables(schema);
  const auto ownership = parts_.ownership();
  const BootTime now = BootClock::now();
  if (ownership == nullptr || now - looked_ < kLookForLeftovers) return;
  looked_ = now;
  std::vector<std::string> names;
  for (const TableInfo& table : tables) names.push_back(table.table);
  leftovers.Do(names, *ownership);
  MutexLock lock(mutex_);
  unrunnable_ = leftovers.unrunnable();
}

bool ShardKeeper::ReadTables(SchemaStore& schema) {
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
  if (!tables) return false;
  Keep(std::move(*tables));
  return true;
}

void ShardKeeper::Keep(std::vector<TableInfo> tables) {
  const std::vector<std::string> wanted = parts_.config().tables;
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

#include "coordinator/leader/shard_keeper.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace {
namespace {

constexpr Micros kLookForLeftovers = std::chrono::seconds(5);

}  // namespace

ShardKeeper::ShardKeeper(Parts parts) : parts_(std::move(parts)), slices_(parts_.name) {}

void ShardKeeper::Start() {
  stopped_.store(false);
  thread_ = Thread("keep " + parts_.name, [this] {
    Run();
    stopped_.store(true);
  });
}

void ShardKeeper::Stop() {
  (void)AskToStop();
  thread_.Join();
}

bool ShardKeeper::AskToStop() {
  stopping_.store(true);
  wake_.Notify();
  return stopped_.load();
}

std::optional<std::vector<TableInfo>> ShardKeeper::Tables() const {
  MutexLock lock(mutex_);
  return tables_;
}

std::vector<std::string> ShardKeeper::Unrunnable() const {
  MutexLock lock(mutex_);
  return unrunnable_;
}

ShardKeeper::Hands::Hands(const Parts& parts)
    : schema(parts.store->OpenSchema()),
      leftovers(parts.name, *parts.store),
      prune(parts.name, *parts.store) {}

void ShardKeeper::Run() {
  std::optional<Hands> hands;
  while (!stopping_.load()) {
    if (!parts_.leading()) {
      hands.reset();
      Forget();
    } else {
      if (!hands) hands.emplace(parts_);
      Round(*hands);
    }
    wake_.WaitFor(parts_.round);
  }
}

void ShardKeeper::Round(Hands& hands) {
  if (!ReadTables(*hands.schema)) return;
  const std::optional<std::vector<TableInfo>> tables = Tables();
  if (!tables) return;  // the configuration names none of those that are there
  if (slices_.Do(*hands.schema, *tables, Wanted().slices)) ReadTables(*hands.schema);
  std::vector<std::string> names;
  for (const TableInfo& table : *tables) names.push_back(table.table);
  if (stopping_.load()) return;
  const BootTime now = BootClock::now();
  hands.prune.Do(names, *parts_.config(), now);
  const auto ownership = parts_.ownership();
  if (stopping_.load() || ownership == nullptr || now - looked_ < kLookForLeftovers) return;
  looked_ = now;
  hands.leftovers.Do(names, *ownership);
  MutexLock lock(mutex_);
  unrunnable_ = hands.leftovers.unrunnable();
}

// What the configuration says of the shard.
ShardConfig ShardKeeper::Wanted() const {
  const auto config = parts_.config();
  const auto found = config->shards.find(parts_.name);
  return found == config->shards.end() ? ShardConfig{} : found->second;
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
  const std::vector<std::string> wanted = Wanted().tables;
  if (!wanted.empty()) {
    std::erase_if(tables, [&](const TableInfo& info) {
      return std::find(wanted.begin(), wanted.end(), info.table) == wanted.end();
    });
    const std::string trouble =
        tables.size() < wanted.size() ? "the configuration names tables that the schema does not have" : "";
    if (trouble != missing_ && !trouble.empty()) LogWarning(trouble, {{"shard", parts_.name}});
    missing_ = trouble;
    if (tables.empty()) return;  // a slip of the hand: what is assigned stays so
  }
  MutexLock lock(mutex_);
  tables_ = std::move(tables);
}

// Another leader may change the tables now: what was read of them must not be planned with later.
void ShardKeeper::Forget() {
  MutexLock lock(mutex_);
  tables_.reset();
  unrunnable_.clear();
}

}  // namespace millrace

#include "coordinator/leader/shard_keeper.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kLookForLeftovers = std::chrono::seconds(5);
constexpr Micros kTryAsCandidate = std::chrono::seconds(10);

}  // namespace

ShardKeeper::ShardKeeper(Parts parts) : parts_(std::move(parts)), slices_(parts_.name) {}

Status ShardKeeper::Start() {
  stopped_.store(false);
  Status started = thread_.Start("keep " + parts_.name, [this] {
    Run();
    stopped_.store(true);
  });
  if (!started) stopped_.store(true);
  return started;
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

std::optional<bool> ShardKeeper::Readable() const {
  MutexLock lock(mutex_);
  return readable_;
}

std::vector<std::string> ShardKeeper::Unrunnable() const {
  MutexLock lock(mutex_);
  return unrunnable_;
}

std::string ShardKeeper::Trouble() const {
  MutexLock lock(mutex_);
  return trouble_;
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
      Try();
    } else {
      tried_.reset();
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
  std::vector<TableName> names;
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

// A candidate's whole work: the others want to know whether it could lead. Its connection is not kept.
void ShardKeeper::Try() {
  if (!parts_.standing()) {
    tried_.reset();
    return KeepReadable(std::nullopt);
  }
  const BootTime now = BootClock::now();
  if (tried_ && now - *tried_ < kTryAsCandidate) return;
  tried_ = now;
  KeepReadable(static_cast<bool>(parts_.store->OpenSchema()->Tables()));
}

void ShardKeeper::KeepReadable(std::optional<bool> readable) {
  MutexLock lock(mutex_);
  readable_ = readable;
}

bool ShardKeeper::ReadTables(SchemaStore& schema) {
  auto tables = schema.Tables();
  KeepReadable(static_cast<bool>(tables));
  if (tables) {
    Keep(std::move(*tables));
  } else {
    Note("its tables can't be read, so what is assigned of them stays so: " + tables.error().message);
  }
  return static_cast<bool>(tables);
}

void ShardKeeper::Keep(std::vector<TableInfo> tables) {
  const std::vector<TableName> wanted = Wanted().tables;
  if (!wanted.empty()) {
    std::erase_if(tables, [&](const TableInfo& info) {
      return std::find(wanted.begin(), wanted.end(), info.table) == wanted.end();
    });
  }
  Note(tables.size() < wanted.size() ? "the configuration names tables that its schema does not have" : "");
  if (tables.empty() && !wanted.empty()) return;  // a slip of the hand: what is assigned stays so
  MutexLock lock(mutex_);
  tables_ = std::move(tables);
}

void ShardKeeper::Note(const std::string& trouble) {
  {
    MutexLock lock(mutex_);
    if (trouble == trouble_) return;
    trouble_ = trouble;
  }
  if (trouble.empty()) {
    LogInfo("the leader reads all tables of a shard again", {{"shard", parts_.name}});
  } else {
    LogWarning("the leader has trouble with a shard", {{"shard", parts_.name}, {"why", trouble}});
  }
}

// Another leader may change the tables now: what was read of them must not be planned with later.
void ShardKeeper::Forget() {
  MutexLock lock(mutex_);
  tables_.reset();
  unrunnable_.clear();
  trouble_.clear();
}

}  // namespace millrace::engine

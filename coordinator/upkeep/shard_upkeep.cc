#include "coordinator/upkeep/shard_upkeep.h"

#include <algorithm>
#include <map>

#include "coordinator/upkeep/fan_outs.h"
#include "coordinator/upkeep/pruning.h"
#include "framework/base/log.h"

namespace millrace::engine {
namespace {

// What hardly ever has something to do: leftovers, rows beyond the slices, what dead workers told of
// breakers, and fan-outs where no schedule has any.
constexpr Micros kSeldom = std::chrono::seconds(5);
constexpr Micros kTryAsCandidate = std::chrono::seconds(10);

// How the tasks stand is read so often, or where it is dear, so that it takes a fiftieth of the time.
constexpr Micros kReadStanding = std::chrono::seconds(10);
constexpr int kStandingPart = 50;

// Renumbering: in small steps, so that nobody waits for their locks; as many in a round as leave the database
// its breath.
constexpr std::size_t kRowsInAStep = 200;
constexpr int kStepsInARound = 10;

// Pages of fan-outs, with the shard's other duties in between; a firing is waiting for its first one.
constexpr Micros kFanOutTurn = std::chrono::milliseconds(300);
// What goes on in turns goes on between the rounds, too: pruning a million rows took an hour with a turn a
// round.
constexpr Micros kBetweenTurns = std::chrono::seconds(1);
constexpr Micros kWhileTablesChange = std::chrono::seconds(1);
constexpr Micros kReadLives = std::chrono::milliseconds(400);  // who is dead leaves its share to others

// As many slices a table as the configuration wants, and no row beyond them.
class SliceCounts {
 public:
  explicit SliceCounts(std::string shard) : shard_(std::move(shard)) {}

  // `wanted` slices a table; 0: as they are. `tables` as they were read; true if that should be done anew,
  // since something was changed. Renumbers a bounded number of rows.
  bool Follow(SchemaStore& schema, const std::vector<TableInfo>& tables, std::uint32_t wanted) {
    bool changed = false;
    for (const TableInfo& table : tables) {
      if (wanted > 0 && wanted != table.slices) changed = Resize(schema, table, wanted) || changed;
      if (!table.beyond.empty()) changed = Renumber(schema, table) || changed;
    }
    return changed;
  }

 private:
  bool Resize(SchemaStore& schema, const TableInfo& table, std::uint32_t wanted) {
    const Status resized = schema.Resize(table.table, wanted);
    const std::string trouble = resized ? "" : resized.error().message;
    if (resized) {
      LogInfo("a table has another number of slices",
              {{"shard", shard_}, {"table", table.table}, {"from", table.slices}, {"to", wanted}});
    } else if (trouble != trouble_[table.table]) {
      LogWarning("a table's slices can't be changed now; it is tried again",
                 {{"shard", shard_}, {"table", table.table}, {"why", trouble}});
    }
    trouble_[table.table] = trouble;
    return static_cast<bool>(resized);
  }

  // Whether it could: rows that run wait for their end.
  bool Renumber(SchemaStore& schema, const TableInfo& table) {
    std::size_t rows = 0;
    for (int step = 0; step < kStepsInARound; ++step) {
      const auto moved = schema.RenumberStep(table.table, kRowsInAStep);
      if (!moved) break;
      rows += *moved;
      if (*moved < kRowsInAStep) break;
    }
    if (rows == 0) return false;
    LogInfo("rows beyond a table's slices were given a slice of their own",
            {{"shard", shard_}, {"table", table.table}, {"rows", rows}});
    return true;
  }

  const std::string shard_;
  std::map<TableName, std::string> trouble_;  // by table: what was logged last
};

bool AreAsWanted(const std::vector<TableInfo>& tables, std::uint32_t slices) {
  return std::all_of(tables.begin(), tables.end(), [&](const TableInfo& table) {
    return table.beyond.empty() && (slices == 0 || table.slices == slices);
  });
}

}  // namespace

struct ShardUpkeep::Hands {
  explicit Hands(const Parts& parts)
      : incarnations(parts.store->OpenIncarnations()),
        slices(parts.name),
        fan_outs(parts.name, *parts.store, parts.store->OpenFanOuts()),
        leftovers(parts.name, *parts.store),
        pruning(parts.name, *parts.store),
        breakers(parts.name, parts.store),
        standing(*parts.store) {}

  std::unique_ptr<SchemaStore> schema;  // null: nobody reads it now
  const std::unique_ptr<IncarnationStore> incarnations;
  SliceCounts slices;
  FanOuts fan_outs;
  Leftovers leftovers;
  Pruning pruning;
  BreakerRows breakers;
  StandingReader standing;
};

ShardUpkeep::ShardUpkeep(Parts parts)
    : parts_(std::move(parts)),
      schedules_(parts_.board == nullptr ? nullptr
                                         : std::make_unique<SchedulesThread>(
                                               parts_.name, parts_.store, parts_.schedules, *parts_.board)) {}

Status ShardUpkeep::Start() {
  if (schedules_ != nullptr) {
    BOOST_OUTCOME_TRYV(schedules_->Start());
  }
  stopped_.store(false);
  Status started = thread_.Start("keep " + parts_.name, [this] {
    Run();
    stopped_.store(true);
  });
  if (!started) stopped_.store(true);
  return started;
}

void ShardUpkeep::Stop() {
  (void)AskToStop();
  thread_.Join();
  if (schedules_ != nullptr) schedules_->Stop();
}

void ShardUpkeep::LookNow() {
  asked_.store(true);
  wake_.Notify();
}

bool ShardUpkeep::AskToStop() {
  stopping_.store(true);
  wake_.Notify();
  const bool fires_no_more = schedules_ == nullptr || schedules_->AskToStop();
  return fires_no_more && stopped_.load();
}

std::vector<std::string> ShardUpkeep::ScheduleTroubles() const {
  return schedules_ == nullptr ? std::vector<std::string>() : schedules_->Troubles();
}

std::optional<std::vector<TableInfo>> ShardUpkeep::Tables() const {
  MutexLock lock(mutex_);
  return tables_;
}

std::optional<bool> ShardUpkeep::Readable() const {
  MutexLock lock(mutex_);
  return readable_;
}

std::vector<std::string> ShardUpkeep::Unrunnable() const {
  MutexLock lock(mutex_);
  return unrunnable_;
}

std::vector<std::string> ShardUpkeep::PruneTroubles() const {
  MutexLock lock(mutex_);
  return prune_troubles_;
}

void ShardUpkeep::KeepPruneTroubles(std::vector<std::string> troubles) {
  MutexLock lock(mutex_);
  prune_troubles_ = std::move(troubles);
}

std::string ShardUpkeep::Trouble() const {
  MutexLock lock(mutex_);
  return trouble_;
}

std::vector<std::string> ShardUpkeep::FanOutTroubles() const {
  MutexLock lock(mutex_);
  return fan_out_troubles_;
}

void ShardUpkeep::Run() {
  std::optional<Hands> hands;
  BootTime round_at{};
  BootTime turn_at{};
  bool woken = false;
  while (!stopping_.load()) {
    Micros wait = parts_.round;
    if (!parts_.leading()) {
      round_at = {};
      hands.reset();
      Forget();
      Try();
      wait = std::min(wait, kBetweenTurns);  // nobody says that it leads now
    } else {
      tried_.reset();
      if (!hands) {
        hands.emplace(parts_);
        if (parts_.standings != nullptr) parts_.standings->NotePruned(parts_.name, BootClock::now());
      }
      const bool divides = ReadLives(*hands);
      const bool turn = woken || BootClock::now() >= turn_at;
      if (const bool asked = asked_.exchange(false); asked || BootClock::now() >= round_at) {
        const bool change = Round(*hands, asked);
        round_at = BootClock::now() + (change ? std::min(parts_.round, kWhileTablesChange) : parts_.round);
      } else if (const auto tables = Tables(); tables && turn) {
        RunFanOuts(*hands, *tables);
        Prune(*hands, NamesOf(*tables));
      }
      if (const auto open = parts_.breakers ? parts_.breakers() : std::nullopt) hands->breakers.Tell(*open);
      if (turn) turn_at = BootClock::now() + kBetweenTurns;
      wait = std::min(round_at, turn_at) - BootClock::now();
      if (divides) wait = std::min(wait, kReadLives);
    }
    woken = wake_.WaitFor(std::max(wait, Micros(0)));
  }
  if (parts_.standings != nullptr) parts_.standings->Forget(parts_.name);
  // Whoever is gone tells of nothing.
  const auto open = hands && parts_.breakers ? parts_.breakers() : std::nullopt;
  if (open) hands->breakers.Tell({open->worker, {}});
}

// True: the tables are being changed.
bool ShardUpkeep::Round(Hands& hands, bool asked) {
  const BootTime begun = BootClock::now();
  const bool seldom = begun - did_seldom_ >= kSeldom;
  bool change = false;
  if (!asked && UnchangedSince(settled_)) {
    hands.schema.reset();  // the server would close its connection, which is silent for longer than the lease
  } else if (const auto followed = FollowTables(hands, begun, seldom)) {
    change = *followed;
  } else {
    return false;
  }
  const std::optional<std::vector<TableInfo>> tables = Tables();
  RunFanOuts(hands, *tables);
  const std::vector<TableName> names = NamesOf(*tables);
  Prune(hands, names);
  if (stopping_.load()) return change;
  const BootTime now = BootClock::now();
  ReadStanding(hands, names, now);
  const auto ownership = parts_.ownership();
  if (stopping_.load() || ownership == nullptr || now - looked_ < kSeldom) return change;
  if (looked_by_ == ownership && UnchangedSince(looked_)) return change;
  looked_ = now;
  looked_by_ = hands.leftovers.Look(names, *ownership) ? ownership : nullptr;
  MutexLock lock(mutex_);
  unrunnable_ = hands.leftovers.unrunnable();
  return change;
}

// True: the tables are being changed; nullopt: none is known, since none can be read or is named.
std::optional<bool> ShardUpkeep::FollowTables(Hands& hands, BootTime begun, bool seldom) {
  if (!hands.schema) hands.schema = parts_.store->OpenSchema();
  const bool read = ReadTables(*hands.schema, seldom);
  const std::optional<std::vector<TableInfo>> tables = Tables();
  if (!read || !tables) {
    settled_.reset();
    return std::nullopt;
  }
  const std::uint32_t wanted = Wanted().slices;
  const bool change = hands.slices.Follow(*hands.schema, *tables, wanted);
  if (change) ReadTables(*hands.schema, true);
  const bool tidy = !seldom || hands.breakers.TidyUp();
  if (seldom) did_seldom_ = begun;
  if (change || !tidy || !Trouble().empty() || !AreAsWanted(*tables, wanted)) {
    settled_.reset();
  } else if (seldom) {
    settled_ = begun;
  }
  return change;
}

bool ShardUpkeep::UnchangedSince(std::optional<BootTime> read) const {
  return read && parts_.store->Heard().UnchangedSince(*read, BootClock::now());
}

void ShardUpkeep::RunFanOuts(Hands& hands, const std::vector<TableInfo>& tables) {
  const BootTime begun = BootClock::now();
  const auto config = parts_.config();
  const bool likely = hands.fan_outs.under_way() > 0 ||
                      std::any_of(config->schedules.begin(), config->schedules.end(),
                                  [](const auto& one) { return !one.second.from_query.empty(); });
  if (!likely && begun - ran_fan_outs_ < kSeldom) return;
  if (UnchangedSince(hands.fan_outs.none_at())) return;
  ran_fan_outs_ = begun;
  const BootTime end = begun + kFanOutTurn;
  const bool more = hands.fan_outs.Go(
      tables, [&] { return stopping_.load() || BootClock::now() >= end || !parts_.leading(); });
  if (more) wake_.Notify();
  MutexLock lock(mutex_);
  fan_out_troubles_ = hands.fan_outs.Troubles();
}

// Its turns are short, and it says itself when it rests.
void ShardUpkeep::Prune(Hands& hands, const std::vector<TableName>& tables) {
  if (stopping_.load()) return;
  if (!parts_.prunes())
    return KeepPruneTroubles(
        {"nothing is pruned while config/handlers, which says what is kept, is refused"});
  const bool pruned = hands.pruning.Go(tables, *parts_.config(), BootClock::now());
  KeepPruneTroubles(hands.pruning.Troubles());
  if (pruned && parts_.standings != nullptr) parts_.standings->NotePruned(parts_.name, BootClock::now());
}

// False: nobody asks for them.
bool ShardUpkeep::ReadLives(Hands& hands) {
  if (!parts_.divides()) return false;
  SeenLives seen{BootClock::now()};
  const auto peers = hands.incarnations->Peers();
  if (!peers) return true;
  for (const PeerBeat& peer : *peers) seen.alive.emplace_back(peer.incarnation.worker, peer.incarnation.id);
  MutexLock lock(mutex_);
  lives_ = std::move(seen);
  return true;
}

SeenLives ShardUpkeep::Lives() const {
  MutexLock lock(mutex_);
  return lives_;
}

// What can't be read now is told as it was: the shard's own trouble is told elsewhere.
void ShardUpkeep::ReadStanding(Hands& hands, const std::vector<TableName>& tables, BootTime now) {
  if (parts_.standings == nullptr || !parts_.standings->Wanted(now)) return;
  if (stopping_.load() || now < read_next_) return;
  auto standing = hands.standing.Read(tables, *parts_.config());
  const BootTime read = BootClock::now();
  read_next_ = now + std::max(kReadStanding, (read - now) * kStandingPart);
  if (standing) parts_.standings->Keep(parts_.name, std::move(*standing), read);
}

// What the configuration says of the shard.
ShardConfig ShardUpkeep::Wanted() const {
  const auto config = parts_.config();
  const auto found = config->shards.find(parts_.name);
  return found == config->shards.end() ? ShardConfig{} : found->second;
}

// A candidate's whole work: the others want to know whether it could lead. Its connection is not kept.
void ShardUpkeep::Try() {
  if (!parts_.standing()) {
    tried_.reset();
    return KeepReadable(std::nullopt);
  }
  const BootTime now = BootClock::now();
  if (tried_ && now - *tried_ < kTryAsCandidate) return;
  tried_ = now;
  KeepReadable(static_cast<bool>(parts_.store->OpenSchema()->Tables()));
}

void ShardUpkeep::KeepReadable(std::optional<bool> readable) {
  MutexLock lock(mutex_);
  readable_ = readable;
}

bool ShardUpkeep::ReadTables(SchemaStore& schema, bool beyond) {
  auto tables = schema.Tables();
  KeepReadable(static_cast<bool>(tables));
  if (!tables) {
    Note("its tables can't be read, so what is assigned of them stays so: " + tables.error().message);
    return false;
  }
  const std::vector<TableName> wanted = Wanted().tables;
  if (!wanted.empty()) {
    std::erase_if(*tables, [&](const TableInfo& info) {
      return std::find(wanted.begin(), wanted.end(), info.table) == wanted.end();
    });
  }
  const std::string unread = ReadBeyond(schema, *tables, beyond);
  Note(tables->size() < wanted.size() ? "the configuration names tables that its schema does not have"
                                      : unread);
  if (tables->empty() && !wanted.empty()) return true;  // a slip of the hand: what is assigned stays so
  MutexLock lock(mutex_);
  tables_ = std::move(*tables);
  return true;
}

// What was known of a table that can't be read now is kept, and the others are read without it. Empty: all
// were read. `now`: also if nothing speaks for rows beyond.
std::string ShardUpkeep::ReadBeyond(SchemaStore& schema, std::vector<TableInfo>& tables, bool now) {
  if (!now && Tables() == tables && Trouble().empty()) return "";  // as they were, with nothing beyond
  Status read = schema.ReadBeyond(tables);
  if (read) return "";
  const std::vector<TableInfo> known = Tables().value_or(std::vector<TableInfo>());
  std::string trouble;
  for (TableInfo& info : tables) {
    std::vector<TableInfo> alone{{info.table, info.slices}};
    // A server that is away is not asked for each of them.
    if (read || read.error().code != ErrorCode::Unavailable) read = schema.ReadBeyond(alone);
    if (read) {
      info.beyond = std::move(alone.front().beyond);
      continue;
    }
    const auto before = std::find_if(known.begin(), known.end(),
                                     [&](const TableInfo& one) { return one.table == info.table; });
    info.beyond = before == known.end() ? std::vector<std::uint32_t>() : before->beyond;
    std::erase_if(info.beyond, [&](std::uint32_t number) { return number < info.slices; });
    if (trouble.empty())
      trouble = "its table " + info.table +
                " can't be read, so rows beyond its slices stay there: " + read.error().message;
  }
  return trouble;
}

void ShardUpkeep::Note(const std::string& trouble) {
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
void ShardUpkeep::Forget() {
  read_next_ = did_seldom_ = ran_fan_outs_ = {};
  settled_.reset();
  looked_by_.reset();
  if (parts_.standings != nullptr) parts_.standings->Forget(parts_.name);
  MutexLock lock(mutex_);
  tables_.reset();
  unrunnable_.clear();
  prune_troubles_.clear();
  trouble_.clear();
  fan_out_troubles_.clear();
}

}  // namespace millrace::engine

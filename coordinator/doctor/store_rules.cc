#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "coordinator/doctor/findings.h"
#include "framework/base/time_text.h"
#include "framework/policy/coverage.h"

namespace millrace::engine::doctor {
namespace {

constexpr std::uint64_t kMegabyte = 1ULL << 20;

// `1 task`, `2 tasks`
std::string Many(std::uint64_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

// Writes findings of one shard.
class ShardJudge {
 public:
  ShardJudge(const ShardFacts& shard, const Bounds& bounds, std::vector<Finding>& findings)
      : shard_(shard), store_(shard.store), bounds_(bounds), findings_(findings) {}

  void Run();

 private:
  void Add(Severity severity, const char* name, std::string what, std::string remedy) {
    findings_.push_back({severity, name, "shard " + shard_.shard, std::move(what), std::move(remedy)});
  }
  std::string Setting(const char* name) const {
    const auto found = store_.settings.find(name);
    return found == store_.settings.end() ? "" : found->second;
  }
  bool Is(const char* name, const char* value) const { return Setting(name) == value; }
  std::uint64_t Number(const std::map<std::string, std::string>& from, const char* name) const {
    const auto found = from.find(name);
    return found == from.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
  }

  void Version();
  void Rights();
  void Schema();
  void Durability();
  void Isolation();
  void Writers();
  void Connections();
  void Log();
  void Age();
  void Bloat();
  void Leftovers();
  void Counters();
  void Lives();
  void Clock();

  const ShardFacts& shard_;
  const StoreFacts& store_;
  const Bounds& bounds_;
  std::vector<Finding>& findings_;
};

// 10.11.14-MariaDB: {10, 11, 14}. What is no number reads as 0.
struct VersionNumber {
  int parts[3] = {0, 0, 0};
  auto operator<=>(const VersionNumber&) const = default;
};
VersionNumber ParseVersion(const std::string& text) {
  VersionNumber number;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int& part : number.parts) {
    at = std::from_chars(at, end, part).ptr;
    if (at == end || *at != '.') break;
    ++at;
  }
  return number;
}

void ShardJudge::Version() {
  const VersionNumber version = ParseVersion(store_.version);
  const bool old = (store_.flavour == Flavour::Mariadb && version < VersionNumber{{10, 6, 0}}) ||
                   (store_.flavour == Flavour::Mysql && version < VersionNumber{{8, 0, 16}});
  if (!old) return;
  Add(Severity::Error, "store.version", "the server is of version " + store_.version,
      "Millrace needs MariaDB 10.6 or MySQL 8.0.16: before, they have no SKIP LOCKED, or check no CHECK");
}

void ShardJudge::Rights() {
  std::map<std::string, std::string> by_right;
  for (const MissingRight& missing : store_.missing_rights) {
    std::string& tables = by_right[missing.right];
    tables += (tables.empty() ? "" : ", ") + missing.table;
  }
  for (const auto& [right, tables] : by_right) {
    Add(Severity::Error, "store.rights",
        "this account may not " + right + " on " + tables + ", which a worker does",
        "grant it: conf/grants.sql has the least that each kind of account needs");
  }
}

void ShardJudge::Schema() {
  for (const SchemaFinding& finding : store_.schema)
    Add(Severity::Error, "store.schema", finding.what + ": " + finding.problem, finding.remedy);
  if (!store_.integrity.empty()) {
    Add(Severity::Error, "store.integrity", "the file is damaged: " + store_.integrity,
        "stop all that use it, copy it away, and recover it with the sqlite3 command's .recover, or from a "
        "backup");
  }
}

void ShardJudge::Durability() {
  if (const std::string flush = Setting("innodb_flush_log_at_trx_commit"); !flush.empty() && flush != "1") {
    Add(Severity::Warning, "store.flush",
        "innodb_flush_log_at_trx_commit is " + flush + ": a crash of the server" +
            (flush == "2" ? "'s host" : "") +
            " loses up to a second of what was committed, and those tasks run again or never",
        "SET GLOBAL innodb_flush_log_at_trx_commit=1, and in the server's file");
  }
  const std::string sync = Setting("sync_binlog");
  if (Is("log_bin", "ON") && !sync.empty() && sync != "1") {
    Add(Severity::Warning, "store.sync_binlog",
        "sync_binlog is " + sync +
            ": after a crash the log lacks commits that the tables have, and replicas with it",
        "SET GLOBAL sync_binlog=1, and in the server's file; where there is no replica and no doorbell, turn "
        "the log "
        "off instead");
  }
  if (Is("read_only", "ON")) {
    Add(Severity::Error, "store.read_only", "the server takes no writes: read_only is on",
        "name the server that does in the store's address, or SET GLOBAL read_only=0 if this is it");
  }
}

// Our own sessions set what they need and check it; others' do not.
void ShardJudge::Isolation() {
  std::string level = Setting("transaction_isolation");
  if (level.empty()) level = Setting("tx_isolation");
  if (level != "SERIALIZABLE") return;
  Add(Severity::Warning, "store.isolation",
      "the server's isolation level is SERIALIZABLE: each plain SELECT of a producer or a person locks what "
      "it reads, "
      "and claims and settles wait for it",
      "SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED, and in the server's file");
}

void ShardJudge::Writers() {
  const std::string remedy =
      "let all of Millrace, and all producers, write to one node: name that node in the address, or a proxy "
      "that "
      "sends all writes to it; conf/README.md says why";
  if (Is("wsrep_on", "ON") && Number(store_.counters, "wsrep_cluster_size") > 1) {
    Add(Severity::Warning, "store.several_writers",
        "this is a Galera cluster of " + std::to_string(Number(store_.counters, "wsrep_cluster_size")) +
            " nodes: locking reads of a claim are not certified between nodes",
        remedy);
  }
  if (!Setting("group_replication_group_name").empty() &&
      Is("group_replication_single_primary_mode", "OFF")) {
    Add(Severity::Warning, "store.several_writers",
        "this is a group of several primaries: locking reads of a claim are not certified between them",
        remedy);
  }
}

void ShardJudge::Connections() {
  const std::uint64_t most = Number(store_.settings, "max_connections");
  if (most == 0) return;
  std::set<std::string> workers;
  for (const LifeFacts& life : shard_.lives) workers.insert(life.incarnation.worker);
  const std::uint64_t wanted = workers.size() * shard_.connections_each;
  if (wanted > most) {
    Add(Severity::Warning, "store.connections",
        Many(workers.size(), "worker", "workers") + " may open " + std::to_string(wanted) +
            " connections, and max_connections is " + std::to_string(most),
        "raise max_connections, or bound shards." + shard_.shard +
            ".max_transactions or the handlers' concurrency");
    return;
  }
  const std::uint64_t used = Number(store_.counters, "max_used_connections");
  if (used * 10 >= most * 9) {
    Add(Severity::Warning, "store.connections",
        std::to_string(used) + " of max_connections=" + std::to_string(most) + " have been in use at once",
        "raise max_connections, or let fewer programs connect");
  }
}

void ShardJudge::Log() {
  const bool on = Is("log_bin", "ON");
  const std::string format = Setting("binlog_format");
  const bool rows = format != "STATEMENT";  // MIXED: a task whose slice is drawn is logged as a row
  if (shard_.doorbell && !on) {
    Add(Severity::Warning, "store.doorbell",
        "its binary log is to be followed (the doorbell), and the server writes none: new tasks are found by "
        "polling",
        "start the server with --log-bin, or leave the doorbell out");
  } else if (shard_.doorbell && !rows) {
    Add(Severity::Warning, "store.doorbell",
        "its binary log is to be followed (the doorbell), and its format is " + format +
            ", which names no rows: each statement has every worker look",
        "SET GLOBAL binlog_format=ROW, and in the server's file");
  } else if (!shard_.doorbell && on && rows && !shard_.lives.empty()) {
    Add(Severity::Note, "store.doorbell",
        "the server writes a binary log that nobody of Millrace follows: tasks that are added by a plain "
        "INSERT wait "
        "for the next poll",
        "shards." + shard_.shard +
            ".doorbell, or --doorbell, has them started within milliseconds; conf/grants.sql "
            "has the right for it");
  }
}

void ShardJudge::Age() {
  if (store_.oldest_transaction && *store_.oldest_transaction >= bounds_.old_transaction) {
    Add(Severity::Warning, "store.old_transaction",
        "a transaction is open since " +
            FormatDuration(std::chrono::floor<std::chrono::seconds>(*store_.oldest_transaction)) +
            ": the server keeps every row version since then, and the tables become slow",
        "find it in information_schema.INNODB_TRX, and end it: KILL its trx_mysql_thread_id");
  }
  if (store_.history && *store_.history >= bounds_.history) {
    Add(Severity::Warning, "store.history",
        std::to_string(*store_.history) + " row versions wait to be purged: reads wade through them",
        "end long transactions, and give the server more innodb_purge_threads");
  }
}

void ShardJudge::Bloat() {
  for (const TableFacts& table : store_.tables) {
    if (table.free_bytes < bounds_.bloat || table.free_bytes < table.bytes) continue;
    Add(Severity::Warning, "store.bloat",
        table.name + " takes " + std::to_string((table.bytes + table.free_bytes) / kMegabyte) +
            " MB, of which " + std::to_string(table.free_bytes / kMegabyte) + " MB hold nothing",
        store_.flavour == Flavour::Sqlite
            ? "stop the worker and run VACUUM with the sqlite3 command"
            : "OPTIMIZE TABLE " + table.name + " at a quiet hour: the table is copied, under load too");
  }
}

void ShardJudge::Leftovers() {
  for (const auto& [prefix, tables] : store_.leftovers) {
    Add(Severity::Warning, "store.leftovers",
        "a check that was killed has left " + Many(tables, "table or view", "tables and views") +
            " behind, whose names begin with " + prefix,
        "drop them: nobody uses what begins with " + prefix);
  }
}

void ShardJudge::Counters() {
  for (const PoolSample& pool : store_.pools) {
    const bool all = pool.rows <= kPoolSample;
    if (pool.suspect > 0) {
      Add(Severity::Warning, "store.quarantine",
          Many(pool.suspect, "task", "tasks") + " in " + pool.pool +
              " killed workers: they are in quarantine",
          "millrace task list --state failed; mend the handler, then millrace task retry, or cancel them");
    } else if (pool.exact && pool.rows > 0) {
      Add(Severity::Note, "store.failed",
          (all ? Many(pool.rows, "task", "tasks") : std::to_string(kPoolSample) + " tasks or more") + " in " +
              pool.pool + ", for a person to look at",
          "millrace task list --state failed; then millrace task retry, or cancel them");
    }
    const auto rows = static_cast<std::int64_t>(pool.rows);
    if (pool.exact && all ? pool.counted == rows : pool.counted >= rows) continue;
    Add(Severity::Warning, "store.counters",
        pool.pool + " has " + (all ? "" : "at least ") + Many(pool.rows, "row", "rows") +
            ", and the counters say " + std::to_string(pool.counted) +
            ": somebody has changed the tables by hand, or restored one of them alone",
        "change tasks with millrace task alone; figures of ended tasks are wrong by the difference");
  }
}

std::string Some(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size() && i < 8; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return numbers.size() > 8 ? text + " …" : text;
}

void ShardJudge::Lives() {
  std::vector<std::string> owned;
  for (const LifeFacts& life : shard_.lives) {
    if (life.beats) owned.push_back(life.incarnation.slices);
  }
  for (const LifeFacts& life : shard_.lives) {
    if (life.beats || !owned.empty()) continue;  // a living one sees to it within the lease
    Add(Severity::Warning, "store.silent",
        "the worker " + life.incarnation.worker + " (process " + std::to_string(life.incarnation.pid) +
            " on " + life.incarnation.host +
            ") does not beat, and no other one is alive that would take its tasks over",
        "start a worker: it marks the silent one dead after its lease, and rescues its tasks");
  }
  for (const OrphanFacts& orphan : shard_.orphans) {
    Add(Severity::Warning, "store.orphans",
        Many(orphan.rows, "task", "tasks") + " of " + std::string(orphan.table.text()) +
            ", by the table still running, under " + orphan.claimer + ", which is dead",
        owned.empty()
            ? "start a worker that owns their slices: it sets them waiting again"
            : "see that a worker owns their slices (millrace cluster status), and what its log says of the "
              "rescue");
  }
  if (shard_.clustered || owned.empty()) return;
  for (const TableInfo& info : shard_.tables) {
    const std::vector<std::uint32_t> nobodys = Uncovered(owned, info.slices);
    if (nobodys.empty()) continue;
    Add(Severity::Error, "store.uncovered",
        "no worker that is alive owns the load-balance numbers " + Some(nobodys) + " of " +
            std::string(info.table.text()) + ": their tasks wait for ever",
        "start a worker with --load-balance and these numbers, or all workers without it");
  }
}

void ShardJudge::Clock() {
  if (!shard_.clock_offset) return;
  const Micros off = *shard_.clock_offset < Micros(0) ? -*shard_.clock_offset : *shard_.clock_offset;
  if (off < bounds_.clock_offset + shard_.clock_doubt) return;
  Add(Severity::Warning, "store.clock",
      "the database's clock is " + FormatDuration(std::chrono::floor<std::chrono::milliseconds>(off)) +
          (*shard_.clock_offset < Micros(0) ? " behind" : " ahead of") +
          " this host's: tasks are due by the database's, and logs and --at are by this one's",
      "let both follow one time server (chrony, systemd-timesyncd)");
}

void ShardJudge::Run() {
  if (shard_.away) {
    const bool away = shard_.away->code == ErrorCode::Unavailable;
    Add(Severity::Error, away ? "store.away" : "store.refused", shard_.away->message,
        !away                                 ? "see what the message says"
        : shard_.where.starts_with("sqlite:") ? "let this user read and write the file and its folder"
                                              : "see that the server runs and that this host reaches it");
    return;
  }
  Version();
  Rights();
  Schema();
  Durability();
  Isolation();
  Writers();
  Connections();
  Log();
  Age();
  Bloat();
  Leftovers();
  Counters();
  Lives();
  Clock();
  for (const UnknownFact& unknown : store_.unknown)
    Add(Severity::Note, "store.unknown", "not looked at: " + unknown.what, unknown.why);
}

}  // namespace

void JudgeShard(const ShardFacts& shard, const Bounds& bounds, std::vector<Finding>& findings) {
  ShardJudge(shard, bounds, findings).Run();
}

}  // namespace millrace::engine::doctor

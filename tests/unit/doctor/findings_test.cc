#include "coordinator/doctor/findings.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

namespace millrace::engine::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Incarnation Life(const std::string& worker, const std::string& slices = "") {
  return {.id = worker + ".0123456789ab", .worker = worker, .host = "h1", .pid = 7, .slices = slices};
}

// A cluster on which nothing is wrong.
Examination Healthy() {
  Examination seen;
  ShardFacts shard{
      .shard = "main", .where = "mysql://db1:3306/work", .clustered = true, .connections_each = 10};
  shard.store.flavour = Flavour::Mariadb;
  shard.store.version = "10.11.14-MariaDB";
  shard.store.settings = {{"max_connections", "151"}, {"innodb_flush_log_at_trx_commit", "1"},
                          {"log_bin", "OFF"},         {"tx_isolation", "REPEATABLE-READ"},
                          {"read_only", "OFF"},       {"wsrep_on", "OFF"},
                          {"sync_binlog", "0"},       {"binlog_format", "MIXED"}};
  shard.store.counters = {{"max_used_connections", "20"}};
  shard.store.pools = {{.pool = "tasks_failed", .rows = 0, .counted = 0, .exact = true},
                       {.pool = "tasks_done", .rows = 5, .counted = 9}};
  shard.store.oldest_transaction = Micros(0);
  shard.store.history = 12;
  shard.tables = {{"tasks", 64}};
  shard.lives = {{Life("w1"), true}};
  shard.clock_offset = std::chrono::milliseconds(3);
  seen.shards.push_back(shard);
  TreeFacts tree{.address = "zk1:2181,zk2:2181,zk3:2181", .cluster = "default", .digest = true};
  tree.now = WallTime(std::chrono::days(20'000));
  tree.servers = {{"zk1:2181", "leader", "", true},
                  {"zk2:2181", "follower", "", true},
                  {"zk3:2181", "follower", "", true}};
  tree.clusters = {{"default", 90, 3, tree.now}};
  tree.large = {{"/millrace/default/config/handlers", 2000}};
  seen.tree = tree;
  seen.host.plugins = {{"plugins/noop.so", ""}};
  seen.host.secrets = {{"password", "MILLRACE_PASSWORD_FILE", ""}};
  seen.host.spaces = {{.folder = "/var/lib/millrace", .use = "the state folder", .free_bytes = 1ULL << 36}};
  return seen;
}

std::vector<std::string> Names(const Examination& seen) {
  std::vector<std::string> names;
  for (const Finding& finding : Judge(seen)) names.push_back(finding.name);
  return names;
}

struct Fault {
  const char* name;  // of the one finding
  Severity severity;
  std::function<void(Examination&)> make;
};

ShardFacts& ShardOf(Examination& seen) { return seen.shards.front(); }
StoreFacts& StoreOf(Examination& seen) { return seen.shards.front().store; }

const std::vector<Fault>& Faults() {
  static const std::vector<Fault> faults = {
      {"store.away", Severity::Error,
       [](auto& seen) {
         ShardOf(seen).away = Error{ErrorCode::Unavailable, "away"};
       }},
      {"store.refused", Severity::Error,
       [](auto& seen) {
         ShardOf(seen).away = Error{ErrorCode::Invalid, "wrong password"};
       }},
      {"store.unnamed", Severity::Error, [](auto& seen) { seen.shards_unknown = "no store is named"; }},
      {"store.version", Severity::Error, [](auto& seen) { StoreOf(seen).version = "10.5.27-MariaDB"; }},
      {"store.version", Severity::Error,
       [](auto& seen) {
         StoreOf(seen).flavour = Flavour::Mysql;
         StoreOf(seen).version = "8.0.15";
       }},
      {"store.rights", Severity::Error,
       [](auto& seen) {
         StoreOf(seen).missing_rights = {{"DELETE", "tasks"}, {"DELETE", "tasks_keys"}};
       }},
      {"store.schema", Severity::Error,
       [](auto& seen) {
         StoreOf(seen).schema = {{"tasks", "the index due is missing", "add it"}};
       }},
      {"store.integrity", Severity::Error,
       [](auto& seen) { StoreOf(seen).integrity = "row 7 missing from index"; }},
      {"store.flush", Severity::Warning,
       [](auto& seen) { StoreOf(seen).settings["innodb_flush_log_at_trx_commit"] = "2"; }},
      {"store.sync_binlog", Severity::Warning,
       [](auto& seen) {
         ShardOf(seen).doorbell = true;
         StoreOf(seen).settings["log_bin"] = "ON";
         StoreOf(seen).settings["sync_binlog"] = "0";
       }},
      {"store.read_only", Severity::Error, [](auto& seen) { StoreOf(seen).settings["read_only"] = "ON"; }},
      {"store.isolation", Severity::Warning,
       [](auto& seen) { StoreOf(seen).settings["tx_isolation"] = "SERIALIZABLE"; }},
      {"store.isolation", Severity::Warning,
       [](auto& seen) { StoreOf(seen).settings["transaction_isolation"] = "SERIALIZABLE"; }},
      {"store.several_writers", Severity::Warning,
       [](auto& seen) {
         StoreOf(seen).settings["wsrep_on"] = "ON";
         StoreOf(seen).counters["wsrep_cluster_size"] = "3";
       }},
      {"store.several_writers", Severity::Warning,
       [](auto& seen) {
         StoreOf(seen).settings["group_replication_group_name"] = "aaaa";
         StoreOf(seen).settings["group_replication_single_primary_mode"] = "OFF";
       }},
      {"store.connections", Severity::Warning, [](auto& seen) { ShardOf(seen).connections_each = 200; }},
      {"store.connections", Severity::Warning,
       [](auto& seen) { StoreOf(seen).counters["max_used_connections"] = "140"; }},
      {"store.doorbell", Severity::Warning, [](auto& seen) { ShardOf(seen).doorbell = true; }},
      {"store.doorbell", Severity::Warning,
       [](auto& seen) {
         ShardOf(seen).doorbell = true;
         StoreOf(seen).settings["log_bin"] = "ON";
         StoreOf(seen).settings["sync_binlog"] = "1";
         StoreOf(seen).settings["binlog_format"] = "STATEMENT";
       }},
      {"store.old_transaction", Severity::Warning,
       [](auto& seen) { StoreOf(seen).oldest_transaction = std::chrono::minutes(11); }},
      {"store.history", Severity::Warning, [](auto& seen) { StoreOf(seen).history = 2'000'000; }},
      {"store.bloat", Severity::Warning,
       [](auto& seen) {
         StoreOf(seen).tables = {{"tasks", 100ULL << 20, 900ULL << 20}};
       }},
      {"store.leftovers", Severity::Warning, [](auto& seen) { StoreOf(seen).leftovers["zz01_"] = 22; }},
      {"store.quarantine", Severity::Warning,
       [](auto& seen) {
         StoreOf(seen).pools[0].rows = StoreOf(seen).pools[0].suspect = 2;
         StoreOf(seen).pools[0].counted = 2;
       }},
      {"store.counters", Severity::Warning, [](auto& seen) { StoreOf(seen).pools[0].counted = 1; }},
      {"store.counters", Severity::Warning, [](auto& seen) { StoreOf(seen).pools[1].counted = 4; }},
      {"store.silent", Severity::Warning, [](auto& seen) { ShardOf(seen).lives[0].beats = false; }},
      {"store.orphans", Severity::Warning,
       [](auto& seen) {
         ShardOf(seen).orphans = {{"tasks", "w9.0123456789ab", 3}};
       }},
      {"store.uncovered", Severity::Error,
       [](auto& seen) {
         ShardOf(seen).clustered = false;
         ShardOf(seen).lives = {{Life("w1", "0-31"), true}};
       }},
      {"store.clock", Severity::Warning,
       [](auto& seen) { ShardOf(seen).clock_offset = std::chrono::seconds(-5); }},
      {"zookeeper.away", Severity::Error,
       [](auto& seen) {
         seen.tree->away = Error{ErrorCode::Unavailable, "away"};
       }},
      {"zookeeper.refused", Severity::Error,
       [](auto& seen) {
         seen.tree->away = Error{ErrorCode::Invalid, "the chroot /x does not exist"};
       }},
      {"zookeeper.server", Severity::Warning,
       [](auto& seen) {
         seen.tree->servers[2] = {"zk3:2181", "", "Connection refused", false};
       }},
      {"zookeeper.quorum", Severity::Warning, [](auto& seen) { seen.tree->servers[2].mode = "standalone"; }},
      {"zookeeper.open", Severity::Error, [](auto& seen) { seen.tree->open = {"/millrace/default/plan"}; }},
      {"zookeeper.large_node", Severity::Warning, [](auto& seen) { seen.tree->large[0].bytes = 700'000; }},
      {"zookeeper.many_nodes", Severity::Warning, [](auto& seen) { seen.tree->clusters[0].nodes = 50'000; }},
      {"zookeeper.leftover", Severity::Warning,
       [](auto& seen) {
         seen.tree->clusters.push_back({"old", 70, 0, seen.tree->now - std::chrono::days(90)});
       }},
      {"zookeeper.clock", Severity::Warning,
       [](auto& seen) { seen.tree->clusters[0].last_write = seen.tree->now + std::chrono::minutes(5); }},
      {"cluster.trouble", Severity::Warning,
       [](auto& seen) { seen.tree->troubles = {"7 slices have no worker that may take them"}; }},
      {"cluster.no_handler", Severity::Warning,
       [](auto& seen) { seen.tree->unrunnable["main"] = {"send_mail"}; }},
      {"host.plugins", Severity::Error, [](auto& seen) { seen.host.plugin_trouble = "can't be opened"; }},
      {"host.plugin", Severity::Error,
       [](auto& seen) { seen.host.plugins[0].problem = "is built for ABI version 9"; }},
      {"host.secret", Severity::Error, [](auto& seen) { seen.host.secrets[0].problem = "has mode 0644"; }},
      {"host.folder", Severity::Error, [](auto& seen) { seen.host.spaces[0].problem = "can't be written"; }},
      {"host.space", Severity::Error, [](auto& seen) { seen.host.spaces[0].free_bytes = 1 << 20; }},
      {"host.space", Severity::Warning, [](auto& seen) { seen.host.spaces[0].free_bytes = 500ULL << 20; }},
      {"host.space", Severity::Error,
       [](auto& seen) {
         seen.host.spaces[0].counts_files = true;
         seen.host.spaces[0].free_files = 3;
       }},
      {"host.network", Severity::Error,
       [](auto& seen) {
         seen.host.spaces[0].use = "the store's folder";
         seen.host.spaces[0].network = true;
       }},
      {"host.store_mode", Severity::Warning,
       [](auto& seen) {
         seen.host.files = {{"a.db", true, true}};
       }},
      {"host.journal", Severity::Warning,
       [](auto& seen) {
         seen.host.files = {{"a.db", false, false}};
       }},
      {"host.zones", Severity::Note, [](auto& seen) { seen.host.zones_trouble = "has no tzdata"; }},
      {"host.zones", Severity::Error,
       [](auto& seen) {
         seen.host.zones_trouble = "has no tzdata";
         seen.has_schedules = true;
       }},
      {"schedule.handler", Severity::Error,
       [](auto& seen) {
         seen.schedules = {{"nightly", "handler", "nobody has the handler 'nop'"}};
       }},
      {"schedule.place", Severity::Error,
       [](auto& seen) {
         seen.schedules = {{"nightly", "place", "there is no shard 'eu'"}};
       }},
      {"schedule.late", Severity::Error,
       [](auto& seen) {
         seen.schedules = {{"nightly", "late", "it is 5 min late"}};
       }},
      {"schedule.key", Severity::Error,
       [](auto& seen) {
         seen.schedules = {{"bills", "key", "all its keys were taken"}};
       }},
      {"host.clock_step", Severity::Warning,
       [](auto& seen) { seen.host.clock_step = std::chrono::seconds(-3); }},
  };
  return faults;
}

TEST(FindingsTest, AHealthyClusterHasNone) { EXPECT_THAT(Names(Healthy()), IsEmpty()); }

TEST(FindingsTest, EachFaultIsFoundAloneWithItsRemedy) {
  for (const Fault& fault : Faults()) {
    Examination seen = Healthy();
    fault.make(seen);
    const std::vector<Finding> findings = Judge(seen);
    ASSERT_EQ(findings.size(), 1u) << fault.name << ": " << ::testing::PrintToString(Names(seen));
    EXPECT_EQ(findings[0].name, fault.name);
    EXPECT_EQ(findings[0].severity, fault.severity) << fault.name;
    EXPECT_THAT(findings[0].what, Not(IsEmpty())) << fault.name;
    EXPECT_THAT(findings[0].remedy, Not(IsEmpty())) << fault.name;
    EXPECT_THAT(findings[0].where, Not(IsEmpty())) << fault.name;
  }
}

TEST(FindingsTest, AFileThatIsAwayIsNoServer) {
  Examination seen = Healthy();
  ShardOf(seen).away = Error{ErrorCode::Unavailable, "away"};
  EXPECT_THAT(Judge(seen)[0].remedy, HasSubstr("server"));
  ShardOf(seen).where = "sqlite:/srv/a.db";
  EXPECT_THAT(Judge(seen)[0].remedy, HasSubstr("the file and its folder"));
}

TEST(FindingsTest, ErrorsComeFirst) {
  Examination seen = Healthy();
  StoreOf(seen).settings["tx_isolation"] = "SERIALIZABLE";
  seen.host.secrets[0].problem = "has mode 0644";
  seen.tree->pauses = {"handler:noop"};
  EXPECT_THAT(Names(seen), ElementsAre("host.secret", "store.isolation", "cluster.paused"));
}

TEST(FindingsTest, RightsOfOneKindStandInOneLine) {
  Examination seen = Healthy();
  StoreOf(seen).missing_rights = {{"DELETE", "tasks"}, {"INSERT", "tasks"}, {"DELETE", "tasks_done"}};
  const auto findings = Judge(seen);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_THAT(findings[0].what, HasSubstr("DELETE on tasks, tasks_done"));
}

// What is worth to know and may be so on a healthy cluster does not make a script fail.
TEST(FindingsTest, WhatMayBeSoIsANote) {
  Examination seen = Healthy();
  seen.tree->servers = {{"zk1:2181", "standalone", "", true}};
  seen.tree->digest = false;
  StoreOf(seen).pools[0].rows = 4;
  StoreOf(seen).pools[0].counted = 4;
  StoreOf(seen).unknown = {{"the oldest transaction", "it takes the right PROCESS"}};
  StoreOf(seen).settings["log_bin"] = "ON";
  StoreOf(seen).settings["sync_binlog"] = "1";
  for (const Finding& finding : Judge(seen)) EXPECT_EQ(finding.severity, Severity::Note) << finding.name;
  EXPECT_EQ(Judge(seen).size(), 5u);
}

// MIXED is what MariaDB has unless somebody asks for another.
TEST(FindingsTest, ADoorbellOfALogOfRowsOrMixedIsWell) {
  for (const char* format : {"ROW", "MIXED"}) {
    Examination seen = Healthy();
    StoreOf(seen).settings["log_bin"] = "ON";
    StoreOf(seen).settings["sync_binlog"] = "1";
    StoreOf(seen).settings["binlog_format"] = format;
    EXPECT_THAT(Names(seen), ElementsAre("store.doorbell")) << format << ": what it would give";
    ShardOf(seen).doorbell = true;
    EXPECT_THAT(Names(seen), ElementsAre()) << format;
  }
}

TEST(FindingsTest, APoolOfMoreThanTheSampleIsComparedFromBelow) {
  Examination seen = Healthy();
  PoolSample& failed = StoreOf(seen).pools[0];
  failed.rows = kPoolSample + 1;
  failed.counted = 50'000;
  EXPECT_THAT(Names(seen), ElementsAre("store.failed"));
  failed.counted = 9'000;
  EXPECT_THAT(Names(seen), ElementsAre("store.counters", "store.failed"));
}

// A silent life beside one that beats is marked dead within its lease: there is nothing to do.
TEST(FindingsTest, ASilentWorkerMattersOnlyWhereNobodyElseLives) {
  Examination seen = Healthy();
  ShardOf(seen).lives.push_back({Life("w2"), false});
  EXPECT_THAT(Names(seen), IsEmpty());
}

TEST(FindingsTest, AYoungOrOccupiedClusterIsNoLeftover) {
  Examination seen = Healthy();
  seen.tree->clusters.push_back({"new", 70, 0, seen.tree->now - std::chrono::hours(1)});
  seen.tree->clusters.push_back({"idle", 70, 1, seen.tree->now - std::chrono::days(9)});
  EXPECT_THAT(Names(seen), IsEmpty());
}

TEST(FindingsTest, AnEnsembleThatMayNotBeAskedIsNotJudged) {
  Examination seen = Healthy();
  for (ServerFacts& server : seen.tree->servers)
    server = {server.address, "", "srvr is not in the whitelist", true};
  EXPECT_THAT(Names(seen), ElementsAre("zookeeper.unknown", "zookeeper.unknown", "zookeeper.unknown"));
}

TEST(FindingsTest, ServersThatAreNotKnownAreNoEvenNumber) {
  Examination seen = Healthy();
  seen.tree->servers.clear();
  EXPECT_THAT(Names(seen), IsEmpty());
}

}  // namespace
}  // namespace millrace::engine::doctor

// What was looked at: a shard, ZooKeeper's tree, this host. Values alone; whoever is away has an error in
// place of its facts, and the others are there all the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/store/diagnosis.h"
#include "framework/store/incarnation_store.h"

namespace millrace::engine::doctor {

// An incarnation that is not marked dead.
struct LifeFacts {
  Incarnation incarnation;
  bool beats = false;  // its beat has moved while it was watched, or that would have taken too long
};

// Rows of one table that run under a claimer that is dead or gone.
struct OrphanFacts {
  TableName table;
  std::string claimer;
  std::size_t rows = 0;  // of those that were looked at
};

struct ShardFacts {
  std::string shard;
  std::string where;                 // its address, without user or password
  std::optional<Error> away = {};    // nothing else is known
  bool doorbell = false;             // its binary log is to be followed
  bool clustered = false;            // a leader says who owns its slices
  std::size_t connections_each = 0;  // what one worker may open at once
  StoreFacts store = {};
  std::vector<TableInfo> tables = {};
  std::vector<LifeFacts> lives = {};
  std::vector<OrphanFacts> orphans = {};
  std::set<std::string> handlers = {};      // task types that have waiting or running tasks
  std::optional<Micros> clock_offset = {};  // the database's clock less this host's
  Micros clock_doubt{};                     // the round trip: the offset may be wrong by so much
};

// A server of the ensemble, by its own word.
struct ServerFacts {
  std::string address;
  std::string mode;     // leader, follower, standalone, observer; empty: not known
  std::string trouble;  // why it is not known
  bool answers = false;
};

struct ClusterFacts {
  std::string name;
  std::size_t nodes = 0;
  std::size_t workers = 0;  // that are there
  WallTime last_write{};    // of any node
};

struct NodeFacts {
  std::string path;
  std::size_t bytes = 0;
};

struct TreeFacts {
  std::string address;  // host:port,…/chroot
  std::string cluster;
  bool digest = false;
  std::vector<ServerFacts> servers = {};
  std::optional<Error> away = {};      // no session: of the tree nothing is known
  std::vector<std::string> open = {};  // nodes that everybody may change
  std::vector<NodeFacts> large = {};   // the largest nodes
  bool more = false;                   // there are more nodes than were looked at
  std::vector<ClusterFacts> clusters = {};
  std::vector<std::string> troubles = {};  // of the cluster, in the words of `cluster status`
  std::vector<std::string> pauses = {};
  std::map<std::string, std::vector<std::string>> unrunnable = {};  // by shard: types that no worker runs
  WallTime now{};                                                   // this host's clock
};

// What a schedule can't do, and why.
struct ScheduleFacts {
  std::string schedule;
  std::string trouble;  // `handler`, `place`, `late`
  std::string what;
};

struct PluginFacts {
  std::string file;
  std::string problem;  // empty: it can be loaded
};

// A file with a password, a key or a token in it.
struct SecretFacts {
  std::string file;
  std::string use;      // who reads it: `shards.main.password_file`
  std::string problem;  // empty: its owner alone may read it
};

struct SpaceFacts {
  std::string folder;
  std::string use;      // the state folder, the store's folder
  std::string problem;  // it can't be looked at, or not be written
  std::uint64_t free_bytes = 0;
  std::uint64_t free_files = 0;
  bool counts_files = false;  // some file systems have no bound
  bool network = false;       // it lies on another machine
};

struct FileFacts {  // of an SQLite store
  std::string file;
  bool others_write = false;
  bool wal = true;
};

struct HostFacts {
  std::string plugin_folder;
  std::string plugin_trouble;  // the folder itself
  std::vector<PluginFacts> plugins = {};
  std::vector<SecretFacts> secrets = {};
  std::vector<SpaceFacts> spaces = {};
  std::vector<FileFacts> files = {};
  std::string zones_trouble = {};  // why this machine knows no time zones; empty: it does
  Micros clock_step{};             // by how much the wall clock moved away from the steady one meanwhile
};

struct Examination {
  std::vector<ShardFacts> shards = {};
  std::string shards_unknown = {};  // why they could not even be named
  std::optional<TreeFacts> tree = {};
  HostFacts host = {};
  std::vector<ScheduleFacts> schedules = {};  // those that are in trouble
  bool has_schedules = false;                 // some are configured, in force or refused
  bool scratch = false;                       // statements' plans and the schema's form were looked at
};

}  // namespace millrace::engine::doctor

// How a worker is, for people and for the coordinator: plain values, as of the last look at each shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/config/policy_config.h"

namespace millrace::engine {

// Of a task type that is scanned in rounds; of one worker in one shard.
struct RoundStatus {
  std::string handler;
  bool open = false;        // something of the newest round may be claimed yet
  std::size_t claimed = 0;  // in that
  std::optional<WallTime>
      next;  // when the next one begins; nullopt: not before this one has ended, or nowhere
};

// Of a band that has something; of one worker in one shard.
struct BandStatus {
  std::string handler;
  BandConfig rule;
  std::size_t claimed = 0;  // since it was scanned last
  WallTime next;            // when it may be scanned again
};

struct ShardStatus {
  std::string shard;
  std::string incarnation;  // empty: not registered now
  std::string database;     // SchemaStore::Identity of what it found there last; empty: not known yet
  bool reachable = false;   // its last due map could be read
  bool beats = false;       // it is registered, and its beat is fresh enough to start work
  std::string error;        // why not; empty where it could, or was never asked
  Micros lag{0};            // how long the oldest task that this worker could run is due; 0: none is
  Micros poll{0};           // how often it is asked for now
  double speed = 1;         // the part of its full speed at which it is scanned; below 1: the brake holds
  std::string doorbell;     // `on`, or `off` and why: whether it is told of new tasks, or only polls
  std::vector<std::string> unrunnable;         // task types with due tasks that no handler here can run
  std::map<std::string, std::string> resting;  // tables of which nothing is claimed for some time by now, why
  std::string uncovered;  // without a coordinator: load-balance numbers that nobody alive serves, `0-31,40`
  std::vector<RoundStatus> rounds;  // by handler
  std::vector<BandStatus> bands;
  bool retiring = false;  // served no more; what runs there is being finished
};

// Of a task type that has a circuit breaker.
struct BreakerStatus {
  std::string handler;
  bool open = false;
  bool by_hand = false;         // open or kept closed by an operator's word
  std::string why;              // likewise
  Micros next_probe{0};         // likewise: from now, at the soonest
  std::uint64_t calls = 0;      // in the window
  std::uint64_t failed = 0;     // of those
  std::uint64_t uncharged = 0;  // failures that no task was charged with, since the worker began
};

// A queue of the lane that all types share; where each has its own there are none.
struct QueueStatus {
  std::string name;
  std::size_t waiting = 0;  // tasks that are claimed and not started
  std::size_t busy = 0;     // threads that have some
};

// Of a task type that is limited by permits: what this worker holds.
struct PermitStatus {
  std::string handler;
  std::uint32_t concurrency = 0;  // in the whole cluster
  std::size_t held = 0;           // of those, here
  std::size_t waiting = 0;        // tasks here that are claimed and have none
};

// By task type: why its handler refuses its part of the configuration.
using HandlerRefusals = std::map<std::string, std::string>;

struct WorkerStatus {
  std::string worker;
  std::vector<ShardStatus> shards;         // by name
  std::string doorbell;                    // where it hears datagrams, `host:port`; empty: nowhere
  std::vector<BreakerStatus> breakers;     // by handler
  std::vector<std::string> paused;         // names of what is paused, as framework/policy/pauses.h
  std::vector<std::string> outside_hours;  // `report: outside its hours until 01:00 Europe/Berlin`
  // What of the configuration is not in force here, and why: `handlers.noop: …`.
  std::vector<std::string> refusals;
  HandlerRefusals unopened;  // of these the types that can't be run here, since their handler does not open
  std::vector<QueueStatus> queues;       // by name
  std::set<std::string> full;            // task types of which due tasks find no room in their lane
  std::vector<PermitStatus> permits;     // by handler
  std::string permit_home;               // the shard that they stand in; empty: not known
  std::string permit_trouble;            // why none can be had; empty: nothing is wrong
  std::set<std::string> permits_locked;  // types of which others have locked a row
};

}  // namespace millrace::engine

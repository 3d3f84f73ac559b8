// What will hurt, and what to do about it. Pure: facts in, findings out.
#pragma once

#include <string>
#include <vector>

#include "coordinator/doctor/facts.h"

namespace millrace::engine::doctor {

enum class Severity {
  Note,     // worth to know; a healthy cluster may have it
  Warning,  // it will hurt some day
  Error,    // it hurts now
};
const char* ToString(Severity severity);

struct Finding {
  Severity severity = Severity::Warning;
  std::string name;  // for scripts: `store.isolation`
  std::string where;
  std::string what;
  std::string remedy;
};

// From when on something is too much.
struct Bounds {
  Micros old_transaction = std::chrono::minutes(10);
  std::uint64_t history = 1'000'000;
  std::uint64_t bloat = 256ULL << 20;  // bytes of a table that hold nothing, where that is half of it too
  Micros clock_offset = std::chrono::seconds(2);
  Micros clock_step = std::chrono::milliseconds(500);
  std::size_t node_bytes = 512 * 1024;  // ZooKeeper's own limit is 1 MB
  std::size_t cluster_nodes = 20'000;
  std::uint64_t little_space = 1ULL << 30;
  std::uint64_t no_space = 64ULL << 20;
  Micros leftover = std::chrono::hours(24);  // since when nothing of a cluster has moved
};

// All findings, errors first, each group in the order of what was looked at.
std::vector<Finding> Judge(const Examination& facts, const Bounds& bounds = {});

// Its parts.
void JudgeShard(const ShardFacts& shard, const Bounds& bounds, std::vector<Finding>& findings);
void JudgeTree(const TreeFacts& tree, const Bounds& bounds, std::vector<Finding>& findings);
void JudgeSchedules(const Examination& seen, std::vector<Finding>& findings);
void JudgeHost(const HostFacts& host, const Bounds& bounds, std::vector<Finding>& findings);

}  // namespace millrace::engine::doctor

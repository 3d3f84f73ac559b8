// What a worker says at its end of the tasks in its shards: what became of them, and what is left.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/store/schema_store.h"
#include "framework/store/task_desk.h"

namespace millrace::engine {

struct MillSummary {
  // Of all tasks that have ended, in this run or before.
  std::uint64_t succeeded = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint64_t attempts_failed = 0;
  // Of those that have not, each a bound from below where `or_more`.
  std::uint64_t waiting = 0;
  bool waiting_or_more = false;
  std::optional<WallTime> next_due;  // of the waiting ones
  std::uint64_t held = 0;
  bool held_or_more = false;
  std::set<std::string> unrunnable;  // task types with due tasks that no handler at hand can run
};

// Adds what a shard holds. What is left is counted no longer than until `deadline`.
Status AddShard(TaskDesk& desk, const std::vector<TableInfo>& tables, BootTime deadline,
                MillSummary& summary);

// `16049 succeeded, 0 failed`, and how many were cancelled if any: bare numbers, for scripts too.
std::string SummaryText(const MillSummary& summary);

// What is left, a line for each kind, with the command to look at it. `where`: how the store is named on its
// command line, such as ` --store sqlite:points.db`; empty: it need not be.
std::vector<std::string> LeftTexts(const MillSummary& summary, const std::string& where, WallTime now);

// Both as members of one object.
nlohmann::ordered_json ToJson(const MillSummary& summary);

}  // namespace millrace::engine

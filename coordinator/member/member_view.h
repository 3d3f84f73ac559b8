// What a worker knows of its cluster at one time. Immutable once made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/config.h"
#include "framework/policy/pauses.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

using SlicesByShard = std::map<std::string, std::vector<TableSlices>>;

struct MemberView {
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;  // of the assignment
  std::size_t slice_count = 0;
  std::shared_ptr<const SlicesByShard> slices = std::make_shared<const SlicesByShard>();
  std::shared_ptr<const Config> config = std::make_shared<const Config>();
  std::shared_ptr<const Pauses> pauses = std::make_shared<const Pauses>();
  bool contact = false;    // the cluster's nodes have been read
  bool id_in_use = false;  // another process has had the id for longer than a session lasts: give up
  // What is not in force, and why: `config/handlers: …`, `assign/w1: …`, `control/pause/x: …`.
  std::vector<std::string> refusals = {};
  bool shards_refused = false;  // config/shards is not in force: there may be shards that nobody here knows
  std::string ignored = {};     // what this process was started with and does not follow, and why
};

}  // namespace millrace::engine

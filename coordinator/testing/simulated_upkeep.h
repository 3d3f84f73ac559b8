// What a process knows of the task tables, and does to their slices while it leads, in virtual time: as
// coordinator/upkeep does with threads.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/leader/leader.h"
#include "coordinator/testing/modelled_process.h"
#include "coordinator/upkeep/seen_lives.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// Not thread-safe.
class SimulatedUpkeep {
 public:
  struct Parts {
    Timeline& timeline;
    std::deque<ModelledDatabase>& databases;
    ModelledProcess& process;
    const std::vector<std::string>& shards;
    ControlPlane& control;
    std::function<bool()> leads;
    std::function<bool()> stands;
    std::function<void()> changed;  // Facts() says something new
  };

  explicit SimulatedUpkeep(Parts parts);

  LeaderFacts Facts() const;
  // Who was alive in each shard that is configured, when it was read last.
  LivesByShard Lives() const;

 private:
  using Tables = std::vector<TableInfo>;
  struct Shard {
    std::optional<Tables> tables;   // while it leads
    std::optional<bool> readable;   // when it was last looked into
    std::optional<BootTime> tried;  // by a candidate
    SeenLives lives;
  };

  void Round(std::size_t shard);
  void Lead(std::size_t shard);
  void ReadLives(std::size_t shard);
  void Try(std::size_t shard);
  void Again(std::size_t shard);
  void Heard(std::size_t shard, const Result<Tables>& tables, bool led);
  bool Named(std::size_t shard) const;
  void Gather();

  const Parts parts_;
  std::vector<Shard> shards_;  // by number
  LeaderFacts facts_;
};

}  // namespace millrace::engine

// One simulated cluster from its seed to its verdict: three workers, any of which may lead, on a modelled
// ensemble and a modelled database for each shard, in virtual time. See README.md beside this file.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/testing/journal.h"
#include "coordinator/testing/planted_bugs.h"

namespace millrace::engine {

struct SimulationOptions {
  std::uint64_t seed = 1;
  PlantedBug bug = PlantedBug::None;
  std::size_t faults = 21;
  Journal::Sink trace = {};  // gets every step worth a line; may be empty
};

struct SimulationReport {
  std::string violation;  // the first; empty: none
  Micros simulated{};
  std::uint64_t steps = 0;  // events of the virtual time
  std::size_t faults = 0;
  std::size_t tasks = 0;
  std::size_t ahead = 0;  // claims that were sent ahead
  std::size_t parts = 0;  // of due maps, between whole ones that are dear
  std::size_t rescued = 0;
  std::size_t refused = 0;  // settles that came too late
  std::size_t marked_dead = 0;
  std::size_t moves = 0;     // of slices
  std::size_t multis = 0;    // that carried out the rest of a plan
  std::size_t changes = 0;   // of the configuration
  std::uint64_t terms = 0;   // of leaders
  Micros longest_unowned{};  // a slice, while somebody healthy could see to it
  std::size_t limited = 0;   // runs of types that are limited to a few at once
  std::size_t overlaps = 0;  // of these, beside as many as may run, by what is documented to do so
  std::size_t paced = 0;     // runs of types whose starts have a rate
};

// The same options give the same report. Thread-safe: simulations share nothing.
SimulationReport Simulate(const SimulationOptions& options);

}  // namespace millrace::engine

// What the parts of a modelled worker share. They are the steps of framework/worker without its threads: the
// same order of statements and the same decisions, by its own classes where those are pure (Lease,
// PeerWatch, InFlight, ScanCursors, OrderGroups, the retry ladder). Each answer of the database is a step.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/testing/modelled_process.h"
#include "framework/mill/lease.h"
#include "framework/task/retry_ladder.h"
#include "framework/worker/in_flight.h"

namespace millrace::engine {

// Planted bugs of the worker itself.
struct MillBugs {
  bool marks_without_watching = false;  // marks dead after one look in which the beat stood still
  bool rescues_from_the_living = false;
};

struct MillSettings {
  Micros lease = std::chrono::seconds(4);
  Micros poll = std::chrono::milliseconds(400);
  Micros rewind = std::chrono::seconds(3);
  std::size_t room = 6;
  Micros longest_run = std::chrono::milliseconds(1'500);
  unsigned retries = 12;  // percent of the runs
  unsigned snoozes = 5;
  RetryPolicy retry = {{std::chrono::milliseconds(300), std::chrono::seconds(1)}, 4, 0.1};
  MillBugs bugs = {};
};

// What a worker has to do.
struct MillRemit {
  std::function<std::vector<TableSlices>()> slices;       // that are its own now
  std::function<bool(const std::string& handler)> takes;  // whether it can run such tasks

  bool Owns(std::uint32_t slice, const std::string& handler) const {
    for (const TableSlices& each : slices()) {
      if (each.Covers(slice, handler)) return true;
    }
    return false;
  }
};

// One life in the shard, and what is in hand. Shared by the parts of one worker.
struct MillState {
  MillRemit remit;
  std::shared_ptr<Lease> life;                        // null: not registered
  std::shared_ptr<const std::set<std::string>> live;  // the claimers known to be alive; null: not known
  std::shared_ptr<const DueMap> map;                  // as the scanner read it last; null: not known
  MemoryBudget memory;
  InFlight in_flight{memory};
};

struct MillParts {
  Timeline& timeline;
  ModelledDatabase& database;
  ModelledProcess& process;
  Journal& journal;
  const MillSettings& settings;
  MillState& state;

  BootTime Now() const { return timeline.Now(); }
  void After(ThreadName thread, Micros delay, Timeline::Event event) const {
    timeline.After(delay, &process.On(thread), std::move(event));
  }
  template <class Reply>
  void Read(ThreadName thread, std::function<Reply(CheckedShard&)> statement,
            std::function<void(Reply)> done) const {
    database.Read<Reply>(process.database, process.On(thread), std::move(statement), std::move(done));
  }
  template <class Reply>
  void Write(ThreadName thread, std::function<Reply(CheckedShard&)> statement,
             std::function<void(Reply)> done) const {
    database.Write<Reply>(process.database, process.On(thread), std::move(statement), std::move(done));
  }
  void Trace(const std::string& line) const { journal.Trace(process.name + " " + line); }
};

using TasksReply = Result<std::vector<Task>>;

}  // namespace millrace::engine

// The machine of one shard: its strands, and what they share. What it decides needs no thread and no
// connection of its own; a driver has those (framework/worker/shard_driver.h, and the simulator).
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/mill/beat.h"
#include "framework/mill/maintenance.h"

namespace millrace::engine {

// Thread-safe, but for Run…, each of which is a strand.
class Mill {
 public:
  // What the mills of a worker share. Outlives them.
  struct Shared {
    const Clock& clock;
    Runner& runner;
    SoloGate& gate;
    MemoryBudget& memory;
    MillCounters& counters;
    const LiveEngine& engine;
    const Admission& admission;
  };
  struct Ports {
    ScanPort& scan;
    SettlePort& settle;
    SettlePort& second_settle;
    TendPort& tend;
    BeatPort& beat;
    std::function<std::unique_ptr<TaskTransaction>(Micros limit)> open_transaction;
  };
  struct Options {
    std::string shard;
    std::string address;  // of its store
    Incarnation self;     // who registers
    std::uint64_t seed = 0;
    bool watch_idle = false;  // also find out whether nothing at all is left to do
  };

  Mill(const Shared& shared, const Ports& ports, Options options);

  Step<> RunScan(std::size_t strand = 0) { return scans_.Run(strand); }
  Step<> RunSettle() { return settler_.Run(); }
  // For a shard that can commit two batches at once; all goes on without it.
  Step<> RunSecondSettle() { return settler_.RunSecond(); }
  Step<> RunTend() { return maintenance_.Run(); }
  Step<> RunBeat() { return beat_.Run(); }

  const std::string& shard() const { return shard_; }
  Attempts& attempts() { return attempts_; }
  const Attempts& attempts() const { return attempts_; }
  const Scope& scope() const { return scope_; }
  const Lives& lives() const { return lives_; }
  ScanView View() const { return scans_.View(); }
  // How many scan strands there are, and should be as of the last Follow (`engine.scanners`): whoever calls
  // that adds what is missing, and runs it.
  std::size_t ScanCount() const { return scans_.Count(); }
  std::size_t WantedScans() const { return scans_.Wanted(); }
  std::size_t AddScan(ScanPort& port) { return scans_.Add(port); }
  // The last one that was added can't be run.
  void DropScan() { scans_.Drop(); }
  // Somebody says that there is something new: it is looked at if it may be its own.
  void Rung(const Ring& ring);
  // Whether somebody listens who will ring.
  void SetAttended(bool attended) { scans_.SetAttended(attended); }

  // What is its own and what is paused from now on. True if that is new, or something else has happened: what
  // is queued may have to go back.
  bool Follow(std::vector<TableSlices> slices, std::shared_ptr<const Pauses> paused);
  // The shard is served no more: nothing is claimed or started, what is queued goes back.
  void Retire();
  void StopClaiming() { scans_.StopClaiming(); }
  bool Idle() const { return scans_.Idle(); }
  IdleSpan Idleness() const { return scans_.Idleness(); }
  std::set<std::string> LeftAside() const { return scans_.LeftAside(); }
  std::set<std::string> HeldBack() const { return scans_.HeldBack(); }
  bool NothingInHand() const { return attempts_.in_flight().Empty(); }
  // The same, once it claims nothing more.
  bool Empty() const { return scans_.Quiet() && NothingInHand(); }
  // The strands end; the beat signs off in the shard.
  void Stop();

 private:
  void Hear(Beat::News news);

  const std::string shard_;
  StrandPort& tend_;
  Scope scope_;
  Lives lives_;
  std::atomic<bool> died_{false};  // since the last Follow
  Settler settler_;
  Attempts attempts_;
  ScanStrands scans_;
  Maintenance maintenance_;
  Beat beat_;
};

}  // namespace millrace::engine

// Drives the mill of one shard: each strand has a thread and a connection of its own, so that a slow or dead
// shard holds up nobody else.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "framework/metrics/registry.h"
#include "framework/mill/mill.h"
#include "framework/store/store.h"
#include "framework/threads/pulse.h"
#include "framework/threads/thread.h"
#include "framework/worker/control_plane.h"
#include "framework/worker/coverage_watch.h"
#include "framework/worker/dead_recorders.h"
#include "framework/worker/doorbell.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

// Thread-safe. Its attempts keep it, and with it its store, until the last of them has ended.
class ShardDriver final : public std::enable_shared_from_this<ShardDriver> {
 public:
  // What the drivers of a worker share. Outlives them.
  struct Parts {
    Mill::Shared mill;
    ControlPlane& control;
    FlightRecorder& recorder;
    DeadRecorders& dead_recorders;
    Registry& metrics;
    Incarnation self;
    bool watch_idle = false;
  };

  ShardDriver(const Parts& parts, const std::string& shard, std::shared_ptr<Store> store);
  ~ShardDriver();

  const std::string& shard() const { return mill_->shard(); }
  const std::shared_ptr<Store>& store() const { return store_; }

  // Unavailable: a thread can't be started, and the mill has ended.
  engine::Status Start();
  // Asks what is its own and what is paused. True if that is new: what is queued may have to go back.
  bool Follow();
  void Retire() { mill_->Retire(); }
  bool Retired() const { return mill_->attempts().Retired(); }
  bool Idle() const { return mill_->Idle(); }
  IdleSpan Idleness() const { return mill_->Idleness(); }
  std::set<std::string> LeftAside() const { return mill_->LeftAside(); }
  std::set<std::string> HeldBack() const { return mill_->HeldBack(); }
  bool NothingInHand() const { return mill_->NothingInHand(); }
  bool Empty() const { return mill_->Empty(); }
  ShardStatus Status() const;
  // This worker's life in the shard; null: it has none.
  std::shared_ptr<Lease> Life() const { return mill_->lives().Own(); }
  bool OthersLive() const;
  // Tasks of some type may be claimed that there was no room for.
  void RoomAgain() { mill_->attempts().RoomAgain(); }
  // The strand that should have gone on for longer than `patience`, and has not: `scan of shard main`. Empty:
  // all go round, or wait for the database.
  std::string StandsStill(BootTime now, Micros patience) const;
  // Somebody rings.
  void Rung(const Ring& ring) { mill_->Rung(ring); }
  std::vector<std::string> PauseNames() const { return mill_->scope().PauseNames(); }

  void StopClaiming() { mill_->StopClaiming(); }
  // Handlers are asked to end now.
  void AskToStop() { mill_->attempts().AskToStop(); }
  void GiveBackParked() { mill_->attempts().GiveBackParked(); }
  // Ends the threads, and signs off in the shard; RequestEnd asks them to. What is still in hand is left to
  // whoever finds it.
  void RequestEnd();
  void End();

 private:
  struct Ports;  // the strands' ways to the store

  static engine::Status Begin(Thread& thread, const std::string& name, Pulse& pulse,
                              const std::function<Step<>()>& run);
  engine::Status BeginScan(std::size_t strand);
  void AddScans();

  const Parts parts_;
  const std::shared_ptr<Store> store_;
  const std::unique_ptr<CoverageWatch> coverage_;  // where its numbers were given by hand
  const std::unique_ptr<Ports> ports_;
  const std::unique_ptr<Mill> mill_;
  Thread settle_;
  Thread second_settle_;
  Thread beat_;
  std::array<Thread, ScanStrands::kMost> scans_;
  bool told_few_ = false;  // that a scan thread can't be started
  Thread tend_;
  Doorbell doorbell_;
};

}  // namespace millrace::engine

#include "coordinator/upkeep/batches.h"

#include <utility>

#include "coordinator/upkeep/fan_outs.h"

namespace millrace::engine {
namespace {

constexpr Micros kWhileClosed = std::chrono::seconds(1);
constexpr Micros kOtherwise = std::chrono::seconds(2);
constexpr Micros kSoonAgain = std::chrono::milliseconds(50);
constexpr Micros kBetweenWanted = std::chrono::milliseconds(200);

}  // namespace

Batches::~Batches() {
  (void)AskToStop();
  thread_.Join();
}

Status Batches::Follow(const StoresByShard& shards) {
  {
    MutexLock lock(mutex_);
    shards_ = shards;
  }
  if (thread_.Started() || (!leading_() && !Wanted())) return {};
  stopped_.store(false);
  Status started = thread_.Start("batches", [this] {
    Run();
    stopped_.store(true);
  });
  if (!started) stopped_.store(true);
  return started;
}

bool Batches::AskToStop() {
  stopping_.store(true);
  wake_.Notify();
  return stopped_.load();
}

bool Batches::Wanted() {
  MutexLock lock(mutex_);
  return wanted_;
}

// What another process decided, or submitted of a fan-out, before this look has been added before it, too:
// the scanners have to look once more. Where no batch was closed and no fan-out under way there is no such
// thing.
bool Batches::MayEnd(const IdleSpan& idle) {
  MutexLock lock(mutex_);
  idle_since_ = idle.since;
  if (quiet_ && quiet_->begun >= idle.since) return !any_ || idle.looked >= quiet_->ended;
  if (!wanted_ && BootClock::now() - looked_ >= kBetweenWanted) {
    wanted_ = true;
    wake_.Notify();
  }
  return false;
}

// Only a look that was wanted has looked for all that there is to wait for.
void Batches::Note(const BatchLook& look, Quiet when, bool wanted) {
  MutexLock lock(mutex_);
  if (wanted) looked_ = when.ended;
  any_ = any_ || look.closed > 0 || look.pending > 0;
  if (look.ended > 0 || look.pending > 0 || look.cut || look.unread) {
    quiet_.reset();
  } else if (wanted && (!quiet_ || quiet_->begun < idle_since_)) {
    quiet_ = when;
  }
}

// How long to wait for the next.
Micros Batches::Turn(BatchDecider& decider, FanOutWatch& fan_outs) {
  bool wanted = false;
  StoresByShard shards;
  {
    MutexLock lock(mutex_);
    wanted = std::exchange(wanted_, false);
    shards = shards_;
  }
  if (!wanted && !leading_()) return kOtherwise;
  const BootTime begun = BootClock::now();
  BatchLook look = decider.Look(shards, wanted);
  if (wanted) look.pending += fan_outs.Moving(shards);
  Note(look, {begun, BootClock::now()}, wanted);
  if (look.cut || Wanted()) return kSoonAgain;
  return look.closed > 0 ? kWhileClosed : kOtherwise;
}

void Batches::Run() {
  BatchDecider decider({.now = BootClock::now,
                        .rest = [this](Micros rest) { (void)wake_.WaitFor(rest); },
                        .stop = [this] { return stopping_.load(); }});
  FanOutWatch fan_outs;
  while (!stopping_.load()) wake_.WaitFor(Turn(decider, fan_outs));
}

}  // namespace millrace::engine

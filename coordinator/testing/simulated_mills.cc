#include "coordinator/testing/simulated_mills.h"

#include <algorithm>

namespace millrace::engine {
namespace {

constexpr Micros kTick = std::chrono::milliseconds(100);
constexpr Micros kStopTimeout = std::chrono::seconds(6);

}  // namespace

SimulatedMills::SimulatedMills(Parts parts, const Lives& dead)
    : parts_(std::move(parts)),
      clock_(parts_.timeline),
      config_(parts_.control.CurrentConfig()),
      engine_(EngineOf(*config_), config_->Scans(), ScanOrder::Of(*config_)),
      runner_({parts_.timeline, parts_.databases, parts_.process, parts_.journal, parts_.settings.handlers,
               parts_.shards, parts_.runs, parts_.broken, parts_.checks, admission_}),
      permits_({parts_.timeline, clock_, parts_.databases, parts_.process, parts_.shards, runner_, metrics_,
                [this](std::size_t shard) { return MillOf(shard); }}),
      breakers_(clock_, parts_.control, admission_),
      places_(parts_.shards.size()),
      dead_(dead) {
  admission_.starts_again().Listen([this](const std::string&) { runner_.StartsAgain(); });
  admission_.HoldBy(permits_.permits());
  if (!parts_.settings.bugs.limits_undivided) {
    parts_.control.FollowShares([this](auto shares) { admission_.FollowShares(Taken(std::move(shares))); });
  }
  admission_.Follow(Admitted());
  Watch();
}

Mill* SimulatedMills::MillOf(std::size_t shard) {
  if (shard >= places_.size() || !places_[shard].mill || places_[shard].retiring) return nullptr;
  return &places_[shard].mill->mill();
}

EngineConfig SimulatedMills::EngineOf(const Config& config) const {
  EngineConfig engine = config.engine;
  if (parts_.settings.bugs.never_ages) engine.aging = Micros(0);
  engine.batch = parts_.settings.batch.value_or(engine.batch);
  return engine;
}

std::shared_ptr<const Config> SimulatedMills::Admitted() const {
  if (!parts_.settings.bugs.hours_unheeded) return config_;
  auto without = std::make_shared<Config>(*config_);
  for (auto& [type, handler] : without->handlers) handler.hours.reset();
  return without;
}

std::shared_ptr<const LimitShares> SimulatedMills::Taken(std::shared_ptr<const LimitShares> shares) const {
  if (!parts_.settings.bugs.exceeds_rates || shares == nullptr) return shares;
  auto more = std::make_shared<LimitShares>(*shares);
  for (auto& [type, share] : *more) share.rate *= 1.3;
  return more;
}

void SimulatedMills::Begin(std::size_t shard) {
  std::vector<std::string> dead;
  for (const auto& [number, life] : std::exchange(dead_, {})) {
    if (number == shard) {
      dead.push_back(life);
    } else {
      dead_.emplace_back(number, life);
    }
  }
  places_[shard].retiring = places_[shard].ending = false;
  places_[shard].mill = std::make_unique<SimulatedMill>(
      SimulatedMill::Parts{parts_.timeline, parts_.databases[shard], parts_.process, parts_.settings.bugs,
                           shard, parts_.shards[shard],
                           Mill::Shared{clock_, runner_, gate_, memory_, counters_, engine_, admission_},
                           parts_.claims, parts_.journal, [this] { return config_->engine.aging; },
                           [this](const std::string& type) { return admission_.Of(type) != nullptr; },
                           [this] { parts_.control.LifeBegun(); }},
      std::move(dead));
  (void)Follow(shard);
  places_[shard].mill->Start();
}

SimulatedMills::Lives SimulatedMills::Incarnations() const {
  Lives lives;
  for (std::size_t shard = 0; shard < places_.size(); ++shard) {
    const std::string life = places_[shard].mill ? places_[shard].mill->Incarnation() : "";
    if (!life.empty()) lives.emplace_back(shard, life);
  }
  return lives;
}

void SimulatedMills::Watch() {
  permits_.Watch(parts_.timeline.Now());
  runner_.Watch();
  if (ended_) {
    WatchDraining();
  } else {
    FollowAll();
  }
  parts_.timeline.After(kTick, &parts_.process.On(ThreadName::Watch), [this] { Watch(); });
}

void SimulatedMills::FollowAll() {
  const auto config = parts_.control.CurrentConfig();
  if (config != config_) {
    config_ = config;
    engine_.Set(EngineOf(*config_));
    engine_.SetScans(config_->Scans());
    engine_.SetOrder(ScanOrder::Of(*config_));
    admission_.Follow(Admitted());
  }
  runner_.Follow(config_);
  bool changed = false;
  for (std::size_t shard = 0; shard < places_.size(); ++shard) {
    Place& place = places_[shard];
    const bool served = config_->shards.contains(parts_.shards[shard]);
    if (!place.mill && served) Begin(shard);
    if (!place.mill) continue;
    if (!served && !place.retiring) {
      place.retiring = true;
      place.mill->mill().Retire();
      changed = true;
    }
    changed = Follow(shard) || changed;
    place.mill->AddScans();
    if (place.retiring) EndRetired(shard);
  }
  breakers_.Follow([this] { return parts_.control.Paused()->Names(); });
  changed = admission_.TakeClosed() || changed;
  if (changed) runner_.SendBackUnwanted();
}

bool SimulatedMills::Follow(std::size_t shard) {
  std::vector<TableSlices> slices = parts_.control.Slices(parts_.shards[shard]);
  const std::size_t count = slices.size();
  const bool changed = places_[shard].mill->mill().Follow(std::move(slices), parts_.control.Paused());
  if (changed && parts_.journal.Traces()) {
    parts_.journal.Trace(parts_.process.name + " follows: it has slices of " + std::to_string(count) +
                         " tables of shard " + parts_.shards[shard]);
  }
  return changed;
}

// One that is named again before it has ended is begun anew.
void SimulatedMills::EndRetired(std::size_t shard) {
  Place& place = places_[shard];
  Mill& mill = place.mill->mill();
  mill.attempts().GiveBackParked();
  if (!place.ending && mill.Empty()) {
    place.ending = true;
    CheckEnd(shard);
    mill.Stop();
  }
  if (!place.mill->Ended()) return;
  place.mill->mill().attempts().Close();
  for (std::size_t thread = 0; thread < kShardThreads; ++thread) {
    if (thread + kOwnThreads != static_cast<std::size_t>(ThreadName::Upkeep))
      ++parts_.process.threads[kOwnThreads + shard * kShardThreads + thread].life;
  }
  place.mill.reset();
}

// What it has claimed under its life and not ended would wait for its lease to run out.
void SimulatedMills::CheckEnd(std::size_t shard) {
  const std::string life = places_[shard].mill->Incarnation();
  if (!life.empty()) parts_.databases[shard].checked().CheckNothingRuns(life);
}

void SimulatedMills::Stop(std::function<void(bool)> ended) {
  if (ended_) return;
  ended_ = std::move(ended);
  breakers_.Stop();
  deadline_ = parts_.timeline.Now() + kStopTimeout;
  for (Place& place : places_) {
    if (place.mill) place.mill->mill().StopClaiming();
  }
}

void SimulatedMills::WatchDraining() {
  runner_.GiveBackQueued();
  permits_.permits().StopStarting();
  bool empty = true;
  bool over = permits_.Ended();
  for (Place& place : places_) {
    if (!place.mill) continue;
    place.mill->mill().attempts().GiveBackParked();
    empty = empty && (place.mill->mill().Empty() || parts_.settings.bugs.ends_with_tasks_in_hand);
    over = over && place.mill->Ended();
  }
  if (empty && !ending_) {
    ending_ = true;
    permits_.permits().Stop();
    for (std::size_t shard = 0; shard < places_.size(); ++shard) {
      if (!places_[shard].mill) continue;
      CheckEnd(shard);
      places_[shard].mill->mill().Stop();
    }
    return;
  }
  if (!(ending_ && over) && parts_.timeline.Now() < deadline_) return;
  // Whoever is told destroys this: in an event of its own.
  parts_.timeline.After(Micros(0), &parts_.process.On(ThreadName::Watch),
                        [tell = ended_, over] { tell(over); });
}

}  // namespace millrace::engine

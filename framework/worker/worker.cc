#include "framework/worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/join.hpp>
#include <set>

#include "framework/base/log.h"
#include "framework/files/trust.h"
#include "framework/threads/pulse.h"
#include "framework/worker/breaker_follower.h"
#include "framework/worker/config_follower.h"
#include "framework/worker/doorbell.h"
#include "framework/worker/mill_set.h"
#include "framework/worker/permit_driver.h"
#include "framework/worker/stop_times.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

// After a change, what it makes unwanted is looked for in so many ticks: claims may have been under way. What
// would start here within the patience does so sooner than another worker could.
constexpr int kSweepTicks = 40;
constexpr Micros kMovedPatience = std::chrono::milliseconds(100);
// With until_idle: after so long without an end it says what it waits for.
constexpr Micros kSilence = std::chrono::seconds(5);
// To sign off in each shard, also where the last task has ended at the deadline.
constexpr Micros kSignOff = std::chrono::seconds(1);

}  // namespace

class Worker::Body {
 public:
  Body(Parts parts, WorkerOptions options) : parts_(std::move(parts)), options_(std::move(options)) {}

  engine::Status Start();
  void End();
  void Stop() {
    stop_.store(true);
    tick_.Notify();
  }
  void StopNow() {
    stop_now_.store(true);
    Stop();
  }
  bool Ending() const { return ending_.load(); }
  std::optional<WorkerEnd> WaitFor(Micros limit);
  WorkerTotals Totals() const;
  WorkerStatus Status() const;
  std::optional<HandlerRefusals> Refused(const std::shared_ptr<const Config>& config) const {
    return config_ ? config_->Refused(config) : std::nullopt;
  }
  std::map<std::string, LimitView> Limits() const { return admission_.Limits(); }
  std::string StandsStill(Micros patience) const;
  bool LeftThreads() const { return left_.load(); }

 private:
  enum class Phase { Running, Draining, Abandoned, Ended };

  engine::Status TakeRecorder(const std::string& worker);
  engine::Status StartMills();
  void Undo();
  void Watch();
  void WatchRunning();
  Micros NextTick(bool woken);
  bool AnyInHand() const;
  void SendBackUnwanted(bool changed);
  void BeginStop(WorkerEnd end);
  void WatchDraining();
  void Abandon();
  void Finish();
  void JoinAll();
  void Publish();
  void Measure(Gauges& gauges) const;
  bool MayEnd() const;
  void TellHeldBack();

  const Parts parts_;
  const WorkerOptions options_;
  std::optional<LiveEngine> engine_;

  std::unique_ptr<WorkerId> id_;
  std::unique_ptr<FlightRecorder> recorder_;
  std::unique_ptr<DeadRecorders> dead_recorders_;
  SoloGate gate_{parts_.clock};
  MemoryBudget memory_;
  std::unique_ptr<MillCounters> counters_;
  Admission admission_{parts_.clock};
  std::unique_ptr<LaneSet> lanes_;
  std::unique_ptr<PermitDriver> permits_;
  std::unique_ptr<MillSet> mills_;
  std::unique_ptr<ConfigFollower> config_;
  BreakerFollower breakers_{parts_.clock, parts_.control, admission_};
  std::unique_ptr<RingListener> rings_;  // uses the mills
  Registry::Reading measured_;           // uses lanes and mills

  // The watch thread's own.
  Phase phase_ = Phase::Running;
  WorkerEnd end_ = WorkerEnd::Stopped;
  StopTimes stops_;
  bool hurried_ = false;
  int sweep_ticks_ = 0;
  WatchPace pace_;
  std::uint64_t ended_tasks_ = 0;  // with until_idle: as of the last that did
  std::optional<BootTime> waits_;  // since then; nullopt: what it waits for was told

  std::atomic<bool> left_{false};  // threads that could not be joined
  std::atomic<bool> stop_{false};
  std::atomic<bool> stop_now_{false};
  std::atomic<bool> ending_{false};
  Signal tick_;
  Pulse pulse_;  // of the watch thread
  mutable Mutex mutex_;
  CondVar ended_;
  std::optional<WorkerEnd> result_ MILLRACE_GUARDED_BY(mutex_);
  Thread watch_;
};

Worker::Worker(Parts parts, WorkerOptions options)
    : body_(std::make_unique<Body>(std::move(parts), std::move(options))) {}

Worker::~Worker() {
  body_->End();
  // Threads that foreign code has not given back still use the body: it stays behind with them.
  if (body_->LeftThreads()) (void)body_.release();
}

Status Worker::Start() { return body_->Start(); }
void Worker::Stop() { body_->Stop(); }
void Worker::StopNow() { body_->StopNow(); }
bool Worker::Ending() const { return body_->Ending(); }
std::optional<WorkerEnd> Worker::WaitFor(Micros limit) { return body_->WaitFor(limit); }
WorkerTotals Worker::Totals() const { return body_->Totals(); }
WorkerStatus Worker::Status() const { return body_->Status(); }
std::optional<HandlerRefusals> Worker::Refused(const std::shared_ptr<const Config>& config) const {
  return body_->Refused(config);
}
std::map<std::string, LimitView> Worker::Limits() const { return body_->Limits(); }
std::string Worker::StandsStill(Micros patience) const { return body_->StandsStill(patience); }
bool Worker::LeftThreads() const { return body_->LeftThreads(); }

void Worker::Body::End() {
  if (!watch_.Started()) return;
  StopNow();
  while (!WaitFor(engine_->Get().stop_timeout)) continue;  // it gives up by itself at its deadline
}

Status Worker::Body::Start() {
  if (id_) return {};
  const std::shared_ptr<const Config> config = parts_.control.CurrentConfig();
  engine_.emplace(config->engine, config->Scans(), ScanOrder::Of(*config));
  BOOST_OUTCOME_TRY(id, WorkerId::Take(options_.state_dir, options_.id));
  BOOST_OUTCOME_TRYV(TakeRecorder(id->name()));
  lanes_ = std::make_unique<LaneSet>(LaneParts{parts_.clock, *recorder_}, parts_.plugins, config,
                                     LaneSet::Rules{options_.concurrency, options_.partial});
  BOOST_OUTCOME_TRYV(lanes_->OpenConfigured());
  id_ = std::move(id);
  admission_.starts_again().Listen([this](const std::string& type) { lanes_->StartsAgain(type); });
  permits_ = std::make_unique<PermitDriver>(parts_.clock, *lanes_, parts_.metrics);
  admission_.HoldBy(permits_->permits());
  parts_.control.FollowShares([this](auto shares) { admission_.FollowShares(std::move(shares)); });
  admission_.Follow(lanes_->WithThreads(*config));
  config_ = std::make_unique<ConfigFollower>(parts_.control, config, *engine_, *lanes_, admission_, tick_);
  parts_.control.FollowChanges({&config_->changed(), &tick_});
  engine::Status started = StartMills();
  if (!started) Undo();
  return started;
}

// What had begun when a thread could not be started.
void Worker::Body::Undo() {
  measured_.End();
  parts_.control.FollowShares(nullptr);
  parts_.control.FollowChanges({});
  rings_.reset();
  config_->Stop();
  permits_->Stop();
  mills_->End();
  for (const auto& lane : lanes_->All()) lane->Close();
  for (const auto& lane : lanes_->All()) lane->Join();
  mills_.reset();
  id_.reset();
}

Status Worker::Body::TakeRecorder(const std::string& worker) {
  BOOST_OUTCOME_TRY(folder,
                    MakeTrustedFolder(options_.state_dir + "/recorders", "folder of flight recorders"));
  Random random = Random::FromSystem();
  const std::string name = worker + "." + random.Hex(12);
  BOOST_OUTCOME_TRY(recorder, FlightRecorder::Create(folder, name));
  recorder_ = std::move(recorder);
  dead_recorders_ = std::make_unique<DeadRecorders>(folder, name);
  return {};
}

Status Worker::Body::StartMills() {
  counters_ = std::make_unique<MillCounters>(parts_.metrics);
  Incarnation self;
  self.worker = id_->name();
  self.host = HostName();
  self.pid = getpid();
  self.slices = options_.load_balance;
  mills_ = std::make_unique<MillSet>(
      ShardDriver::Parts{{parts_.clock, *lanes_, gate_, memory_, *counters_, *engine_, admission_},
                         parts_.control,
                         *recorder_,
                         *dead_recorders_,
                         parts_.metrics,
                         std::move(self),
                         options_.until_idle});
  if (engine::Status mills = mills_->Start(); !mills) return mills;
  LogInfo("worker started", {{"worker", id_->name()}, {"shards", mills_->All().size()}});
  waits_ = parts_.clock.Now();
  if (engine::Status config = config_->Start(); !config) return config;
  if (!options_.doorbell_address.empty()) {
    rings_ = std::make_unique<RingListener>([this](const ShardRing& ring) { mills_->Rung(ring); });
    if (engine::Status rings = rings_->Start(options_.doorbell_address); !rings) return rings;
  }
  measured_ = parts_.metrics.OnText([this](Gauges& gauges) { Measure(gauges); });
  return watch_.Start("watch", [this] { Watch(); });
}

void Worker::Body::Measure(Gauges& gauges) const {
  const LaneSet::Loads loads = lanes_->CurrentLoads();
  const auto set = [&](const char* name, const char* label, const auto& numbers) {
    for (const auto& [of, number] : numbers) gauges.Set(name, {{label, of}}, static_cast<double>(number));
  };
  set("millrace_lane_threads", "handler", loads.threads);
  set("millrace_lane_busy", "handler", loads.busy);
  for (const QueueStatus& queue : loads.queues) {
    gauges.Set("millrace_queue_tasks", {{"queue", queue.name}}, static_cast<double>(queue.waiting));
    gauges.Set("millrace_queue_busy", {{"queue", queue.name}}, static_cast<double>(queue.busy));
  }
  for (const BreakerStatus& breaker : BreakersIn(admission_, parts_.clock.Now()))
    gauges.Set("millrace_breaker_open", {{"handler", breaker.handler}}, breaker.open ? 1 : 0);
  gauges.Set("millrace_config_refused", {}, static_cast<double>(lanes_->Refusals().size()));
  for (const auto& mill : mills_->All()) {
    const ShardStatus shard = mill->Status();
    if (!shard.retiring) gauges.Set("millrace_shard_up", {{"shard", shard.shard}}, shard.reachable ? 1 : 0);
  }
}

void Worker::Body::Watch() {
  bool woken = true;
  while (phase_ != Phase::Ended) {
    const Micros wait = NextTick(woken);
    pulse_.Within(wait);
    woken = tick_.WaitFor(wait);
    pulse_.Now();
    lanes_->Watch(parts_.clock.Now());
    permits_->Watch(mills_->All());
    if (phase_ == Phase::Running) {
      WatchRunning();
    } else {
      WatchDraining();
    }
  }
}

// What is taken once it was asked to wake us does so; what was taken before is in hand here.
Micros Worker::Body::NextTick(bool woken) {
  lanes_->WakeOnTake(&tick_);
  const Micros next =
      pace_.Next(woken || phase_ != Phase::Running || options_.until_idle || sweep_ticks_ > 0 || AnyInHand());
  if (next == WatchPace::kTick) lanes_->WakeOnTake(nullptr);
  return next;
}

// A shard that has ended at its deadline may have left what its handlers still do.
bool Worker::Body::AnyInHand() const {
  if (!mills_->NothingInHand()) return true;
  const auto lanes = lanes_->All();
  return std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane->Running() > 0; });
}

void Worker::Body::WatchRunning() {
  const bool followed = mills_->Follow();
  breakers_.Follow([this] { return mills_->PauseNames(); });
  // A sweep has to come to its end: that takes out what was moved and does not start.
  SendBackUnwanted((sweep_ticks_ == 0 && admission_.TakeClosed()) || followed);
  mills_->EndRetired([this](const Lease& life) { return permits_->permits().HeldUnder(life); });
  std::size_t lost = 0;
  for (const auto& lane : lanes_->All()) lost += lane->Lost();
  if (lost > engine_->Get().max_lost_threads) {
    LogError("too many threads are lost to handlers that ignore their limit: this process must be replaced",
             {{"lost", lost}});
    BeginStop(WorkerEnd::Replace);
  } else if (stop_.load()) {
    BeginStop(WorkerEnd::Stopped);
  } else if (options_.until_idle && MayEnd()) {
    mills_->TellLeftAside();
    BeginStop(WorkerEnd::Idle);
  } else if (options_.until_idle && waits_) {
    TellHeldBack();
  }
}

void Worker::Body::SendBackUnwanted(bool changed) {
  if (changed) sweep_ticks_ = kSweepTicks;
  if (sweep_ticks_ == 0) return;
  const Micros patience = --sweep_ticks_ == 0 ? Micros(0) : kMovedPatience;
  for (const auto& lane : lanes_->All()) {
    for (const AttemptPtr& attempt : lane->TakeUnwanted(patience)) GiveBack(attempt);
  }
}

void Worker::Body::BeginStop(WorkerEnd end) {
  end_ = end;
  phase_ = Phase::Draining;
  ending_.store(true);
  stops_ = {parts_.clock.Now(), engine_->Get().stop_timeout};
  recorder_->NoteStopping();
  if (end != WorkerEnd::Idle)
    LogInfo("worker is stopping: it claims nothing more", {{"worker", id_->name()}});
  config_->RequestStop();
  breakers_.Stop();
  for (const auto& mill : mills_->All()) mill->StopClaiming();
}

void Worker::Body::WatchDraining() {
  for (const auto& lane : lanes_->All()) {
    for (const AttemptPtr& attempt : lane->TakeQueued()) GiveBack(attempt);
  }
  permits_->permits().StopStarting();
  for (const auto& mill : mills_->All()) mill->GiveBackParked();
  if (config_->Ended() && mills_->AllEmpty()) {
    Finish();
    return;
  }
  const BootTime now = parts_.clock.Now();
  if (stop_now_.load() && !hurried_) stops_.Hurry(now);
  if (!hurried_ && (stop_now_.load() || stops_.Asks(now))) {
    hurried_ = true;
    for (const auto& mill : mills_->All()) mill->AskToStop();
  }
  if (phase_ == Phase::Draining && stops_.GivesUp(now)) {
    phase_ = Phase::Abandoned;
    Abandon();
  }
  if (stops_.Over(now)) {
    LogError("the worker ends with tasks in its hands; others rescue them once its lease is out");
    end_ = end_ == WorkerEnd::Replace ? end_ : WorkerEnd::GaveUp;
    left_.store(true);
    Publish();
    Finish();
  }
}

void Worker::Body::Abandon() {
  std::size_t lost = 0;
  for (const auto& lane : lanes_->All()) lost += lane->AbandonRunning("the worker was stopped while it ran");
  if (lost == 0) return;
  LogWarning("handlers still run at the stop deadline; their tasks are given back", {{"threads", lost}});
  if (end_ == WorkerEnd::Stopped) end_ = WorkerEnd::GaveUp;
}

// All threads are waited for, and these for databases: where one does not answer the deadline holds all the
// same. Who started the worker ends the process then.
void Worker::Body::Finish() {
  phase_ = Phase::Ended;
  pulse_.Never();
  const BootTime begun_at = parts_.clock.Now();
  Signal joined;
  Thread ending;
  const engine::Status begun = ending.Start("end", [&] {
    JoinAll();
    joined.Notify();
  });
  if (!begun) JoinAll();
  while (begun && !left_.load() && !joined.WaitFor(WatchPace::kTick)) {
    const BootTime now = parts_.clock.Now();
    if (stop_now_.load() && !std::exchange(hurried_, true)) stops_.Hurry(now);
    if (!stops_.Over(now) || now - begun_at < kSignOff) continue;
    LogWarning("the worker ends without signing off in every shard: a database does not answer");
    left_.store(true);
    Publish();
  }
  ending.Join();
  const auto lanes = lanes_->All();
  left_.store(std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane->Lost() > 0; }));
  LogInfo("worker ended", {{"worker", id_->name()}});
  Publish();
}

// All are asked before one is waited for: a database that does not answer keeps no other shard from hearing
// that this worker signs off.
void Worker::Body::JoinAll() {
  measured_.End();
  parts_.control.FollowShares(nullptr);
  parts_.control.FollowChanges({});
  if (rings_) rings_->Stop();
  permits_->RequestStop();
  mills_->RequestEnd();
  config_->Stop();
  permits_->Stop();
  mills_->End();
  for (const auto& lane : lanes_->All()) lane->Close();
  for (const auto& lane : lanes_->All()) lane->Join();
}

void Worker::Body::Publish() {
  {
    MutexLock lock(mutex_);
    result_ = end_;
    ended_.NotifyAll();
  }
  options_.ended();
}

bool Worker::Body::MayEnd() const {
  const std::optional<IdleSpan> idle = mills_->Idleness();
  return idle && (options_.may_end == nullptr || options_.may_end(*idle));
}

// Whoever waits for its end is told, once, what that waits for where no task has ended for a while.
void Worker::Body::TellHeldBack() {
  const BootTime now = parts_.clock.Now();
  const WorkerTotals totals = Totals();
  const std::uint64_t ended = totals.succeeded + totals.cancelled + totals.failed;
  if (std::exchange(ended_tasks_, ended) != ended || totals.running > 0) waits_ = now;
  if (now - *waits_ < kSilence) return;
  const std::set<std::string> held = mills_->HeldBack();
  if (held.empty()) return;
  waits_.reset();
  LogWarning("due tasks are held back, and are waited for", {{"held", boost::algorithm::join(held, "; ")}});
}

std::optional<WorkerEnd> Worker::Body::WaitFor(Micros limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (!result_) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return std::nullopt;
    ended_.WaitFor(mutex_, left);
  }
  return result_;
}

WorkerTotals Worker::Body::Totals() const {
  WorkerTotals totals;
  if (!counters_) return totals;
  totals.claimed = counters_->claimed.Value();
  totals.succeeded = counters_->succeeded.Value();
  totals.cancelled = counters_->cancelled.Value();
  totals.failed = counters_->failed.Value();
  totals.retried = counters_->retried.Value();
  totals.held = counters_->held.Value();
  totals.returned = counters_->returned.Value();
  totals.refused = counters_->refused.Value();
  totals.adopted = counters_->adopted.Value();
  totals.rescued = counters_->rescued.Value();
  for (const auto& lane : lanes_->All()) {
    totals.running += lane->Running();
    totals.queued += lane->Queued();
  }
  return totals;
}

WorkerStatus Worker::Body::Status() const {
  WorkerStatus status;
  if (!mills_) return status;
  status.worker = id_->name();
  for (const auto& mill : mills_->All()) status.shards.push_back(mill->Status());
  std::ranges::stable_sort(status.shards, {}, &ShardStatus::shard);
  status.paused = mills_->PauseNames();
  status.breakers = BreakersIn(admission_, parts_.clock.Now());
  for (const auto& [type, closed] : admission_.OutsideHours())
    status.outside_hours.push_back(type + ": " + closed);
  for (const auto& [type, why] : lanes_->Refusals())
    status.refusals.push_back("handlers." + type + ": " + why);
  status.unopened = lanes_->Unopened();
  LaneSet::Loads loads = lanes_->CurrentLoads();
  status.queues = std::move(loads.queues);
  status.full = std::move(loads.full);
  if (rings_) status.doorbell = rings_->Address();
  permits_->Tell(status);
  return status;
}

std::string Worker::Body::StandsStill(Micros patience) const {
  const BootTime now = BootClock::now();
  if (pulse_.StandsStill(now, patience)) return "watch";
  if (!mills_) return "";
  if (permits_->StandsStill(now, patience)) return "permits";
  for (const auto& mill : mills_->All()) {
    if (std::string strand = mill->StandsStill(now, patience); !strand.empty()) return strand;
  }
  return "";
}

}  // namespace millrace::engine

#include "framework/worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "framework/base/log.h"
#include "framework/worker/shard_mill.h"
#include "framework/worker/worker_id.h"

namespace millrace {
namespace {

constexpr Micros kTick = std::chrono::milliseconds(50);
// Of the stop timeout, at its end: to settle what was given up.
Micros SettleReserve(Micros stop_timeout) {
  return std::min<Micros>(stop_timeout / 5, std::chrono::seconds(3));
}
constexpr Micros kHurry =
    std::chrono::milliseconds(500);  // for handlers to see the stop token, when told to go now

}  // namespace

class Worker::Body {
 public:
  Body(Parts parts, WorkerOptions options) : parts_(std::move(parts)), options_(std::move(options)) {}

  Status Start();
  void End();
  void Stop() {
    stop_.store(true);
    tick_.Notify();
  }
  void StopNow() {
    stop_now_.store(true);
    Stop();
  }
  std::optional<WorkerEnd> WaitFor(Micros limit);
  WorkerTotals Totals() const;
  bool LeftThreads() const { return left_.load(); }

 private:
  enum class Phase { Running, Draining, Abandoned, Ended };

  Status OpenMills();
  void Watch();
  void WatchRunning();
  void BeginStop(WorkerEnd end);
  void WatchDraining();
  void Abandon();
  void Finish();
  void Publish();
  bool AllEmpty() const;
  bool AllIdle() const;

  const Parts parts_;
  const WorkerOptions options_;
  EngineConfig engine_;

  std::unique_ptr<WorkerId> id_;
  std::unique_ptr<FlightRecorder> recorder_;
  std::unique_ptr<DeadRecorders> dead_recorders_;
  SoloGate gate_;
  std::unique_ptr<MillCounters> counters_;
  std::unique_ptr<LaneSet> lanes_;
  std::vector<std::unique_ptr<ShardMill>> mills_;

  // The watch thread's own.
  Phase phase_ = Phase::Running;
  WorkerEnd end_ = WorkerEnd::Stopped;
  BootTime deadline_{};
  bool hurried_ = false;

  std::atomic<bool> built_{false};  // mills_ is complete
  std::atomic<bool> left_{false};   // threads that could not be joined
  std::atomic<bool> stop_{false};
  std::atomic<bool> stop_now_{false};
  Signal tick_;
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
std::optional<WorkerEnd> Worker::WaitFor(Micros limit) { return body_->WaitFor(limit); }
WorkerTotals Worker::Totals() const { return body_->Totals(); }
bool Worker::LeftThreads() const { return body_->LeftThreads(); }

void Worker::Body::End() {
  if (mills_.empty()) return;
  StopNow();
  while (!WaitFor(engine_.stop_timeout)) continue;  // it gives up by itself at its deadline
}

Status Worker::Body::Start() {
  if (id_) return {};
  const std::shared_ptr<const Config> config = parts_.config.Current();
  engine_ = config->engine;
  auto id = WorkerId::Take(options_.state_dir, options_.id);
  if (!id) return Fail(id.error());
  const std::string folder = options_.state_dir + "/recorders";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Fail(ErrorCode::Invalid, folder + " can't be made: " + error.message());
  Random random = Random::FromSystem();
  const std::string recorder_name = (*id)->name() + "." + random.Hex(12);
  auto recorder = FlightRecorder::Create(folder, recorder_name);
  if (!recorder) return Fail(recorder.error());
  recorder_ = std::move(*recorder);
  std::set<std::string> stores;
  for (const auto& [name, store] : parts_.shards) stores.insert(store->Describe());
  dead_recorders_ = std::make_unique<DeadRecorders>(folder, recorder_name, std::move(stores));
  counters_ = std::make_unique<MillCounters>(parts_.metrics);
  const auto wake_all = [this] {
    if (!built_.load()) return;
    for (const auto& mill : mills_) mill->Wake();
  };
  lanes_ = std::make_unique<LaneSet>(LaneParts{parts_.clock, *recorder_, wake_all}, parts_.plugins, config,
                                     options_.concurrency);
  if (Status opened = lanes_->OpenConfigured(); !opened) return Fail(opened.error());
  id_ = std::move(*id);
  return OpenMills();
}

Status Worker::Body::OpenMills() {
  Incarnation self;
  self.worker = id_->name();
  self.host = HostName();
  self.pid = getpid();
  self.lease = engine_.lease;
  self.slices = options_.load_balance;
  for (const auto& [name, store] : parts_.shards) {
    mills_.push_back(std::make_unique<ShardMill>(
        ShardMill::Parts{parts_.clock, name, *store, parts_.slices, *lanes_, gate_, *recorder_,
                         *dead_recorders_, *counters_, engine_, self, options_.until_idle}));
  }
  built_.store(true);
  for (const auto& mill : mills_) mill->Start();
  LogInfo("worker started", {{"worker", id_->name()}, {"shards", mills_.size()}});
  watch_ = Thread("watch", [this] { Watch(); });
  return {};
}

void Worker::Body::Watch() {
  while (phase_ != Phase::Ended) {
    tick_.WaitFor(kTick);
    for (Lane* lane : lanes_->All()) lane->GiveUpOverdue(parts_.clock.Now());
    if (phase_ == Phase::Running) {
      WatchRunning();
    } else {
      WatchDraining();
    }
  }
}

void Worker::Body::WatchRunning() {
  std::size_t lost = 0;
  for (Lane* lane : lanes_->All()) lost += lane->Lost();
  if (lost > engine_.max_lost_threads) {
    LogError("too many threads are lost to handlers that ignore their limit: this process must be replaced",
             {{"lost", lost}});
    BeginStop(WorkerEnd::Replace);
  } else if (stop_.load()) {
    BeginStop(WorkerEnd::Stopped);
  } else if (options_.until_idle && AllIdle()) {
    BeginStop(WorkerEnd::Idle);
  }
}

void Worker::Body::BeginStop(WorkerEnd end) {
  end_ = end;
  phase_ = Phase::Draining;
  deadline_ = parts_.clock.Now() + engine_.stop_timeout;
  recorder_->NoteStopping();
  if (end != WorkerEnd::Idle)
    LogInfo("worker is stopping: it claims nothing more", {{"worker", id_->name()}});
  for (const auto& mill : mills_) mill->StopClaiming();
}

void Worker::Body::WatchDraining() {
  for (Lane* lane : lanes_->All()) {
    for (FlightPtr& flight : lane->TakeQueued()) static_cast<ShardMill&>(flight->host).GiveBack({flight});
  }
  for (const auto& mill : mills_) mill->GiveBackParked();
  if (AllEmpty()) {
    Finish();
    return;
  }
  const BootTime now = parts_.clock.Now();
  if (stop_now_.load() && !hurried_)
    deadline_ = std::min(deadline_, now + kHurry + SettleReserve(engine_.stop_timeout));
  const Micros reserve = SettleReserve(engine_.stop_timeout);
  if (!hurried_ && (stop_now_.load() || now >= deadline_ - 2 * reserve)) {
    hurried_ = true;
    for (const auto& mill : mills_) mill->AskToStop();
  }
  if (phase_ == Phase::Draining && now >= deadline_ - reserve) {
    phase_ = Phase::Abandoned;
    Abandon();
  }
  if (now >= deadline_) {
    LogError("the worker ends with tasks in its hands; others rescue them once its lease is out");
    end_ = end_ == WorkerEnd::Replace ? end_ : WorkerEnd::GaveUp;
    left_.store(true);
    Publish();  // the deadline holds even where a database that does not answer holds up the threads
    Finish();
  }
}

void Worker::Body::Abandon() {
  std::size_t lost = 0;
  for (Lane* lane : lanes_->All()) lost += lane->AbandonRunning("the worker was stopped while it ran");
  if (lost == 0) return;
  LogWarning("handlers still run at the stop deadline; their tasks are given back", {{"threads", lost}});
  if (end_ == WorkerEnd::Stopped) end_ = WorkerEnd::GaveUp;
}

void Worker::Body::Finish() {
  phase_ = Phase::Ended;
  for (const auto& mill : mills_) mill->End();
  for (Lane* lane : lanes_->All()) lane->Close();
  for (Lane* lane : lanes_->All()) lane->Join();
  const std::vector<Lane*> lanes = lanes_->All();
  left_.store(std::any_of(lanes.begin(), lanes.end(), [](const Lane* lane) { return lane->Lost() > 0; }));
  LogInfo("worker ended", {{"worker", id_->name()}});
  Publish();
}

void Worker::Body::Publish() {
  MutexLock lock(mutex_);
  result_ = end_;
  ended_.NotifyAll();
}

bool Worker::Body::AllEmpty() const {
  return std::all_of(mills_.begin(), mills_.end(), [](const auto& mill) { return mill->Empty(); });
}

bool Worker::Body::AllIdle() const {
  return std::all_of(mills_.begin(), mills_.end(), [](const auto& mill) { return mill->Idle(); });
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
  totals.returned = counters_->returned.Value();
  totals.refused = counters_->refused.Value();
  totals.adopted = counters_->adopted.Value();
  totals.rescued = counters_->rescued.Value();
  for (const Lane* lane : lanes_->All()) {
    totals.running += lane->Running();
    totals.queued += lane->Queued();
  }
  return totals;
}

}  // namespace millrace

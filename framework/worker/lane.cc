#include "framework/worker/lane.h"

#include <algorithm>
#include <deque>
#include <map>

#include "framework/base/log.h"
#include "framework/base/time_text.h"

namespace millrace {
namespace {

constexpr Micros kIdleWait = std::chrono::seconds(1);
constexpr std::size_t kShortChunk = 32;  // short tasks that a thread takes at once
constexpr std::uint32_t kQuarantine = 3;

Outcome EngineOutcome(OutcomeKind kind, std::string why, std::string error_class = {}) {
  Outcome outcome;
  outcome.kind = kind;
  outcome.text = std::move(why);
  outcome.error_class = std::move(error_class);
  if (kind == OutcomeKind::GiveBack) outcome.delay = Micros(0);
  return outcome;
}

}  // namespace

Micros GraceAfter(Micros timeout) {
  return std::clamp<Micros>(timeout / 10, std::chrono::seconds(1), std::chrono::seconds(10));
}

// The watchdog and the thread agree under the station's own mutex on who ends the call.
class Lane::Station final : public AttemptRunner::Watch {
 public:
  Station(Lane& lane, std::size_t number)
      : lane_(lane), runner_(lane.parts_.clock, *lane.handler_, lane.config_, *this), number_(number) {}

  void Start() {
    thread_ = Thread(lane_.type_ + "/" + std::to_string(number_), [this] { lane_.Run(*this); });
  }

  AttemptRunner& runner() { return runner_; }
  TaskTransaction& TransactionFor(const Flight& flight) {
    auto& transaction = transactions_[flight.shard];
    if (!transaction) transaction = flight.host.OpenTransaction(lane_.config_.timeout);
    return *transaction;
  }

  void Begin(const std::vector<FlightPtr>& flights, BootTime deadline) override {
    for (const FlightPtr& flight : flights) {
      flight->running.store(true, std::memory_order_relaxed);
      slots_.push_back(lane_.parts_.recorder.Begin(
          {flight->standing->incarnation(), flight->task.key, flight->task.attempt}));
    }
    MutexLock lock(mutex_);
    flights_ = flights;
    deadline_ = deadline;
  }

  bool Finish() override {
    {
      MutexLock lock(mutex_);
      flights_.clear();
    }
    for (std::size_t slot : slots_) lane_.parts_.recorder.End(slot);
    slots_.clear();
    return !lost_.load();
  }

  // What the thread took and has not started: it hands them over when it is given up.
  void PutBack(std::vector<FlightPtr> flights, bool alone) {
    MutexLock lock(mutex_);
    for (auto flight = flights.rbegin(); flight != flights.rend(); ++flight) {
      waiting_.push_front({std::move(*flight), alone});
    }
  }
  // The next of them; null when there is none. `alone`: it is to be called by itself.
  FlightPtr Next(bool* alone) {
    MutexLock lock(mutex_);
    if (waiting_.empty()) return nullptr;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    *alone = next.alone;
    return std::move(next.flight);
  }

  struct Abandoned {
    std::vector<FlightPtr> running;
    std::vector<FlightPtr> waiting;
  };
  // Ends the call in the thread's place if it is past its limit and `grace`, or in any case where `whatever`.
  Abandoned GiveUp(BootTime now, Micros grace, bool whatever) {
    MutexLock lock(mutex_);
    if (flights_.empty() || (!whatever && now < deadline_ + grace)) return {};
    lost_.store(true);
    Abandoned abandoned{std::move(flights_), {}};
    for (Waiting& waiting : waiting_) abandoned.waiting.push_back(std::move(waiting.flight));
    flights_.clear();
    waiting_.clear();
    return abandoned;
  }

  bool lost() const { return lost_.load(); }
  // A lost thread that has come home: its place may go.
  bool home() const { return home_.load(); }
  void SetHome() { home_.store(true); }
  Thread& thread() { return thread_; }

 private:
  struct Waiting {
    FlightPtr flight;
    bool alone = false;
  };

  Lane& lane_;
  AttemptRunner runner_;
  const std::size_t number_;
  std::map<std::string, std::unique_ptr<TaskTransaction>> transactions_;
  std::vector<std::size_t> slots_;
  std::atomic<bool> lost_{false};
  std::atomic<bool> home_{false};

  Mutex mutex_;
  std::vector<FlightPtr> flights_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<Waiting> waiting_ MILLRACE_GUARDED_BY(mutex_);
  BootTime deadline_ MILLRACE_GUARDED_BY(mutex_){};
  Thread thread_;  // last: ends before what it uses
};

Lane::Lane(LaneParts parts, std::string type, HandlerConfig config, std::unique_ptr<HandlerInstance> handler,
           std::uint32_t threads)
    : parts_(parts),
      type_(std::move(type)),
      config_(std::move(config)),
      handler_(std::move(handler)),
      threads_(threads),
      pace_(threads, config_.queue) {
  MutexLock lock(mutex_);
  for (std::uint32_t i = 0; i < threads; ++i) AddStation();
}

Lane::~Lane() {
  Close();
  Join();
}

void Lane::AddStation() {
  stations_.emplace_back(*this, stations_.size() + 1);
  stations_.back().Start();
}

std::size_t Lane::Room() const {
  MutexLock lock(mutex_);
  const std::size_t capacity = pace_.Capacity();
  return closed_ || queue_.size() > capacity / 2 ? 0 : capacity - queue_.size();
}

void Lane::Push(std::vector<FlightPtr> flights) {
  MutexLock lock(mutex_);
  for (FlightPtr& flight : flights) queue_.push_back(std::move(flight));
  room_wanted_ = true;
  filled_.NotifyAll();
}

std::size_t Lane::Queued() const {
  MutexLock lock(mutex_);
  return queue_.size();
}

std::size_t Lane::Running() const {
  MutexLock lock(mutex_);
  return running_;
}

std::size_t Lane::Lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

// Several short tasks at once, so that the queue's lock is not the bottleneck; a batch for a batch handler.
std::vector<FlightPtr> Lane::Take() {
  std::vector<FlightPtr> taken;
  bool notify = false;
  {
    MutexLock lock(mutex_);
    if (queue_.empty() && !closed_) filled_.WaitFor(mutex_, kIdleWait);
    std::size_t most = std::max<std::size_t>(handler_->MaxBatch(), 1);
    if (config_.batch != 0) most = std::min<std::size_t>(most, config_.batch);
    if (most == 1 && pace_.AreShort()) {
      most = std::clamp<std::size_t>(queue_.size() / (2 * threads_), 1, kShortChunk);
    }
    while (!queue_.empty() && taken.size() < most) {
      taken.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    running_ += taken.size();
    if (room_wanted_ && queue_.size() <= pace_.Capacity() / 2) {
      room_wanted_ = false;
      notify = true;
    }
  }
  if (notify) parts_.room();
  return taken;
}

void Lane::Run(Station& station) {
  while (true) {
    std::vector<FlightPtr> taken = Take();
    if (taken.empty()) {
      MutexLock lock(mutex_);
      if (closed_) return;
      continue;
    }
    const std::size_t count = taken.size();
    station.PutBack(std::move(taken), false);
    RunTaken(station);
    MutexLock lock(mutex_);
    running_ -= count;
    if (station.lost()) {  // it came home after all; another has its place
      --lost_;
      station.SetHome();
      return;
    }
  }
}

// Gathers calls from what the station took: of one shard, as many as a batch handler takes, or one that runs
// alone.
void Lane::RunTaken(Station& station) {
  const bool batches = handler_->MaxBatch() > 1;
  std::vector<FlightPtr> call;
  while (true) {
    bool alone = false;
    FlightPtr flight = station.Next(&alone);
    if (flight != nullptr && (call.empty() || (!alone && &flight->host == &call.front()->host))) {
      if (ReadyToStart(flight)) call.push_back(std::move(flight));
      if (batches && !alone) continue;
    } else if (flight != nullptr) {
      station.PutBack({std::move(flight)}, alone);
    } else if (call.empty()) {
      return;
    }
    if (!call.empty()) RunCall(station, std::move(call));
    call.clear();
  }
}

void Lane::RunCall(Station& station, std::vector<FlightPtr> flights) {
  const BootTime began = parts_.clock.Now();
  const bool ended = station.runner().Run(flights, station.TransactionFor(*flights.front()));
  const Micros took = parts_.clock.Now() - began;
  {
    MutexLock lock(mutex_);
    pace_.Ran(flights.size(), took);
  }
  if (!ended) station.PutBack(std::move(flights), true);
}

// The check before each start. What may not start is parked, or its attempt ended at once.
bool Lane::ReadyToStart(const FlightPtr& flight) {
  if (!flight->standing->MayStart(parts_.clock.Now())) {
    flight->host.Park(flight);
    return false;
  }
  Outcome outcome;
  if (flight->host.StopAsked()) {
    outcome = EngineOutcome(OutcomeKind::GiveBack, "");
  } else if (flight->cancel.load(std::memory_order_relaxed) || flight->task.cancel) {
    outcome = EngineOutcome(OutcomeKind::Cancel, "cancelled before it started");
  } else if (flight->task.crashes >= kQuarantine) {
    outcome = EngineOutcome(OutcomeKind::Fail,
                            "quarantined: its runs have killed the worker's process " +
                                std::to_string(flight->task.crashes) + " times",
                            "crash");
  } else if (flight->task.failures >= config_.retry.max_failures) {
    outcome = EngineOutcome(OutcomeKind::Fail,
                            "it has failed " + std::to_string(flight->task.failures) +
                                " times, the maximum is now " + std::to_string(config_.retry.max_failures),
                            "max_failures");
  } else {
    return true;
  }
  flight->host.Land({flight, Settle(config_.retry, flight->task, outcome, 0)});
  return false;
}

std::size_t Lane::GiveUpOverdue(BootTime now) {
  std::vector<FlightPtr> overdue;
  std::size_t threads = 0;
  {
    MutexLock lock(mutex_);
    for (Station& station : stations_) {
      Station::Abandoned given_up = station.GiveUp(now, GraceAfter(config_.timeout), false);
      if (given_up.running.empty()) continue;
      ++threads;
      overdue.insert(overdue.end(), given_up.running.begin(), given_up.running.end());
      queue_.insert(queue_.begin(), given_up.waiting.begin(), given_up.waiting.end());
    }
    lost_ += threads;
    stations_.remove_if([](const Station& station) { return station.home(); });
    for (std::size_t i = 0; i < threads; ++i) AddStation();
  }
  for (const FlightPtr& flight : overdue) {
    LogError("handler ignores its time limit; its thread is given up",
             {{"task", ToString(TaskName{flight->shard, flight->task.key})},
              {"handler", type_},
              {"limit", FormatDuration(config_.timeout)}});
    const Outcome outcome = EngineOutcome(
        OutcomeKind::Retry,
        "ran over its time limit of " + FormatDuration(config_.timeout) + " and ignored the request to stop",
        "timeout");
    flight->running.store(false);
    flight->host.Land({flight, Settle(config_.retry, flight->task, outcome, 0.5)});
  }
  return threads;
}

std::size_t Lane::AbandonRunning(const std::string& why) {
  std::vector<FlightPtr> abandoned;
  std::size_t threads = 0;
  {
    MutexLock lock(mutex_);
    for (Station& station : stations_) {
      Station::Abandoned given_up = station.GiveUp({}, {}, true);
      if (given_up.running.empty()) continue;
      ++threads;
      for (auto* flights : {&given_up.running, &given_up.waiting}) {
        abandoned.insert(abandoned.end(), flights->begin(), flights->end());
      }
    }
    lost_ += threads;
  }
  for (const FlightPtr& flight : abandoned) {
    flight->host.Land(
        {flight, Settle(config_.retry, flight->task, EngineOutcome(OutcomeKind::GiveBack, why), 0)});
  }
  return threads;
}

std::vector<FlightPtr> Lane::TakeQueued() {
  MutexLock lock(mutex_);
  std::vector<FlightPtr> taken(queue_.begin(), queue_.end());
  queue_.clear();
  return taken;
}

void Lane::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  filled_.NotifyAll();
}

void Lane::Join() {
  std::vector<Thread*> threads;
  {
    MutexLock lock(mutex_);
    for (Station& station : stations_) {
      if (station.lost() && !station.home()) {
        station.thread().Abandon();
      } else {
        threads.push_back(&station.thread());
      }
    }
  }
  for (Thread* thread : threads) thread->Join();
}

}  // namespace millrace

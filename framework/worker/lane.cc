#include "framework/worker/lane.h"

#include <algorithm>
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

  // Ends the call in the thread's place if it is past `due`; its flights, or none.
  std::vector<FlightPtr> GiveUp(BootTime now, Micros grace, bool whatever) {
    MutexLock lock(mutex_);
    if (flights_.empty() || (!whatever && now < deadline_ + grace)) return {};
    lost_.store(true);
    return std::move(flights_);
  }

  bool lost() const { return lost_.load(); }
  Thread& thread() { return thread_; }

 private:
  Lane& lane_;
  AttemptRunner runner_;
  const std::size_t number_;
  std::map<std::string, std::unique_ptr<TaskTransaction>> transactions_;
  std::vector<std::size_t> slots_;
  std::atomic<bool> lost_{false};

  Mutex mutex_;
  std::vector<FlightPtr> flights_ MILLRACE_GUARDED_BY(mutex_);
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
    RunTaken(station, std::move(taken));
    {
      MutexLock lock(mutex_);
      running_ -= count;
    }
    if (station.lost()) return;
  }
}

void Lane::RunTaken(Station& station, std::vector<FlightPtr> taken) {
  std::map<FlightHost*, std::vector<FlightPtr>> calls;
  const bool batches = handler_->MaxBatch() > 1;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    FlightPtr& flight = taken[i];
    if (station.lost()) {  // an earlier task of this chunk took the thread with it
      Push({taken.begin() + static_cast<std::ptrdiff_t>(i), taken.end()});
      return;
    }
    if (!ReadyToStart(flight)) continue;
    if (batches) {
      calls[&flight->host].push_back(std::move(flight));
      continue;
    }
    const BootTime began = parts_.clock.Now();
    station.runner().Run({flight}, station.TransactionFor(*flight));
    Ran(1, parts_.clock.Now() - began);
  }
  for (auto& [host, flights] : calls) {
    if (station.lost()) {
      Push(flights);
      continue;
    }
    const BootTime began = parts_.clock.Now();
    station.runner().Run(flights, station.TransactionFor(*flights.front()));
    Ran(flights.size(), parts_.clock.Now() - began);
  }
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

void Lane::Ran(std::size_t tasks, Micros took) {
  MutexLock lock(mutex_);
  pace_.Ran(tasks, took);
}

std::size_t Lane::GiveUpOverdue(BootTime now) {
  std::vector<FlightPtr> overdue;
  std::size_t threads = 0;
  {
    MutexLock lock(mutex_);
    for (Station& station : stations_) {
      std::vector<FlightPtr> flights = station.GiveUp(now, GraceAfter(config_.timeout), false);
      if (flights.empty()) continue;
      ++threads;
      overdue.insert(overdue.end(), flights.begin(), flights.end());
    }
    lost_ += threads;
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
      std::vector<FlightPtr> flights = station.GiveUp({}, {}, true);
      if (!flights.empty()) ++threads;
      abandoned.insert(abandoned.end(), flights.begin(), flights.end());
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
      if (station.lost()) {
        station.thread().Abandon();
      } else {
        threads.push_back(&station.thread());
      }
    }
  }
  for (Thread* thread : threads) thread->Join();
}

}  // namespace millrace

#include "framework/mill/settle.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kFirstWait = std::chrono::milliseconds(20);
constexpr Micros kLongestWait = std::chrono::seconds(1);
constexpr Micros kBusyPause = std::chrono::milliseconds(200);
constexpr const char* kNotStored = "its outcome could not be stored, and it may have taken effect";

const std::string& LifeOf(const AttemptResult& result) { return result.attempt->lease->incarnation(); }

}  // namespace

void Settler::Batch::Add(AttemptResult result) {
  settlements.push_back(std::move(result.settlement));
  results.push_back(std::move(result));
}

AttemptResult Settler::Batch::Take(std::size_t index) {
  results[index].settlement = std::move(settlements[index]);
  return std::move(results[index]);
}

void Settler::Stop() {
  stopping_.store(true);
  port_.Wake();
}

void Settler::Ended(AttemptResult result) {
  if (stopping_.load()) return;
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = ended_.empty();
    ended_.push_back(std::move(result));
  }
  if (first) port_.Wake();
}

Step<> Settler::Run() {
  Micros pause = kFirstWait;
  while (!stopping_.load()) {
    TakeEnded();
    const bool answered = co_await Round();
    if (!answered) {
      co_await PauseFor(pause);
      pause = std::min(pause * 2, kLongestWait);
      continue;
    }
    pause = kFirstWait;
    reported_ = false;
    if (fresh_.empty() && unknown_.empty()) co_await port_.Rest(UntilDue());
  }
  TakeEnded();
  for (Queue* queue : {&fresh_, &unknown_, &aside_}) queue->clear();  // an attempt keeps its shard
}

// What is not known comes first: it may be the shard's own COMMITs, and tells whether the shard is back.
Step<bool> Settler::Round() {
  bool answered = co_await Verify();
  if (answered) answered = co_await Settle(fresh_);
  if (answered) answered = co_await Settle(aside_);
  co_return answered;
}

Step<bool> Settler::Settle(Queue& queue) {
  Batch batch = TakeBatch(queue);
  if (batch.results.empty()) co_return true;
  const auto report = co_await port_.Settle(LifeOf(batch.results.front()), batch.settlements);
  if (!report) {
    NoteTrouble(batch.results.size(), report.error());
    PutBack(std::move(batch), report.error().code == ErrorCode::Unknown ? unknown_ : queue);
    co_return false;
  }
  for (std::size_t i = 0; i < batch.results.size(); ++i) {
    switch (report->verdicts[i]) {
      case SettleVerdict::Broken:
        MendBroken(batch.Take(i), report->errors[i]);
        break;
      case SettleVerdict::Busy:
        SetAside(batch.Take(i));
        break;
      case SettleVerdict::Settled:
      case SettleVerdict::Refused:
        known_(*batch.results[i].attempt, batch.settlements[i], report->verdicts[i]);
        break;
    }
  }
  co_return true;
}

// Which of those whose settle has an unknown outcome still run? The others have ended.
Step<bool> Settler::Verify() {
  Batch batch = TakeBatch(unknown_);
  if (batch.results.empty()) co_return true;
  const auto running = co_await port_.StillRunning(LifeOf(batch.results.front()), batch.settlements);
  if (!running) {
    PutBack(std::move(batch), unknown_);
    co_return false;
  }
  for (std::size_t i = 0; i < batch.results.size(); ++i) {
    AttemptResult result = batch.Take(i);
    const std::optional<Settlement> committed = std::exchange(result.committed, std::nullopt);
    if ((*running)[i]) {
      fresh_.push_back({std::move(result)});
    } else {
      known_(*result.attempt, committed ? *committed : result.settlement, SettleVerdict::Settled);
    }
  }
  co_return true;
}

void Settler::TakeEnded() {
  std::vector<AttemptResult> ended;
  {
    MutexLock lock(mutex_);
    ended.swap(ended_);
  }
  for (AttemptResult& result : ended) (result.verify ? unknown_ : fresh_).push_back({std::move(result)});
}

Settler::Batch Settler::TakeBatch(Queue& queue) const {
  const std::size_t most = engine_.Get().batch;
  const BootTime now = clock_.Now();
  Batch batch;
  while (!queue.empty() && batch.results.size() < most && queue.front().due <= now) {
    AttemptResult& first = queue.front().result;
    if (!batch.results.empty() && LifeOf(first) != LifeOf(batch.results.front())) break;
    batch.Add(std::move(first));
    queue.pop_front();
  }
  return batch;
}

void Settler::PutBack(Batch batch, Queue& queue) {
  for (std::size_t i = batch.results.size(); i-- > 0;) queue.push_front({batch.Take(i)});
}

void Settler::SetAside(AttemptResult result) {
  aside_.push_back({std::move(result), clock_.Now() + kBusyPause});
}

// The database refuses what the settle would write (a text, mostly): the task fails with a text that it
// takes. Where it refuses even that, somebody has to mend the table: the task is tried again until then.
void Settler::MendBroken(AttemptResult result, const std::string& error) {
  Settlement& settlement = result.settlement;
  if (settlement.text == kNotStored) {
    SetAside(std::move(result));
    return;
  }
  LogError("the outcome of a task could not be stored",
           {{"task", ToString(TaskName{result.attempt->shard, settlement.key})}, {"error", error}});
  settlement.to = Settlement::To::Failed;
  settlement.failed_attempt = true;
  settlement.run_at.reset();
  settlement.delay.reset();
  settlement.text = kNotStored;
  settlement.error_class = "bad_outcome";
  aside_.push_front({std::move(result)});
}

void Settler::NoteTrouble(std::size_t tasks, const Error& error) {
  if (!reported_) {
    LogWarning("settling is held up; it will be tried until it succeeds",
               {{"tasks", tasks}, {"error", error.message}});
  }
  reported_ = true;
}

// What ends meanwhile does not cut it short.
Step<> Settler::PauseFor(Micros pause) {
  const BootTime until = clock_.Now() + pause;
  for (BootTime now = clock_.Now(); now < until && !stopping_.load(); now = clock_.Now()) {
    co_await port_.Rest(until - now);
  }
}

Micros Settler::UntilDue() const {
  if (aside_.empty()) return kLongestWait;
  return std::max(aside_.front().due - clock_.Now(), Micros(0));
}

}  // namespace millrace::engine

#include "framework/mill/settle.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kFirstWait = std::chrono::milliseconds(20);
constexpr Micros kLongestWait = std::chrono::seconds(1);
constexpr Micros kBusyPause = std::chrono::milliseconds(200);
// Where the table as a whole refuses: by a lock on it, or for want of a right.
constexpr Micros kRefusedPause = std::chrono::seconds(1);
constexpr Micros kBetweenWords = std::chrono::minutes(1);
constexpr Micros kGatheringStep = std::chrono::milliseconds(1);
constexpr Micros kLongestGathering = std::chrono::milliseconds(5);
constexpr const char* kNotStored = "its outcome could not be stored, and it may have taken effect";

const std::string& LifeOf(const AttemptResult& result) { return result.attempt->lease->incarnation(); }

// A round of the first strand that takes longer is no reason for what is fresh to wait for its end. Well
// above a healthy database's commit: a trickle is settled in fewer, larger batches by one strand.
constexpr Micros kLongRound = std::chrono::milliseconds(20);

bool SameLife(const AttemptResult& a, const AttemptResult& b) {
  const Lease& left = *a.attempt->lease;
  const Lease& right = *b.attempt->lease;
  return &left == &right || left.incarnation() == right.incarnation();
}

}  // namespace

std::optional<SettleQueues::Wakes> SettleQueues::Land(AttemptResult& result) {
  Gone(1);
  MutexLock lock(mutex_);
  if (closed_) return std::nullopt;
  Of(result.verify ? From::Unknown : From::Fresh).push_back(std::move(result));
  return Wanted();
}

SettleQueues::Wakes SettleQueues::TakeWakes() {
  MutexLock lock(mutex_);
  return Wanted();
}

SettleQueues::Wakes SettleQueues::Wanted() {
  const std::size_t landed = fresh_.size() + unknown_.size();
  const bool all_are_here = gathering_ && coming_.load(std::memory_order_relaxed) <= 0;
  Wakes wakes;
  const bool aside_is_sooner = !aside_.empty() && aside_.front().due < rests_until_;
  wakes.first = (landed > 0 && (landed >= first_wants_ || all_are_here)) || aside_is_sooner;
  wakes.second = round_ && !away_ && !fresh_.empty() && fresh_.size() >= second_wants_;
  if (wakes.first) {
    first_wants_ = kNever;
    rests_until_ = {};
    gathering_ = false;
  }
  if (wakes.second) second_wants_ = kNever;
  return wakes;
}

SettleQueues::Results SettleQueues::Take(From from, BootTime now, std::size_t most) {
  MutexLock lock(mutex_);
  if (from == From::Aside) return TakeAside(now, most);
  Results taken;
  Results& queue = Of(from);
  const auto last = queue.begin() + static_cast<std::ptrdiff_t>(std::min(most, queue.size()));
  const auto end = std::find_if_not(queue.begin(), last,
                                    [&](const AttemptResult& one) { return SameLife(one, queue.front()); });
  if (end == queue.end()) {
    taken.swap(queue);
    queue.reserve(taken.size());  // there may be as many again
  } else {
    taken.assign(std::make_move_iterator(queue.begin()), std::make_move_iterator(end));
    queue.erase(queue.begin(), end);
  }
  return taken;
}

SettleQueues::Results SettleQueues::TakeAside(BootTime now, std::size_t most) {
  const auto fits = [&](const Waiting& one) {
    return one.due <= now && SameLife(one.result, aside_.front().result);
  };
  const auto last = aside_.begin() + static_cast<std::ptrdiff_t>(std::min(most, aside_.size()));
  const auto end = std::find_if_not(aside_.begin(), last, fits);
  Results taken;
  taken.reserve(static_cast<std::size_t>(end - aside_.begin()));
  for (auto one = aside_.begin(); one != end; ++one) taken.push_back(std::move(one->result));
  aside_.erase(aside_.begin(), end);
  return taken;
}

void SettleQueues::PutBack(From from, Results results) {
  MutexLock lock(mutex_);
  if (from != From::Aside) {
    Results& queue = Of(from);
    queue.insert(queue.begin(), std::make_move_iterator(results.begin()),
                 std::make_move_iterator(results.end()));
    return;
  }
  std::vector<Waiting> back;
  back.reserve(results.size());
  for (AttemptResult& result : results) back.push_back({std::move(result), {}});
  aside_.insert(aside_.begin(), std::make_move_iterator(back.begin()), std::make_move_iterator(back.end()));
}

void SettleQueues::SetAside(AttemptResult result, std::optional<BootTime> due) {
  MutexLock lock(mutex_);
  const BootTime when = due.value_or(BootTime{});
  const auto behind = std::upper_bound(aside_.begin(), aside_.end(), when,
                                       [](BootTime at, const Waiting& one) { return at < one.due; });
  aside_.insert(behind, {std::move(result), when});
}

void SettleQueues::BeginRound(BootTime now) {
  MutexLock lock(mutex_);
  round_ = now;
  rests_until_ = {};
  gathering_ = false;
  first_wants_ = kNever;
}

void SettleQueues::EndRound(bool answered) {
  MutexLock lock(mutex_);
  round_.reset();
  away_ = !answered;
}

void SettleQueues::SecondFailed() {
  MutexLock lock(mutex_);
  away_ = true;
}

bool SettleQueues::WaitsForMore(std::size_t& seen, std::size_t most) {
  MutexLock lock(mutex_);
  gathering_ = fresh_.size() > seen && fresh_.size() < most && unknown_.empty() &&
               coming_.load(std::memory_order_relaxed) > 0;
  seen = fresh_.size();
  first_wants_ = gathering_ ? most : kNever;
  return gathering_;
}

std::optional<Micros> SettleQueues::RestOfFirst(BootTime now) {
  MutexLock lock(mutex_);
  if (!fresh_.empty() || !unknown_.empty()) return std::nullopt;
  first_wants_ = 1;
  const Micros rest = aside_.empty() ? kLongestWait : std::max(aside_.front().due - now, Micros(0));
  rests_until_ = now + rest;
  return rest;
}

SettleQueues::Results SettleQueues::TakeBeside(BootTime now, std::size_t most, Micros& rest) {
  {
    MutexLock lock(mutex_);
    rest = kLongestWait;
    second_wants_ = 1;
    if (!round_ || away_ || fresh_.empty()) return {};
    const std::size_t enough = std::max<std::size_t>(most / 2, 1);
    const BootTime long_from = *round_ + kLongRound;
    if (fresh_.size() < enough && now < long_from) {
      second_wants_ = enough;
      rest = long_from - now;
      return {};
    }
    second_wants_ = kNever;
  }
  return Take(From::Fresh, now, most);
}

SettleQueues::Results SettleQueues::Close() {
  Results dropped;
  MutexLock lock(mutex_);
  closed_ = true;
  for (Results* queue : {&fresh_, &unknown_}) {
    std::move(queue->begin(), queue->end(), std::back_inserter(dropped));
    queue->clear();
  }
  for (Waiting& one : aside_) dropped.push_back(std::move(one.result));
  aside_.clear();
  return dropped;
}

Settler::Batch::Batch(SettleQueues::Results taken) : results(std::move(taken)) {
  settlements.reserve(results.size());
  for (AttemptResult& result : results) settlements.push_back(std::move(result.settlement));
}

AttemptResult Settler::Batch::Take(std::size_t index) {
  results[index].settlement = std::move(settlements[index]);
  return std::move(results[index]);
}

SettleQueues::Results Settler::Batch::TakeAll() {
  for (std::size_t i = 0; i < results.size(); ++i) results[i].settlement = std::move(settlements[i]);
  return std::move(results);
}

void Settler::Stop() {
  stopping_.store(true);
  Wake({.first = true, .second = true});
}

void Settler::Ended(AttemptResult&& result) {
  if (const auto wakes = queues_.Land(result)) {
    Wake(*wakes);
  } else {
    dropped_(*result.attempt);
  }
}

void Settler::Close() {
  for (const AttemptResult& result : queues_.Close()) dropped_(*result.attempt);
}

void Settler::Wake(SettleQueues::Wakes wakes) {
  if (wakes.first) ports_.first.Wake();
  if (wakes.second) ports_.second.Wake();
}

Step<> Settler::Run() {
  Micros pause = kFirstWait;
  while (!stopping_.load()) {
    co_await Gather();
    queues_.BeginRound(clock_.Now());
    const bool answered = co_await Round();
    queues_.EndRound(answered);
    if (!answered) {
      co_await PauseFor(pause);
      pause = std::min(pause * 2, kLongestWait);
      continue;
    }
    pause = kFirstWait;
    reported_.store(false);
    const std::optional<Micros> rest = queues_.RestOfFirst(clock_.Now());
    if (rest) co_await ports_.first.Rest(*rest);
  }
  Close();
}

Step<> Settler::RunSecond() {
  while (!stopping_.load()) {
    Micros rest{0};
    SettleQueues::Results results = queues_.TakeBeside(clock_.Now(), engine_.Get().batch, rest);
    if (results.empty()) {
      co_await ports_.second.Rest(rest);
      continue;
    }
    const bool answered = co_await Settle(ports_.second, From::Fresh, std::move(results));
    if (!answered) queues_.SecondFailed();
    Wake(queues_.TakeWakes());
  }
  Close();
}

// A lone task finds nobody on the way, and a trickle beside long tasks waits for one step.
Step<> Settler::Gather() {
  const BootTime until = clock_.Now() + kLongestGathering;
  std::size_t seen = 0;
  while (!stopping_.load() && clock_.Now() < until && queues_.WaitsForMore(seen, engine_.Get().batch)) {
    co_await ports_.first.Rest(kGatheringStep);
  }
}

// What is not known comes first: it may be the shard's own COMMITs, and tells whether the shard is back.
Step<bool> Settler::Round() {
  bool answered = co_await Verify();
  if (answered) answered = co_await SettleFrom(From::Fresh);
  if (answered) answered = co_await SettleFrom(From::Aside);
  co_return answered;
}

Step<bool> Settler::SettleFrom(From from) {
  SettleQueues::Results results = queues_.Take(from, clock_.Now(), engine_.Get().batch);
  Wake(queues_.TakeWakes());  // there may be as much again
  if (results.empty()) co_return true;
  const bool settled = co_await Settle(ports_.first, from, std::move(results));
  co_return settled;
}

Step<bool> Settler::Settle(SettlePort& port, From from, SettleQueues::Results results) {
  Batch batch(std::move(results));
  const BootTime sent = clock_.Now();
  const auto report = co_await port.Settle(LifeOf(batch.results.front()), batch.settlements);
  if (!report) {
    NoteTrouble(batch.results.size(), report.error());
    queues_.PutBack(report.error().code == ErrorCode::Unknown ? From::Unknown : from, batch.TakeAll());
    co_return false;
  }
  std::vector<SettledAttempt> known;
  known.reserve(batch.results.size());
  std::vector<std::string_view> refused;
  for (std::size_t i = 0; i < batch.results.size(); ++i) {
    const std::string& error = report->errors[i];
    switch (report->verdicts[i]) {
      case SettleVerdict::Broken:
        MendBroken(batch.Take(i), error);
        break;
      case SettleVerdict::Busy:
        if (!error.empty()) {
          refused.push_back(error);
          resting_.Rest(batch.settlements[i].key.table, clock_.Now(),
                        2 * (kRefusedPause + clock_.Now() - sent), error);
        }
        queues_.SetAside(batch.Take(i), clock_.Now() + (error.empty() ? kBusyPause : kRefusedPause));
        break;
      case SettleVerdict::Settled:
      case SettleVerdict::Refused:
        known.push_back({batch.results[i].attempt.get(), &batch.settlements[i], report->verdicts[i]});
        break;
    }
  }
  known_(known);
  if (!refused.empty()) NoteRefused(refused.size(), std::string(refused.front()));
  co_return true;
}

// Which of those whose settle has an unknown outcome still run? The others have ended.
Step<bool> Settler::Verify() {
  SettleQueues::Results results = queues_.Take(From::Unknown, clock_.Now(), engine_.Get().batch);
  if (results.empty()) co_return true;
  Batch batch(std::move(results));
  const auto running = co_await ports_.first.StillRunning(LifeOf(batch.results.front()), batch.settlements);
  if (!running) {
    queues_.PutBack(From::Unknown, batch.TakeAll());
    co_return false;
  }
  SettleQueues::Results again;
  std::vector<SettledAttempt> known;
  for (std::size_t i = 0; i < batch.results.size(); ++i) {
    AttemptResult& result = batch.results[i];
    const auto committed = std::exchange(result.committed, nullptr);
    if ((*running)[i]) {
      again.push_back(batch.Take(i));
    } else {
      if (committed) batch.settlements[i] = *committed;
      known.push_back({result.attempt.get(), &batch.settlements[i], SettleVerdict::Settled});
    }
  }
  known_(known);
  queues_.PutBack(From::Fresh, std::move(again));
  co_return true;
}

// The database refuses what the settle would write (a text, mostly): the task fails with a text that it
// takes. Where it refuses even that, somebody has to mend the table: the task is tried again until then.
void Settler::MendBroken(AttemptResult result, const std::string& error) {
  Settlement& settlement = result.settlement;
  if (settlement.text == kNotStored) {
    queues_.SetAside(std::move(result), clock_.Now() + kBusyPause);
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
  settlement.progress.reset();
  queues_.SetAside(std::move(result), std::nullopt);
}

void Settler::NoteTrouble(std::size_t tasks, const Error& error) {
  if (reported_.exchange(true)) return;
  LogWarning("settling is held up; it will be tried until it succeeds",
             {{"tasks", tasks}, {"error", error.message}});
}

// Of one table: the others settle meanwhile, and so does what comes between two such words.
void Settler::NoteRefused(std::size_t tasks, const std::string& why) {
  const BootTime now = clock_.Now();
  BootTime next = next_word_.load();
  if (now < next || !next_word_.compare_exchange_strong(next, now + kBetweenWords)) return;
  LogWarning("tasks of one table can't be settled; it will be tried until they can",
             {{"tasks", tasks}, {"error", why}});
}

// What ends meanwhile does not cut it short.
Step<> Settler::PauseFor(Micros pause) {
  const BootTime until = clock_.Now() + pause;
  for (BootTime now = clock_.Now(); now < until && !stopping_.load(); now = clock_.Now()) {
    co_await ports_.first.Rest(until - now);
  }
}

}  // namespace millrace::engine

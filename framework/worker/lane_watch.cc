// How many threads a lane has, and what becomes of those that overrun.
#include <algorithm>
#include <utility>

#include "framework/base/log.h"
#include "framework/base/time_text.h"
#include "framework/mill/attempt.h"
#include "framework/worker/lane.h"

namespace millrace::engine {

// A thread beside the others' for each type whose tasks a caller runs when it is full.
LaneSize::Bounds Lane::SizeBounds() const {
  LaneSize::Bounds bounds;
  std::size_t callers = 0;
  for (const auto& [name, type] : types_) {
    const HandlerConfig& config = type.setup->config;
    if (config.when_full == WhenFull::Caller) ++callers;
    bounds.most += type.setup->threads;
    bounds.least += config.min_threads == 0 ? type.setup->threads
                                            : std::min<std::size_t>(config.min_threads, type.setup->threads);
    if (config.min_threads != 0) bounds.keep_alive = std::max(bounds.keep_alive, config.keep_alive);
  }
  if (rules_.threads) bounds.most = std::min(bounds.most, *rules_.threads);
  bounds.most += callers;
  bounds.least = std::min(bounds.least == bounds.most - callers ? bounds.most : bounds.least, bounds.most);
  return bounds;
}

std::size_t Lane::MostOf(const Type& type) const {
  std::size_t most = rules_.MostOf(type.setup->threads, types_.size());
  most += std::min<std::size_t>(type.hanging, type.setup->threads);
  const bool caller = type.setup->config.when_full == WhenFull::Caller && queue_.IsFull(type);
  most += caller ? 1 : 0;
  return most - std::min(most, type.elsewhere);
}

void Lane::FollowElsewhere(const std::map<std::string, std::size_t>& threads) {
  MutexLock lock(mutex_);
  for (auto& [name, type] : types_) {
    const auto there = threads.find(name);
    type.elsewhere = there == threads.end() ? 0 : there->second;
    type.most = MostOf(type);
  }
  filled_.NotifyAll();
}

std::size_t Lane::Busy() const {
  std::size_t busy = 0;
  for (const auto& [name, type] : types_) busy += type.threads;
  return busy;
}

// A thread that is one too many ends by itself, between two calls.
void Lane::AdjustThreads(BootTime now) {
  std::size_t hanging = 0;
  for (auto& [name, type] : types_) type.hanging = 0;
  for (const LaneThread& thread : threads_) {
    if (thread.lost() || !thread.HangsAt(now)) continue;
    ++hanging;
    if (thread.taken.type != nullptr) ++types_.at(thread.taken.type->name).hanging;
  }
  size_.Follow(SizeBounds());
  for (auto& [name, type] : types_) type.most = MostOf(type);
  wanted_ = size_.Kept(Busy(), queue_.Size(), now) + std::min(hanging, size_.most());
  last_start_ = Status{};
  StartThreads();
  if (active_ > wanted_) filled_.NotifyAll();
  if (queue_.Size() > 0) filled_.NotifyOne();  // of some type more may run than did
}

void Lane::Grow() {
  if (!size_.Varies()) return;
  wanted_ = std::max(wanted_, size_.For(Busy(), queue_.Size()));
  StartThreads();
}

void Lane::StartThreads() {
  for (; active_ < wanted_ && !closed_; ++active_) {
    LaneThread& thread = threads_.emplace_back(parts_.clock, parts_.recorder);
    last_start_ = thread.Start(name_ + "/" + std::to_string(started_ + 1), [this, &thread] { Run(thread); });
    if (!last_start_) {
      threads_.pop_back();
      return;
    }
    ++started_;
  }
}

void Lane::TellThreads() {
  Status threads;
  std::size_t active = 0;
  {
    MutexLock lock(mutex_);
    if (told_ == !last_start_) return;
    told_ = !last_start_;
    threads = last_start_;
    active = active_;
  }
  if (threads) {
    LogInfo("the lane has all its threads again", {{"lane", name_}, {"threads", active}});
  } else {
    LogError("the lane goes on with the threads that it has, and tries again",
             {{"lane", name_}, {"threads", active}, {"error", threads.error().message}});
  }
}

void Lane::Watch(BootTime now) {
  std::vector<LaneThread::Abandoned> overdue;
  std::list<LaneThread> gone;  // joined, and their sessions closed, outside the lock
  {
    MutexLock lock(mutex_);
    for (auto thread = threads_.begin(); thread != threads_.end();) {
      const auto next = std::next(thread);
      if (LaneThread::Abandoned given_up = thread->GiveUp(now, false); given_up.setup) {
        ++lost_;
        --active_;
        Release(*thread);
        overdue.push_back(std::move(given_up));
      } else if (thread->home()) {
        gone.splice(gone.end(), threads_, thread);
      } else {
        TakeBackKept(*thread, now);
      }
      thread = next;
    }
    AdjustThreads(now);
  }
  TellThreads();
  for (LaneThread::Abandoned& call : overdue) EndOverdue(std::move(call));
}

// Of several tasks in one call nobody knows whose fault it was: each runs again alone, and only one that
// overruns by itself is charged.
void Lane::EndOverdue(LaneThread::Abandoned overdue) {
  const Attempt& first = *overdue.running.front();
  const bool withdrawn = first.stop_by.load(std::memory_order_relaxed) != 0;
  LogError(withdrawn ? "handler ignores that its permit is gone; its thread is given up"
                     : "handler ignores its time limit; its thread is given up",
           {{"task", ToString(TaskName{first.shard, first.task.key})},
            {"tasks", overdue.running.size()},
            {"handler", first.task.handler},
            {"limit", FormatDuration(overdue.setup->config.timeout)}});
  if (withdrawn) {
    const Outcome outcome =
        GivenBack("its permit could not be counted upon any more, and it ignored the request to stop");
    for (const AttemptPtr& attempt : overdue.running) {
      attempt->host->Ended({attempt, Settle({}, attempt->task, outcome, 0)});
    }
    overdue.running.clear();
  } else if (overdue.running.size() == 1) {
    const AttemptPtr& attempt = overdue.running.front();
    const Outcome outcome = Overran(overdue.setup->config.timeout);
    const RetryPolicy& retry = overdue.setup->config.retry;
    attempt->host->Ended({attempt, EndOf(*attempt, retry, outcome, 0.5, parts_.clock.Now())});
    overdue.running.clear();
  }
  for (const AttemptPtr& attempt : overdue.running) attempt->alone.store(true, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  PutBack(std::move(overdue.waiting));
  PutBack(std::move(overdue.running));
}

std::size_t Lane::AbandonRunning(const std::string& why) {
  std::vector<AttemptPtr> abandoned;
  std::size_t threads = 0;
  {
    MutexLock lock(mutex_);
    for (LaneThread& thread : threads_) {
      LaneThread::Abandoned given_up = thread.GiveUp({}, true);
      if (!given_up.setup) continue;
      ++threads;
      Release(thread);
      for (auto* attempts : {&given_up.running, &given_up.waiting}) {
        abandoned.insert(abandoned.end(), attempts->begin(), attempts->end());
      }
    }
    lost_ += threads;
    active_ -= threads;
  }
  for (const AttemptPtr& attempt : abandoned) {
    attempt->host->Ended({attempt, Settle({}, attempt->task, GivenBack(why), 0)});
  }
  return threads;
}

}  // namespace millrace::engine

#include "framework/worker/lane.h"

#include <algorithm>
#include <utility>

#include "framework/base/log.h"
#include "framework/base/time_text.h"
#include "framework/mill/attempt.h"
#include "framework/mill/starts.h"

namespace millrace::engine {
namespace {

constexpr Micros kIdleWait = std::chrono::seconds(1);
constexpr std::size_t kShortChunk = 32;  // short tasks that a thread takes at once
constexpr Micros kTellPace =
    std::chrono::milliseconds(1);  // of calls in succession: the pace is all threads'

}  // namespace

Lane::Lane(LaneParts parts, std::string type, LaneSetup setup)
    : parts_(parts), type_(std::move(type)), pace_(setup.threads, setup.config.queue) {
  Follow(std::move(setup));
}

Lane::~Lane() {
  Close();
  Join();
}

void Lane::Follow(LaneSetup setup) {
  {
    MutexLock lock(mutex_);
    pace_.Resize(setup.threads, setup.config.queue);
    setup_ = std::make_shared<const LaneSetup>(std::move(setup));
    AdjustThreads(parts_.clock.Now());
    filled_.NotifyAll();
  }
  TellThreads();
}

// A thread that is one too many ends by itself, between two calls.
void Lane::AdjustThreads(BootTime now) {
  const auto hanging = static_cast<std::size_t>(std::count_if(
      threads_.begin(), threads_.end(), [&](const LaneThread& s) { return !s.lost() && s.HangsAt(now); }));
  wanted_ = setup_->threads + std::min<std::size_t>(hanging, setup_->threads);
  last_start_ = Status{};
  for (; active_ < wanted_ && !closed_; ++active_) {
    LaneThread& thread = threads_.emplace_back(parts_.clock, parts_.recorder);
    last_start_ = thread.Start(type_ + "/" + std::to_string(started_ + 1), [this, &thread] { Run(thread); });
    if (!last_start_) {
      threads_.pop_back();
      return;
    }
    ++started_;
  }
}

Status Lane::Threads() const {
  MutexLock lock(mutex_);
  return last_start_;
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
    LogInfo("the lane has all its threads again", {{"handler", type_}, {"threads", active}});
  } else {
    LogError("the lane goes on with the threads that it has, and tries again",
             {{"handler", type_}, {"threads", active}, {"error", threads.error().message}});
  }
}

std::size_t Lane::Room(const AttemptHost& host) const {
  MutexLock lock(mutex_);
  return closed_ ? 0 : queue_.Room(host, pace_.Capacity());
}

void Lane::Push(std::vector<AttemptPtr> attempts) {
  MutexLock lock(mutex_);
  for (AttemptPtr& attempt : attempts) queue_.Push(std::move(attempt));
  filled_.NotifyAll();
}

std::size_t Lane::Queued() const {
  MutexLock lock(mutex_);
  return queue_.Size();
}

std::size_t Lane::Running() const {
  MutexLock lock(mutex_);
  return running_;
}

Lane::Load Lane::CurrentLoad() const {
  MutexLock lock(mutex_);
  const auto busy = [](const LaneThread& thread) { return !thread.lost() && thread.taken.host != nullptr; };
  return {active_, static_cast<std::size_t>(std::count_if(threads_.begin(), threads_.end(), busy))};
}

std::size_t Lane::Lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

// Several short tasks at once, so that the queue's lock is not the bottleneck; a batch for a batch handler.
std::vector<AttemptPtr> Lane::TakeNext(LaneThread& thread) {
  const BootTime now = parts_.clock.Now();
  if (closed_ || active_ > wanted_ || now < starts_from_) return {};
  const std::shared_ptr<AttemptHost> host = queue_.Next(setup_->threads);
  if (!host) return {};
  std::size_t most = setup_->MostInCall();
  if (most == 1 && pace_.AreShort()) {
    most = std::clamp<std::size_t>(queue_.Waiting(*host) / (2 * setup_->threads), 1, kShortChunk);
  }
  std::vector<AttemptPtr> attempts = queue_.Take(host, most);
  std::vector<AttemptPtr> without = TakeStarts(attempts, now);
  if (!without.empty()) {
    if (attempts.empty()) starts_from_ = without.front()->gate->Next(now);
    for (auto attempt = without.rbegin(); attempt != without.rend(); ++attempt)
      queue_.PutBack(std::move(*attempt));
  }
  if (attempts.empty()) {
    queue_.Leave(*host);
  } else {
    thread.taken = {host, attempts.size()};
    running_ += attempts.size();
    // Those that wait without a start do so for a time that this thread knew.
    if (attempts.front()->gate && queue_.Size() > 0) filled_.NotifyOne();
  }
  return attempts;
}

LaneSetupPtr Lane::Take(LaneThread& thread) {
  LaneSetupPtr setup;
  std::vector<AttemptPtr> attempts;
  bool room_again = false;
  {
    MutexLock lock(mutex_);
    attempts = TakeNext(thread);
    if (attempts.empty() && !closed_) {
      const Micros until_start = starts_from_ - std::min(parts_.clock.Now(), starts_from_);
      filled_.WaitFor(mutex_, until_start > Micros(0) ? std::min(until_start, kIdleWait) : kIdleWait);
      attempts = TakeNext(thread);
    }
    if (attempts.empty()) return nullptr;
    setup = setup_;
    room_again = queue_.RoomAgain(*thread.taken.host, pace_.Capacity());
  }
  if (room_again) attempts.front()->host->RoomAgain();
  thread.Keep(std::move(attempts));
  return setup;
}

void Lane::StartsAgain() {
  MutexLock lock(mutex_);
  starts_from_ = {};
  filled_.NotifyAll();
}

void Lane::Release(LaneThread& thread) {
  if (!thread.taken.host) return;  // the watchdog was first
  running_ -= thread.taken.count;
  queue_.Leave(*thread.taken.host);
  thread.taken = {};
}

// The tasks that a thread took with one that turns out to be long.
void Lane::TakeBackKept(LaneThread& thread, BootTime now) {
  std::vector<AttemptPtr> kept = thread.TakeKept(now);
  if (kept.empty()) return;
  running_ -= kept.size();
  thread.taken.count -= kept.size();
  for (auto attempt = kept.rbegin(); attempt != kept.rend(); ++attempt) {
    ReturnStart(**attempt);
    queue_.PutBack(std::move(*attempt));
  }
  starts_from_ = {};
  filled_.NotifyAll();
}

Micros Lane::BusyFor(BootTime now) const {
  MutexLock lock(mutex_);
  Micros longest{0};
  for (const LaneThread& thread : threads_) {
    if (!thread.lost()) longest = std::max(longest, thread.BusyFor(now, pace_.Each()));
  }
  return longest;
}

void Lane::Run(LaneThread& thread) {
  while (!Ends(thread)) {
    const LaneSetupPtr setup = Take(thread);
    if (!setup) {
      thread.CloseEndedSessions();
      continue;
    }
    RunTaken(thread, setup);
    MutexLock lock(mutex_);
    NoteRan(thread);
    Release(thread);
  }
}

// Whether this thread is to end: the lane is closed, it is one too many, or another has its place.
bool Lane::Ends(LaneThread& thread) {
  MutexLock lock(mutex_);
  if (thread.lost()) {  // it came home after all
    --lost_;
  } else if (closed_ || active_ > wanted_) {
    --active_;
  } else {
    return false;
  }
  thread.SetHome();
  return true;
}

// Gathers calls from what the thread took: as many as a batch handler takes, or one that runs alone.
void Lane::RunTaken(LaneThread& thread, const LaneSetupPtr& setup) {
  const bool batches = setup->handler->MaxBatch() > 1;
  CallPart call;
  while (true) {
    if (auto part = thread.NextPart()) {
      RunPart(thread, setup, std::move(*part));
      continue;
    }
    AttemptPtr attempt = thread.Next();
    const bool alone = attempt != nullptr && attempt->alone.load(std::memory_order_relaxed);
    if (attempt != nullptr && (call.attempts.empty() || !alone)) {
      if (ReadyToStart(attempt, *setup)) call.attempts.push_back(std::move(attempt));
      if (batches && !alone) continue;
    } else if (attempt != nullptr) {
      thread.KeepFirst(std::move(attempt));
    } else if (call.attempts.empty()) {
      return;
    }
    if (!call.attempts.empty()) RunCall(thread, setup, call);
    call.attempts.clear();
  }
}

// Part of a call that failed as a whole; some of its tasks may not be wanted any more.
void Lane::RunPart(LaneThread& thread, const LaneSetupPtr& setup, CallPart part) {
  std::erase_if(part.attempts, [&](const AttemptPtr& attempt) { return !ReadyToStart(attempt, *setup); });
  if (part.attempts.size() == 1) part.deadline.reset();
  if (!part.attempts.empty()) RunCall(thread, setup, part);
}

void Lane::RunCall(LaneThread& thread, const LaneSetupPtr& setup, const CallPart& part) {
  const BootTime began = parts_.clock.Now();
  thread.Call(setup, part);
  thread.ran.calls += 1;
  thread.ran.tasks += part.attempts.size();
  thread.ran.took += parts_.clock.Now() - began;
  if (thread.ran.took < kTellPace) return;
  MutexLock lock(mutex_);
  NoteRan(thread);
}

void Lane::NoteRan(LaneThread& thread) {
  const Ran ran = std::exchange(thread.ran, {});
  if (ran.calls > 0) pace_.Ran(ran.tasks, ran.took, ran.calls);
}

// The check before each start. What may not start is parked, or its attempt ended at once; others may have
// its start.
bool Lane::ReadyToStart(const AttemptPtr& attempt, const LaneSetup& setup) {
  const BootTime now = parts_.clock.Now();
  const bool may_start = attempt->lease->MayStart(now);
  const std::optional<Outcome> instead =
      may_start ? InsteadOfStart(*attempt, setup.config.retry, now) : std::nullopt;
  if (may_start && !instead) return true;
  if (attempt->gate && (!may_start || !attempt->started.load(std::memory_order_relaxed))) {
    ReturnStart(*attempt);
    attempt->gate->TellStartsAgain();
  }
  if (may_start) {
    attempt->host->Ended({attempt, Settle(setup.config.retry, attempt->task, *instead, 0)});
  } else {
    attempt->host->Park(attempt);
  }
  return false;
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
  LogError("handler ignores its time limit; its thread is given up",
           {{"task", ToString(TaskName{first.shard, first.task.key})},
            {"tasks", overdue.running.size()},
            {"handler", type_},
            {"limit", FormatDuration(overdue.setup->config.timeout)}});
  if (overdue.running.size() == 1) {
    const AttemptPtr& attempt = overdue.running.front();
    const Outcome outcome = Overran(overdue.setup->config.timeout);
    const RetryPolicy& retry = overdue.setup->config.retry;
    attempt->host->Ended({attempt, EndOf(*attempt, retry, outcome, 0.5, parts_.clock.Now())});
    overdue.running.clear();
  }
  MutexLock lock(mutex_);
  for (auto* attempts : {&overdue.waiting, &overdue.running}) {
    for (auto attempt = attempts->rbegin(); attempt != attempts->rend(); ++attempt) {
      if (attempts == &overdue.running) (*attempt)->alone.store(true, std::memory_order_relaxed);
      ReturnStart(**attempt);
      queue_.PutBack(std::move(*attempt));
    }
  }
  starts_from_ = {};
  filled_.NotifyAll();
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

std::vector<AttemptPtr> Lane::TakeUnwanted(Micros patience) {
  MutexLock lock(mutex_);
  return queue_.TakeIf([&](const Attempt& attempt, std::size_t ahead) MILLRACE_REQUIRES(mutex_) {
    const StartDecision decision = attempt.host->StartDecisionOf(attempt);
    return decision == StartDecision::Moved ? pace_.WaitFor(ahead) > patience
                                            : decision != StartDecision::Start;
  });
}

std::vector<AttemptPtr> Lane::TakeQueued() {
  MutexLock lock(mutex_);
  return queue_.TakeIf([](const Attempt&, std::size_t) { return true; });
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
    for (LaneThread& thread : threads_) {
      if (thread.lost() && !thread.home()) {
        thread.handle().Abandon();
      } else {
        threads.push_back(&thread.handle());
      }
    }
  }
  for (Thread* thread : threads) thread->Join();
}

}  // namespace millrace::engine

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
constexpr Micros kSoonestStart = std::chrono::milliseconds(1);  // of a type that has none now
constexpr Micros kGivenBackFor = std::chrono::seconds(1);
constexpr std::size_t kShortChunk = 32;  // short tasks that a thread takes at once
constexpr Micros kTellPace =
    std::chrono::milliseconds(1);  // of calls in succession: the pace is all threads'

}  // namespace

Lane::Lane(LaneParts parts, std::string name, LaneRules rules)
    : parts_(parts), name_(std::move(name)), rules_(std::move(rules)) {
  queue_.Follow(rules_.queues);
}

Lane::~Lane() {
  Close();
  Join();
}

void Lane::Follow(const std::string& type, LaneSetup setup) {
  LaneSetupPtr former;  // goes once nothing is locked
  {
    MutexLock lock(mutex_);
    Type& own = types_[type];
    own.name = type;
    own.pace.Resize(setup.threads, setup.config.queue);
    own.bytes = setup.config.queue_bytes;
    own.weight = setup.config.weight;
    own.gives_back = setup.config.when_full == WhenFull::GiveBack;
    former = std::exchange(own.setup, std::make_shared<const LaneSetup>(std::move(setup)));
    AdjustThreads(parts_.clock.Now());
    filled_.NotifyAll();
  }
  TellThreads();
}

void Lane::Follow(const LaneRules& rules) {
  {
    MutexLock lock(mutex_);
    if (rules == rules_) return;
    rules_ = rules;
    queue_.Follow(rules_.queues);
    AdjustThreads(parts_.clock.Now());
    filled_.NotifyAll();
  }
  TellThreads();
}

Status Lane::Threads() const {
  MutexLock lock(mutex_);
  return last_start_;
}

LaneRoom Lane::Room(const std::string& type, const AttemptHost& host, std::uint32_t urgency) {
  MutexLock lock(mutex_);
  const auto own = types_.find(type);
  if (closed_ || own == types_.end()) return {};
  const LaneRoom room = queue_.Room(own->second, host, urgency, parts_.clock.Now(), AgingOf(host));
  if (room.tasks == 0 && own->second.setup->config.when_full == WhenFull::Caller) {
    own->second.most = MostOf(own->second);
    filled_.NotifyAll();
  }
  return room;
}

bool Lane::Push(const std::string& type, std::vector<AttemptPtr>& attempts) {
  std::vector<AttemptPtr> back;
  {
    MutexLock lock(mutex_);
    const auto own = types_.find(type);
    if (closed_ || own == types_.end()) return false;
    if (attempts.empty()) return true;
    const Aging aging = AgingOf(*attempts.front()->host);
    const std::size_t tasks = attempts.size();
    back = queue_.Push(own->second, std::move(attempts), parts_.clock.Now(), aging);
    Grow();
    // A thread for each: the others would meet at the lock for nothing.
    for (std::size_t i = std::min(tasks, active_); i > 0; --i) filled_.NotifyOne();
  }
  for (const AttemptPtr& attempt : back) GiveBack(attempt, "its lane was full", kGivenBackFor);
  return true;
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
  Load load{active_, {}, queue_.Loads(), {}};
  for (const auto& [name, type] : types_) {
    load.busy[name] = type.threads;
    if (queue_.IsFull(type)) load.full.insert(name);
  }
  return load;
}

std::size_t Lane::Lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

Aging Lane::AgingOf(const AttemptHost& host) const {
  if (rules_.aging == Micros(0)) return {};
  const std::optional<WallTime> store = host.StoreTime(parts_.clock.Now());
  return {rules_.aging, store ? *store : parts_.clock.WallNow()};
}

// Several short tasks at once, so that the queue's lock is not the bottleneck; a batch for a batch handler.
std::size_t Lane::MostAtOnce(const Type& type, std::size_t waiting) {
  const std::size_t most = type.setup->MostInCall();
  if (most > 1 || !type.pace.AreShort()) return most;
  return std::clamp<std::size_t>(waiting / (2 * type.setup->threads), 1, kShortChunk);
}

// A type whose gate has no start now is passed: there may be others.
std::vector<AttemptPtr> Lane::TakeNext(LaneThread& thread) {
  const BootTime now = parts_.clock.Now();
  const auto aging_of = [this](const AttemptHost& host) MILLRACE_REQUIRES(mutex_) { return AgingOf(host); };
  const auto may_start = [&](const LaneType& type) {
    return type.threads < type.most && now >= type.starts_from;
  };
  while (!closed_ && active_ <= wanted_) {
    std::optional<Taken> chosen = queue_.Next(aging_of, may_start);
    if (!chosen) break;
    Type& type = types_.at(chosen->type->name);
    std::vector<AttemptPtr> attempts =
        queue_.Take(*chosen, MostAtOnce(type, chosen->count), AgingOf(*chosen->host));
    std::vector<AttemptPtr> without = TakeStarts(attempts, now);
    if (attempts.empty()) {
      // What has ended under a gate of before tells nobody who waits for one of now.
      const BootTime next = without.front()->gate->NextStart(now);
      type.starts_from = std::clamp<BootTime>(next, now + kSoonestStart, now + kIdleWait);
    }
    if (!without.empty()) queue_.PutBack(type, std::move(without));
    if (attempts.empty()) {
      queue_.Leave(*chosen);
      continue;
    }
    chosen->count = attempts.size();
    thread.taken = std::move(*chosen);
    running_ += attempts.size();
    // Those that wait without a start do so for a time that this thread knew; and of types or queues that
    // share the lane, what could not be taken a moment ago may be drawn now.
    const bool shared = types_.size() > 1 || rules_.queues.most > 0;
    if ((attempts.front()->gate || shared) && queue_.Size() > 0) filled_.NotifyOne();
    return attempts;
  }
  return {};
}

Micros Lane::UntilStarts(BootTime now) const {
  Micros until = kIdleWait;
  for (const auto& [name, type] : types_) {
    if (type.starts_from > now) until = std::min(until, type.starts_from - now);
  }
  return until;
}

LaneSetupPtr Lane::Take(LaneThread& thread) {
  LaneSetupPtr setup;
  std::vector<AttemptPtr> attempts;
  bool room_again = false;
  {
    MutexLock lock(mutex_);
    attempts = TakeNext(thread);
    if (attempts.empty() && !closed_) {
      filled_.WaitFor(mutex_, UntilStarts(parts_.clock.Now()));
      attempts = TakeNext(thread);
    }
    if (attempts.empty()) return nullptr;
    Type& type = types_.at(thread.taken.type->name);
    setup = type.setup;
    room_again = queue_.RoomAgain(type, *thread.taken.host, AgingOf(*thread.taken.host));
    if (room_again) type.most = MostOf(type);
  }
  if (room_again) attempts.front()->host->RoomAgain();
  thread.Keep(std::move(attempts));
  return setup;
}

void Lane::StartsAgain(const std::string& type) {
  MutexLock lock(mutex_);
  const auto own = types_.find(type);
  if (own == types_.end()) return;
  own->second.starts_from = {};
  filled_.NotifyAll();
}

void Lane::Release(LaneThread& thread) {
  if (!thread.taken.host) return;  // the watchdog was first
  running_ -= thread.taken.count;
  if (size_.Varies()) size_.Freed(Busy(), parts_.clock.Now());
  queue_.Leave(thread.taken);
  thread.taken = {};
}

// The tasks that a thread took with one that turns out to be long.
void Lane::TakeBackKept(LaneThread& thread, BootTime now) {
  std::vector<AttemptPtr> kept = thread.TakeKept(now);
  if (kept.empty()) return;
  running_ -= kept.size();
  thread.taken.count -= kept.size();
  PutBack(std::move(kept));
}

void Lane::PutBack(std::vector<AttemptPtr> attempts) {
  if (attempts.empty()) return;
  Type& type = TypeOf(*attempts.front());
  for (const AttemptPtr& attempt : attempts) ReturnStart(*attempt);
  type.starts_from = {};
  queue_.PutBack(type, std::move(attempts));
  Grow();
  filled_.NotifyAll();
}

Micros Lane::BusyFor(BootTime now) const {
  MutexLock lock(mutex_);
  Micros longest{0};
  for (const LaneThread& thread : threads_) {
    if (thread.lost() || thread.taken.type == nullptr) continue;
    longest = std::max(longest, thread.BusyFor(now, thread.taken.type->pace.Each()));
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
    thread.ForgetSetup();
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
    if (queue_.Size() > 0) filled_.NotifyOne();  // it may have been woken for that
  } else {
    return false;
  }
  thread.SetHome();
  return true;
}

// Gathers calls from what the thread took: as many as a batch handler takes, or one that runs alone.
void Lane::RunTaken(LaneThread& thread, const LaneSetupPtr& setup) {
  const bool batches = setup->handler->MaxBatch() > 1;
  BootTime now{};
  CallPart call;
  while (true) {
    if (auto part = thread.NextPart()) {
      RunPart(thread, setup, std::move(*part));
      continue;
    }
    AttemptPtr attempt = thread.Next();
    const bool alone = attempt != nullptr && attempt->alone.load(std::memory_order_relaxed);
    if (attempt != nullptr && (call.attempts.empty() || !alone)) {
      now = parts_.clock.Now();
      if (ReadyToStart(attempt, setup->config.retry, now)) call.attempts.push_back(std::move(attempt));
      if (batches && !alone) continue;
    } else if (attempt != nullptr) {
      thread.KeepFirst(std::move(attempt));
    } else if (call.attempts.empty()) {
      return;
    }
    if (!call.attempts.empty()) RunCall(thread, setup, call, now);
    call.attempts.clear();
  }
}

// Part of a call that failed as a whole; some of its tasks may not be wanted any more.
void Lane::RunPart(LaneThread& thread, const LaneSetupPtr& setup, CallPart part) {
  const BootTime now = parts_.clock.Now();
  std::erase_if(part.attempts,
                [&](const AttemptPtr& attempt) { return !ReadyToStart(attempt, setup->config.retry, now); });
  if (part.attempts.size() == 1) part.deadline.reset();
  if (!part.attempts.empty()) RunCall(thread, setup, part, now);
}

void Lane::RunCall(LaneThread& thread, const LaneSetupPtr& setup, const CallPart& part, BootTime began) {
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
  if (ran.calls > 0 && thread.taken.type != nullptr)
    thread.taken.type->pace.Ran(ran.tasks, ran.took, ran.calls);
}

std::vector<AttemptPtr> Lane::TakeUnwanted(Micros patience) {
  MutexLock lock(mutex_);
  return queue_.TakeIf([&](const Attempt& attempt, const LaneType& type, std::size_t ahead) {
    const StartDecision decision = attempt.host->StartDecisionOf(attempt);
    return decision == StartDecision::Moved ? type.pace.WaitFor(ahead) > patience
                                            : decision != StartDecision::Start;
  });
}

std::vector<AttemptPtr> Lane::TakeQueued() {
  MutexLock lock(mutex_);
  return queue_.TakeIf([](const Attempt&, const LaneType&, std::size_t) { return true; });
}

bool Lane::Over() const {
  MutexLock lock(mutex_);
  return closed_ && threads_.empty() && queue_.Size() == 0;
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

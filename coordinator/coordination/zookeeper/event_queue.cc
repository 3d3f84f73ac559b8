#include "coordinator/coordination/zookeeper/event_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace::engine {
namespace {

using Kind = TreeEvent::Kind;

bool Obsolete(const TreeEvent& waiting, const TreeEvent& news) {
  if (news.kind == Kind::Expired) return true;
  if (news.kind == Kind::Disconnected) return waiting.kind == Kind::Connected;
  return false;
}

bool Same(const TreeEvent& a, const TreeEvent& b) { return a.kind == b.kind && a.path == b.path; }

}  // namespace

void EventQueue::Push(TreeEvent event) {
  MutexLock lock(mutex_);
  std::erase_if(events_, [&](const TreeEvent& waiting) { return Obsolete(waiting, event); });
  const auto same = std::find_if(events_.begin(), events_.end(),
                                 [&](const TreeEvent& waiting) { return Same(waiting, event); });
  if (same == events_.end()) {
    events_.push_back(std::move(event));
  } else {
    *same = std::move(event);
  }
  filled_.NotifyAll();
}

void EventQueue::Interrupt() {
  MutexLock lock(mutex_);
  interrupted_ = true;
  filled_.NotifyAll();
}

EventQueue::Taken EventQueue::Take(Micros limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (events_.empty() && !interrupted_) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return {};
    filled_.WaitFor(mutex_, left);
  }
  if (events_.empty()) return {.event = std::nullopt, .interrupted = std::exchange(interrupted_, false)};
  Taken taken{.event = std::move(events_.front())};
  events_.pop_front();
  return taken;
}

}  // namespace millrace::engine

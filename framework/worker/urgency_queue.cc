#include "framework/worker/urgency_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace millrace::engine {

bool UrgencyQueue::IsBehind(const Entry& a, const Entry& b) {
  return std::tie(a.due, a.number) > std::tie(b.due, b.number);
}

bool UrgencyQueue::List::LateIsFirst() const {
  return in_order.empty() || (!late.empty() && IsBehind(in_order.front(), late.front()));
}

UrgencyQueue::Entry UrgencyQueue::List::TakeFirst() {
  Entry first;
  if (LateIsFirst()) {
    std::pop_heap(late.begin(), late.end(), IsBehind);
    first = std::move(late.back());
    late.pop_back();
  } else {
    first = std::move(in_order.front());
    in_order.pop_front();
  }
  return first;
}

void UrgencyQueue::Push(AttemptPtr attempt) {
  const Task& task = attempt->task;
  List& list = lists_[Urgency(task.priority, task.failures)];
  Entry entry{task.run_at, ++arrivals_, std::move(attempt)};
  ++size_;
  if (list.in_order.empty() || entry.due >= list.in_order.back().due) {
    list.in_order.push_back(std::move(entry));
    return;
  }
  list.late.push_back(std::move(entry));
  std::push_heap(list.late.begin(), list.late.end(), IsBehind);
}

void UrgencyQueue::PutBack(AttemptPtr attempt) {
  const Task& task = attempt->task;
  List& list = lists_[Urgency(task.priority, task.failures)];
  Entry entry{task.run_at, 0, std::move(attempt)};
  ++size_;
  if (list.in_order.empty() || entry.due <= list.in_order.front().due) {
    list.in_order.push_front(std::move(entry));
    return;
  }
  list.late.push_back(std::move(entry));
  std::push_heap(list.late.begin(), list.late.end(), IsBehind);
}

std::uint32_t UrgencyQueue::Aged(const Lists::value_type& list, const Aging& aging) {
  if (aging.step == Micros(0)) return list.first;
  return AgedUrgency(list.first, aging.now - list.second.First().due, aging.step);
}

UrgencyQueue::Lists::const_iterator UrgencyQueue::Oldest() const {
  return std::min_element(lists_.begin(), lists_.end(), [](const auto& a, const auto& b) {
    return a.second.First().due < b.second.First().due;
  });
}

UrgencyQueue::Lists::iterator UrgencyQueue::ListInTurn(const Aging& aging) {
  const bool oldest = IsOldestTurn(turn_++);
  if (lists_.size() == 1) return lists_.begin();
  if (oldest) return lists_.find(Oldest()->first);
  if (aging.step == Micros(0)) return lists_.begin();
  auto chosen = lists_.end();
  auto place = lists_.upper_bound(last_);
  for (std::size_t i = 0; i < lists_.size(); ++i, ++place) {
    if (place == lists_.end()) place = lists_.begin();
    if (chosen == lists_.end() || Aged(*place, aging) < Aged(*chosen, aging)) chosen = place;
  }
  return chosen;
}

AttemptPtr UrgencyQueue::Take(const Aging& aging) {
  const auto list = ListInTurn(aging);
  last_ = list->first;
  AttemptPtr attempt = list->second.TakeFirst().attempt;
  --size_;
  if (list->second.Empty()) lists_.erase(list);
  return attempt;
}

UrgencyQueue::Head UrgencyQueue::MostUrgent(const Aging& aging) const {
  Head head{UINT32_MAX, {}};
  for (const auto& list : lists_) {
    const Head other{Aged(list, aging), list.second.First().due};
    if (std::tie(other.urgency, other.due) < std::tie(head.urgency, head.due)) head = other;
    if (aging.step == Micros(0)) break;
  }
  return head;
}

WallTime UrgencyQueue::OldestDue() const { return Oldest()->second.First().due; }

std::size_t UrgencyQueue::AtLeast(std::uint32_t urgency, const Aging& aging) const {
  std::size_t count = 0;
  for (const auto& list : lists_) {
    if (Aged(list, aging) <= urgency) count += list.second.in_order.size() + list.second.late.size();
  }
  return count;
}

std::vector<AttemptPtr> UrgencyQueue::TakeIf(const std::function<bool(const Attempt&)>& unwanted) {
  std::vector<AttemptPtr> taken;
  for (auto place = lists_.begin(); place != lists_.end();) {
    List& list = place->second;
    const auto out = [&](const Entry& entry) {
      const bool gone = unwanted(*entry.attempt);
      if (gone) taken.push_back(entry.attempt);
      return gone;
    };
    std::erase_if(list.in_order, out);
    std::erase_if(list.late, out);
    std::make_heap(list.late.begin(), list.late.end(), IsBehind);
    place = list.Empty() ? lists_.erase(place) : std::next(place);
  }
  size_ -= taken.size();
  return taken;
}

}  // namespace millrace::engine

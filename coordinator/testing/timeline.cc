#include "coordinator/testing/timeline.h"

#include <algorithm>

namespace millrace::engine {

void Timeline::Push(Item item) {
  item.order = order_++;
  heap_.push_back(std::move(item));
  std::push_heap(heap_.begin(), heap_.end());
}

void Timeline::After(Micros delay, Strand* strand, Event event) {
  Push(
      {now_ + std::max(delay, Micros(0)), 0, strand, strand == nullptr ? 0 : strand->life, std::move(event)});
}

bool Timeline::Step(BootTime end) {
  while (!heap_.empty() && heap_.front().when <= end) {
    std::pop_heap(heap_.begin(), heap_.end());
    Item item = std::move(heap_.back());
    heap_.pop_back();
    now_ = item.when;
    if (item.strand != nullptr) {
      if (item.strand->life != item.life) continue;
      if (now_ <= item.strand->held_until) {
        // One microsecond more, so that an event that was meant for that very moment stays behind these.
        item.when = item.strand->held_until + Micros(1);
        Push(std::move(item));
        continue;
      }
    }
    ++steps_;
    item.event();
    return true;
  }
  now_ = std::max(now_, end);
  return false;
}

}  // namespace millrace::engine

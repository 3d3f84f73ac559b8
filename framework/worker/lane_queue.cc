#include "framework/worker/lane_queue.h"

#include <algorithm>
#include <iterator>

namespace millrace::engine {

LaneQueue::Share& LaneQueue::ShareOf(const HostPtr& host) {
  Share& share = shares_[host.get()];
  if (!share.host) share.host = host;
  return share;
}

void LaneQueue::Push(AttemptPtr attempt) {
  Share& share = ShareOf(attempt->host);
  share.waiting.push_back(std::move(attempt));
  share.told_to_wait = true;
}

void LaneQueue::PutBack(AttemptPtr attempt) {
  Share& share = ShareOf(attempt->host);
  share.waiting.push_front(std::move(attempt));
  share.told_to_wait = true;
}

std::size_t LaneQueue::Size() const {
  std::size_t size = 0;
  for (const auto& [host, share] : shares_) size += share.waiting.size();
  return size;
}

std::size_t LaneQueue::Waiting(const AttemptHost& host) const {
  const auto share = shares_.find(&host);
  return share == shares_.end() ? 0 : share->second.waiting.size();
}

std::size_t LaneQueue::PartOf(const AttemptHost& host, std::size_t capacity) const {
  const std::size_t others = shares_.size() - shares_.count(&host);
  return std::max<std::size_t>(capacity / (others + 1), 1);
}

std::size_t LaneQueue::Room(const AttemptHost& host, std::size_t capacity) const {
  const std::size_t part = PartOf(host, capacity);
  const std::size_t waiting = Waiting(host);
  return waiting > part / 2 ? 0 : part - waiting;
}

bool LaneQueue::RoomAgain(const AttemptHost& host, std::size_t capacity) {
  const auto share = shares_.find(&host);
  if (share == shares_.end() || !share->second.told_to_wait || Room(host, capacity) == 0) return false;
  share->second.told_to_wait = false;
  return true;
}

bool LaneQueue::MayTake(const Share& share, std::size_t threads) const {
  if (share.waiting.empty()) return false;
  const bool others_wait = std::any_of(shares_.begin(), shares_.end(), [&](const auto& entry) {
    return &entry.second != &share && !entry.second.waiting.empty();
  });
  const std::size_t left_to_others = std::max<std::size_t>(threads / 4, 1);
  return !others_wait || share.threads == 0 || share.threads + left_to_others < threads;
}

LaneQueue::HostPtr LaneQueue::Next(std::size_t threads) {
  auto turn = shares_.upper_bound(last_);
  for (std::size_t i = 0; i < shares_.size(); ++i, ++turn) {
    if (turn == shares_.end()) turn = shares_.begin();
    if (!MayTake(turn->second, threads)) continue;
    last_ = turn->first;
    return turn->second.host;
  }
  return nullptr;
}

std::vector<AttemptPtr> LaneQueue::Take(const HostPtr& host, std::size_t most) {
  Share& share = ShareOf(host);
  ++share.threads;
  const std::size_t count = std::min(most, share.waiting.size());
  const auto end = share.waiting.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<AttemptPtr> taken(std::make_move_iterator(share.waiting.begin()), std::make_move_iterator(end));
  share.waiting.erase(share.waiting.begin(), end);
  return taken;
}

void LaneQueue::Leave(const AttemptHost& host) {
  const auto share = shares_.find(&host);
  if (share == shares_.end()) return;
  --share->second.threads;
  Forget(host);
}

void LaneQueue::Forget(const AttemptHost& host) {
  const auto share = shares_.find(&host);
  if (share->second.threads == 0 && share->second.waiting.empty()) shares_.erase(share);
}

std::vector<AttemptPtr> LaneQueue::TakeIf(
    const std::function<bool(const Attempt&, std::size_t ahead)>& unwanted) {
  std::vector<AttemptPtr> taken;
  std::size_t ahead = 0;
  for (auto place = shares_.begin(); place != shares_.end();) {
    Share& share = place->second;
    std::deque<AttemptPtr> kept;
    for (AttemptPtr& attempt : share.waiting) {
      if (unwanted(*attempt, ahead)) {
        taken.push_back(std::move(attempt));
      } else {
        kept.push_back(std::move(attempt));
        ++ahead;
      }
    }
    share.waiting = std::move(kept);
    const auto next = std::next(place);
    Forget(*place->first);
    place = next;
  }
  return taken;
}

}  // namespace millrace::engine

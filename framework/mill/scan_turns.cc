// Whose turn it is: the order of types and groups in what is claimed, and what each may claim.
#include <algorithm>
#include <limits>
#include <utility>

#include "framework/base/log.h"
#include "framework/mill/scan.h"

namespace millrace::engine {
namespace {

constexpr int kRestShare = 9;  // times what the statement took that found a table locked
constexpr Micros kShortestRest = std::chrono::milliseconds(100);
constexpr Micros kLongestRest = std::chrono::seconds(10);

// Types may: then what one has claimed is no longer the others'.
bool ShareQueues(const EngineConfig& engine) { return engine.queues.by != QueuesConfig::By::Handler; }

}  // namespace

bool Scanner::MayClaim(const DueGroup& group) const {
  return part_.Owns(group) && !parts_.scope.Paused(group) && parts_.admission.Open(group.handler) &&
         !Rests(group.table);
}

bool Scanner::Rests(const TableName& table) const {
  return shared_.unwritable.Rests(table, parts_.clock) || parts_.attempts.SettleRefuses(table);
}

void Scanner::Rest(RestingTables& among, const TableName& table, Micros took, const std::string& why) {
  const Micros pause = std::clamp(kRestShare * took, kShortestRest, kLongestRest);
  if (!among.Rest(table, parts_.clock.Now(), pause, why)) return;
  LogWarning("nothing of this table can be claimed; the others go on, and it is tried again until it can",
             {{"shard", parts_.shard}, {"table", std::string(table)}, {"error", why}});
}

// What is more urgent may have come meanwhile: the map is taken again when it is due, however much is left.
Step<> Scanner::WorkOff(EngineConfig engine, std::shared_ptr<Lease> life) {
  do {
    const bool any = co_await TakeTurn(engine, life);
    // Where there is none for the oldest there may be room for what is more urgent.
    if (!any && !(worked_ && IsOldestTurn(turn_))) break;
  } while (GoesOn() && parts_.clock.Now() < look_.until);
  co_await Land();
}

std::uint32_t Scanner::UrgencyOf(const Place& place) const {
  return IsOldestTurn(turn_) ? 0 : place.work->ranks[place.order[place.next]].urgency;
}

std::vector<Scanner::Place*> Scanner::MostUrgent(std::vector<Place>& places) const {
  std::vector<Place*> first;
  for (Place& place : places) {
    if (place.Done()) continue;
    if (!first.empty() && UrgencyOf(place) < UrgencyOf(*first.front())) first.clear();
    if (first.empty() || UrgencyOf(place) == UrgencyOf(*first.front())) first.push_back(&place);
  }
  return first;
}

// A type that nobody else comes between is filled by one claim, whatever urgencies it has.
std::size_t Scanner::EndOf(const Place& place, std::span<const Place> places) const {
  if (IsOldestTurn(turn_)) return place.order.size();
  std::uint32_t others = std::numeric_limits<std::uint32_t>::max();
  for (const Place& other : places) {
    if (&other != &place && !other.Done()) others = std::min(others, UrgencyOf(other));
  }
  std::size_t end = place.next;
  const std::uint32_t own = UrgencyOf(place);
  while (end < place.order.size()) {
    const std::uint32_t urgency = place.work->ranks[place.order[end]].urgency;
    if (urgency != own && urgency >= others) break;
    ++end;
  }
  return end;
}

Step<bool> Scanner::TakeTurn(const EngineConfig& engine, std::shared_ptr<Lease> life) {
  if (std::exchange(worked_, false)) ++turn_;
  std::vector<Place> places;
  for (TypeWork& work : look_.work) places.push_back({&work, OrderGroups(work.ranks, turn_)});
  bool any = false;
  for (auto first = MostUrgent(places); !first.empty(); first = MostUrgent(places)) {
    PutInTurn(first);
    const std::vector<std::size_t> shares = SharesOf(first, engine);
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (!GoesOn()) co_return any;
      const std::size_t end = EndOf(*first[i], places);
      const std::size_t share = shares.empty() ? RoomOf(*first[i], engine) : shares[i];
      const bool may_claim = std::min(first[i]->most, share) > 0;
      const bool filled = co_await Fill(*first[i], end, share, life);
      any = filled || any;
      // What is less urgent of a type has no more room, and no share before it. Room that comes in the middle
      // of a turn is for the most urgent first, in the next.
      first[i]->next = may_claim ? end : first[i]->order.size();
    }
    if (parts_.clock.Now() >= look_.until) break;
  }
  // What found nothing is rested of at the end alone: the same would come first again after each rest, and
  // nobody behind it ever.
  if (work_to_rest_of_ > Micros(0)) RestByBrake();
  co_return any;
}

// In the turn of the oldest the type that has it comes first, and takes what it can.
void Scanner::PutInTurn(std::vector<Place*>& places) const {
  if (IsOldestTurn(turn_)) {
    const auto waiting_since = [](const Place* place) {
      return place->work->ranks[place->order.front()].waiting_since;
    };
    std::stable_sort(places.begin(), places.end(), [&](const Place* one, const Place* other) {
      return waiting_since(one) < waiting_since(other);
    });
  } else {
    const auto first = static_cast<std::ptrdiff_t>(turn_ % places.size());
    std::rotate(places.begin(), places.begin() + first, places.end());
  }
}

std::vector<std::size_t> Scanner::SharesOf(std::span<Place* const> places, const EngineConfig& engine) {
  if (places.size() == 1 || IsOldestTurn(turn_)) return {};
  const auto order = parts_.engine.Order();
  std::vector<ShareWish> wishes;
  std::size_t queue = 0;
  for (Place* place : places) {
    const std::string& type = place->work->type;
    wishes.push_back({type, order->WeightOf(type), RoomOf(*place, engine)});
    queue = std::max(queue, wishes.back().wanted);
  }
  const std::size_t in_memory = parts_.attempts.in_flight().Left() / mean_bytes_;
  return shares_.Divide(wishes, ShareQueues(engine) ? std::min(in_memory, queue) : in_memory);
}

std::size_t Scanner::RoomOf(Place& place, const EngineConfig& engine) {
  const TypeWork& work = *place.work;
  place.room = place.free = {};
  place.most = 0;
  const std::size_t left = rounds_.Left(work.type);
  if (left == 0 || parts_.gate.Wanted()) return 0;
  place.landed = shared_.claims.Landed(work.type);
  std::uint32_t urgency = kLeastUrgent;  // in the turn of the oldest it need not be the first one's
  for (std::size_t i = place.next; i < place.order.size(); ++i) {
    urgency = std::min(urgency, work.ranks[place.order[i]].urgency);
  }
  place.room = parts_.runner.Room(work.type, parts_.attempts, urgency);
  const auto is_to_claim = [&](std::size_t i) {
    const DueGroup& group = *work.groups[i];
    return part_.Owns(group) && !parts_.scope.Paused(group) && !Rests(group.table) &&
           cursors_.MayHaveMore(group);
  };
  // Paused, another's, resting, or all of it running.
  const auto left_over = std::span(place.order).subspan(std::min(place.next, place.order.size()));
  if (std::none_of(left_over.begin(), left_over.end(), is_to_claim)) return place.room.tasks = 0;
  if (place.room.tasks == 0) {
    full_ = full_ || parts_.runner.Room(work.type, parts_.attempts, 0).tasks == 0;
    return 0;
  }
  // Not before: who asks for permits holds them.
  const std::size_t admitted = parts_.admission.Room(work.type);
  if (admitted == 0) held_until_ = std::min(held_until_, parts_.admission.Next(work.type));
  constexpr auto kAny = std::numeric_limits<std::size_t>::max();
  place.unbound = left == kAny && admitted == kAny;
  place.room.tasks = std::min({place.room.tasks, left, admitted});
  place.free = shared_.claims.Free(work.type, place.room, place.landed);
  place.most = std::min(place.free.tasks, brake_.Rows(engine.batch));
  return place.most;
}

}  // namespace millrace::engine

#include "framework/worker/lane_queue.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "framework/mill/attempts.h"

namespace millrace::engine {
namespace {

// Where not all queues may be drawn from at once: turns in succession, while others wait outside.
constexpr std::size_t kStreak = 8;
constexpr Micros kGiveBackEvery = std::chrono::seconds(1);

// More than the part for what is more urgent than the least urgent, up to twice.
std::size_t WithReserve(std::size_t part, std::uint32_t urgency) {
  const std::size_t above = kLeastUrgent - std::min(urgency, kLeastUrgent);
  return part + (part * above + kLeastUrgent - 1) / kLeastUrgent;
}

// Of a bound, where so much of all that waits is as urgent as what is to come.
std::size_t RoomIn(std::size_t bound, std::uint32_t urgency, std::size_t as_urgent, std::size_t all) {
  const std::size_t with_reserve = WithReserve(bound, urgency);
  const std::size_t most = std::min(bound, with_reserve - std::min(with_reserve, all - as_urgent));
  return as_urgent > most / 2 ? 0 : most - as_urgent;
}

}  // namespace

std::string LaneQueue::NameOf(const Attempt& attempt) const {
  switch (rules_.by) {
    case QueuesConfig::By::Table:
      return attempt.shard + "/" + std::string(attempt.task.key.table.text());
    case QueuesConfig::By::Shard:
      return attempt.shard;
    case QueuesConfig::By::Priority:
      return std::to_string(attempt.task.priority);
    case QueuesConfig::By::Handler:
    case QueuesConfig::By::One:
      break;
  }
  return "all";
}

// Whether they stand in the same queue, if they are of one type.
bool LaneQueue::IsSame(const Attempt& a, const Attempt& b) const {
  return a.host == b.host && (rules_.by != QueuesConfig::By::Table || a.task.key.table == b.task.key.table) &&
         (rules_.by != QueuesConfig::By::Priority || a.task.priority == b.task.priority);
}

LaneQueue::Place LaneQueue::PlaceOf(LaneType& type, const Attempt& attempt) {
  Part& part = parts_[{&type, attempt.host.get()}];
  part.host = attempt.host;
  const std::string name = NameOf(attempt);
  Queue& queue = queues_[name];
  if (queue.waiting == 0) queue.turn = std::max(queue.turn, turn_);  // no turns to catch up with
  Cell& cell = cells_[{name, attempt.host.get(), &type}];
  cell.type = &type;
  cell.host = attempt.host;
  return {part, queue, cell};
}

void LaneQueue::Add(const Place& place, AttemptPtr attempt, bool back) {
  ++size_;
  ++place.queue.waiting;
  ++place.part.waiting;
  place.part.bytes += MemoryBudget::Of(*attempt);
  place.part.told_of_urgent = place.part.told_of_all = false;
  if (back) {
    place.cell.tasks.PutBack(std::move(attempt));
  } else {
    place.cell.tasks.Push(std::move(attempt));
  }
}

std::vector<AttemptPtr> LaneQueue::Push(LaneType& type, std::vector<AttemptPtr> attempts, BootTime now,
                                        const Aging& aging) {
  std::vector<AttemptPtr> back;
  const Attempt* before = nullptr;
  std::optional<Place> place;
  for (AttemptPtr& attempt : attempts) {
    if (type.gives_back) {
      const PartKey key{&type, attempt->host.get()};
      const auto part = parts_.find(key);
      const std::uint32_t urgency = Urgency(attempt->task.priority, attempt->task.failures);
      const std::size_t bound = PartOf(key).tasks;
      if (part != parts_.end() &&
          (AtLeast(key, urgency, aging) >= bound || part->second.waiting >= WithReserve(bound, urgency))) {
        part->second.gives_back_from = now + kGiveBackEvery;
        back.push_back(std::move(attempt));
        continue;
      }
    }
    if (before == nullptr || !IsSame(*before, *attempt)) place.emplace(PlaceOf(type, *attempt));
    before = attempt.get();
    Add(*place, std::move(attempt), false);
  }
  return back;
}

void LaneQueue::PutBack(LaneType& type, std::vector<AttemptPtr> attempts) {
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    const Place place = PlaceOf(type, **attempt);
    Add(place, std::move(*attempt), true);
  }
}

void LaneQueue::Follow(const QueuesConfig& rules) {
  const bool moves = rules.by != rules_.by;
  rules_ = rules;
  if (!moves) return;
  Cells cells = std::exchange(cells_, {});
  for (auto& [name, queue] : queues_) queue.waiting = 0;
  for (auto& [key, part] : parts_) part.waiting = part.bytes = 0;
  size_ = 0;
  for (auto& [key, cell] : cells) {
    while (cell.tasks.Size() > 0) {
      AttemptPtr attempt = cell.tasks.Take({});
      const Place place = PlaceOf(*cell.type, *attempt);
      Add(place, std::move(attempt), false);
    }
  }
  std::erase_if(queues_, [](const auto& queue) { return queue.second.waiting + queue.second.threads == 0; });
}

std::size_t LaneQueue::OtherShards(const PartKey& key) const {
  std::size_t others = 0;
  for (auto part = parts_.lower_bound({key.first, nullptr});
       part != parts_.end() && part->first.first == key.first; ++part) {
    if (part->first != key) ++others;
  }
  return others;
}

LaneQueue::Bounds LaneQueue::PartOf(const PartKey& key) const {
  const LaneType& type = *key.first;
  const std::size_t shards = OtherShards(key) + 1;
  return {std::max<std::size_t>(type.pace.Capacity() / shards, 1), type.bytes / shards};
}

std::size_t LaneQueue::AtLeast(const PartKey& key, std::uint32_t urgency, const Aging& aging) const {
  std::size_t count = 0;
  for (const auto& [place, cell] : cells_) {
    if (place.type == key.first && place.host == key.second) count += cell.tasks.AtLeast(urgency, aging);
  }
  return count;
}

std::uint32_t LaneQueue::MostUrgent(const PartKey& key, const Aging& aging) const {
  std::uint32_t most = kLeastUrgent;
  for (const auto& [place, cell] : cells_) {
    if (place.type == key.first && place.host == key.second) {
      most = std::min(most, cell.tasks.MostUrgent(aging).urgency);
    }
  }
  return most;
}

// How many of the bytes are those of urgent tasks goes by their number.
LaneRoom LaneQueue::RoomOf(const PartKey& key, const Part& part, std::uint32_t urgency,
                           const Aging& aging) const {
  const Bounds bounds = PartOf(key);
  const std::size_t as_urgent = AtLeast(key, urgency, aging);
  LaneRoom room{RoomIn(bounds.tasks, urgency, as_urgent, part.waiting)};
  if (room.tasks == 0 || key.first->bytes == 0) return room;
  const std::size_t bytes = part.waiting == 0 ? 0 : part.bytes * as_urgent / part.waiting;
  room.bytes = RoomIn(bounds.bytes, urgency, bytes, part.bytes);
  return room.bytes == 0 ? LaneRoom{} : room;
}

LaneRoom LaneQueue::Room(const LaneType& type, const AttemptHost& host, std::uint32_t urgency, BootTime now,
                         const Aging& aging) {
  const PartKey key{&type, &host};
  const auto known = parts_.find(key);
  if (known == parts_.end()) return RoomOf(key, {}, urgency, aging);
  Part& part = known->second;
  LaneRoom room = RoomOf(key, part, urgency, aging);
  if (room.tasks > 0) return room;
  part.full = true;
  if (type.gives_back && now >= part.gives_back_from) {
    room.tasks = std::max<std::size_t>(PartOf(key).tasks / 2, 1);
    room.gives_back = true;
  }
  return room;
}

bool LaneQueue::IsFull(const LaneType& type) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const auto& part) {
    return part.first.first == &type && part.second.full && part.second.waiting > 0;
  });
}

bool LaneQueue::RoomAgain(const LaneType& type, const AttemptHost& host, const Aging& aging) {
  const PartKey key{&type, &host};
  const auto known = parts_.find(key);
  if (known == parts_.end() || known->second.told_of_all) return false;
  Part& part = known->second;
  if (RoomOf(key, part, kLeastUrgent, aging).tasks > 0) {
    part.full = false;
    part.told_of_all = part.told_of_urgent = true;
    return true;
  }
  if (part.told_of_urgent || RoomOf(key, part, MostUrgent(key, aging), aging).tasks == 0) return false;
  part.told_of_urgent = true;
  return true;
}

bool LaneQueue::MayTake(const PartKey& key) const {
  const Part& part = parts_.at(key);
  bool others_wait = false;
  for (auto other = parts_.lower_bound({key.first, nullptr});
       other != parts_.end() && other->first.first == key.first; ++other) {
    others_wait = others_wait || (other->first != key && other->second.waiting > 0);
  }
  const std::size_t left_to_others = std::max<std::size_t>(key.first->most / 4, 1);
  return !others_wait || part.threads == 0 || part.threads + left_to_others < key.first->most;
}

// One that has been drawn from for long enough, while others wait outside, ends what it has first.
bool LaneQueue::MayDraw(const Queue& queue) const {
  if (rules_.most == 0 || rules_.by == QueuesConfig::By::Handler) return true;
  std::size_t drawn_from = 0;
  bool others_wait = false;
  for (const auto& [name, other] : queues_) {
    if (other.threads > 0) {
      ++drawn_from;
    } else {
      others_wait = others_wait || (&other != &queue && other.waiting > 0);
    }
  }
  if (queue.threads == 0) return drawn_from < rules_.most;
  return !(others_wait && drawn_from >= rules_.most && queue.streak >= kStreak);
}

const std::string& LaneQueue::QueueInTurn(const std::vector<const Cells::value_type*>& cells) {
  std::vector<const std::string*> names;
  for (const auto* cell : cells) {
    if (names.empty() || *names.back() != cell->first.queue) names.push_back(&cell->first.queue);
  }
  if (names.size() == 1) return *names.front();
  if (rules_.take == QueuesConfig::Take::Random) return *names[random_.Below(names.size())];
  return **std::min_element(names.begin(), names.end(), [&](const std::string* a, const std::string* b) {
    return queues_.at(*a).turn < queues_.at(*b).turn;
  });
}

std::optional<Taken> LaneQueue::Next(const AgingOf& aging_of, const MayStart& may_start) {
  std::vector<const Cells::value_type*> cells;
  for (const auto& entry : cells_) {
    const auto& [key, cell] = entry;
    if (MayDraw(queues_.at(key.queue)) && may_start(*cell.type) && MayTake({cell.type, key.host})) {
      cells.push_back(&entry);
    }
  }
  if (cells.empty()) return std::nullopt;
  const std::string& name = QueueInTurn(cells);
  std::erase_if(cells, [&](const auto* cell) { return cell->first.queue != name; });
  Queue& queue = queues_.at(name);
  const auto behind = std::find_if(cells.begin(), cells.end(), [&](const auto* cell) {
    return std::less<>{}(queue.last, cell->first.host);
  });
  const AttemptHost* const host = (behind == cells.end() ? cells.front() : *behind)->first.host;
  queue.last = host;
  std::erase_if(cells, [&](const auto* cell) { return cell->first.host != host; });
  const Cell* chosen = &cells.front()->second;
  if (cells.size() > 1) {
    const bool oldest = IsOldestTurn(draws_++);
    const Aging aging = aging_of(*host);
    const auto rank = [&](const Cell& cell) {
      const UrgencyQueue::Head head = cell.tasks.MostUrgent(aging);
      return oldest ? UrgencyQueue::Head{0, cell.tasks.OldestDue()} : head;
    };
    for (const auto* cell : cells) {
      const auto own = rank(cell->second);
      const auto best = rank(*chosen);
      if (std::tie(own.urgency, own.due) < std::tie(best.urgency, best.due)) chosen = &cell->second;
    }
  }
  return Taken{chosen->type, chosen->host, name, chosen->tasks.Size()};
}

std::vector<AttemptPtr> LaneQueue::Take(Taken& drawn, std::size_t most, const Aging& aging) {
  const auto cell = cells_.find({drawn.queue, drawn.host.get(), drawn.type});
  drawn.count = std::min(most, cell->second.tasks.Size());
  std::vector<AttemptPtr> attempts;
  attempts.reserve(drawn.count);
  while (attempts.size() < drawn.count) attempts.push_back(cell->second.tasks.Take(aging));
  Uncount(*cell, attempts);
  ++drawn.type->threads;
  ++parts_.at({drawn.type, drawn.host.get()}).threads;
  Queue& queue = queues_.at(drawn.queue);
  queue.streak = queue.threads == 0 ? 1 : queue.streak + 1;
  ++queue.threads;
  turn_ = queue.turn;
  queue.turn += 1.0 / std::max<std::uint32_t>(drawn.type->weight, 1);
  if (cell->second.tasks.Size() == 0) cells_.erase(cell);
  return attempts;
}

void LaneQueue::Uncount(const Cells::value_type& cell, const std::vector<AttemptPtr>& attempts) {
  size_ -= attempts.size();
  queues_.at(cell.first.queue).waiting -= attempts.size();
  Part& part = parts_.at({cell.second.type, cell.first.host});
  part.waiting -= attempts.size();
  for (const AttemptPtr& attempt : attempts) part.bytes -= MemoryBudget::Of(*attempt);
}

void LaneQueue::Leave(const Taken& taken) {
  --taken.type->threads;
  const PartKey key{taken.type, taken.host.get()};
  --parts_.at(key).threads;
  if (const auto queue = queues_.find(taken.queue); queue != queues_.end()) --queue->second.threads;
  Forget(key, taken.queue);
}

void LaneQueue::Forget(const PartKey& key, const std::string& name) {
  const auto part = parts_.find(key);
  if (part->second.threads == 0 && part->second.waiting == 0) parts_.erase(part);
  const auto queue = queues_.find(name);
  if (queue != queues_.end() && queue->second.threads == 0 && queue->second.waiting == 0)
    queues_.erase(queue);
}

std::vector<AttemptPtr> LaneQueue::TakeIf(const Unwanted& unwanted) {
  std::vector<AttemptPtr> taken;
  std::map<const LaneType*, std::size_t> ahead;
  for (auto cell = cells_.begin(); cell != cells_.end();) {
    LaneType& type = *cell->second.type;
    const PartKey key{&type, cell->first.host};
    const std::string name = cell->first.queue;
    const auto of_cell = cell->second.tasks.TakeIf([&](const Attempt& attempt) {
      const bool out = unwanted(attempt, type, ahead[&type]);
      if (!out) ++ahead[&type];
      return out;
    });
    Uncount(*cell, of_cell);
    taken.insert(taken.end(), of_cell.begin(), of_cell.end());
    cell = cell->second.tasks.Size() == 0 ? cells_.erase(cell) : std::next(cell);
    Forget(key, name);
  }
  return taken;
}

std::vector<QueueStatus> LaneQueue::Loads() const {
  std::vector<QueueStatus> loads;
  for (const auto& [name, queue] : queues_) loads.push_back({name, queue.waiting, queue.threads});
  return loads;
}

}  // namespace millrace::engine

#include "framework/mill/admission.h"

#include <limits>

namespace millrace::engine {

bool TypeGate::Open(BootTime now, WallTime wall) const {
  return std::all_of(policies_.begin(), policies_.end(),
                     [&](const auto& policy) { return policy->Open(now, wall); });
}

std::size_t TypeGate::ClaimRoom(BootTime now) const {
  std::size_t room = std::numeric_limits<std::size_t>::max();
  const std::size_t waiting = waiting_.load(std::memory_order_relaxed);
  for (const auto& policy : policies_) room = std::min(room, policy->ClaimRoom(now, waiting));
  return room;
}

std::size_t TypeGate::TakeStarts(std::size_t most, BootTime now) {
  std::vector<std::size_t> taken;
  for (const auto& policy : policies_) {
    taken.push_back(most == 0 ? 0 : policy->Take(most, now));
    most = taken.back();
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] > most) policies_[i]->GiveBack(taken[i] - most);
  }
  return most;
}

void TypeGate::GiveBackStarts(std::size_t starts) {
  for (const auto& policy : policies_) policy->GiveBack(starts);
}

BootTime TypeGate::Next(BootTime now) const {
  BootTime next = now;
  for (const auto& policy : policies_) next = std::max(next, policy->Next(now));
  return next;
}

std::string TypeGate::HeldBy(BootTime now, WallTime wall) const {
  const std::size_t waiting = waiting_.load(std::memory_order_relaxed);
  for (const auto& policy : policies_) {
    if (!policy->Open(now, wall) || policy->ClaimRoom(now, waiting) == 0) return policy->Name();
  }
  return "";
}

void TypeGate::Ended(const StartEnd& end, BootTime now) {
  for (const auto& policy : policies_) policy->Ended(end, now);
}

void Admission::Follow(std::shared_ptr<const Config> /*config*/) {}

std::shared_ptr<TypeGate> Admission::Of(const std::string& type) const {
  MutexLock lock(mutex_);
  const auto gate = gates_.find(type);
  return gate == gates_.end() ? nullptr : gate->second;
}

bool Admission::Open(const std::string& type) const {
  const auto gate = Of(type);
  return !gate || gate->Open(clock_.Now(), clock_.WallNow());
}

std::size_t Admission::Room(const std::string& type) const {
  const auto gate = Of(type);
  return gate ? gate->ClaimRoom(clock_.Now()) : std::numeric_limits<std::size_t>::max();
}

BootTime Admission::Next(const std::string& type) const {
  const auto gate = Of(type);
  return gate ? gate->Next(clock_.Now()) : clock_.Now();
}

bool Admission::TakeClosed() {
  const BootTime now = clock_.Now();
  const WallTime wall = clock_.WallNow();
  MutexLock lock(mutex_);
  bool closed = false;
  for (const auto& [type, gate] : gates_) {
    const bool open = gate->Open(now, wall);
    const bool was_open = std::exchange(open_.try_emplace(type, true).first->second, open);
    closed = closed || (was_open && !open);
  }
  return closed;
}

}  // namespace millrace::engine

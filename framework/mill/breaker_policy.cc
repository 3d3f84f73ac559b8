#include "framework/mill/breaker_policy.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

BreakerRules RulesOf(const BreakerConfig& config) {
  return {config.failures, config.window, config.minimum, config.probe_every, config.probes, config.classes};
}

// A hold with an error class is a failure too: an exception, or an overrun, of a type that holds what it
// throws at (`on_exception`). One without is the handler's own word, and none of its partner.
bool Failed(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::Hold && outcome.error_class.empty()) return false;
  return RuleOf(outcome.kind).failed_attempt;
}

}  // namespace

void BreakerPolicy::SetRules(BreakerRules rules) {
  MutexLock lock(mutex_);
  if (rules != breaker_.rules()) breaker_.SetRules(std::move(rules));
}

// Open in the words of a gate: tasks may be let through. While there is a probe to take some may.
bool BreakerPolicy::Open(BootTime now, WallTime) {
  if (!held_.load(std::memory_order_relaxed)) return true;
  MutexLock lock(mutex_);
  return breaker_.Room(now) > 0;
}

std::size_t BreakerPolicy::ClaimRoom(BootTime now, std::size_t waiting) {
  if (!held_.load(std::memory_order_relaxed)) return Breaker::kAnyNumber;
  MutexLock lock(mutex_);
  breaker_.NoteWork(now);
  const std::size_t room = breaker_.Room(now);
  return room - std::min(room, waiting);
}

std::size_t BreakerPolicy::Take(std::size_t most, BootTime now) {
  if (!held_.load(std::memory_order_relaxed)) return most;
  MutexLock lock(mutex_);
  return std::min(most, breaker_.Room(now));
}

BootTime BreakerPolicy::Next(BootTime now) {
  MutexLock lock(mutex_);
  return breaker_.Next(now);
}

bool BreakerPolicy::Begin(BreakerPass& pass, BootTime now) {
  if (pass.Given()) return true;
  MutexLock lock(mutex_);
  const std::optional<BreakerMark> mark = breaker_.Begin(now);
  if (mark) pass.Give(*mark);
  return mark.has_value();
}

std::optional<Outcome> BreakerPolicy::Judge(BreakerPass& pass, const Task& task, const Outcome& outcome,
                                            BootTime now, Micros took) {
  if (!pass.Given()) return std::nullopt;
  MutexLock lock(mutex_);
  CallSays says = CallSays::Nothing;
  if (Failed(outcome)) {
    says = breaker_.WhatItSays(true, outcome.error_class);
  } else if (outcome.kind == OutcomeKind::Done || outcome.kind == OutcomeKind::Skip) {
    says = CallSays::Answered;
  } else if (outcome.kind != OutcomeKind::GiveBack) {
    says = CallSays::Undecided;
  }
  const bool excused = says == CallSays::Failed && !breaker_.Charges(pass.Mark(), task.failures > 0, now);
  if (pass.TellEnd()) {
    if (excused) breaker_.NoteUncharged();
    breaker_.Ended(pass.Mark(), says, now, took);
    Tell(now);
  }
  if (!excused) return std::nullopt;
  Outcome given_back;
  given_back.kind = OutcomeKind::GiveBack;
  given_back.text = "not charged, since calls of " + type_ + " fail: " + outcome.text;
  given_back.delay = breaker_.DelayOfUncharged(pass.Mark());
  return given_back;
}

void BreakerPolicy::Gone(BreakerPass& pass, BootTime now) {
  if (!pass.Given() || !pass.TellEnd()) return;
  MutexLock lock(mutex_);
  breaker_.Ended(pass.Mark(), CallSays::Nothing, now);
}

void BreakerPolicy::SetHand(BreakerHand hand, BootTime now) {
  MutexLock lock(mutex_);
  breaker_.SetHand(hand, now);
  Tell(now);
}

void BreakerPolicy::Follow(bool known, const BreakerWord* word, BootTime now) {
  MutexLock lock(mutex_);
  if (known) {
    breaker_.Follow(word, now);
  } else {
    breaker_.FollowNobody();
  }
  Tell(now);
}

BreakerAsk BreakerPolicy::Wish(BootTime now) const {
  MutexLock lock(mutex_);
  return breaker_.Wish(now);
}

BreakerView BreakerPolicy::View(BootTime now) const {
  MutexLock lock(mutex_);
  return breaker_.View(now);
}

void BreakerPolicy::Tell(BootTime now) {
  const BreakerView view = breaker_.View(now);
  held_.store(view.open, std::memory_order_relaxed);
  if (view.open == told_) return;
  told_ = view.open;
  if (view.open) {
    LogWarning("breaker open: nothing of this type starts but probes, and its tasks wait",
               {{"handler", type_}, {"why", view.why}});
  } else {
    LogInfo("breaker closed", {{"handler", type_}});
  }
}

BreakersByType BreakersOf(const Config& config, const BreakersByType& known) {
  BreakersByType breakers;
  for (const auto& [type, handler] : config.handlers) {
    if (!handler.breaker) continue;
    const auto before = known.find(type);
    if (before == known.end()) {
      breakers[type] = std::make_shared<BreakerPolicy>(type, RulesOf(*handler.breaker));
    } else {
      before->second->SetRules(RulesOf(*handler.breaker));
      breakers[type] = before->second;
    }
  }
  return breakers;
}

std::set<std::string> TypesWithBreakers(const Config& config) {
  std::set<std::string> types;
  for (const auto& [type, handler] : config.handlers) {
    if (handler.breaker) types.insert(type);
  }
  return types;
}

}  // namespace millrace::engine

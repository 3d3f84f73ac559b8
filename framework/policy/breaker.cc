#include "framework/policy/breaker.h"

#include <algorithm>
#include <numeric>

#include "framework/base/time_text.h"
#include "framework/task/error_class.h"

namespace millrace::engine {
namespace {

// A worker that has not looked for work for so long has none to try.
constexpr Micros kWorkIsFresh = std::chrono::seconds(1);
constexpr Micros kAskAgain = std::chrono::milliseconds(100);

}  // namespace

CallSays Breaker::WhatItSays(bool failed, std::string_view error_class) const {
  if (!failed) return CallSays::Answered;
  if (error_class == kBadParamsClass) return CallSays::Undecided;
  const bool counts =
      std::any_of(rules_.classes.begin(), rules_.classes.end(),
                  [&](const std::string& pattern) { return FitsClass(pattern, error_class); });
  return counts ? CallSays::Failed : CallSays::Answered;
}

std::size_t Breaker::Room(BootTime now) const {
  if (!open_) return kAnyNumber;
  if (hand_ == BreakerHand::Open) return 0;
  if (left_ > 0) return left_;
  return ByItself() && out_ == 0 && now >= next_ ? rules_.probes : 0;
}

std::optional<BreakerMark> Breaker::Begin(BootTime now) {
  if (!open_) return BreakerMark{era_, false};
  if (Room(now) == 0) return std::nullopt;
  if (left_ == 0) {  // the turn begins
    left_ = rules_.probes;
    next_ = now + rules_.probe_every;
  }
  --left_;
  ++out_;
  return BreakerMark{era_, true};
}

// Whoever waits asks again and again: another worker's probe may close it at any time.
BootTime Breaker::Next(BootTime now) const {
  if (Room(now) > 0) return now;
  return next_ > now ? std::min(next_, now + kAskAgain) : now + kAskAgain;
}

void Breaker::Ended(BreakerMark mark, CallSays says, BootTime now, Micros took) {
  if (mark.era != era_) return;  // it began before the last opening
  if (mark.probe) {
    ProbeEnded(says);
    return;
  }
  if (open_ || says == CallSays::Nothing || says == CallSays::Undecided) return;
  Count({now, says == CallSays::Failed, took});
  if (says != CallSays::Failed || hand_ == BreakerHand::Close) return;
  Slot judged = InWindow(now);
  Micros within = rules_.window;
  if (judged.calls < rules_.minimum) {
    if (last_.size() < MostLast()) return;
    judged = OfLast(now);
    const Micros span = now - last_.front().at + last_.front().took;
    within = std::max<Micros>(within, std::chrono::ceil<std::chrono::seconds>(span));
  }
  if (!TooMany(judged)) return;
  OpenNow(std::to_string(judged.failed) + " of " + std::to_string(judged.calls) + " calls failed within " +
              FormatDuration(within),
          now);
}

void Breaker::ProbeEnded(CallSays says) {
  out_ -= std::min<std::size_t>(out_, 1);
  if (!open_ || hand_ == BreakerHand::Open) return;
  if (says == CallSays::Nothing) {
    ++left_;  // another is tried in its place
  } else if (says == CallSays::Failed) {
    answered_ = 0;
  } else if (says == CallSays::Answered && ++answered_ >= rules_.probes) {
    ended_ = opening_;
    Close();
  }
}

void Breaker::Count(const Call& call) {
  const Micros each = std::max(rules_.window / static_cast<Micros::rep>(kSlots), Micros(1));
  const std::int64_t number = call.at.time_since_epoch() / each;
  Slot& slot = slots_[static_cast<std::size_t>(number) % kSlots];
  if (slot.number != number) slot = {number};
  ++slot.calls;
  if (call.failed) ++slot.failed;
  last_.push_back(call);
  while (last_.size() > MostLast()) last_.pop_front();
}

Micros Breaker::TookOfLast() const {
  return std::accumulate(last_.begin(), last_.end(), Micros(0),
                         [](Micros sum, const Call& call) { return sum + call.took; });
}

Breaker::Slot Breaker::OfLast(BootTime now) const {
  if (last_.size() < MostLast()) return {};
  const Micros wide = std::min(std::max(kWindows * rules_.window, TookOfLast()), kLongestWindow);
  const Micros within = std::max(rules_.window, wide);
  if (now - last_.front().at > within) return {};
  const auto failed = std::count_if(last_.begin(), last_.end(), [](const Call& call) { return call.failed; });
  return {0, last_.size(), static_cast<std::uint64_t>(failed)};
}

Breaker::Slot Breaker::InWindow(BootTime now) const {
  const Micros each = std::max(rules_.window / static_cast<Micros::rep>(kSlots), Micros(1));
  const std::int64_t number = now.time_since_epoch() / each;
  Slot all{number};
  for (const Slot& slot : slots_) {
    if (slot.number <= number - static_cast<std::int64_t>(kSlots) || slot.number > number) continue;
    all.calls += slot.calls;
    all.failed += slot.failed;
  }
  return all;
}

void Breaker::OpenNow(std::string why, BootTime now) {
  open_ = true;
  ++era_;
  why_ = std::move(why);
  next_ = now + rules_.probe_every;
  left_ = out_ = 0;
  answered_ = 0;
  opening_ = turn_ = 0;
}

// Calls that are under way began before it closed: they count no more.
void Breaker::Close() {
  open_ = false;
  ++era_;
  slots_ = {};
  last_.clear();
  left_ = out_ = 0;
  opening_ = turn_ = 0;
}

void Breaker::SetHand(BreakerHand hand, BootTime now) {
  if (hand == hand_) return;
  const bool was_open = hand_ == BreakerHand::Open;
  hand_ = hand;
  if (hand == BreakerHand::Open) {
    if (!open_) OpenNow("", now);
    left_ = 0;
    why_ = "opened by hand";
  } else if (hand == BreakerHand::Close) {
    ended_ = opening_;
    if (open_) Close();
  } else if (was_open) {
    next_ = now;  // nobody knows how the partner is: a probe tells
    why_ = "was opened by hand; a probe has not succeeded yet";
  }
}

void Breaker::Follow(const BreakerWord* word, BootTime now) {
  alone_ = false;
  if (word == nullptr) {
    ended_ = 0;
    if (open_ && opening_ != 0 && hand_ != BreakerHand::Open) Close();
    return;
  }
  if (word->opening != ended_) ended_ = 0;
  if (hand_ != BreakerHand::Auto || word->opening == ended_) return;
  if (!open_) OpenNow(word->why, now);
  if (opening_ == word->opening && turn_ == word->turn) return;
  // A turn that this worker took is known to be its own only where it was asked for here.
  const bool mine = word->mine && opening_ == word->opening && out_ == 0;
  if (opening_ != word->opening) why_ = word->why;
  opening_ = word->opening;
  turn_ = word->turn;
  next_ = now + rules_.probe_every;
  left_ = mine ? rules_.probes : 0;
}

BreakerAsk Breaker::Wish(BootTime now) const {
  if (alone_) return {};
  if (ended_ != 0) return {BreakerWish::Close, ended_, 0, {}};
  if (!open_ || hand_ != BreakerHand::Auto) return {};
  if (opening_ == 0) return {BreakerWish::Open, 0, 0, why_};
  const bool idle = left_ == 0 && out_ == 0;
  const bool has_work = work_at_ != BootTime::min() && now - work_at_ <= kWorkIsFresh;
  if (!idle || !has_work || now < next_) return {};
  return {BreakerWish::Probe, opening_, turn_, {}};
}

BreakerView Breaker::View(BootTime now) const {
  BreakerView view;
  view.open = open_;
  view.hand = hand_;
  view.uncharged = uncharged_;
  const Slot all = InWindow(now);
  view.calls = all.calls;
  view.failed = all.failed;
  if (!view.open) return view;
  view.why = why_;
  if (hand_ != BreakerHand::Open) view.next_probe = std::max(next_ - now, Micros(0));
  return view;
}

}  // namespace millrace::engine

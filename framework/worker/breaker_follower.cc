#include "framework/worker/breaker_follower.h"

#include "framework/mill/breaker_policy.h"
#include "framework/policy/pauses.h"

namespace millrace::engine {

void BreakerFollower::Follow(const std::map<std::string, std::shared_ptr<BreakerPolicy>>& breakers,
                             const std::vector<std::string>& pauses) {
  const BootTime now = clock_.Now();
  const auto words = control_.Breakers();
  const std::map<std::string, BreakerHand> hands = BreakerHandsOf(pauses);
  BreakerAsks asks;
  for (const auto& [type, breaker] : breakers) {
    const auto hand = hands.find(type);
    breaker->SetHand(hand == hands.end() ? BreakerHand::Auto : hand->second, now);
    const BreakerWord* word = nullptr;
    if (words) {
      const auto found = words->find(type);
      if (found != words->end()) word = &found->second;
    }
    breaker->Follow(words != nullptr, word, now);
    asks[type] = breaker->Wish(now);
  }
  control_.AskOfBreakers(asks);
  asked_ = !breakers.empty();
}

std::vector<BreakerStatus> BreakersIn(const Admission& admission, BootTime now) {
  std::vector<BreakerStatus> all;
  for (const auto& [type, breaker] : admission.Breakers()) {
    const BreakerView view = breaker->View(now);
    BreakerStatus& one = all.emplace_back(BreakerStatus{type, view.open, view.hand != BreakerHand::Auto});
    one.why = view.why;
    one.next_probe = view.next_probe;
    one.calls = view.calls;
    one.failed = view.failed;
    one.uncharged = view.uncharged;
  }
  return all;
}

}  // namespace millrace::engine

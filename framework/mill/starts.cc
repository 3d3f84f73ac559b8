#include "framework/mill/starts.h"

#include <algorithm>
#include <iterator>

namespace millrace::engine {
namespace {

bool NeedsStart(const Attempt& attempt) {
  return attempt.gate != nullptr && !attempt.has_start.load(std::memory_order_relaxed);
}

}  // namespace

std::vector<AttemptPtr> TakeStarts(std::vector<AttemptPtr>& attempts, BootTime now) {
  for (auto first = attempts.begin(); first != attempts.end();) {
    if (!NeedsStart(**first)) {
      ++first;
      continue;
    }
    TypeGate& gate = *(*first)->gate;
    const auto end = std::find_if(first, attempts.end(), [&](const AttemptPtr& attempt) {
      return attempt->gate.get() != &gate || !NeedsStart(*attempt);
    });
    const auto wanted = static_cast<std::size_t>(end - first);
    const std::size_t starts = gate.TakeStarts(wanted, now);
    gate.Started(starts);
    for (std::size_t i = 0; i < starts; ++i, ++first) {
      (*first)->has_start.store(true, std::memory_order_relaxed);
      if ((*first)->home) gate.HasPermit(false);
    }
    if (starts == wanted) continue;
    std::vector<AttemptPtr> without(std::make_move_iterator(first), std::make_move_iterator(attempts.end()));
    attempts.erase(first, attempts.end());
    return without;
  }
  return {};
}

void ReturnStart(Attempt& attempt) {
  if (!attempt.gate || !attempt.has_start.exchange(false, std::memory_order_relaxed)) return;
  attempt.gate->Claimed(1);
  if (attempt.home) attempt.gate->HasPermit(true);
  attempt.gate->GiveBackStarts(1);
}

}  // namespace millrace::engine

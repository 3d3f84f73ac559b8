#include "framework/store/overview.h"

#include <algorithm>

namespace millrace::engine {

std::map<std::string, HandlerOverview> ByHandler(const WaitingOverview& waiting) {
  std::map<std::string, HandlerOverview> all;
  for (const HandlerOverview& one : waiting.handlers) {
    const auto [at, is_new] = all.try_emplace(one.handler, one);
    if (is_new) continue;
    HandlerOverview& sum = at->second;
    sum.waiting += one.waiting;
    sum.running += one.running;
    sum.held += one.held;
    if (one.oldest_due && (!sum.oldest_due || *one.oldest_due < *sum.oldest_due)) {
      sum.oldest_due = one.oldest_due;
      sum.table = one.table;
    }
    if (one.next_due && (!sum.next_due || *one.next_due < *sum.next_due)) sum.next_due = one.next_due;
  }
  for (auto& [handler, sum] : all) {
    if (sum.oldest_due) sum.next_due.reset();
  }
  return all;
}

void BeatWatch::Look(BootTime now, std::span<const PeerBeat> peers) {
  std::map<std::string, Sign> seen;
  for (const PeerBeat& peer : peers) {
    const auto known = signs_.find(peer.incarnation.id);
    Sign sign{.beat = peer.beat, .since = now};
    if (known != signs_.end()) {
      sign = known->second;
      if (sign.beat != peer.beat) sign = {.beat = peer.beat, .since = now, .moved = true};
    }
    seen.emplace(peer.incarnation.id, sign);
  }
  signs_ = std::move(seen);
}

bool BeatWatch::AllMoved() const {
  return std::all_of(signs_.begin(), signs_.end(), [](const auto& entry) { return entry.second.moved; });
}

}  // namespace millrace::engine

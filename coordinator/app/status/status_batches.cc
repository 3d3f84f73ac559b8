// Which batches `status` shows.
#include <algorithm>

#include "coordinator/app/status/status_report.h"
#include "framework/store/batch_store.h"

namespace millrace::engine {

void ChooseBatches(const std::vector<BatchGlance>& of_shards, StatusFacts& facts) {
  constexpr std::size_t kEnded = 5;
  std::map<std::string, BatchGlance::Seen> by_name;
  Counted all;
  for (const BatchGlance& glance : of_shards) {
    all += {glance.all, glance.more};
    for (const BatchGlance::Seen& one : glance.batches) {
      const auto [at, is_new] = by_name.try_emplace(one.name, one);
      if (is_new) continue;
      if (!at->second.state) at->second = one;
      --all.count;
    }
  }
  std::vector<BatchGlance::Seen> unended;
  std::vector<BatchGlance::Seen> ended;
  std::vector<BatchGlance::Seen> plain;
  for (const auto& [name, one] : by_name)
    (!one.state ? plain : *one.state == BatchState::Ended ? ended : unended).push_back(one);
  for (auto* some : {&unended, &ended}) {
    std::stable_sort(some->begin(), some->end(),
                     [](const auto& a, const auto& b) { return a.created_at > b.created_at; });
  }
  ended.resize(std::min(ended.size(), kEnded));
  facts.batches.clear();
  for (const auto* some : {&unended, &ended, &plain}) {
    const std::size_t room = std::min(some->size(), kShownBatches - facts.batches.size());
    facts.batches.insert(facts.batches.end(), some->begin(),
                         some->begin() + static_cast<std::ptrdiff_t>(room));
  }
  facts.other_batches = {all.count - facts.batches.size(), all.more};
}

}  // namespace millrace::engine

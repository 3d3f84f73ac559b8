// Which batches `status` shows.
#include <algorithm>
#include <set>

#include "coordinator/app/status/status_report.h"
#include "framework/store/batch_store.h"

namespace millrace::engine {

void ChooseBatches(const std::vector<BatchGlance>& of_shards, StatusFacts& facts) {
  constexpr std::size_t kEnded = 5;
  std::map<std::string, BatchGlance::Seen> by_name;
  Counted all;
  std::uint64_t repeated = 0;  // of these, those that another shard has counted, too
  for (const BatchGlance& glance : of_shards) {
    all += {glance.all, glance.more};
    std::set<std::string> here;  // a glance counts a name once, however often it has it
    for (const BatchGlance::Seen& one : glance.batches) {
      const auto [at, is_new] = by_name.try_emplace(one.name, one);
      const bool counted = here.insert(one.name).second;
      if (is_new) continue;
      if (!at->second.state) at->second = one;
      if (counted) ++repeated;
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
  // The statements of a glance do not see one state: a batch may be shown and not counted yet.
  const std::uint64_t told = repeated + facts.batches.size();
  facts.other_batches = {all.count - std::min(all.count, told), all.more};
}

std::vector<std::string> PlainSomewhere(const std::vector<BatchGlance>& of_shards) {
  std::set<std::string> names;
  for (const BatchGlance& glance : of_shards) {
    for (const BatchGlance::Seen& one : glance.batches) {
      if (!one.state) names.insert(one.name);
    }
  }
  return {names.begin(), names.end()};
}

bool HasRowOf(const BatchGlance& glance, const std::string& name) {
  return std::any_of(glance.batches.begin(), glance.batches.end(),
                     [&](const BatchGlance::Seen& one) { return one.state && one.name == name; });
}

}  // namespace millrace::engine

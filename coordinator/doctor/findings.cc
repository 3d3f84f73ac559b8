#include "coordinator/doctor/findings.h"

#include <algorithm>

namespace millrace::engine::doctor {

const char* ToString(Severity severity) {
  switch (severity) {
    case Severity::Note:
      return "note";
    case Severity::Warning:
      return "warning";
    case Severity::Error:
      return "error";
  }
  return "";
}

std::vector<Finding> Judge(const Examination& facts, const Bounds& bounds) {
  std::vector<Finding> findings;
  if (!facts.shards_unknown.empty()) {
    findings.push_back({Severity::Error, "store.unnamed", "the stores", facts.shards_unknown,
                        "name one with --store, or the cluster's with millrace config set shards"});
  }
  for (const ShardFacts& shard : facts.shards) JudgeShard(shard, bounds, findings);
  if (facts.tree) JudgeTree(*facts.tree, bounds, findings);
  JudgeHost(facts.host, bounds, findings);
  JudgeSchedules(facts, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace millrace::engine::doctor

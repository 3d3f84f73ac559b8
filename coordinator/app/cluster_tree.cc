#include "coordinator/app/cluster_tree.h"

#include "framework/base/suggest.h"

namespace millrace::engine {

Status CheckWorkers(const ClusterTree& tree, const std::vector<std::string>& ids) {
  std::vector<std::string> known;
  for (const auto& [id, document] : tree.workers) known.push_back(id);
  for (const std::string& id : ids) {
    if (tree.workers.contains(id) || tree.assigned.contains(id)) continue;
    return Fail(ErrorCode::NotFound,
                "there is no worker '" + id + "'" + DidYouMean(id, known) + "; see millrace cluster status");
  }
  return {};
}

}  // namespace millrace::engine

// millrace cluster protect: a cluster that was made without a digest is closed.
#include <nlohmann/json.hpp>

#include "coordinator/app/commands.h"
#include "coordinator/app/paths.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"
#include "coordinator/coordination/zookeeper/zookeeper.h"

namespace millrace::engine {

Result<ExitCode> RunClusterProtect(const ClusterControlOptions& options) {
  BOOST_OUTCOME_TRY(settings, ResolveCluster(options.common, Variable));
  const ClusterAddress& cluster = *settings.cluster;
  BOOST_OUTCOME_TRY(
      done, ProtectZookeeper({cluster.servers, cluster.name, std::chrono::seconds(10), cluster.auth_file},
                             std::chrono::seconds(20)));
  if (options.common.json) {
    PrintLine(
        JsonText({{"nodes", done.nodes}, {"closed", done.closed}, {"without_digest", done.without_digest}}));
    return ExitCode::Done;
  }
  PrintLine(done.closed == 0 ? "all of its " + Count(done.nodes, "node", "nodes") + " were closed already"
                             : Count(done.closed, "node is", "nodes are") + " now for the digest in " +
                                   cluster.auth_file + " alone, as are all " + std::to_string(done.nodes));
  for (const std::string& id : done.without_digest) {
    PrintNote("worker " + id +
              " runs without the digest: it goes on with the plan it has, and hears of nothing new; start it "
              "again with --zk-auth-file");
  }
  return ExitCode::Done;
}

}  // namespace millrace::engine

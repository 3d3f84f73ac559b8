#include <algorithm>

#include "coordinator/doctor/findings.h"
#include "framework/base/time_text.h"

namespace millrace::engine::doctor {
namespace {

using Findings = std::vector<Finding>;
constexpr const char* kTheTree = "ZooKeeper";

void JudgeServers(const TreeFacts& tree, Findings& findings) {
  std::size_t answering = 0;
  std::size_t leaders = 0;
  bool modes_known = true;
  for (const ServerFacts& server : tree.servers) {
    answering += server.answers ? 1 : 0;
    leaders += server.mode == "leader" || server.mode == "standalone" ? 1 : 0;
    if (!server.answers) {
      findings.push_back({Severity::Warning, "zookeeper.server", kTheTree,
                          "the server " + server.address + " does not answer: " + server.trouble,
                          "start it, or take it out of --zk: of " + std::to_string(tree.servers.size()) +
                              " servers more than half are needed"});
    } else if (server.mode.empty()) {
      modes_known = false;
      findings.push_back({Severity::Note, "zookeeper.unknown", kTheTree,
                          "not looked at: the mode of the server " + server.address,
                          server.trouble + "; 4lw.commands.whitelist=srvr in its file lets it be asked"});
    }
  }
  if (modes_known && answering > 0 && leaders != 1 && tree.servers.size() == answering) {
    findings.push_back({Severity::Warning, "zookeeper.quorum", kTheTree,
                        leaders == 0
                            ? "no server of --zk leads: there is no quorum, or its leader is not named"
                            : std::to_string(leaders) + " servers of --zk each say that they lead: they "
                                                        "are not one ensemble",
                        "name all servers of one ensemble in --zk"});
  }
  if (tree.servers.size() == 1) {
    findings.push_back(
        {Severity::Note, "zookeeper.single", kTheTree,
         "one server: while it is away workers go on with their last plan, and nobody's slices move",
         "an ensemble of three survives the loss of one"});
  } else if (!tree.servers.empty() && tree.servers.size() % 2 == 0) {
    findings.push_back({Severity::Note, "zookeeper.even", kTheTree,
                        std::to_string(tree.servers.size()) + " servers survive no more losses than " +
                            std::to_string(tree.servers.size() - 1) + " would",
                        "run an odd number of them"});
  }
}

void JudgeAccess(const TreeFacts& tree, Findings& findings) {
  if (!tree.digest) {
    findings.push_back({Severity::Note, "zookeeper.no_digest", kTheTree,
                        "no digest is used: whoever reaches ZooKeeper may change plan and configuration",
                        "millrace cluster protect --zk-auth-file FILE closes the cluster's nodes to others"});
    return;
  }
  if (tree.open.empty()) return;
  findings.push_back(
      {Severity::Error, "zookeeper.open", kTheTree,
       std::to_string(tree.open.size()) +
           " nodes of the cluster are open to everybody although a digest is used, such as " +
           tree.open.front() + "; so the cluster's configuration, shards and troubles were not looked at",
       "millrace cluster protect --cluster " + tree.cluster + " --zk-auth-file FILE closes them"});
}

void JudgeNodes(const TreeFacts& tree, const Bounds& bounds, Findings& findings) {
  for (const NodeFacts& node : tree.large) {
    if (node.bytes < bounds.node_bytes) continue;
    findings.push_back({Severity::Warning, "zookeeper.large_node", kTheTree,
                        "the node " + node.path + " has " + std::to_string(node.bytes / 1024) +
                            " KB; from 1 MB on no client can read it any more",
                        "Millrace writes none above 100 KB: see who made it, and remove it with zkCli"});
  }
  if (tree.more) {
    findings.push_back({Severity::Note, "zookeeper.unknown", kTheTree,
                        "not looked at: the later nodes of this tree",
                        "it has very many; a sample was read"});
  }
  for (const ClusterFacts& cluster : tree.clusters) {
    if (cluster.nodes > bounds.cluster_nodes) {
      findings.push_back({Severity::Warning, "zookeeper.many_nodes", kTheTree,
                          "the cluster " + cluster.name + " has " + std::to_string(cluster.nodes) + " nodes",
                          "Millrace needs some 60 and four a worker: see who makes the others"});
    }
    if (cluster.name == tree.cluster || cluster.workers > 0) continue;
    if (tree.now - cluster.last_write < bounds.leftover) continue;
    findings.push_back({Severity::Warning, "zookeeper.leftover", kTheTree,
                        "the cluster " + cluster.name +
                            " has no worker, and nothing in it was written since " +
                            FormatTime(std::chrono::floor<std::chrono::seconds>(cluster.last_write)),
                        "if nobody needs it any more: deleteall …/millrace/" + cluster.name + " with zkCli"});
  }
  for (const ClusterFacts& cluster : tree.clusters) {
    if (cluster.last_write <= tree.now + bounds.clock_offset) continue;
    findings.push_back({Severity::Warning, "zookeeper.clock", kTheTree,
                        "a node of the cluster " + cluster.name + " was written at " +
                            FormatTime(std::chrono::floor<std::chrono::seconds>(cluster.last_write)) +
                            ", which lies in the future of this host",
                        "let ZooKeeper's hosts and this one follow one time server"});
    break;
  }
}

}  // namespace

void JudgeTree(const TreeFacts& tree, const Bounds& bounds, Findings& findings) {
  JudgeServers(tree, findings);
  if (tree.away) {
    const bool away = tree.away->code == ErrorCode::Unavailable;
    findings.push_back({Severity::Error, away ? "zookeeper.away" : "zookeeper.refused", kTheTree,
                        tree.away->message,
                        away ? "see that more than half of its servers run, and that this host reaches them"
                             : "see what the message says"});
    return;
  }
  JudgeAccess(tree, findings);
  JudgeNodes(tree, bounds, findings);
  const std::string where = "cluster " + tree.cluster;
  for (const std::string& trouble : tree.troubles) {
    findings.push_back(
        {Severity::Warning, "cluster.trouble", where, trouble, "millrace cluster status has more"});
  }
  for (const std::string& pause : tree.pauses) {
    findings.push_back(
        {Severity::Note, "cluster.paused", where, pause, "millrace cluster resume, when it may go on"});
  }
  for (const auto& [shard, types] : tree.unrunnable) {
    std::string names;
    for (const std::string& type : types) names += (names.empty() ? "" : ", ") + type;
    findings.push_back({Severity::Warning, "cluster.no_handler", where,
                        "tasks of shard " + shard + " wait for a handler that no live worker has: " + names,
                        "start a worker with that plugin, or see whether its --handlers leaves it out"});
  }
}

}  // namespace millrace::engine::doctor

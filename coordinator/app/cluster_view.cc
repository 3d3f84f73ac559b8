#include "coordinator/app/cluster_view.h"

#include "coordinator/app/terminal.h"
#include "coordinator/leader/plan_writer.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

// Every child of a folder that is still there, by name.
Result<std::map<std::string, std::string>> ReadFolder(ClusterClient& client, const std::string& folder) {
  BOOST_OUTCOME_TRY(names, client.List(folder));
  std::map<std::string, std::string> texts;
  for (const std::string& name : names) {
    BOOST_OUTCOME_TRY(node, client.Get(folder + "/" + name));
    if (node) texts[name] = node->data;
  }
  return texts;
}

StoredPage Page(const std::string& name, AssignDocument document) {
  return {name, std::make_shared<const AssignDocument>(std::move(document))};
}

// The first page is `text`.
Result<AssignDocument> ReadAssignment(ClusterClient& client, const std::string& id, const std::string& text) {
  BOOST_OUTCOME_TRY(further, ReadFolder(client, "/assign/" + id));
  std::vector<std::string> names;
  for (const auto& [name, page] : further) names.push_back(name);
  std::vector<StoredPage> pages;
  for (const std::string& name : PagesOf(std::move(names)))
    pages.push_back(Page(name, ReadAssign(further.at(name)).value_or(AssignDocument{})));
  BOOST_OUTCOME_TRY(first, ReadAssign(text));
  pages.push_back(Page("", std::move(first)));
  return *Together(pages);
}

// Keeps what was read, or a word of why it can't be.
template <class Document>
bool Take(const std::string& node, Result<Document> document, Document& into, ClusterTree& tree) {
  if (document) {
    into = std::move(*document);
    return true;
  }
  tree.unreadable.push_back(node + ": " + document.error().message);
  return false;
}

Status ReadControls(ClusterClient& client, ClusterTree& tree) {
  BOOST_OUTCOME_TRY(left, ReadFolder(client, "/leave"));
  for (const auto& [incarnation, id] : left) tree.left.insert(id);
  BOOST_OUTCOME_TRY(draining, client.List("/control/drain"));
  tree.draining.insert(draining.begin(), draining.end());
  BOOST_OUTCOME_TRY(expected, ReadFolder(client, "/control/expect"));
  for (const auto& [id, text] : expected) {
    tree.expected.insert(id);
    ExpectDocument document;
    Take("control/expect/" + id + " (taken for 60 s)", ReadExpect(text), document, tree);
  }
  BOOST_OUTCOME_TRY(pauses, client.List("/control/pause"));
  tree.pauses = std::move(pauses);
  return {};
}

Status ReadFixedNodes(ClusterClient& client, ClusterTree& tree) {
  TreeMirror mirror;
  TrackFixedNodes(mirror);
  while (const auto request = mirror.NextRead()) {
    TreeReply reply{.status = TreeStatus::Ok};
    if (request->kind == TreeRequest::Kind::List) {
      BOOST_OUTCOME_TRY(names, client.List(request->path));
      reply.children = std::move(names);
    } else {
      BOOST_OUTCOME_TRY(node, client.Get(request->path));
      if (!node) reply.status = TreeStatus::NotFound;
      if (node) reply.node = std::move(*node);
    }
    mirror.Replied(*request, reply);
  }
  tree.missing = MissingNodes(mirror);
  if (const TreeNode* root = mirror.Node("/")) tree.made_again = ReadMadeAgain(root->data);
  return {};
}

Status ReadLeader(ClusterClient& client, ClusterTree& tree) {
  BOOST_OUTCOME_TRY(epoch, client.Get("/epoch"));
  if (epoch) Take("epoch", ReadEpoch(epoch->data), tree.epoch, tree);
  BOOST_OUTCOME_TRY(candidates, ReadFolder(client, "/election"));
  for (const auto& [slot, text] : candidates) {
    CandidateDocument candidate;
    if (Take("election/" + slot, ReadCandidate(text), candidate, tree))
      tree.candidates.push_back(candidate.id);
  }
  BOOST_OUTCOME_TRY(plan, client.Get("/plan"));
  if (!plan) return {};
  if (Take("plan", ReadPlan(plan->data), tree.plan, tree))
    tree.plan_json = ordered_json::parse(plan->data, nullptr, false);
  return {};
}

Status ReadWorkers(ClusterClient& client, ClusterTree& tree) {
  BOOST_OUTCOME_TRY(workers, ReadFolder(client, "/workers"));
  for (const auto& [id, text] : workers) {
    WorkerDocument document;
    if (Take("workers/" + id, ReadWorker(text), document, tree)) tree.workers[id] = std::move(document);
  }
  BOOST_OUTCOME_TRY(assigned, ReadFolder(client, "/assign"));
  for (const auto& [id, text] : assigned) {
    AssignDocument document;
    if (Take("assign/" + id, ReadAssignment(client, id, text), document, tree))
      tree.assigned[id] = std::move(document);
  }
  BOOST_OUTCOME_TRY(statuses, ReadFolder(client, "/status"));
  for (const auto& [id, text] : statuses) {
    auto json = ordered_json::parse(text, nullptr, false);
    if (json.is_object()) {
      tree.statuses[id] = std::move(json);
    } else {
      tree.unreadable.push_back("status/" + id + ": this is not a JSON object");
    }
  }
  return {};
}

}  // namespace

Result<ClusterTree> ReadTree(ClusterClient& client) {
  ClusterTree tree;
  BOOST_OUTCOME_TRYV(ReadFixedNodes(client, tree));
  BOOST_OUTCOME_TRYV(ReadLeader(client, tree));
  BOOST_OUTCOME_TRYV(ReadWorkers(client, tree));
  BOOST_OUTCOME_TRYV(ReadControls(client, tree));
  return tree;
}

Result<TableCatalog> ReadCatalog(ClusterConnection& cluster) {
  BOOST_OUTCOME_TRY(shards, OpenShards(cluster));
  TableCatalog catalog;
  for (auto& [name, shard] : shards) {
    const Status ready = Prepare(shard, Missing::Refuse);
    if (!ready) PrintNote("shard " + name + ": " + ready.error().message);
    catalog.Add(name, ready ? &shard.tables : nullptr);
  }
  return catalog;
}

PlanState PlanStateOf(const ClusterTree& tree, const std::set<std::string>& without) {
  PlanState state;
  state.workers = tree.workers;
  state.assigned = tree.assigned;
  for (const auto& [id, document] : tree.assigned) state.roles[id] = MemberRole::Gone;
  for (const auto& [id, document] : tree.workers) {
    const bool leaves = tree.draining.contains(id) || without.contains(id);
    state.roles[id] = leaves ? MemberRole::Draining : MemberRole::Active;
  }
  for (const std::string& id : tree.expected) {
    if (!tree.workers.contains(id)) state.roles[id] = MemberRole::Kept;
  }
  return state;
}

}  // namespace millrace::engine

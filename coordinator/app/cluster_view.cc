#include "coordinator/app/cluster_view.h"

#include "coordinator/app/terminal.h"
#include "coordinator/leader/plan_writer.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

// Every child of a folder that is still there, by name.
Result<std::map<std::string, std::string>> ReadFolder(ClusterClient& client, const std::string& folder) {
  auto names = client.List(folder);
  if (!names) return Fail(names.error());
  std::map<std::string, std::string> texts;
  for (const std::string& name : *names) {
    auto node = client.Get(folder + "/" + name);
    if (!node) return Fail(node.error());
    if (*node) texts[name] = (*node)->data;
  }
  return texts;
}

StoredPage Page(const std::string& name, AssignDocument document) {
  return {name, std::make_shared<const AssignDocument>(std::move(document))};
}

// The first page is `text`.
Result<AssignDocument> ReadAssignment(ClusterClient& client, const std::string& id, const std::string& text) {
  auto further = ReadFolder(client, "/assign/" + id);
  if (!further) return Fail(further.error());
  std::vector<std::string> names;
  for (const auto& [name, page] : *further) names.push_back(name);
  std::vector<StoredPage> pages;
  for (const std::string& name : PagesOf(std::move(names)))
    pages.push_back(Page(name, ReadAssign(further->at(name)).value_or(AssignDocument{})));
  auto first = ReadAssign(text);
  if (!first) return Fail(first.error());
  pages.push_back(Page("", std::move(*first)));
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
  auto left = ReadFolder(client, "/leave");
  if (!left) return Fail(left.error());
  for (const auto& [incarnation, id] : *left) tree.left.insert(id);
  auto draining = client.List("/control/drain");
  if (!draining) return Fail(draining.error());
  tree.draining.insert(draining->begin(), draining->end());
  auto expected = ReadFolder(client, "/control/expect");
  if (!expected) return Fail(expected.error());
  for (const auto& [id, text] : *expected) {
    tree.expected.insert(id);
    ExpectDocument document;
    Take("control/expect/" + id + " (taken for 60 s)", ReadExpect(text), document, tree);
  }
  auto pauses = client.List("/control/pause");
  if (!pauses) return Fail(pauses.error());
  tree.pauses = std::move(*pauses);
  return {};
}

Status ReadFixedNodes(ClusterClient& client, ClusterTree& tree) {
  TreeMirror mirror;
  TrackFixedNodes(mirror);
  while (const auto request = mirror.NextRead()) {
    TreeReply reply{.status = TreeStatus::Ok};
    if (request->kind == TreeRequest::Kind::List) {
      auto names = client.List(request->path);
      if (!names) return Fail(names.error());
      reply.children = std::move(*names);
    } else {
      auto node = client.Get(request->path);
      if (!node) return Fail(node.error());
      if (!*node) reply.status = TreeStatus::NotFound;
      if (*node) reply.node = std::move(**node);
    }
    mirror.Replied(*request, reply);
  }
  tree.missing = MissingNodes(mirror);
  if (const TreeNode* root = mirror.Node("/")) tree.made_again = ReadMadeAgain(root->data);
  return {};
}

Status ReadLeader(ClusterClient& client, ClusterTree& tree) {
  auto epoch = client.Get("/epoch");
  if (!epoch) return Fail(epoch.error());
  if (*epoch) Take("epoch", ReadEpoch((*epoch)->data), tree.epoch, tree);
  auto candidates = ReadFolder(client, "/election");
  if (!candidates) return Fail(candidates.error());
  for (const auto& [slot, text] : *candidates) {
    CandidateDocument candidate;
    if (Take("election/" + slot, ReadCandidate(text), candidate, tree))
      tree.candidates.push_back(candidate.id);
  }
  auto plan = client.Get("/plan");
  if (!plan) return Fail(plan.error());
  if (!*plan) return {};
  if (Take("plan", ReadPlan((*plan)->data), tree.plan, tree))
    tree.plan_json = ordered_json::parse((*plan)->data, nullptr, false);
  return {};
}

Status ReadWorkers(ClusterClient& client, ClusterTree& tree) {
  auto workers = ReadFolder(client, "/workers");
  if (!workers) return Fail(workers.error());
  for (const auto& [id, text] : *workers) {
    WorkerDocument document;
    if (Take("workers/" + id, ReadWorker(text), document, tree)) tree.workers[id] = std::move(document);
  }
  auto assigned = ReadFolder(client, "/assign");
  if (!assigned) return Fail(assigned.error());
  for (const auto& [id, text] : *assigned) {
    AssignDocument document;
    if (Take("assign/" + id, ReadAssignment(client, id, text), document, tree))
      tree.assigned[id] = std::move(document);
  }
  auto statuses = ReadFolder(client, "/status");
  if (!statuses) return Fail(statuses.error());
  for (const auto& [id, text] : *statuses) {
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
  if (Status read = ReadFixedNodes(client, tree); !read) return Fail(read.error());
  if (Status read = ReadLeader(client, tree); !read) return Fail(read.error());
  if (Status read = ReadWorkers(client, tree); !read) return Fail(read.error());
  if (Status read = ReadControls(client, tree); !read) return Fail(read.error());
  return tree;
}

Result<TableCatalog> ReadCatalog(ClusterConnection& cluster) {
  auto shards = OpenShards(cluster);
  if (!shards) return Fail(shards.error());
  TableCatalog catalog;
  for (auto& [name, shard] : *shards) {
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

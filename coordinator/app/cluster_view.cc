#include "coordinator/app/cluster_view.h"

#include "coordinator/leader/plan_writer.h"

namespace millrace {
namespace {

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

Status ReadControls(ClusterClient& client, ClusterTree& tree) {
  auto draining = client.List("/control/drain");
  if (!draining) return Fail(draining.error());
  tree.draining.insert(draining->begin(), draining->end());
  auto expected = client.List("/control/expect");
  if (!expected) return Fail(expected.error());
  tree.expected.insert(expected->begin(), expected->end());
  auto pauses = client.List("/control/pause");
  if (!pauses) return Fail(pauses.error());
  tree.pauses = std::move(*pauses);
  return {};
}

}  // namespace

Result<ClusterTree> ReadTree(ClusterClient& client) {
  ClusterTree tree;
  auto epoch = client.Get("/epoch");
  if (!epoch) return Fail(epoch.error());
  if (*epoch) tree.epoch = ReadEpoch((*epoch)->data).value_or(EpochDocument{});
  auto candidates = ReadFolder(client, "/election");
  if (!candidates) return Fail(candidates.error());
  for (const auto& [incarnation, id] : *candidates) tree.candidates.push_back(id);
  auto workers = ReadFolder(client, "/workers");
  if (!workers) return Fail(workers.error());
  for (const auto& [id, text] : *workers) {
    if (auto document = ReadWorker(text)) {
      tree.workers[id] = std::move(*document);
    } else {
      tree.unreadable.push_back("workers/" + id + ": " + document.error().message);
    }
  }
  auto assigned = ReadFolder(client, "/assign");
  if (!assigned) return Fail(assigned.error());
  for (const auto& [id, text] : *assigned) {
    if (auto document = ReadAssignment(client, id, text)) {
      tree.assigned[id] = std::move(*document);
    } else {
      tree.unreadable.push_back("assign/" + id + ": " + document.error().message);
    }
  }
  auto statuses = ReadFolder(client, "/status");
  if (!statuses) return Fail(statuses.error());
  tree.statuses = std::move(*statuses);
  if (Status read = ReadControls(client, tree); !read) return Fail(read.error());
  auto plan = client.Get("/plan");
  if (!plan) return Fail(plan.error());
  if (*plan) tree.plan = (*plan)->data;
  return tree;
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

}  // namespace millrace

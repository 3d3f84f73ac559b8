#include "coordinator/leader/leader_tree.h"

#include <algorithm>

#include "coordinator/leader/history_duty.h"

namespace millrace {
namespace {

constexpr Micros kReconcile = std::chrono::seconds(10);

}  // namespace

LeaderTree::LeaderTree() {
  for (const char* folder : {"/workers", "/assign", "/leave", "/control/drain", "/control/expect"})
    mirror_.TrackList(folder);
  mirror_.TrackNode(kProceedNode);
  mirror_.TrackNode(kPlanNode);
  TrackHistory(mirror_);
}

std::optional<TreeRequest> LeaderTree::NextRead(BootTime now) {
  mirror_.ReconcileEvery(kReconcile, now);
  if (auto read = mirror_.NextRead()) return read;
  TrackPages();
  return mirror_.NextRead();
}

bool LeaderTree::Replied(const TreeRequest& request, const TreeReply& reply) {
  const bool news = mirror_.Replied(request, reply);
  if (request.kind != TreeRequest::Kind::List) return news;
  for (const char* folder : {"/workers", "/assign", "/leave", "/control/expect"})
    mirror_.TrackNodesOf(folder, mirror_.List(folder));
  return news;
}

void LeaderTree::TrackPages() {
  const std::vector<std::string>& ids = mirror_.List("/assign");
  mirror_.TrackListsOf("/assign", ids);
  for (const std::string& id : ids) {
    const std::string folder = "/assign/" + id;
    mirror_.TrackNodesOf(folder, PagesOf(mirror_.List(folder)));
  }
}

StoredAssignments LeaderTree::Assignments() {
  StoredAssignments all;
  const auto add = [&](const std::string& id, const std::string& path) {
    if (const TreeNode* node = mirror_.Node(path)) all[id].push_back({path, Parse(path, *node)});
  };
  for (const std::string& id : mirror_.List("/assign")) {
    const std::string folder = "/assign/" + id;
    add(id, folder);
    // All that the worker reads as pages, whoever made them: what they name wrongly is taken out again.
    for (const std::string& page : PagesOf(mirror_.List(folder))) add(id, folder + "/" + page);
  }
  std::erase_if(parsed_, [&](const auto& entry) { return !Has(entry.first); });
  return all;
}

std::shared_ptr<const AssignDocument> LeaderTree::Parse(const std::string& path, const TreeNode& node) {
  Parsed& parsed = parsed_[path];
  if (parsed.created == node.created && parsed.version == node.version) return parsed.document;
  auto document = ReadAssign(node.data);
  parsed = {node.created, node.version,
            document ? std::make_shared<const AssignDocument>(std::move(*document)) : nullptr};
  return parsed.document;
}

MembershipView LeaderTree::Members(const StoredAssignments& assignments) const {
  MembershipView view;
  for (const std::string& id : mirror_.List("/workers")) {
    const TreeNode* node = mirror_.Node("/workers/" + id);
    if (node == nullptr) continue;
    if (auto document = ReadWorker(node->data)) view.present[id] = std::move(*document);
  }
  for (const auto& [id, pages] : assignments) {
    const bool owns = std::any_of(pages.begin(), pages.end(), [](const StoredPage& page) {
      return page.document != nullptr && !page.document->slices.empty();
    });
    if (owns) view.owners.insert(id);
  }
  for (const std::string& incarnation : mirror_.List("/leave")) {
    if (const TreeNode* node = mirror_.Node("/leave/" + incarnation)) view.left[incarnation] = node->data;
  }
  const auto& draining = mirror_.List("/control/drain");
  view.draining.insert(draining.begin(), draining.end());
  for (const std::string& id : mirror_.List("/control/expect")) {
    const TreeNode* node = mirror_.Node("/control/expect/" + id);
    if (node == nullptr) continue;
    // What can't be read still says that a restart is announced.
    view.expected[id] = ReadExpect(node->data).value_or(ExpectDocument{});
  }
  return view;
}

}  // namespace millrace

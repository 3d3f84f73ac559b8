#include "coordinator/leader/leader_tree.h"

#include <algorithm>

#include "coordinator/coordination/config_change.h"

namespace millrace::engine {
namespace {

constexpr Micros kReconcile = std::chrono::seconds(10);
constexpr const char* kWorkers = "/workers";
constexpr const char* kAssign = "/assign";
constexpr const char* kLeaves = "/leave";
constexpr const char* kStatuses = "/status";
constexpr std::size_t kMostWatched = 100;  // statuses; of more each change would be too much to follow
constexpr const char* kDraining = "/control/drain";
constexpr const char* kExpected = "/control/expect";

std::string PathIn(const std::string& folder, const std::string& name) { return folder + "/" + name; }

}  // namespace

LeaderTree::LeaderTree() {
  for (const char* folder : {kWorkers, kAssign, kLeaves, kDraining, kExpected, kBreakersNode})
    mirror_.TrackList(folder);
  mirror_.TrackNode(kProceedNode);
  mirror_.TrackNode(kPlanNode);
  TrackHistory(mirror_);
}

std::optional<TreeRequest> LeaderTree::NextRead(BootTime now) {
  mirror_.ReconcileEvery(kReconcile, now);
  return mirror_.NextRead();
}

bool LeaderTree::Replied(const TreeRequest& request, const TreeReply& reply) {
  const bool news = mirror_.Replied(request, reply);
  if (news) Follow(request);
  return news;
}

// What was read may name further nodes to be read.
void LeaderTree::Follow(const TreeRequest& request) {
  const std::string& path = request.path;
  const bool list = request.kind == TreeRequest::Kind::List;
  if (!list) FollowHistory(mirror_, path);
  if (list && (path == kWorkers || path == kExpected)) {
    mirror_.TrackNodesOf(path, mirror_.List(path));
  } else if (list && path == kStatuses && follows_statuses_) {
    const std::vector<std::string>& names = mirror_.List(path);
    const bool few = names.size() <= kMostWatched;
    mirror_.TrackNodesOf(path, names, few ? TreeMirror::Watch::Yes : TreeMirror::Watch::No);
  } else if (list && (path == kAssign || path == kLeaves)) {
    mirror_.TrackNodesOf(path, mirror_.List(path), TreeMirror::Watch::No);
  } else if (ParentOf(path) == kAssign && list) {
    mirror_.TrackNodesOf(path, PagesOf(mirror_.List(path)), TreeMirror::Watch::No);
  } else if (ParentOf(path) == kAssign) {
    const TreeNode* node = mirror_.Node(path);
    // Few workers have more than one page.
    if (node != nullptr && node->children > 0) {
      mirror_.TrackList(path, TreeMirror::Watch::No);
    } else {
      mirror_.ForgetList(path);
    }
  }
}

void LeaderTree::FollowStatuses(bool follow) {
  if (follows_statuses_ == follow) return;
  follows_statuses_ = follow;
  if (follow) {
    mirror_.TrackList(kStatuses);
  } else {
    mirror_.ForgetList(kStatuses);
  }
}

bool LeaderTree::Blind() const {
  const auto unknown = [this](const char* folder) {
    return mirror_.IsDenied(folder) && !mirror_.HasFolder(folder);
  };
  return unknown(kWorkers) || unknown(kAssign);
}

bool LeaderTree::KnowsAllPages() const {
  const std::string below = std::string(kAssign) + "/";
  const auto page = mirror_.Denied().lower_bound(below);
  return page == mirror_.Denied().end() || !page->starts_with(below);
}

bool LeaderTree::CanAssign(const std::string& id) const {
  if (mirror_.Denied().empty()) return true;
  const std::string folder = PathIn(kAssign, id);
  // Which pages there are is as it was read last, and a new one may be refused together with all else.
  if (mirror_.IsDenied(kAssign) && mirror_.Node(folder) == nullptr) return false;
  const std::vector<std::string> pages = PagesOf(mirror_.List(folder));
  return !mirror_.IsDenied(folder) && std::none_of(pages.begin(), pages.end(), [&](const std::string& page) {
    return mirror_.IsDenied(PathIn(folder, page));
  });
}

bool LeaderTree::IsStatus(const std::string& path) { return path.starts_with(kStatuses); }

std::map<std::string, StatusDocument> LeaderTree::Statuses() {
  std::map<std::string, StatusDocument> statuses;
  if (!follows_statuses_) return statuses;
  for (const std::string& id : mirror_.List(kStatuses)) {
    const std::string path = PathIn(kStatuses, id);
    if (!Has(path)) continue;
    if (const auto document = Parse(statuses_, path, ReadStatus)) statuses[id] = *document;
  }
  Forget(statuses_);
  return statuses;
}

StoredAssignments LeaderTree::Assignments() {
  StoredAssignments all;
  const auto add = [&](const std::string& id, const std::string& path) {
    if (Has(path)) all[id].push_back({path, Parse(pages_, path, ReadAssign)});
  };
  for (const std::string& id : mirror_.List(kAssign)) {
    if (!CanAssign(id)) continue;
    const std::string folder = PathIn(kAssign, id);
    add(id, folder);
    // All that the worker reads as pages, whoever made them: what they name wrongly is taken out again.
    for (const std::string& page : PagesOf(mirror_.List(folder))) add(id, PathIn(folder, page));
  }
  Forget(pages_);
  return all;
}

std::uint64_t LeaderTree::LatestTerm() {
  std::uint64_t latest = 0;
  const TreeNode* plan = mirror_.Node(kPlanNode);
  if (plan != nullptr) latest = ReadPlan(plan->data).value_or(PlanDocument{}).epoch;
  for (const auto& [id, pages] : Assignments()) {
    for (const StoredPage& page : pages) {
      if (page.document != nullptr) latest = std::max(latest, page.document->epoch);
    }
  }
  return latest;
}

template <class Document>
std::shared_ptr<const Document> LeaderTree::Parse(ParsedNodes<Document>& known, const std::string& path,
                                                  Result<Document> (*read)(std::string_view)) {
  const TreeNode& node = *mirror_.Node(path);
  Parsed<Document>& parsed = known[path];
  if (parsed.created == node.created && parsed.version == node.version) return parsed.document;
  auto document = read(node.data);
  parsed = {node.created, node.version,
            document ? std::make_shared<const Document>(std::move(*document)) : nullptr};
  return parsed.document;
}

template <class Document>
void LeaderTree::Forget(ParsedNodes<Document>& known) const {
  std::erase_if(known, [&](const auto& entry) { return !Has(entry.first); });
}

MembershipView LeaderTree::Members(const StoredAssignments& assignments) {
  MembershipView view;
  for (const std::string& id : mirror_.List(kWorkers)) {
    const std::string path = PathIn(kWorkers, id);
    if (!Has(path) || !CanAssign(id)) continue;
    if (const auto document = Parse(workers_, path, ReadWorker)) view.present[id] = *document;
  }
  Forget(workers_);
  for (const auto& [id, pages] : assignments) {
    if (OwnsAny(pages)) view.owners.insert(id);
  }
  for (const std::string& incarnation : mirror_.List(kLeaves)) {
    if (const TreeNode* node = mirror_.Node(PathIn(kLeaves, incarnation)))
      view.left[incarnation] = node->data;
  }
  const auto& draining = mirror_.List(kDraining);
  view.draining.insert(draining.begin(), draining.end());
  for (const std::string& id : mirror_.List(kExpected)) {
    const TreeNode* node = mirror_.Node(PathIn(kExpected, id));
    if (node == nullptr) continue;
    // What can't be read still says that a restart is announced.
    view.expected[id] = {ReadExpect(node->data).value_or(ExpectDocument{}), node->created, node->version};
  }
  return view;
}

}  // namespace millrace::engine

#include "coordinator/testing/tree_replica.h"

#include "coordinator/coordination/tree_mirror.h"

namespace millrace::engine {
namespace {

std::string PrefixOf(const std::string& path) { return path == "/" ? path : path + "/"; }

bool IsCreate(TreeWrite::Kind kind) {
  return kind == TreeWrite::Kind::Create || kind == TreeWrite::Kind::CreateEphemeral;
}

bool IsTaken(const std::vector<TreeWrite>& writes) {
  return !writes.empty() && writes.size() <= kMostWrites && BytesOf(writes) <= kMostBytesAtOnce;
}

const char* VerbOf(TreeWrite::Kind kind) {
  switch (kind) {
    case TreeWrite::Kind::Check:
      return "check ";
    case TreeWrite::Kind::Create:
    case TreeWrite::Kind::CreateEphemeral:
      return "create ";
    case TreeWrite::Kind::Set:
      return "set ";
    case TreeWrite::Kind::Remove:
      return "remove ";
  }
  return "";
}

TreeReply Refused(TreeStatus status, std::size_t failed, const std::string& what) {
  TreeReply reply;
  reply.status = status;
  reply.failed = failed;
  reply.message = what + ": " + ToString(status);
  return reply;
}

}  // namespace

TreeReplica::TreeReplica() { nodes_["/"]; }

bool TreeReplica::HasChildren(const std::string& path) const {
  const std::string prefix = PrefixOf(path);
  const auto next = nodes_.upper_bound(prefix);
  return next != nodes_.end() && next->first.compare(0, prefix.size(), prefix) == 0;
}

std::vector<std::string> TreeReplica::ChildrenOf(const std::string& path) const {
  std::vector<std::string> children;
  const std::string prefix = PrefixOf(path);
  for (auto next = nodes_.upper_bound(prefix);
       next != nodes_.end() && next->first.compare(0, prefix.size(), prefix) == 0; ++next) {
    if (next->first.find('/', prefix.size()) == std::string::npos) {
      children.push_back(next->first.substr(prefix.size()));
    }
  }
  return children;
}

TreeReply TreeReplica::Read(const TreeRequest& request) const {
  if (!IsPath(request.path)) return Refused(TreeStatus::Invalid, 0, request.path);
  const auto node = nodes_.find(request.path);
  if (node == nodes_.end()) return Refused(TreeStatus::NotFound, 0, request.path);
  TreeReply reply;
  reply.status = TreeStatus::Ok;
  if (request.kind == TreeRequest::Kind::Get) {
    reply.node = node->second;
    reply.node.children = static_cast<std::int32_t>(ChildrenOf(request.path).size());
  } else {
    reply.children = ChildrenOf(request.path);
  }
  return reply;
}

TreeStatus TreeReplica::ApplyOne(const TreeWrite& write, std::int64_t session, std::int64_t number,
                                 Undo& undo, TreeChanges& changes) {
  if (!IsPath(write.path)) return TreeStatus::Invalid;
  const auto node = nodes_.find(write.path);
  if (IsCreate(write.kind)) {
    if (node != nodes_.end()) return TreeStatus::Exists;
    const auto parent = nodes_.find(ParentOf(write.path));
    if (write.path != "/" && parent == nodes_.end()) return TreeStatus::NotFound;
    // Ephemeral nodes have no children.
    if (write.path != "/" && parent->second.owner != 0) return TreeStatus::Invalid;
    undo.emplace_back(write.path, std::nullopt);
    const bool ephemeral = write.kind == TreeWrite::Kind::CreateEphemeral;
    nodes_[write.path] = {write.data, 0, number, ephemeral ? session : 0};
    changes.nodes.push_back(write.path);
    changes.parents.push_back(ParentOf(write.path));
    return TreeStatus::Ok;
  }
  if (node == nodes_.end()) return TreeStatus::NotFound;
  if (write.version >= 0 && write.version != node->second.version) return TreeStatus::Conflict;
  if (write.kind == TreeWrite::Kind::Check) return TreeStatus::Ok;
  if (write.kind == TreeWrite::Kind::Remove && HasChildren(write.path)) return TreeStatus::Conflict;
  undo.emplace_back(write.path, node->second);
  changes.nodes.push_back(write.path);
  if (write.kind == TreeWrite::Kind::Set) {
    node->second.data = write.data;
    ++node->second.version;
  } else {
    nodes_.erase(node);
    changes.parents.push_back(ParentOf(write.path));
  }
  return TreeStatus::Ok;
}

TreeReply TreeReplica::Apply(const std::vector<TreeWrite>& writes, std::int64_t session, std::int64_t number,
                             TreeChanges& changes) {
  if (!IsTaken(writes)) return Refused(TreeStatus::Invalid, 0, "a write that is empty or too large");
  Undo undo;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const TreeStatus status = ApplyOne(writes[i], session, number, undo, changes);
    if (status == TreeStatus::Ok) continue;
    for (auto old = undo.rbegin(); old != undo.rend(); ++old) {
      if (old->second) {
        nodes_[old->first] = *old->second;
      } else {
        nodes_.erase(old->first);
      }
    }
    changes = {};
    return Refused(status, i, VerbOf(writes[i].kind) + writes[i].path);
  }
  TreeReply reply;
  reply.status = TreeStatus::Ok;
  return reply;
}

void TreeReplica::RemoveOwned(std::int64_t session, TreeChanges& changes) {
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    if (node->second.owner != session) {
      ++node;
      continue;
    }
    changes.nodes.push_back(node->first);
    changes.parents.push_back(ParentOf(node->first));
    node = nodes_.erase(node);
  }
}

}  // namespace millrace::engine

#include "coordinator/coordination/election.h"

#include <algorithm>

#include "coordinator/coordination/documents.h"

namespace millrace {
namespace {

constexpr std::size_t kEnoughCandidates = 8;  // more of them would only cost each other reads
constexpr Micros kReconcile = std::chrono::seconds(10);

}  // namespace

Election::Election(std::string id, std::string incarnation)
    : id_(std::move(id)), incarnation_(std::move(incarnation)), own_("/election/" + incarnation_) {
  mirror_.TrackList("/election");
  mirror_.TrackNode("/epoch");
}

void Election::Event(const TreeEvent& event, BootTime) {
  mirror_.Event(event);
  if (event.kind == TreeEvent::Kind::Connected && event.session != session_) {
    session_ = event.session;
    term_.reset();
  }
  if (event.kind == TreeEvent::Kind::Expired) {
    session_ = 0;
    term_.reset();
  }
}

void Election::Doubt() { mirror_.MakeAllStale(); }

std::optional<TreeRequest> Election::Next(BootTime now) {
  if (session_ == 0) return std::nullopt;
  mirror_.ReconcileEvery(kReconcile, now);
  if (auto read = mirror_.NextRead()) return read;
  if (!mirror_.Fresh()) return std::nullopt;
  if (auto stand = Stand()) return stand;
  if (!First()) {
    term_.reset();
    return std::nullopt;
  }
  return Claim();
}

std::optional<TreeRequest> Election::Stand() {
  const TreeNode* own = mirror_.Node(own_);
  if (own != nullptr && own->owner == session_) return std::nullopt;
  TreeRequest write{TreeRequest::Kind::Write};
  if (own != nullptr) {  // of a session of ours that is over, or will be
    write.writes.push_back({TreeWrite::Kind::Remove, own_, {}, own->version});
  } else if (mirror_.List("/election").size() >= kEnoughCandidates) {
    return std::nullopt;
  }
  write.writes.push_back({TreeWrite::Kind::CreateEphemeral, own_, id_});
  return write;
}

bool Election::First() const {
  const TreeNode* own = mirror_.Node(own_);
  if (own == nullptr) return false;
  const std::vector<std::string>& names = mirror_.List("/election");
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const TreeNode* other = mirror_.Node("/election/" + name);
    return other == nullptr || other->created >= own->created;
  });
}

std::optional<TreeRequest> Election::Claim() {
  const TreeNode* node = mirror_.Node("/epoch");
  EpochDocument next{0, id_, incarnation_};
  if (node != nullptr) {
    const auto epoch = ReadEpoch(node->data);
    // Rubbish that somebody wrote by hand must not stop the cluster: the version goes on counting.
    next.epoch = epoch ? epoch->epoch : static_cast<std::uint64_t>(node->version);
    if (epoch && epoch->incarnation == incarnation_) {
      term_ = Term{epoch->epoch, node->version};
      return std::nullopt;
    }
  }
  term_.reset();
  ++next.epoch;
  TreeRequest write{TreeRequest::Kind::Write};
  write.writes.push_back({TreeWrite::Kind::Check, own_, {}, 0});
  if (node == nullptr) {
    write.writes.push_back({TreeWrite::Kind::Create, "/epoch", ToText(next)});
  } else {
    write.writes.push_back({TreeWrite::Kind::Set, "/epoch", ToText(next), node->version});
  }
  return write;
}

void Election::Replied(const TreeRequest& request, const TreeReply& reply, BootTime) {
  mirror_.Replied(request, reply);
  if (request.kind == TreeRequest::Kind::Write) mirror_.Touched(request);
  if (request.kind != TreeRequest::Kind::List || request.path != "/election") return;
  mirror_.TrackNodesOf("/election", reply.children);
}

BootTime Election::WakeAt(BootTime now) const { return now + kReconcile; }

}  // namespace millrace

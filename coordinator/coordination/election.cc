#include "coordinator/coordination/election.h"

#include <algorithm>
#include <chrono>
#include <functional>

namespace millrace::engine {
namespace {

// Of a node that somebody wrote by hand: assignments count their generations from 2^20 times the term.
constexpr std::uint64_t kAbsurd = std::uint64_t{1} << 43;
constexpr Micros kReconcile = std::chrono::seconds(10);
constexpr const char* kFolder = "/election";
// As long as so many stand nobody is needed at once: each of the others waits a while of its own, up to this
// long, and finds in most cases that another has taken the free slot. Without it thousands of processes would
// try to make one node at a time.
constexpr std::size_t kEnough = 4;
constexpr Micros kSpread = std::chrono::seconds(2);

std::string PathOf(const std::string& slot) { return std::string(kFolder) + "/" + slot; }

bool IsSlot(const std::string& name) {
  static_assert(Election::kSlots <= 10, "a slot's name is one digit");
  return name.size() == 1 && name[0] >= '0' && name[0] < static_cast<char>('0' + Election::kSlots);
}

bool IsOf(const TreeNode& node, const std::string& incarnation) {
  const auto candidate = ReadCandidate(node.data);
  return candidate && candidate->incarnation == incarnation;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Election::Election(std::string id, std::string incarnation)
    : id_(std::move(id)), incarnation_(std::move(incarnation)), term_node_("/epoch/" + incarnation_) {
  mirror_.TrackList(kFolder);
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
    stand_at_.reset();
  }
}

void Election::Doubt() { mirror_.MakeAllStale(); }

std::optional<TreeRequest> Election::Next(BootTime now) {
  if (session_ == 0) return std::nullopt;
  mirror_.ReconcileEvery(kReconcile, now);
  Follow();
  if (auto read = mirror_.NextRead()) return read;
  if (!mirror_.Fresh()) return std::nullopt;
  if (!Stands()) {
    term_.reset();
    resigning_ = false;
    // Whoever misses it makes it again.
    if (!mirror_.HasFolder(kFolder) || mirror_.IsDenied(kFolder)) return std::nullopt;
    return Stand(now);
  }
  stand_at_.reset();
  const TreeNode& own = *mirror_.Node(own_);
  if (auto write = Tell(own)) return write;
  if (First(own)) return Claim(own);
  term_.reset();
  return std::nullopt;
}

// What the own node should say, or that it should go.
std::optional<TreeRequest> Election::Tell(const TreeNode& own) const {
  TreeRequest write{TreeRequest::Kind::Write};
  const std::string text = Text();
  if (resigning_) {
    write.writes.push_back({TreeWrite::Kind::Remove, own_, {}, own.version});
  } else if (own.data != text) {
    write.writes.push_back({TreeWrite::Kind::Set, own_, text, own.version});
  } else {
    return std::nullopt;
  }
  return write;
}

std::string Election::Text() const { return ToText(CandidateDocument{id_, incarnation_, unread_}); }

void Election::Resign(BootTime until) {
  resigning_ = true;
  rest_until_ = until;
}

std::vector<CandidateDocument> Election::Others() const {
  std::vector<CandidateDocument> others;
  for (const std::string& slot : Taken()) {
    const TreeNode* node = mirror_.Node(PathOf(slot));
    if (node == nullptr || node->owner == 0 || node->owner == session_) continue;
    if (auto candidate = ReadCandidate(node->data)) others.push_back(std::move(*candidate));
  }
  return others;
}

std::vector<std::string> Election::Taken() const {
  std::vector<std::string> taken = mirror_.List(kFolder);
  std::erase_if(taken, [](const std::string& name) { return !IsSlot(name); });
  return taken;
}

bool Election::Stands() const {
  const TreeNode* own = mirror_.Node(own_);
  return own != nullptr && own->owner == session_;
}

// Who stands looks at all candidates and the term; who does not needs to know of free slots alone.
void Election::Follow() {
  if (Stands()) {
    mirror_.TrackNode("/epoch");
    mirror_.TrackList("/epoch");
    mirror_.TrackNodesOf(kFolder, Taken());
  } else if (own_.empty()) {
    mirror_.TrackNodesOf(kFolder, {});
  } else {
    mirror_.TrackNodesOf(kFolder, {own_.substr(own_.rfind('/') + 1)});
  }
}

std::optional<TreeRequest> Election::Stand(BootTime now) {
  const TreeNode* own = mirror_.Node(own_);
  TreeRequest write{TreeRequest::Kind::Write};
  if (own != nullptr && IsOf(*own, incarnation_)) {  // of a session of ours that is over, or will be
    write.writes.push_back({TreeWrite::Kind::Remove, own_, {}, own->version});
  } else if (!TakeSeat(now)) {
    return std::nullopt;
  }
  write.writes.push_back({TreeWrite::Kind::CreateEphemeral, own_, Text()});
  return write;
}

// Chooses a free slot to try, once it is time.
bool Election::TakeSeat(BootTime now) {
  const std::vector<std::string> taken = Taken();
  std::vector<std::string> free;
  for (std::size_t i = 0; i < kSlots; ++i) {
    const std::string slot = std::to_string(i);
    if (!std::binary_search(taken.begin(), taken.end(), slot)) free.push_back(slot);
  }
  if (free.empty() || (now < rest_until_ && !taken.empty())) {
    stand_at_.reset();
    return false;
  }
  const std::size_t number = std::hash<std::string>()(incarnation_);
  if (!stand_at_) stand_at_ = now + Micros(static_cast<std::int64_t>(number % kSpread.count()));
  if (taken.size() >= kEnough && now < *stand_at_) return false;
  own_ = PathOf(free[(number + tries_++) % free.size()]);
  mirror_.TrackNode(own_);
  return true;
}

bool Election::First(const TreeNode& own) const {
  const std::vector<std::string> taken = Taken();
  return std::all_of(taken.begin(), taken.end(), [&](const std::string& slot) {
    const TreeNode* other = mirror_.Node(PathOf(slot));
    return other == nullptr || other->owner == 0 || other->created >= own.created;
  });
}

// Rubbish that somebody wrote by hand must not stop the cluster: the version goes on counting.
std::uint64_t Election::TermIn(const TreeNode& node) {
  const auto epoch = ReadEpoch(node.data);
  return epoch && epoch->epoch < kAbsurd ? epoch->epoch : static_cast<std::uint64_t>(node.version);
}

std::optional<TreeRequest> Election::Claim(const TreeNode& own) {
  term_.reset();
  const TreeNode* node = mirror_.Node("/epoch");
  if (node == nullptr || mirror_.IsDenied("/epoch")) return std::nullopt;  // as with the folder
  const std::uint64_t term = TermIn(*node);
  const auto epoch = ReadEpoch(node->data);
  const bool mine = epoch && epoch->epoch == term && epoch->incarnation == incarnation_ &&
                    Contains(mirror_.List("/epoch"), incarnation_);
  if (!mine || term < highest_ || term <= passed_) return BeginTerm(own, *node);
  term_ = Term{term, node->version};
  return std::nullopt;
}

TreeRequest Election::BeginTerm(const TreeNode& own, const TreeNode& node) const {
  const std::string text = ToText(EpochDocument{std::max(highest_, passed_) + 1, id_, incarnation_});
  TreeRequest write{TreeRequest::Kind::Write};
  write.writes.push_back({TreeWrite::Kind::Check, own_, {}, own.version});
  write.writes.push_back({TreeWrite::Kind::Set, "/epoch", text, node.version});
  for (const std::string& name : mirror_.List("/epoch")) {
    const std::string path = "/epoch/" + name;
    if (!stuck_.contains(path)) write.writes.push_back({TreeWrite::Kind::Remove, path});
  }
  if (!stuck_.contains(term_node_)) write.writes.push_back({TreeWrite::Kind::Create, term_node_});
  return write;
}

void Election::LeadAbove(std::uint64_t epoch) {
  if (epoch < kAbsurd) passed_ = std::max(passed_, epoch);
}

std::vector<TreeWrite> Election::Guard() const {
  return {{TreeWrite::Kind::Check, "/epoch", {}, term_->version}, {TreeWrite::Kind::Check, term_node_}};
}

void Election::Replied(const TreeRequest& request, const TreeReply& reply, BootTime) {
  mirror_.Replied(request, reply);
  if (request.kind == TreeRequest::Kind::Write) {
    mirror_.Touched(request);
    if (reply.status == TreeStatus::Conflict) {
      // Somebody was busy by hand: it has children.
      const TreeWrite& refused = request.writes.at(reply.failed);
      const bool stuck = refused.kind == TreeWrite::Kind::Remove && refused.path.starts_with("/epoch/");
      if (stuck) stuck_.insert(refused.path);
    }
  }
  const bool epoch = request.kind == TreeRequest::Kind::Get && request.path == "/epoch";
  if (epoch && reply.status == TreeStatus::Ok) highest_ = std::max(highest_, TermIn(reply.node));
}

BootTime Election::WakeAt(BootTime now) const {
  const BootTime again = now + kReconcile;
  if (now < rest_until_) return std::min(again, rest_until_);
  return stand_at_ ? std::min(again, *stand_at_) : again;
}

}  // namespace millrace::engine

#include "coordinator/leader/leader.h"

#include <algorithm>

#include "coordinator/coordination/config_change.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr Micros kLookAtTables = std::chrono::seconds(1);
constexpr Micros kLookAtLives = std::chrono::milliseconds(300);  // where limits are divided
constexpr Micros kEndedFor = std::chrono::seconds(10);           // nobody has a breaker that is open
constexpr std::size_t kNamesTold = 100;                          // of each kind, in the node `plan`
constexpr std::size_t kTroublesTold = 20;
constexpr std::size_t kLongestPlan = 200 * 1024;
constexpr std::size_t kTidied = 50;  // nodes at a time, and the further pages of the last

// Of an assignment that can't be read in part, the rest.
AssignDocument Readable(std::vector<StoredPage> pages) {
  std::erase_if(pages, [](const StoredPage& page) { return !page.document; });
  return *Together(pages);
}

// As text that fits into a node beside its guard. All but the groups is bounded line by line.
std::string Fitting(PlanDocument plan) {
  std::string text = ToText(plan);
  if (text.size() <= kLongestPlan) return text;
  plan.groups.clear();  // the assignments have them, too
  return ToText(plan);
}

PlanFigures FiguresOf(const PlanDecision& decision, const std::map<std::string, WorkerDocument>& present) {
  const auto& unplaceable = decision.unplaceable;
  PlanFigures figures{present.size(), 0, unplaceable.size()};
  for (const auto& [id, slices] : decision.wanted) {
    for (const std::string& slice : slices) {
      if (std::binary_search(unplaceable.begin(), unplaceable.end(), slice)) continue;
      ++(present.contains(id) ? figures.owned : figures.unowned);
    }
  }
  return figures;
}

}  // namespace

Leader::Leader(LeaderOptions options, Calls calls)
    : options_(std::move(options)),
      calls_(std::move(calls)),
      election_(options_.id, options_.incarnation),
      membership_(options_.calm),
      judgement_(options_.calm.session_timeout),
      usefulness_(options_.calm.session_timeout) {}

void Leader::Event(const TreeEvent& event, BootTime now) {
  election_.Event(event, now);
  tree_.Event(event);
  if (event.kind == TreeEvent::Kind::Changed) return;  // what it is will be read
  dirty_ = true;
  if (event.kind == TreeEvent::Kind::Connected) {
    Granted(event.timeout);
    judgement_.Connected(now);
    usefulness_.Connected();
  } else {
    judgement_.Disconnected(now);
    usefulness_.Disconnected();
  }
  membership_.Delay(judgement_.From());
}

// Everybody's sessions live as long as the servers let them, if that is longer than what was asked for.
void Leader::Granted(Micros timeout) {
  timeout = std::max(options_.calm.session_timeout, timeout);
  judgement_.SessionsLast(timeout);
  usefulness_.SessionsLast(timeout);
  membership_.SessionsLast(timeout);
}

std::optional<TreeRequest> Leader::Next(BootTime now) {
  LookAtFacts(now);
  if (auto request = election_.Next(now)) return request;
  if (calls_.stands && stands_ != election_.Stands()) calls_.stands(!stands_);
  stands_ = election_.Stands();
  if (!election_.Leading()) {
    judgement_.Decided(now);
    End();
    return std::nullopt;
  }
  if (led_ != election_.Leading()->epoch) Begin(now);
  if (election_.Resigning() || GiveWay(now)) return election_.Next(now);
  if (auto read = tree_.NextRead(now)) return read;
  if (!election_.Fresh() || !tree_.Fresh()) return std::nullopt;
  if (TermIsPassed()) {
    if (auto claim = election_.Next(now)) return claim;
  }
  return Decide(now);
}

// What the other candidates are to know of it.
void Leader::LookAtFacts(BootTime now) {
  if (now < look_at_) return;
  look_at_ = now + kLookAtTables;
  const LeaderFacts facts = calls_.facts();
  usefulness_.Reads(facts.unread, now);
  election_.Say(facts.unread);
}

bool Leader::GiveWay(BootTime now) {
  if (now < weigh_at_) return false;
  weigh_at_ = now + kLookAtTables;
  const std::string why = usefulness_.WhyNot(election_.Others(), now);
  if (why.empty()) return false;
  if (calls_.resigns) calls_.resigns(why);
  usefulness_.GaveWay();
  election_.Resign(now + usefulness_.Rest());
  return true;
}

void Leader::Begin(BootTime now) {
  usefulness_.Begin(now);
  led_ = election_.Leading()->epoch;
  membership_.Begin(judgement_.From());
  limits_.Begin();
  stuck_.clear();
  decision_ = std::make_shared<const PlanDecision>();
  writer_.reset();
  settled_ = compared_ = false;
  tree_.MakeAllStale();
  dirty_ = true;
  if (calls_.leads) calls_.leads(election_.Leading());
}

// Where `epoch` was deleted and made again, the tree may know later terms than the new one: pages of two
// leaders must not have the same. Looked at once, before the first write of a term.
bool Leader::TermIsPassed() {
  if (compared_) return false;
  compared_ = true;
  const std::uint64_t latest = tree_.LatestTerm();
  if (latest < election_.Leading()->epoch) return false;
  election_.LeadAbove(latest);
  return true;
}

void Leader::End() {
  if (!led_) return;
  led_.reset();
  writer_.reset();
  written_.clear();
  ended_breakers_.clear();
  if (calls_.leads) calls_.leads(std::nullopt);
}

void Leader::Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) {
  election_.Replied(request, reply, now);
  if (request.kind != TreeRequest::Kind::Write) {
    const bool own = IsOwnWriting(request, reply);
    if (!tree_.Replied(request, reply) || own) return;
    if (reply.status == TreeStatus::Denied && calls_.denied) calls_.denied(request.path);
    shares_dirty_ = true;
    // Of statuses only what has ended goes by them, and that waits for a plan under way.
    if (!LeaderTree::IsStatus(request.path) || (!writer_ && !ForeignBreakers().empty())) dirty_ = true;
    return;
  }
  tree_.Written(request);
  dirty_ = dirty_ || !writer_ || reply.status != TreeStatus::Ok;
  if (reply.status != TreeStatus::Ok) {
    const TreeWrite& refused = request.writes.at(reply.failed);
    // It has children, or may not be removed.
    const bool stays = refused.kind == TreeWrite::Kind::Remove &&
                       (reply.status == TreeStatus::Conflict || reply.status == TreeStatus::Denied);
    if (stays || refused.path.starts_with("/history/")) stuck_.insert(refused.path);
    const bool not_taken = reply.status == TreeStatus::Invalid || reply.status == TreeStatus::Denied;
    if (not_taken && !refused_ && calls_.refused) calls_.refused(reply.message);
    refused_ = refused_ || not_taken;
    election_.Doubt();
  } else {
    refused_ = false;
    if (request.writes.front().path == "/epoch") usefulness_.Useful();
    if (calls_.moved && !sent_.empty()) calls_.moved(sent_);
  }
  sent_.clear();
}

// What the plan under way has brought about decides nothing anew. To be asked before the tree takes the
// reply.
bool Leader::IsOwnWriting(const TreeRequest& request, const TreeReply& reply) const {
  if (!writer_ || reply.status != TreeStatus::Ok) return false;
  if (request.kind == TreeRequest::Kind::List) return HasOwnChildren(request.path, reply.children);
  const TreeNode* known = tree_.mirror().Node(request.path);
  if (known != nullptr && reply.node.children < known->children) return false;
  const auto written = written_.find(request.path);
  if (written != written_.end()) return written->second == reply.node.data;
  // A page below it is new: the list, which is read as well, says whose.
  return known != nullptr && known->created == reply.node.created && known->version == reply.node.version;
}

// The children that were known, and beside them all that was written; at least one of those is new.
bool Leader::HasOwnChildren(const std::string& folder, const std::vector<std::string>& children) const {
  std::set<std::string> own;
  const std::string prefix = folder + "/";
  for (auto it = written_.lower_bound(prefix); it != written_.end() && it->first.starts_with(prefix); ++it) {
    const std::string name = it->first.substr(prefix.size());
    if (name.find('/') == std::string::npos) own.insert(name);
  }
  const std::vector<std::string>& known = tree_.mirror().List(folder);
  own.insert(known.begin(), known.end());
  return children.size() > known.size() && std::ranges::equal(own, children);
}

BootTime Leader::WakeAt(BootTime now) const {
  if (!election_.Leading()) return election_.WakeAt(now);
  const BootTime wake = std::min(decide_at_, now + kLookAtTables);
  return whole_limits_.empty() ? wake : std::min(wake, divide_at_);
}

std::optional<TreeRequest> Leader::Decide(BootTime now) {
  LeaderFacts facts = calls_.facts();
  dirty_ = dirty_ || facts != facts_;
  facts_ = std::move(facts);
  tree_.FollowStatuses(!whole_limits_.empty() || !ForeignBreakers().empty());
  if (!tree_.Fresh()) return tree_.NextRead(now);
  bool plans = dirty_ || now >= decide_at_;
  dirty_ = false;
  TreeRequest request{TreeRequest::Kind::Write};
  if (!plans && writer_) {
    request.writes = writer_->Next(sent_);
    plans = request.writes.empty();  // whether nothing is left is for a decision of its own to say
  }
  if (plans) Plan(request, now);
  if (writer_) {
    for (const TreeWrite& write : request.writes) written_[write.path] = write.data;
  }
  // Each by itself, so that nothing that is in its way can hold up the plan.
  if (request.writes.empty()) request.writes = DivideLimits(now);
  if (plans && request.writes.empty()) request.writes = NoteHistory(tree_.mirror(), stuck_);
  if (plans && request.writes.empty()) request.writes = Tidy(tree_.Assignments(), now);
  if (plans) {
    judgement_.Decided(now);
    decide_at_ = membership_.NextChange(now);
    for (const auto& [type, since] : ended_breakers_) {
      if (writer_) break;  // they wait for it, as the statuses do
      decide_at_ = std::min(decide_at_, std::max(since + kEndedFor, now + kLookAtLives));
    }
  }
  if (request.writes.empty()) {
    usefulness_.Useful();
    return std::nullopt;
  }
  const std::vector<TreeWrite> guard = election_.Guard();
  request.writes.insert(request.writes.begin(), guard.begin(), guard.end());
  return request;
}

// Who owns what, and what people are told of it.
void Leader::Plan(TreeRequest& request, BootTime now) {
  writer_.reset();
  written_.clear();
  const StoredAssignments stored = tree_.Assignments();
  const MembershipView view = tree_.Members(stored);
  membership_.Observe(view, now);
  whole_limits_ = LimitsToDivide(facts_.limits, view.present);
  if (tree_.Has(kProceedNode) && !stuck_.contains(kProceedNode)) membership_.Proceed(now);
  if (facts_.catalog != nullptr && !tree_.Blind()) {
    PlanState state{membership_.Documents(), membership_.Roles(now), {}, *facts_.catalog, facts_.groups};
    for (const auto& [id, pages] : stored) state.assigned[id] = Readable(pages);
    if (calls_.plans) calls_.plans();
    decision_ = std::make_shared<const PlanDecision>(DecidePlan(state, membership_.Quiet(now)));
    if (calls_.planned) calls_.planned(FiguresOf(*decision_, view.present));
    if (calls_.decided) calls_.decided(OwnershipOf(*decision_, view.present));
    writer_.emplace(election_.Leading()->epoch, options_.bounds, decision_, stored);
    request.writes = writer_->Next(sent_);
    settled_ = request.writes.empty();
    if (settled_) {
      writer_.reset();
      shares_dirty_ = true;  // those of the pages that it has written
    } else {
      TellRepairs(stored);
    }
  }
  const auto told = Tell(view.present, now);
  // Beside many moves there may be no room for it; then it goes by itself, once they are written.
  if (BytesOf(request.writes) + BytesOf(told) <= kMostBytes)
    request.writes.insert(request.writes.end(), told.begin(), told.end());
}

std::vector<TreeWrite> Leader::DivideLimits(BootTime now) {
  if (!shares_dirty_ && (whole_limits_.empty() || now < divide_at_)) return {};
  divide_at_ = now + kLookAtLives;
  if (!tree_.KnowsAllPages()) return {};
  shares_dirty_ = false;
  const StoredAssignments stored = tree_.Assignments();
  const bool any = std::any_of(stored.begin(), stored.end(), [](const auto& worker) {
    const auto& page = worker.second.front().document;
    return page && !page->shares_of.empty();
  });
  if (whole_limits_.empty() && !any) return {};
  const MembershipView view = tree_.Members(stored);
  const auto statuses = tree_.Statuses();
  const LivesByShard lives = calls_.lives ? calls_.lives() : LivesByShard{};
  return limits_.Next({whole_limits_, stored, view.present, statuses, view.left, lives},
                      election_.Leading()->epoch, now);
}

void Leader::TellRepairs(const StoredAssignments& stored) const {
  if (!calls_.repaired) return;
  for (const auto& [id, pages] : stored) {
    for (const StoredPage& page : pages) {
      if (!page.document) calls_.repaired(page.path);
    }
  }
}

// Those that are open though nothing here is configured of them: workers may have their own configuration.
std::vector<std::string> Leader::ForeignBreakers() const {
  std::vector<std::string> types = tree_.mirror().List(kBreakersNode);
  std::erase_if(types, [this](const std::string& type) {
    return facts_.breakers.contains(type) || stuck_.contains(std::string(kBreakersNode) + "/" + type);
  });
  return types;
}

// Of those, the ones that no worker has either: nobody would ever close them.
std::vector<std::string> Leader::EndedBreakers(const StoredAssignments& stored) {
  std::vector<std::string> types = ForeignBreakers();
  if (types.empty()) return types;
  const auto present = tree_.Members(stored).present;
  const auto statuses = tree_.Statuses();
  for (const auto& [id, worker] : present) {
    const auto status = statuses.find(id);
    if (status == statuses.end() || status->second.incarnation != worker.incarnation) return {};
    std::erase_if(types, [&](const std::string& type) { return status->second.breakers.contains(type); });
  }
  return types;
}

// A worker says what it has some time after it has opened one: its node would be made again at once.
std::vector<std::string> Leader::LongEndedBreakers(const StoredAssignments& stored, BootTime now) {
  std::map<std::string, BootTime> since;
  std::vector<std::string> types;
  for (const std::string& type : EndedBreakers(stored)) {
    const auto known = ended_breakers_.find(type);
    since[type] = known == ended_breakers_.end() ? now : known->second;
    if (now - since[type] >= kEndedFor) types.push_back(type);
  }
  ended_breakers_ = std::move(since);
  return types;
}

// What operators and workers announced and what is over by now; assignments of workers that are long gone. As
// many as fit into a multi.
std::vector<TreeWrite> Leader::Tidy(const StoredAssignments& stored, BootTime now) {
  std::vector<TreeWrite> writes;
  const auto remove = [&](const std::string& path) {
    if (!stuck_.contains(path)) writes.push_back({TreeWrite::Kind::Remove, path});
  };
  if (tree_.Has(kProceedNode)) remove(kProceedNode);
  for (const std::string& type : LongEndedBreakers(stored, now)) {
    if (writes.size() >= kTidied) return writes;
    remove(std::string(kBreakersNode) + "/" + type);
  }
  for (const std::string& id : membership_.EndedExpectations(now)) {
    if (writes.size() >= kTidied) return writes;
    const std::string path = "/control/expect/" + id;
    const TreeNode* node = tree_.mirror().Node(path);
    if (node == nullptr || stuck_.contains(path)) continue;
    // As it was read: one that was made anew meanwhile is not over.
    writes.push_back({TreeWrite::Kind::Check, path, {}, node->version});
    remove(path);
  }
  for (const std::string& incarnation : membership_.EndedLeaves()) {
    if (writes.size() >= kTidied) return writes;
    remove("/leave/" + incarnation);
  }
  for (const auto& [id, pages] : stored) {
    if (writes.size() >= kTidied) return writes;
    const std::optional<AssignDocument> all = Together(pages);
    if (!all || !all->slices.empty() || membership_.Knows(id)) continue;
    const AssignDocument& first = *pages.front().document;
    if (!first.shares.empty() || !first.shares_before.empty()) continue;  // they may be in force still
    for (auto page = pages.rbegin(); page != pages.rend(); ++page) remove(page->path);
  }
  return writes;
}

std::vector<std::string> Leader::Troubles(const std::map<std::string, WorkerDocument>& present) const {
  std::vector<std::string> troubles = facts_.troubles;
  for (std::string& line : DatabaseTroubles(present)) troubles.push_back(std::move(line));
  for (const std::string& path : tree_.mirror().Denied())
    troubles.push_back(path.substr(1) + ": ZooKeeper does not let the leader read it; see its access list");
  return troubles;
}

// What people ask about the plan, for `cluster status`; written where it says something new.
std::vector<TreeWrite> Leader::Tell(const std::map<std::string, WorkerDocument>& present, BootTime now) {
  if (facts_.catalog == nullptr && facts_.troubles.empty()) return {};  // it has only begun
  if (tree_.mirror().IsDenied(kPlanNode)) return {};                    // nor can it be written
  PlanDocument plan{.epoch = election_.Leading()->epoch,
                    .moves_waiting = decision_->waiting,
                    .holding = membership_.Holding(now),
                    .groups = decision_->groups,
                    .unplaceable = decision_->unplaceable.size(),
                    .unplaceable_slices = decision_->unplaceable,
                    .unrunnable = Brief(facts_.unrunnable, kNamesTold),
                    .troubles = Brief(Troubles(present), kTroublesTold)};
  if (plan.unplaceable_slices.size() > kNamesTold) plan.unplaceable_slices.resize(kNamesTold);
  for (const auto& [id, owned] : decision_->wanted) plan.slices += owned.size();
  if (calls_.wall) {
    const auto probations = membership_.Probations(now);
    plan.on_probation = probations.size();
    for (const auto& [id, end] : probations) {
      if (plan.probation.size() == kNamesTold) break;
      plan.probation[id] = FormatTime(std::chrono::ceil<std::chrono::seconds>(calls_.wall(end)));
    }
  }
  const std::string text = Fitting(std::move(plan));
  const TreeNode* node = tree_.mirror().Node(kPlanNode);
  if (node == nullptr) return {{TreeWrite::Kind::Create, kPlanNode, text}};
  if (node->data == text) return {};
  return {{TreeWrite::Kind::Set, kPlanNode, text}};
}

}  // namespace millrace::engine

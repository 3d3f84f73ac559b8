#include "coordinator/member/member.h"

#include <algorithm>

#include "coordinator/coordination/fixed_nodes.h"
#include "framework/base/time_text.h"
#include "framework/mill/limit_policy.h"

namespace millrace::engine {
namespace {

constexpr Micros kReconcile = std::chrono::seconds(10);
constexpr Micros kLookAgain = std::chrono::milliseconds(500);  // while another has the id
// Whoever deletes a tree does so node by node: not each of them needs a write.
constexpr Micros kMakeAgain = std::chrono::milliseconds(200);
// A node that says the same as before is written all the same: its age is the worker's last sign of life.
constexpr Micros kStatusAtLeast = std::chrono::minutes(1);
constexpr Micros kAskAgain = std::chrono::milliseconds(50);  // what is not known yet
constexpr Micros kAskPressing = std::chrono::milliseconds(200);
constexpr const char* kPauses = "/control/pause";
constexpr const char* kWorkers = "/workers";

constexpr std::string_view kEnginePart = "engine";
constexpr std::string_view kHandlersPart = "handlers";

std::string ConfigPath(const std::string& part) { return "/config/" + part; }

// For people: without the slash at its beginning.
std::string NotReadable(const std::string& path) {
  return (path == "/" ? path : path.substr(1)) +
         ": ZooKeeper does not let this process read it; see its access list";
}

}  // namespace

Member::Member(MemberOptions options, ConfigLayers layers, Calls calls)
    : options_(std::move(options)),
      layers_(std::move(layers)),
      calls_(std::move(calls)),
      own_("/workers/" + options_.id),
      assign_("/assign/" + options_.id),
      status_("/status/" + options_.id),
      limits_("/control/limits/" + options_.id),
      document_(ToText(options_.document)),
      session_timeout_(options_.session_timeout) {
  for (const char* part : kConfigParts) mirror_.TrackNode(ConfigPath(part));
  mirror_.TrackList(kPauses);
  TrackFixedNodes(mirror_);
  if (!options_.registers) return;
  mirror_.TrackNode(own_);
  mirror_.TrackNode(assign_);
  mirror_.TrackList(assign_);
  mirror_.TrackNode(status_);
  mirror_.TrackNode(limits_);
}

void Member::Event(const TreeEvent& event, BootTime) {
  mirror_.Event(event);
  if (event.kind == TreeEvent::Kind::Connected) {
    session_ = event.session;
    session_timeout_ = std::max(options_.session_timeout, event.timeout);
    status_refused_ = false;
    // While the servers were away no session could end: a predecessor has its whole time again.
    other_.clear();
  }
  if (event.kind == TreeEvent::Kind::Expired) session_ = 0;
}

std::optional<TreeRequest> Member::Next(BootTime now) {
  if (session_ == 0) return std::nullopt;
  mirror_.ReconcileEvery(kReconcile, now);
  if (auto read = mirror_.NextRead()) return read;
  if (!mirror_.Fresh()) return std::nullopt;
  if (options_.registers) mirror_.TrackNodesOf(assign_, PagesOf(mirror_.List(assign_)));
  if (auto read = mirror_.NextRead()) return read;
  LookAtDatabases(now);
  LookAtProcess();
  if (dirty_) Recompute();
  if (auto write = MakeMissingAgain(now)) return write;
  if (!options_.registers) return std::nullopt;
  if (auto write = Register(now)) return write;
  return registered_ ? TellStatus(now) : std::nullopt;
}

void Member::Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) {
  if (request.kind == TreeRequest::Kind::Write) {
    mirror_.Touched(request);
    // What is refused now will be so in a moment.
    const bool forbidden = reply.status == TreeStatus::Denied || reply.status == TreeStatus::Invalid;
    if (request.writes.front().path == "/" && forbidden) make_again_from_ = now + kReconcile;
    if (request.writes.front().path == status_)
      status_refused_ = reply.status != TreeStatus::Ok && reply.status != TreeStatus::Lost;
  } else {
    mirror_.Replied(request, reply);
    dirty_ = true;
  }
}

BootTime Member::WakeAt(BootTime now) const {
  BootTime wake = now + (options_.registers ? kLookAgain : kReconcile);
  if (registered_) wake = told_at_ + options_.status_interval;
  if (registered_ && has_limits_) wake = std::min<BootTime>(wake, now + kAskPressing);
  if (!missing_.empty()) wake = std::min(wake, make_again_from_);
  if (!listens_ || !handlers_) wake = std::min<BootTime>(wake, now + kAskAgain);
  return std::max(now, wake);
}

std::optional<TreeRequest> Member::MakeMissingAgain(BootTime now) {
  std::vector<std::string> missing = MissingNodes(mirror_);
  std::vector<std::string> emptied;
  for (const char* part : kConfigParts) {
    if (IsEmptied(ConfigPath(part))) emptied.push_back(ConfigPath(part));
  }
  missing.insert(missing.end(), emptied.begin(), emptied.end());
  if (missing != missing_) {
    missing_ = missing;
    if (calls_.made_again && !missing.empty()) calls_.made_again(missing);
  }
  if (missing.empty() || now < make_again_from_) return std::nullopt;
  make_again_from_ = now + kMakeAgain;
  const std::string at = calls_.wall ? FormatTime(calls_.wall()) : "";
  return MakeAgain(mirror_, emptied, at, options_.id,
                   [this](const std::string& path) { return LastWord(path); });
}

bool Member::IsMissing(const std::string& path) const {
  return std::find(missing_.begin(), missing_.end(), path) != missing_.end();
}

// A process that starts in the moment in which a part is deleted makes it as in a new cluster: what is
// another node than the one known, and says nothing yet, takes back no word.
bool Member::IsEmptied(const std::string& path) const {
  const TreeNode* node = mirror_.Node(path);
  const auto known = config_nodes_.find(path);
  return node != nullptr && known != config_nodes_.end() && IsUntouched(*node) &&
         node->created != known->second.created && node->data != known->second.data;
}

// What a fixed node said last, as far as it is known here.
std::optional<std::string> Member::LastWord(const std::string& path) const {
  if (path == "/epoch" && term_ > 0) return ToText(EpochDocument{term_});
  const auto known = config_nodes_.find(path);
  return known == config_nodes_.end() ? std::nullopt : std::optional(known->second.data);
}

// One write, so that whoever finds the worker gone finds its leave as well. Whatever version the node has:
// while the session lives it is this process's, which may have written it and not read it back, or not know
// whether that came about.
std::optional<TreeRequest> Member::Farewell() {
  const TreeNode* own = mirror_.Node(own_);
  if (!registered_ || own == nullptr || own->owner != session_) return std::nullopt;
  TreeRequest write{TreeRequest::Kind::Write};
  write.writes.push_back({TreeWrite::Kind::Remove, own_});
  const std::string leave = "/leave/" + options_.document.incarnation;
  const std::vector<std::string> missing = MissingNodes(mirror_);
  for (TreeWrite& above : FixedNodesAbove(leave)) {
    if (std::find(missing.begin(), missing.end(), above.path) != missing.end())
      write.writes.push_back(std::move(above));
  }
  write.writes.push_back({TreeWrite::Kind::Create, leave, options_.id});
  return write;
}

std::optional<TreeRequest> Member::Register(BootTime now) {
  const TreeNode* own = mirror_.Node(own_);
  TreeRequest write{TreeRequest::Kind::Write};
  if (mirror_.IsDenied(own_)) {  // nor could it be written
    registered_ = own != nullptr && own->owner == session_;
    return std::nullopt;
  }
  if (own == nullptr) {
    registered_ = false;
    if (IsMissing(kWorkers)) return std::nullopt;  // first that is made again
    write.writes.push_back({TreeWrite::Kind::CreateEphemeral, own_, document_});
    return write;
  }
  if (own->owner == session_) {
    registered_ = true;
    other_.clear();
    view_.id_in_use = false;
    refusals_.erase("workers/" + options_.id);
    if (own->data == document_) return std::nullopt;
    write.writes.push_back({TreeWrite::Kind::Set, own_, document_, own->version});
    return write;
  }
  registered_ = false;
  if (AnotherHasIt(*own, now)) return std::nullopt;
  // It is this process's own, of a session that is over or will be.
  write.writes.push_back({TreeWrite::Kind::Remove, own_, {}, own->version});
  write.writes.push_back({TreeWrite::Kind::CreateEphemeral, own_, document_});
  return write;
}

bool Member::AnotherHasIt(const TreeNode& node, BootTime now) {
  const auto document = ReadWorker(node.data);
  const std::string incarnation = document ? document->incarnation : node.data;
  if (document && incarnation == options_.document.incarnation) return false;
  if (incarnation != other_) {
    other_ = incarnation;
    other_since_ = now;
  }
  // A predecessor that was killed is gone one session time-out after its end, and a little for the server's
  // ticks.
  if (!view_.id_in_use && now - other_since_ > session_timeout_ + session_timeout_ / 4) {
    view_.id_in_use = true;
    calls_.publish(view_);
  }
  if (!refusals_.contains("workers/" + options_.id)) {
    Refuse("workers/" + options_.id,
           "the id is in use by " +
               (document ? "process " + std::to_string(document->pid) + " on " + document->host
                         : std::string("another process")));
  }
  return true;
}

std::optional<TreeRequest> Member::TellStatus(BootTime now) {
  const bool news = told_ != view_;
  const TreeNode* node = mirror_.Node(status_);
  const bool there = node != nullptr && node->owner == session_;
  const auto pressing = calls_.pressing ? calls_.pressing() : std::nullopt;
  has_limits_ = pressing.has_value();
  const bool needed = !status_refused_ && (!there || news || pressing.value_or(false));
  if (!needed && now - told_at_ < options_.status_interval) return std::nullopt;
  told_at_ = now;
  std::string text =
      StatusText(options_.document.incarnation, view_, calls_.status ? calls_.status() : std::string());
  told_ = view_;
  TreeRequest write{TreeRequest::Kind::Write};
  if (there) {
    if (text == node->data && now - written_at_ < kStatusAtLeast) return std::nullopt;
    write.writes.push_back({TreeWrite::Kind::Set, status_, std::move(text)});
  } else {
    if (node != nullptr) write.writes.push_back({TreeWrite::Kind::Remove, status_});
    write.writes.push_back({TreeWrite::Kind::CreateEphemeral, status_, std::move(text)});
  }
  written_at_ = now;
  return write;
}

void Member::LookAtDatabases(BootTime now) {
  if (!calls_.databases || now < databases_at_) return;
  databases_at_ = now + options_.status_interval;
  auto databases = calls_.databases();
  if (databases == databases_) return;
  databases_ = std::move(databases);
  dirty_ = true;
}

// The process follows what is published here by itself, a little later.
void Member::LookAtProcess() {
  auto listens = calls_.listens ? calls_.listens(view_.config->engine) : listens_;
  auto handlers = calls_.handlers ? calls_.handlers(view_.config) : handlers_;
  if (listens == listens_ && handlers == handlers_) return;
  listens_ = std::move(listens);
  handlers_ = std::move(handlers);
  dirty_ = true;
}

void Member::Recompute() {
  dirty_ = false;
  bool changed = !view_.contact;
  changed = FollowAssignment() || changed;
  view_.contact = true;
  ReadLimitsNode();
  if (FollowRowLimits(FollowConfig())) {
    changed = true;
    if (calls_.handlers) handlers_ = calls_.handlers(view_.config);
  }
  changed = NoteConfigRead() || changed;
  changed = FollowPauses() || changed;
  changed = FollowLimits() || changed;
  if (auto refusals = Refusals(); refusals != view_.refusals) {
    view_.refusals = std::move(refusals);
    changed = true;
  }
  if (changed) calls_.publish(view_);
}

std::vector<std::string> Member::Refusals() const {
  std::vector<std::string> refusals;
  for (const auto& [node, why] : refusals_) refusals.push_back(node + ": " + why);
  for (const auto& [part, why] : layers_.Refusals()) refusals.push_back(why);
  if (listens_ && !listens_->empty()) refusals.push_back("config/engine: " + *listens_);
  for (const std::string& path : mirror_.Denied()) {
    std::string line = NotReadable(path);
    if (std::find(refusals.begin(), refusals.end(), line) == refusals.end())
      refusals.push_back(std::move(line));
  }
  return refusals;
}

bool Member::FollowAssignment() {
  std::vector<std::string> texts;
  if (const TreeNode* node = mirror_.Node(assign_)) texts.push_back(node->data);
  for (const std::string& page : PagesOf(mirror_.List(assign_))) {
    if (const TreeNode* node = mirror_.Node(assign_ + "/" + page)) texts.push_back(node->data);
  }
  if (texts == assign_texts_) return false;
  assign_texts_ = std::move(texts);
  auto all = ReadPages(assign_texts_);  // nothing where there is no node: nothing is assigned yet
  const std::string name = "assign/" + options_.id;
  refusals_.erase(name);
  if (!all) {
    Refuse(name, all.error().message + "; the last good assignment stays in force");
    return true;
  }
  view_.epoch = all->epoch;
  term_ = std::max(term_, all->epoch);
  view_.generation = all->generation;
  view_.shares_generation = all->shares_generation;
  view_.slice_count = all->slice_count;
  const bool own = all->shares_of == options_.document.incarnation;
  view_.shares = std::make_shared<const LimitShares>(own ? std::move(all->shares) : LimitShares());
  assigned_ = std::make_shared<const SlicesByShard>(std::move(all->slices));
  view_.slices = WithinLimits(assigned_, scans_);
  return true;
}

bool Member::FollowConfig() {
  bool changed = false;
  for (const char* part : kConfigParts) {
    const std::string path = ConfigPath(part);
    const TreeNode* node = mirror_.Node(path);
    if (node == nullptr && mirror_.IsDenied(path)) {  // it may say anything
      changed = layers_.RefusePart(part, NotReadable(path)) || changed;
      continue;
    }
    // One that was deleted is made again as it was: the last word stays in force.
    if (node == nullptr ? config_nodes_.contains(path) : IsEmptied(path)) continue;
    if (node != nullptr) config_nodes_[path] = *node;
    changed = layers_.SetPart(part, node == nullptr ? "" : node->data) || changed;
  }
  if (!changed) return false;
  view_.config = layers_.Effective();
  if (calls_.listens) listens_ = calls_.listens(view_.config->engine);
  view_.shards_refused = layers_.Refusals().contains("shards");
  view_.ignored = layers_.Ignored();
  return true;
}

bool Member::FollowRowLimits(bool changed) {
  if (!changed && limited_.max_rows == row_limits_) return false;
  row_limits_ = limited_.max_rows;
  view_.config = layers_.Effective();
  if (row_limits_.empty()) return true;
  Config config = *view_.config;
  for (const auto& [type, rows] : row_limits_) {
    const auto handler = config.handlers.find(type);
    if (handler != config.handlers.end() && handler->second.scan) handler->second.scan->max_rows = rows;
  }
  view_.config = std::make_shared<const Config>(std::move(config));
  return true;
}

// Of the engine a version is not told before it is known whether its address can be listened on, of the
// handlers not before they have been opened by it.
bool Member::NoteConfigRead() {
  std::map<std::string, ConfigRead> read;
  for (const char* part : kConfigParts) {
    const auto node = config_nodes_.find(ConfigPath(part));
    const auto refusal = layers_.Refusals().find(part);
    if (node == config_nodes_.end() && refusal != layers_.Refusals().end())
      read[part].refused = refusal->second;
    if (node == config_nodes_.end()) continue;
    ConfigRead& one = read[part] = {node->second.version, node->second.created};
    if (refusal != layers_.Refusals().end()) one.refused = refusal->second;
    if ((part != kEnginePart && part != kHandlersPart) || !one.refused.empty()) continue;
    if (part == kEnginePart && listens_) {
      one.refused = *listens_;
    } else if (part == kHandlersPart && handlers_) {
      one.types = *handlers_;
    } else if (const auto before = view_.config_read.find(part); before != view_.config_read.end()) {
      one = before->second;
    } else {
      read.erase(part);
    }
  }
  const auto schedules = read.find("schedules");
  if (schedules != read.end() && schedules->second.refused.empty()) {
    view_.schedules_number = schedules->second.made + schedules->second.version;
  }
  if (read == view_.config_read) return false;
  view_.config_read = std::move(read);
  return true;
}

bool Member::FollowPauses() {
  const std::vector<std::string>& names = mirror_.List(kPauses);
  std::set<std::string> now_paused(names.begin(), names.end());
  if (now_paused == pause_names_) return false;
  for (const std::string& name : pause_names_) refusals_.erase("control/pause/" + name);
  pause_names_ = std::move(now_paused);
  Pauses pauses;
  for (const std::string& name : pause_names_) {
    if (Status added = pauses.Add(name); !added) Refuse("control/pause/" + name, added.error().message);
  }
  view_.pauses = std::make_shared<const Pauses>(std::move(pauses));
  return true;
}

bool Member::FollowLimits() {
  WorkerDocument document = options_.document;
  if (calls_.types) {
    if (auto types = calls_.types(*view_.config)) document.limits.handlers = std::move(types);
  }
  // It scans for types that it does not run, too, and tells of those that wait, unless it is limited.
  WorkerLimits scans = document.limits;
  scans.handlers = options_.handlers;
  scans = Both(scans, limited_);
  document.limits = Both(Both(document.limits, Served()), limited_);
  document.databases = databases_;
  document.start_limits = WholeLimits(*view_.config);
  document_ = ToText(document);
  if (scans == scans_) return false;
  scans_ = std::move(scans);
  view_.slices = WithinLimits(assigned_, scans_);
  return true;
}

// A leader gives no worker what it does not say that it serves.
WorkerLimits Member::Served() const {
  WorkerLimits served;
  if (calls_.shards) served.shards = calls_.shards(*view_.config);
  return served;
}

void Member::ReadLimitsNode() {
  const std::string name = "control/limits/" + options_.id;
  const TreeNode* node = mirror_.Node(limits_);
  auto limits = node == nullptr ? Result<LimitsDocument>(LimitsDocument{}) : ReadLimits(node->data);
  if (limits) {
    refusals_.erase(name);
    limited_ = std::move(*limits);
  } else if (!refusals_.contains(name)) {
    Refuse(name, limits.error().message);
  }
}

void Member::Refuse(const std::string& node, std::string why) {
  refusals_[node] = std::move(why);
  dirty_ = true;
}

}  // namespace millrace::engine

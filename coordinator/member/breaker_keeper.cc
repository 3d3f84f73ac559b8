#include "coordinator/member/breaker_keeper.h"

#include <nlohmann/json.hpp>

#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr Micros kLook = std::chrono::milliseconds(100);  // at what is asked for
constexpr Micros kRest = std::chrono::seconds(2);         // where nothing can be asked for
constexpr Micros kBetweenLooks = std::chrono::seconds(10);
constexpr Micros kAfterRefusal = std::chrono::seconds(1);

std::string PathOf(const std::string& type) { return std::string(kBreakersNode) + "/" + type; }

std::string TextOf(const nlohmann::json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

}  // namespace

BreakerDocument ReadBreaker(std::string_view text) {
  const auto json = ParseNode<nlohmann::json>(text);
  BreakerDocument document;
  if (!json.is_object()) return document;
  document.since = TextOf(json, "since");
  document.why = TextOf(json, "why");
  document.by = TextOf(json, "by");
  if (!json.contains("probe") || !json["probe"].is_object()) return document;
  document.prober = TextOf(json["probe"], "by");
  document.life = TextOf(json["probe"], "incarnation");
  document.probed = TextOf(json["probe"], "at");
  return document;
}

std::string ToText(const BreakerDocument& document) {
  nlohmann::ordered_json json{
      {"state", "open"}, {"since", document.since}, {"why", document.why}, {"by", document.by}};
  if (!document.prober.empty())
    json["probe"] = {{"by", document.prober}, {"incarnation", document.life}, {"at", document.probed}};
  return JsonText(json);
}

BreakerKeeper::BreakerKeeper(std::string id, std::string incarnation, Calls calls)
    : id_(std::move(id)), incarnation_(std::move(incarnation)), calls_(std::move(calls)) {
  mirror_.TrackList(kBreakersNode);
}

void BreakerKeeper::Event(const TreeEvent& event, BootTime) {
  mirror_.Event(event);
  if (event.kind == TreeEvent::Kind::Connected) connected_ = true;
  if (event.kind == TreeEvent::Kind::Expired) connected_ = false;
}

std::optional<TreeRequest> BreakerKeeper::Next(BootTime now) {
  if (!connected_) return std::nullopt;
  mirror_.ReconcileEvery(kBetweenLooks, now);
  if (auto read = mirror_.NextRead()) return read;
  if (!mirror_.Fresh()) return std::nullopt;
  mirror_.TrackNodesOf(kBreakersNode, mirror_.List(kBreakersNode));
  if (auto read = mirror_.NextRead()) return read;
  if (!mirror_.Fresh()) return std::nullopt;
  if (dirty_) Publish();
  const auto asks = calls_.asks();
  asked_ = asks.has_value();
  if (!asked_ || now < write_from_ || mirror_.IsDenied(kBreakersNode)) return std::nullopt;
  for (const auto& [type, ask] : *asks) {
    if (auto write = Fulfil(type, ask)) return write;
  }
  return std::nullopt;
}

std::optional<TreeRequest> BreakerKeeper::Fulfil(const std::string& type, const BreakerAsk& ask) {
  const std::string path = PathOf(type);
  const TreeNode* node = mirror_.Node(path);
  TreeRequest write{TreeRequest::Kind::Write};
  const std::string now = FormatTime(std::chrono::floor<std::chrono::milliseconds>(calls_.wall()));
  if (ask.wish == BreakerWish::Open && node == nullptr && !mirror_.IsDenied(path)) {
    if (!mirror_.HasFolder(kBreakersNode)) write.writes.push_back({TreeWrite::Kind::Create, kBreakersNode});
    write.writes.push_back({TreeWrite::Kind::Create, path, ToText(BreakerDocument{now, ask.why, id_})});
    return write;
  }
  // What was asked for before the last word was heard is asked for again, or not.
  if (node == nullptr || node->created != ask.opening) return std::nullopt;
  if (ask.wish == BreakerWish::Probe && node->version == ask.turn) {
    BreakerDocument document = ReadBreaker(node->data);
    document.prober = id_;
    document.life = incarnation_;
    document.probed = now;
    write.writes.push_back({TreeWrite::Kind::Set, path, ToText(document), node->version});
    return write;
  }
  if (ask.wish == BreakerWish::Close) {
    write.writes.push_back({TreeWrite::Kind::Remove, path, {}, node->version});
    return write;
  }
  return std::nullopt;
}

void BreakerKeeper::Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) {
  if (request.kind != TreeRequest::Kind::Write) {
    mirror_.Replied(request, reply);
    dirty_ = true;
    return;
  }
  mirror_.Touched(request);
  if (reply.status == TreeStatus::Denied || reply.status == TreeStatus::Invalid)
    write_from_ = now + kAfterRefusal;
}

BootTime BreakerKeeper::WakeAt(BootTime now) const { return now + (asked_ ? kLook : kRest); }

void BreakerKeeper::Publish() {
  dirty_ = false;
  BreakerWords words;
  for (const std::string& type : mirror_.List(kBreakersNode)) {
    const TreeNode* node = mirror_.Node(PathOf(type));
    if (node == nullptr) continue;
    const BreakerDocument document = ReadBreaker(node->data);
    words[type] = {node->created, node->version, document.life == incarnation_,
                   document.why + (document.by.empty() ? "" : " (in " + document.by + ")")};
  }
  calls_.publish(std::move(words));
}

}  // namespace millrace::engine

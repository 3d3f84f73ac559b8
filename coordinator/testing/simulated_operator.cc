#include "coordinator/testing/simulated_operator.h"

#include <array>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array kParts{"engine", "handlers", "shards"};
constexpr Micros kForgotten = seconds(3);
constexpr const char* kNonsense = R"({"lease": "soon"})";

std::string PathOf(const std::string& part) { return "/config/" + part; }

bool SameEngine(const EngineConfig& a, const EngineConfig& b) {
  if (a.poll != b.poll || a.rewind != b.rewind || a.on_zookeeper_loss != b.on_zookeeper_loss) return false;
  return a.aging == b.aging && a.scanners == b.scanners && a.brake_latency == b.brake_latency;
}

bool SameRest(const Config& one, const Config& other, const std::vector<std::string>& handlers) {
  for (const std::string& handler : handlers) {
    const HandlerConfig& a = one.HandlerFor(handler);
    const HandlerConfig& b = other.HandlerFor(handler);
    if (a.bands != b.bands || a.weight != b.weight || a.retry.max_failures != b.retry.max_failures)
      return false;
    if (a.limit != b.limit || a.breaker != b.breaker || a.hours != b.hours) return false;
  }
  if (one.shards.size() != other.shards.size()) return false;
  return std::equal(
      one.shards.begin(), one.shards.end(), other.shards.begin(),
      [](const auto& a, const auto& b) { return a.first == b.first && a.second.slices == b.second.slices; });
}

}  // namespace

SimulatedOperator::SimulatedOperator(SimulatedCluster cluster, std::deque<SimulatedWorker>& workers,
                                     FaultTimes& times)
    : cluster_(cluster), workers_(workers), times_(times) {}

void SimulatedOperator::SetUp() {
  Put("engine", EngineText());
  for (const std::string& handler : cluster_.work.handlers) {
    types_[handler] = {R"("retry":{"delays":["300ms","1s"],"max_failures":)" +
                           std::to_string(3 + times_.Below(3)) + R"(,"jitter":0.1})" + OrderText(),
                       PolicyText(handler, 0)};
  }
  Put("handlers", HandlersText());
  Put("shards", ShardsText(cluster_.work.shards.size(), cluster_.work.slices));
  LookAtConfiguration();
}

void SimulatedOperator::Put(const std::string& part, const std::string& text) {
  cluster_.journal.Trace("config/" + part + " is now " + text);
  cluster_.ensemble.WriteNow({{TreeWrite::Kind::Set, PathOf(part), text}});
  Believe(part, text);
}

void SimulatedOperator::Believe(const std::string& part, const std::string& text) {
  texts_[part] = text;
  if (!truth_.SetPart(part, text)) return;
  good_.push_back(truth_.Effective());
  if (part != "handlers") return;
  for (const std::string& type : cluster_.work.handlers) {
    const HandlerConfig& handler = truth_.Effective()->HandlerFor(type);
    cluster_.runs.LimitIs(type, handler.limit.value_or(LimitConfig{}));
    for (ModelledDatabase& database : cluster_.databases)
      database.checked().MayFail(type, handler.retry.max_failures);
  }
}

std::string SimulatedOperator::EngineText() {
  return R"({"lease":"4s","poll":")" + std::to_string(300 + 100 * times_.Below(3)) + R"(ms","rewind":")" +
         std::to_string(2 + times_.Below(3)) + R"(s","on_zookeeper_loss":")" +
         (times_.OneIn(2) ? "stop" : "continue") + "\"" +
         (times_.OneIn(2) ? R"(,"aging":")" + std::to_string(1 + times_.Below(5)) + "s\"" : "") +
         (times_.OneIn(3)   ? R"(,"scanners":{"by":"table","most":2})"
          : times_.OneIn(2) ? R"(,"scanners":{"by":"priority","most":2})"
                            : "") +
         (times_.OneIn(4) ? R"(,"brake":{"latency":"20ms"})" : "") + "}";
}

std::string SimulatedOperator::OrderText() {
  std::string text = R"(,"weight":)" + std::to_string(1 + times_.Below(9));
  if (times_.OneIn(3)) {
    text += R"(,"bands":[{"priority":"5-9","failures":"0-9","every":")" +
            std::to_string(1 + times_.Below(3)) + R"(s","most":)" + std::to_string(2 + times_.Below(20)) +
            "}]";
  }
  return text;
}

std::string SimulatedOperator::PolicyText(const std::string& handler, unsigned halved) {
  std::string text;
  if (cluster_.work.outages.contains(handler)) {
    text += R"(,"breaker":{"failures":0.5,"window":"8s","minimum":)" + std::to_string(2 + times_.Below(2)) +
            R"(,"probe_every":")" + std::to_string(400 + 200 * times_.Below(4)) + R"(ms","probes":)" +
            std::to_string(1 + times_.Below(2)) + R"(,"classes":["connection"]})";
  }
  std::string limit;
  if (times_.OneIn(3)) limit = R"("concurrency":)" + std::to_string(1 + times_.Below(4));
  if (const auto rate = cluster_.work.rates.find(handler); rate != cluster_.work.rates.end()) {
    limit += (limit.empty() ? R"("rate":")" : R"(,"rate":")") + std::to_string(rate->second >> halved) +
             R"(/s","burst":)" + std::to_string(1 + times_.Below(3));
  }
  if (!limit.empty()) text += R"(,"limit":{)" + limit + "}";
  if (times_.OneIn(5)) text += R"(,"hours":{"from":"00:18","to":"00:17"})";
  return text;
}

std::string SimulatedOperator::HandlersText() const {
  std::string text;
  for (const auto& [handler, keys] : types_)
    text += (text.empty() ? "{\"" : ",\"") + handler + "\":{" + keys.fixed + keys.policy + "}";
  return text + "}";
}

std::string SimulatedOperator::ShardsText(std::size_t count, std::uint32_t slices) const {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& shard = cluster_.work.shards[i];
    text += (text.empty() ? "{\"" : ",\"") + shard + R"(":{"url":"mysql://millrace@)" + shard +
            R"(/tasks","slices":)" + std::to_string(slices) + "}";
  }
  return text + "}";
}

void SimulatedOperator::ChangeConfiguration() {
  ++changes_;
  const std::size_t shards = cluster_.work.shards.size();
  const auto slices =
      cluster_.work.slices / 2 + static_cast<std::uint32_t>(times_.Below(cluster_.work.slices));
  const std::string& type = cluster_.work.handlers[times_.Below(cluster_.work.handlers.size())];
  switch (times_.Below(8)) {
    case 0:
    case 1:
      times_.Note("the engine is configured anew");
      Put("engine", EngineText());
      break;
    case 2:
      times_.Note("the engine's configuration is nonsense");
      Put("engine", kNonsense);
      times_.EndAfter(seconds(1), seconds(6), [this] { Put("engine", EngineText()); });
      break;
    case 3:
    case 4:
      times_.Note(type + " is configured anew");
      types_[type].policy = PolicyText(type, static_cast<unsigned>(times_.Below(2)));
      Put("handlers", HandlersText());
      break;
    case 5:
      if (shards > 1) {
        times_.Note("shard " + cluster_.work.shards.back() + " is taken out of the cluster");
        Put("shards", ShardsText(shards - 1, cluster_.work.slices));
        times_.EndAfter(seconds(1), seconds(8),
                        [this, shards] { Put("shards", ShardsText(shards, cluster_.work.slices)); });
        break;
      }
      [[fallthrough]];
    default:
      times_.Note("tables are to have " + std::to_string(slices) + " slices");
      Put("shards", ShardsText(shards, slices));
      break;
  }
}

void SimulatedOperator::LookAtConfiguration() {
  for (const char* part : kParts) {
    const auto node = cluster_.ensemble.head().nodes().find(PathOf(part));
    if (node == cluster_.ensemble.head().nodes().end()) continue;
    if (node->second.data != "{}") {
      Believe(part, node->second.data);
      emptied_.erase(part);
      continue;
    }
    // One that was deleted is made again as it was, by whoever knows; by people, if nobody does.
    const BootTime now = cluster_.timeline.Now();
    const auto since = emptied_.try_emplace(part, now).first->second;
    if (texts_.contains(part) && now - since > kForgotten) Put(part, texts_.at(part));
  }
}

bool SimulatedOperator::Serves(std::size_t shard) const {
  return truth_.Effective()->shards.contains(cluster_.work.shards[shard]);
}

bool SimulatedOperator::Follows(const SimulatedWorker& worker) const {
  const auto config = worker.Configuration();
  if (config == nullptr) return false;
  const auto truth = truth_.Effective();
  const bool rest = SameRest(*config, *truth, cluster_.work.handlers);
  if (truth_.Refusals().empty()) return rest && SameEngine(config->engine, truth->engine);
  // Whoever has not read a good text before can't go by it; which was the last good one it is not known where
  // the node was deleted and made again from an older text.
  if (!followed_.contains(worker.Incarnation())) return true;
  return rest && std::any_of(good_.begin(), good_.end(),
                             [&](const auto& good) { return SameEngine(config->engine, good->engine); });
}

void SimulatedOperator::CheckFollowed(bool possible, Micros bound) {
  LookAtConfiguration();
  const BootTime now = cluster_.timeline.Now();
  for (const SimulatedWorker& worker : workers_) {
    const std::string life = worker.Incarnation();
    const bool follows = Follows(worker);
    if (!possible || !worker.Healthy() || follows) behind_.erase(life);
    if (follows && truth_.Refusals().empty()) followed_.insert(life);
    if (!possible || !worker.Healthy() || follows) continue;
    const Micros since = now - behind_.try_emplace(life, now).first->second;
    if (since <= bound) continue;
    if (const auto config = worker.Configuration(); config != nullptr && cluster_.journal.Traces())
      cluster_.journal.Trace(worker.name() + " goes by poll " + std::to_string(config->engine.poll.count()) +
                             " and " + std::to_string(config->shards.size()) + " shards; the truth is " +
                             std::to_string(truth_.Effective()->engine.poll.count()) + " and " +
                             std::to_string(truth_.Effective()->shards.size()));
    cluster_.journal.Violation(worker.name() + " has not followed the configuration for " +
                               std::to_string(since.count() / 1000) + " ms");
  }
}

std::string SimulatedOperator::FirstBehind() const {
  for (const SimulatedWorker& worker : workers_) {
    if (!Follows(worker)) return worker.name();
  }
  return {};
}

void SimulatedOperator::TakeOut(SimulatedWorker& worker) {
  if (times_.OneIn(2)) {
    Drain(worker);
  } else {
    Restart(worker);
  }
}

void SimulatedOperator::Drain(SimulatedWorker& worker) {
  const std::string node = "/control/drain/" + worker.name();
  times_.Note(worker.name() + " is drained");
  cluster_.ensemble.WriteNow({{TreeWrite::Kind::Create, node}});
  times_.EndAfter(seconds(1), seconds(8), [this, node] {
    cluster_.ensemble.WriteNow({{TreeWrite::Kind::Remove, node}});
  });
}

void SimulatedOperator::Restart(SimulatedWorker& worker) {
  times_.Note(worker.name() + " is restarted, as announced");
  cluster_.ensemble.WriteNow({{TreeWrite::Kind::Create, "/control/expect/" + worker.name(),
                               ToText(ExpectDocument{.incarnation = worker.Incarnation(), .seconds = 5})}});
  worker.EndBy(times_.Below(3));
  times_.EndAfter(milliseconds(200), seconds(4), [&worker] { worker.Start(); });
}

// The red button.
void SimulatedOperator::Pause() {
  const std::string& shard = cluster_.work.shards[times_.Below(cluster_.work.shards.size())];
  const std::array<std::string, 3> kinds{"cluster", "shard:" + shard,
                                         "handler:" + cluster_.work.handlers.front()};
  const std::string& what = kinds.at(times_.Below(kinds.size()));
  times_.Note(what + " is paused");
  cluster_.ensemble.WriteNow({{TreeWrite::Kind::Create, "/control/pause/" + what}});
  times_.EndAfter(milliseconds(500), seconds(5), [this, what] {
    cluster_.ensemble.WriteNow({{TreeWrite::Kind::Remove, "/control/pause/" + what}});
  });
}

void SimulatedOperator::DeleteNodes() {
  constexpr std::array kFolders{"/assign",  "/config", "/control", "/election", "/epoch",
                                "/history", "/leave",  "/status",  "/workers"};
  const auto any = [&] { return kFolders.at(times_.Below(kFolders.size())); };
  if (times_.OneIn(4)) {
    Delete("/");
    return;
  }
  Delete(any());
  if (times_.OneIn(2)) Delete(any());
}

void SimulatedOperator::Delete(const std::string& top) {
  times_.Note(top + " is deleted");
  const auto& nodes = cluster_.ensemble.head().nodes();
  std::vector<TreeWrite> writes;
  const std::string below = top == "/" ? top : top + "/";
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {  // children before their parents
    if (node->first == top || node->first.starts_with(below))
      writes.push_back({TreeWrite::Kind::Remove, node->first});
  }
  if (!writes.empty()) cluster_.ensemble.WriteNow(writes);
  if (top == "/" || top == "/assign") cluster_.runs.SharesForgotten();
}

void SimulatedOperator::TidyUp() {
  std::vector<std::string> over;
  for (const auto& [path, node] : cluster_.ensemble.head().nodes()) {
    if (path.starts_with("/control/pause/") || path.starts_with("/control/drain/")) over.push_back(path);
  }
  for (const std::string& path : over) cluster_.ensemble.WriteNow({{TreeWrite::Kind::Remove, path}});
  LookAtConfiguration();
  for (const auto& [part, text] : texts_) Put(part, text);
  if (!truth_.Refusals().empty()) Put("engine", EngineText());
  ServeAll();
}

// What was put into a node that was deleted is lost, and an older text may stand there when it is made again.
void SimulatedOperator::ServeAll() {
  if (truth_.Effective()->shards.size() < cluster_.work.shards.size())
    Put("shards", ShardsText(cluster_.work.shards.size(), cluster_.work.slices));
  cluster_.timeline.After(seconds(1), [this] { ServeAll(); });
}

}  // namespace millrace::engine

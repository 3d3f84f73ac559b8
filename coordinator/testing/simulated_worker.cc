#include "coordinator/testing/simulated_worker.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/mill/breaker_policy.h"
#include "framework/mill/limit_policy.h"

namespace millrace::engine {
namespace {

constexpr Micros kPrompt = std::chrono::milliseconds(300);
// A page that was asked for before may be claimed from after it: one statement's time.
constexpr Micros kToNotice = std::chrono::milliseconds(2'500);

MemberOptions MemberOf(const SimulatedCluster& cluster, const ModelledProcess& process,
                       const std::string& incarnation) {
  MemberOptions options;
  options.id = process.name;
  options.document.host = process.name;
  options.document.pid = 1;
  options.document.incarnation = incarnation;
  const auto limit = cluster.work.limits.find(process.name);
  if (limit != cluster.work.limits.end()) options.document.limits.handlers = limit->second;
  options.document.weight = cluster.work.WeightOf(process.name);
  options.session_timeout = cluster.calm.session_timeout;
  options.status_interval = std::chrono::seconds(10);
  return options;
}

bool Open(const TreeLink& link) {
  return link.to_server && link.to_client && link.news && link.slowest <= kPrompt;
}
bool Open(const DatabaseLink& link) {
  return link.open && link.lost_replies == 0 && link.late == 0 && link.slowest <= kPrompt;
}

}  // namespace

SimulatedWorker::Life::Life(const SimulatedCluster& its_cluster, ModelledProcess& its_process,
                            std::string unique, const SimulatedMills::Lives& buried)
    : cluster(its_cluster),
      process(its_process),
      incarnation(std::move(unique)),
      control({.lost = [this] { return cluster.bug != PlantedBug::GoesOnAfterLoss && Lost(); }}),
      member(MemberOf(cluster, process, incarnation), ConfigLayers(),
             {.publish = [this](const MemberView& view) { Publish(view); },
              .status = [this] { return Status(); },
              .types = {},
              .pressing = [this] { return limits.Pressing(mills.Limits()); }}),
      leader({process.name, incarnation, cluster.calm, cluster.work.bounds},
             {[this] {
                LeaderFacts facts = upkeep.Facts();
                facts.limits = WholeLimits(*control.View()->config);
                facts.breakers = TypesWithBreakers(*control.View()->config);
                return facts;
              },
              [this](const std::vector<SliceMove>& moves) {
                if (!cluster.journal.Traces()) return;
                for (const SliceMove& move : moves)
                  cluster.journal.Trace(move.slice + " moved from '" + move.from + "' to " + move.to);
              },
              {},
              {},
              {},
              {},
              [this](bool stands) { stands_for_election = stands; },
              {},
              {},
              {},
              [this] { return upkeep.Lives(); }}),
      spoiled(leader, IsOfAMember(cluster.bug) ? PlantedBug::None : cluster.bug),
      spoiled_member(member,
                     IsOfAMirror(cluster.bug) || IsOfAMember(cluster.bug) ? cluster.bug : PlantedBug::None),
      breakers(process.name, incarnation,
               {[this] { return control.AskedOfBreakers(); },
                [this](BreakerWords words) { control.Publish(std::move(words)); },
                [this] { return cluster.databases.front().clock().WallNow(); }}),
      driver(cluster.timeline, cluster.ensemble, process, cluster.journal, cluster.calm.session_timeout,
             {&spoiled_member, &spoiled, &breakers}),
      upkeep({cluster.timeline, cluster.databases, process, cluster.work.shards, control,
              [this] { return !stopping && leader.Leading() && control.View()->contact && !Lost(); },
              [this] { return !stopping && stands_for_election; }, [this] { driver.Wake(); }}),
      mills(
          {cluster.timeline, cluster.databases, process, cluster.journal, cluster.mill, cluster.work.shards,
           control, [this](const std::string& handler) { return cluster.work.Takes(process.name, handler); },
           [this] { CheckClaim(); }, cluster.runs,
           [this](const std::string& type) { return cluster.work.IsBroken(type, cluster.timeline.Now()); }},
          buried) {}

void SimulatedWorker::Life::Publish(const MemberView& view) {
  const bool stopped = control.View()->config->engine.on_zookeeper_loss == OnZooKeeperLoss::Stop;
  control.Publish(view);
  if (!stopped && view.config->engine.on_zookeeper_loss == OnZooKeeperLoss::Stop)
    stops_since = cluster.timeline.Now();
}

// As a worker's status node has it; all that the cluster says was read in the present session.
std::string SimulatedWorker::Life::Status() {
  control.ReadAnew();
  nlohmann::ordered_json status{{status_key::kShards, nlohmann::ordered_json::object()}};
  for (const auto& [shard, incarnation_there] : mills.Incarnations()) {
    status[status_key::kShards][cluster.work.shards[shard]] = {{status_key::kIncarnation, incarnation_there}};
  }
  if (const auto views = mills.Limits(); !views.empty())
    status[status_key::kLimits] = nlohmann::ordered_json::parse(limits.Tell(views));
  return status.dump();
}

bool SimulatedWorker::Life::Lost() const {
  return cluster.timeline.Now() - driver.client().LastContact() > cluster.calm.session_timeout;
}

// Where it is to stop when ZooKeeper is lost it has claimed its last when the session may be over, but for
// what its threads notice late.
void SimulatedWorker::Life::CheckClaim() const {
  const BootTime now = cluster.timeline.Now();
  const Config& config = *control.View()->config;
  if (config.engine.on_zookeeper_loss != OnZooKeeperLoss::Stop || stopping) return;
  const Micros silent = now - driver.client().LastContact() - cluster.calm.session_timeout;
  const bool late =
      now - process.threads[static_cast<std::size_t>(ThreadName::Watch)].held_until < kToNotice ||
      now - stops_since < kToNotice;
  if (silent <= kToNotice || late) return;
  cluster.journal.Violation(process.name +
                            " claims, though it is to stop where ZooKeeper is lost, and that was " +
                            std::to_string(silent.count() / 1000) + " ms ago");
}

SimulatedWorker::SimulatedWorker(const SimulatedCluster& cluster, const std::string& name)
    : cluster_(cluster) {
  process_.name = name;
}

void SimulatedWorker::Start() {
  start_again_ = life_ && life_->stopping;
  if (life_) return;
  process_.up = true;
  process_.started = cluster_.timeline.Now();
  const std::string incarnation = name() + "." + cluster_.timeline.random().Hex(8);
  cluster_.journal.Trace(name() + " starts as process " + incarnation);
  life_ = std::make_unique<Life>(cluster_, process_, incarnation, buried_);
  buried_.clear();
}

void SimulatedWorker::Crash() {
  if (!life_) return;
  cluster_.journal.Trace(name() + " crashes");
  End();
}

void SimulatedWorker::Leave() {
  if (!life_) return;
  cluster_.journal.Trace(name() + " leaves");
  life_->driver.Leave();
  End();
}

void SimulatedWorker::EndBy(std::uint64_t way) {
  switch (way) {
    case 0:
      Leave();
      break;
    case 1:
      Stop();
      break;
    default:
      Crash();
      break;
  }
}

void SimulatedWorker::Stop() {
  if (!life_ || life_->stopping) return;
  cluster_.journal.Trace(name() + " stops");
  life_->stopping = true;
  life_->driver.Leave();
  life_->mills.Stop([this](bool all) {
    cluster_.journal.Trace(name() +
                           (all ? " has ended in good order" : " has ended with tasks in its hands"));
    End();
    if (start_again_) Start();
  });
}

void SimulatedWorker::End() {
  // Where the state directory is lost with the process, nobody finds its flight recorder.
  for (const auto& life : life_->mills.Incarnations()) {
    if (cluster_.timeline.random().Below(2) == 0) buried_.push_back(life);
  }
  life_.reset();
  process_.Die();
  cluster_.runs.Died(process_);
}

bool SimulatedWorker::Healthy() const {
  const auto& trees = process_.tree;
  const auto& databases = process_.databases;
  const bool open =
      std::all_of(trees.begin(), trees.end(), [](const TreeLink& link) { return Open(link); }) &&
      std::all_of(databases.begin(), databases.end(), [](const DatabaseLink& link) { return Open(link); });
  const BootTime now = cluster_.timeline.Now();
  const bool held = std::any_of(process_.threads.begin(), process_.threads.end(),
                                [&](const Strand& thread) { return thread.held_until >= now; });
  return life_ && !life_->stopping && !held && open;
}

std::shared_ptr<const Config> SimulatedWorker::Configuration() const {
  return life_ && !life_->stopping && life_->control.View()->contact ? life_->control.View()->config
                                                                     : nullptr;
}

bool SimulatedWorker::LeadsSettled() const { return Leads() && life_->leader.Settled(); }

}  // namespace millrace::engine

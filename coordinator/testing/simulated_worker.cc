#include "coordinator/testing/simulated_worker.h"

#include <algorithm>

namespace millrace::engine {
namespace {

constexpr Micros kPrompt = std::chrono::milliseconds(100);

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

bool Open(const TreeLink& link) { return link.to_server && link.to_client && link.slowest <= kPrompt; }

}  // namespace

SimulatedWorker::Life::Life(const SimulatedCluster& cluster, ModelledProcess& process, std::string unique,
                            std::vector<std::string> buried)
    : incarnation(std::move(unique)),
      control({}),
      member(MemberOf(cluster, process, incarnation), ConfigLayers(),
             {[this](const MemberView& view) { control.Publish(view); }, {}}),
      leader({process.name, incarnation, cluster.calm},
             {[catalog = cluster.catalog] { return LeaderFacts{catalog}; },
              [&cluster](const std::vector<SliceMove>& moves) {
                if (!cluster.journal.Traces()) return;
                for (const SliceMove& move : moves)
                  cluster.journal.Trace(move.slice + " moved from '" + move.from + "' to " + move.to);
              }}),
      spoiled(leader, cluster.bug),
      spoiled_member(member, IsOfAMirror(cluster.bug) ? cluster.bug : PlantedBug::None),
      driver(cluster.timeline, cluster.ensemble, process, cluster.journal, cluster.calm.session_timeout,
             {&spoiled_member, &spoiled}),
      mill({cluster.timeline, cluster.database, process, cluster.journal, cluster.mill, control,
            [&work = cluster.work, name = process.name](const std::string& handler) {
              return work.Takes(name, handler);
            }},
           std::move(buried)) {}

SimulatedWorker::SimulatedWorker(const SimulatedCluster& cluster, const std::string& name)
    : cluster_(cluster) {
  process_.name = name;
}

void SimulatedWorker::Start() {
  if (life_) return;
  process_.up = true;
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

void SimulatedWorker::End() {
  // Where the state directory is lost with the process, nobody finds its flight recorder.
  const std::string life = life_->mill.Incarnation();
  if (!life.empty() && cluster_.timeline.random().Below(2) == 0) buried_.push_back(life);
  life_.reset();
  process_.Die();
}

bool SimulatedWorker::Healthy() const {
  const auto open = std::count_if(process_.tree.begin(), process_.tree.end(), Open);
  const BootTime now = cluster_.timeline.Now();
  const bool held = std::any_of(process_.threads.begin(), process_.threads.end(),
                                [&](const Strand& thread) { return thread.held_until >= now; });
  return life_ && !held && static_cast<std::size_t>(open) == process_.tree.size();
}

bool SimulatedWorker::LeadsSettled() const { return Leads() && life_->leader.Settled(); }

}  // namespace millrace::engine

// A process of a cluster: one session with ZooKeeper, on which it follows the cluster and may lead it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/alerts/watch.h"
#include "coordinator/app/command/settings.h"
#include "coordinator/app/process/cluster_metrics.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/driver.h"
#include "coordinator/coordination/zookeeper/zookeeper.h"
#include "coordinator/leader/leader.h"
#include "coordinator/member/breaker_keeper.h"
#include "coordinator/member/cluster_control_plane.h"
#include "coordinator/member/member.h"
#include "coordinator/upkeep/upkeep.h"
#include "framework/metrics/registry.h"

namespace millrace::engine {

// Start, Update and Stop by one thread at a time.
class ClusterProcess {
 public:
  // What it is in the cluster, known before it joins.
  struct Place {
    std::string id;
    WorkerDocument document;                                // with a fresh incarnation
    bool works = false;                                     // it registers as a worker
    bool stands = true;                                     // it is a candidate for the leader
    std::optional<std::vector<std::string>> handlers = {};  // sorted; it scans for these types alone
    std::function<std::string()> status = {};               // for its status node
    std::function<std::optional<std::vector<std::string>>(const Config&)> types = {};  // that it runs
    std::function<std::map<std::string, std::string>()> databases = {};  // that it has found, by shard
    // See Member::Calls, these three.
    std::function<std::optional<std::string>(const EngineConfig&)> listens = {};
    std::function<std::optional<HandlerRefusals>(const std::shared_ptr<const Config>&)> refused = {};
    std::function<std::optional<bool>()> pressing = {};
  };

  // Reaches ZooKeeper within `limit`, or says clearly what is wrong. `first_assignment`: see
  // ClusterControlPlane.
  static Result<std::unique_ptr<ClusterProcess>> Make(const Settings& settings, Micros session_timeout,
                                                      Micros limit, Micros first_assignment = Micros(0));

  Status Start(Place place);
  // To be called twice a second, and once a view is published: follows the shards for the leader, and looks
  // after the id. Conflict: the id is another process's.
  Status Update();
  // As Upkeep::MayEnd.
  bool MayEnd(const IdleSpan& idle) { return upkeep_.MayEnd(idle); }
  // Leaves the cluster: its slices go to others at once. False: a thread is held up by a server that does not
  // answer; the process must end by std::_Exit.
  [[nodiscard]] bool Stop();

  ClusterControlPlane& control() { return control_; }
  // What this process counts and measures, whether it works or only coordinates.
  Registry& metrics() { return metrics_; }
  // All three once it was started, and thread-safe.
  //
  // Why nothing is known of the cluster, or only what was known before; empty: it is followed.
  std::string NoContact() const;
  // Why a worker has no plan to go by; empty: it has one, if an old one, or one that gives it nothing.
  std::string NoPlan() const;
  // Its thread, if that should have gone on for longer than `patience`; empty: it goes on.
  std::string StandsStill(Micros patience) const;

 private:
  ClusterProcess(const Settings& settings, ZookeeperOptions options, std::unique_ptr<TreeSession> session,
                 Micros first_assignment);
  // Once it was started: the session may be over by now.
  bool Lost() const;
  bool Leads() const;
  void StandAsLeader(const Place& place);
  void Publish(const MemberView& view);
  void NoteStandby();
  ClusterState State() const;
  void Noticed(const std::optional<Term>& term);
  LeaderFacts Facts() const;
  UnopenedShards Unopened() const;
  std::shared_ptr<const Ownership> CurrentOwnership() const;
  std::optional<AlertPlace> AlertsPlace() const;
  ScheduleDuty Schedules() const;

  const Settings settings_;
  const ZookeeperOptions options_;
  const SystemClock clock_;
  Registry metrics_;
  std::unique_ptr<TreeSession> session_;  // until Start
  std::atomic<bool> leading_{false};
  std::atomic<bool> standing_{false};
  std::atomic<BootTime> lives_asked_{};  // by its leader, the last time
  mutable Mutex mutex_;
  std::shared_ptr<const Ownership> ownership_ MILLRACE_GUARDED_BY(mutex_);  // by this term's plan
  ClusterControlPlane control_;
  Upkeep upkeep_;
  AlertWatch alerts_;
  std::string id_;
  bool works_ = false;
  std::optional<BootTime> idle_since_;  // without a slice; the latest time: it was said
  std::unique_ptr<Member> member_;
  std::unique_ptr<BreakerKeeper> breakers_;
  std::unique_ptr<Leader> leader_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<ClusterMetrics> measured_;  // last: asks the others
};

}  // namespace millrace::engine

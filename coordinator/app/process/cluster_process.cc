#include "coordinator/app/process/cluster_process.h"

#include <algorithm>

#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/shards.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/process/alert_place.h"
#include "framework/base/log.h"
#include "framework/mill/breaker_policy.h"
#include "framework/mill/limit_policy.h"

namespace millrace::engine {
namespace {

// Then a process that has only begun does not know what it says.
bool IsRefused(const MemberView& view, const std::string& part) {
  const auto read = view.config_read.find(part);
  return read != view.config_read.end() && !read->second.refused.empty();
}

constexpr Micros kOneTry = std::chrono::seconds(2);    // to reach ZooKeeper
constexpr Micros kClockSet = std::chrono::seconds(1);  // a step by more
// A leader that divides limits asks for the lives several times a second.
constexpr Micros kDividesFor = std::chrono::seconds(10);

// Before the cluster has said which shards it has, there are none.
std::shared_ptr<const Config> BeforeContact(Config config) {
  config.shards.clear();
  return std::make_shared<const Config>(std::move(config));
}

void LogMoves(const std::vector<SliceMove>& moves) {
  const auto voluntary =
      std::count_if(moves.begin(), moves.end(), [](const SliceMove& m) { return m.voluntary; });
  LogInfo("slices have new owners", {{"slices", moves.size()}, {"for_balance", voluntary}});
}

}  // namespace

Result<std::unique_ptr<ClusterProcess>> ClusterProcess::Make(const Settings& settings, Micros session_timeout,
                                                             Micros limit, Micros first_assignment) {
  ZookeeperOptions options{settings.cluster->servers, settings.cluster->name, session_timeout,
                           settings.cluster->auth_file};
  BOOST_OUTCOME_TRYV(ReachPatiently("ZooKeeper", limit, [&](Micros left) {
    return PrepareZookeeper(options, std::clamp<Micros>(left, Micros(1), kOneTry));
  }));
  BOOST_OUTCOME_TRY(session, OpenZookeeper(options));
  return std::unique_ptr<ClusterProcess>(
      new ClusterProcess(settings, std::move(options), std::move(session), first_assignment));
}

ClusterProcess::ClusterProcess(const Settings& settings, ZookeeperOptions options,
                               std::unique_ptr<TreeSession> session, Micros first_assignment)
    : settings_(settings),
      options_(std::move(options)),
      session_(std::move(session)),
      control_({.before_contact = BeforeContact(settings.config),
                .lost = [this] { return Lost(); },
                .open = [this](const ShardConfig& shard,
                               Micros lease) { return MakeStore(AsStarted(shard, settings_), lease); },
                .first_assignment = first_assignment}),
      upkeep_({.shards = [this] { return control_.Opened(); },
               .config = [this] { return control_.CurrentConfig(); },
               .leading = [this] { return Leads(); },
               .ownership = [this] { return CurrentOwnership(); },
               .changed = [this] { driver_->Wake(); },
               .unopened = [this] { return Unopened(); },
               .standing = [this] { return standing_.load(); },
               .schedules = [this] { return Schedules(); },
               .prunes = [this] { return !IsRefused(*control_.View(), "handlers"); },
               .divides = [this] { return clock_.Now() - lives_asked_.load() < kDividesFor; }}),
      alerts_({.clock = clock_,
               .shards = [this] { return control_.Opened(); },
               .config = [this] { return control_.CurrentConfig(); },
               .place = [this] { return AlertsPlace(); },
               .from = "the cluster " + options_.cluster}) {}

Status ClusterProcess::Start(Place place) {
  id_ = place.id;
  works_ = place.works;
  MemberOptions options{place.id, place.document, options_.session_timeout};
  options.registers = place.works;
  options.handlers = place.handlers;
  Member::Calls calls{
      [this](const MemberView& view) { Publish(view); },
      std::move(place.status),
      std::move(place.types),
      ServableShards,
      [](const std::vector<std::string>& nodes) {
        LogWarning("nodes of the cluster were missing; they are made again", {{"nodes", Joined(nodes, " ")}});
      },
      [this] { return clock_.WallNow(); },
      std::move(place.databases),
      std::move(place.listens),
      std::move(place.refused),
      std::move(place.pressing)};
  member_ = std::make_unique<Member>(
      std::move(options), ConfigLayers(settings_.config_text, settings_.config_file, settings_.own_store),
      std::move(calls));
  std::vector<TreeMachine*> machines{member_.get()};
  breakers_ = std::make_unique<BreakerKeeper>(
      place.id, place.document.incarnation,
      BreakerKeeper::Calls{[this] { return control_.AskedOfBreakers(); },
                           [this](BreakerWords words) { control_.Publish(std::move(words)); },
                           [this] { return clock_.WallNow(); }});
  machines.push_back(breakers_.get());
  if (place.stands) {
    StandAsLeader(place);
    machines.push_back(leader_.get());
  }
  driver_ = std::make_unique<Driver>(std::move(session_), std::move(machines), clock_);
  measured_ = std::make_unique<ClusterMetrics>(metrics_, [this](Gauges& gauges) {
    upkeep_.Measure(gauges);
    return State();
  });
  BOOST_OUTCOME_TRYV(driver_->Start());
  return place.stands ? alerts_.Start() : Status();
}

void ClusterProcess::StandAsLeader(const Place& place) {
  CalmOptions calm;
  calm.session_timeout = options_.session_timeout;
  leader_ = std::make_unique<Leader>(
      LeaderOptions{place.id, place.document.incarnation, calm},
      Leader::Calls{
          [this] { return Facts(); },
          [this](const std::vector<SliceMove>& moves) {
            LogMoves(moves);
            measured_->Moved(moves);
          },
          [this](const std::optional<Term>& term) { Noticed(term); },
          [this](Ownership decided) {
            auto ownership = std::make_shared<const Ownership>(std::move(decided));
            MutexLock lock(mutex_);
            ownership_ = std::move(ownership);
          },
          [](const std::string& path) {
            LogWarning("an assignment can't be read; it is written anew", {{"node", path}});
          },
          // It goes with the clock where that was set, and not with its small steps.
          [this, offset = Micros(0)](BootTime at) mutable {
            const Micros now = clock_.WallNow().time_since_epoch() - clock_.Now().time_since_epoch();
            if (now > offset + kClockSet || offset > now + kClockSet) offset = now;
            return WallTime(at.time_since_epoch() + offset);
          },
          [this](bool stands) { standing_.store(stands); },
          [](const std::string& why) {
            LogWarning("another candidate should lead the cluster; giving way", {{"why", why}});
          },
          [this] { measured_->Plans(); }, [this](const PlanFigures& figures) { measured_->Planned(figures); },
          [this] {
            lives_asked_.store(clock_.Now());
            return upkeep_.Findings().lives;
          },
          [](const std::string& why) {
            LogError("ZooKeeper does not take what the leader writes; until it does, nothing is planned",
                     {{"why", why}});
          },
          [](const std::string& path) {
            LogWarning("ZooKeeper does not let the leader read a node; it goes by what it knew of it",
                       {{"node", path}});
          }});
}

void ClusterProcess::Publish(const MemberView& view) {
  const std::shared_ptr<const MemberView> before = control_.View();
  for (const std::string& refusal : view.refusals) {
    if (std::find(before->refusals.begin(), before->refusals.end(), refusal) != before->refusals.end())
      continue;
    LogWarning(refusal.starts_with("workers/")
                   ? "this worker gets nothing while another has its id: stop that one, or give another --id"
                   : "a word of the cluster is refused; the last good one stays in force",
               {{"what", refusal}});
  }
  if (!view.ignored.empty() && view.ignored != before->ignored) LogWarning(view.ignored);
  if (before->slice_count > 0 && view.generation == 0) {
    LogWarning("the assignment of this worker is gone; it scans nothing until the leader has planned anew");
  }
  control_.Publish(view);
  WakeMain();
}

// A worker that has nothing to do says so once, and where to look.
void ClusterProcess::NoteStandby() {
  constexpr Micros kPatience = std::chrono::seconds(15);
  const bool idle = works_ && control_.View()->contact && control_.View()->slice_count == 0;
  const BootTime now = clock_.Now();
  if (!idle) idle_since_.reset();
  if (!idle) return;
  if (!idle_since_) idle_since_ = now;
  if (*idle_since_ == BootTime::max() || now - *idle_since_ < kPatience) return;
  idle_since_ = BootTime::max();
  LogWarning("no slice is assigned to this worker; millrace cluster status says why",
             {{"worker", id_}, {"cluster", options_.cluster}});
}

UnopenedShards ClusterProcess::Unopened() const {
  return {control_.Refusals(), control_.View()->shards_refused};
}

ClusterState ClusterProcess::State() const {
  const auto view = control_.View();
  return {driver_->View().connected && !Lost(), leader_ != nullptr, Leads(),
          control_.Refusals().size() + view->refusals.size()};
}

LeaderFacts ClusterProcess::Facts() const {
  TableFindings found = upkeep_.Findings();
  for (std::string& trouble : alerts_.Troubles()) found.troubles.push_back(std::move(trouble));
  return {std::move(found.catalog),
          ConfiguredGroups(*control_.View()->config),
          std::move(found.unrunnable),
          std::move(found.troubles),
          std::move(found.unread),
          WholeLimits(*control_.View()->config),
          TypesWithBreakers(*control_.View()->config)};
}

std::shared_ptr<const Ownership> ClusterProcess::CurrentOwnership() const {
  MutexLock lock(mutex_);
  return ownership_;
}

std::optional<AlertPlace> ClusterProcess::AlertsPlace() const {
  const std::shared_ptr<const Ownership> ownership = CurrentOwnership();
  if (!Leads() || ownership == nullptr) return std::nullopt;
  AlertPlace place = PlaceOf(ownership);
  place.breakers = control_.OpenBreakers();
  place.pauses = control_.View()->pauses;
  return place;
}

void ClusterProcess::Noticed(const std::optional<Term>& term) {
  {
    MutexLock lock(mutex_);
    ownership_.reset();  // another may have led meanwhile: it holds again once this term has planned
  }
  leading_.store(term.has_value());
  if (term) {
    LogInfo("leading the cluster", {{"cluster", options_.cluster}, {"term", term->epoch}});
  } else {
    LogInfo("leading the cluster no more", {{"cluster", options_.cluster}});
  }
}

Status ClusterProcess::Update() {
  upkeep_.Update();
  NoteStandby();
  if (!control_.View()->id_in_use) return {};
  return Fail(ErrorCode::Conflict,
              "the worker id " + id_ + " is in use in the cluster " + options_.cluster +
                  ": give another with --id, or stop that process; millrace cluster status "
                  "shows where it runs");
}

// A server may have granted less than was asked for.
bool ClusterProcess::Lost() const {
  const SessionView view = driver_->View();
  const Micros timeout = view.timeout > Micros(0) ? view.timeout : options_.session_timeout;
  return clock_.Now() - view.last_contact > timeout;
}

// A leader that is cut off from ZooKeeper is told of no successor; it must not go on changing tables against
// it. One that has only begun may not have read yet which shards there are.
bool ClusterProcess::Leads() const { return leading_.load() && control_.View()->contact && !Lost(); }

// The leader's; while nobody can lead, a worker's that has been cut off from ZooKeeper for as long as a
// session lasts.
ScheduleDuty ClusterProcess::Schedules() const {
  const bool leads = Leads();
  const std::shared_ptr<const MemberView> view = control_.View();
  ScheduleDuty duty;
  if (!view->contact || !(leads || (works_ && Lost()))) return duty;
  duty.role = leads ? ScheduleDuty::Role::Keeps : ScheduleDuty::Role::StandsIn;
  // Of a document that is refused it is not known which schedules it has.
  duty.removes = leads && view->config_read.contains("schedules") && !IsRefused(*view, "schedules");
  duty.number = static_cast<std::uint64_t>(std::max<std::int64_t>(view->schedules_number, 0));
  duty.config = view->config;
  for (const auto& [name, shard] : view->config->shards) duty.shards.push_back(name);
  return duty;
}

std::string ClusterProcess::NoContact() const {
  if (Lost()) return "no contact with ZooKeeper";
  return control_.View()->contact ? "" : "the cluster's nodes are not read yet";
}

std::string ClusterProcess::NoPlan() const {
  const std::shared_ptr<const MemberView> view = control_.View();
  if (!view->contact) return NoContact();
  return view->generation > 0 ? "" : "no plan: no leader has given this worker an assignment yet";
}

std::string ClusterProcess::StandsStill(Micros patience) const {
  return driver_->StandsStill(patience) ? "coordination" : "";
}

bool ClusterProcess::Stop() {
  if (measured_) measured_->End();
  if (driver_) driver_->Stop();
  const bool quiet = alerts_.Stop();
  return upkeep_.Stop() && quiet;
}

}  // namespace millrace::engine

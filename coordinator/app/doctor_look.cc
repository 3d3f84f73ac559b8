#include <algorithm>
#include <set>
#include <thread>

#include "coordinator/app/cluster/cluster_health.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/app/doctor.h"
#include "coordinator/app/schedule/schedule_book.h"
#include "coordinator/coordination/zookeeper/inspect.h"
#include "coordinator/doctor/host_look.h"
#include "coordinator/doctor/shard_look.h"
#include "framework/mill/permits.h"

namespace millrace::engine {
namespace {

using doctor::Examination;
using doctor::TreeFacts;

constexpr Micros kServerLimit = std::chrono::seconds(2);
constexpr Micros kTreeLimit = std::chrono::seconds(8);
// Of each shard a worker has: two settles, maintenance, the beat, the doorbell.
constexpr std::size_t kEngineConnections = 5;
// And of each of its scanners: what it asks itself, and the claim that it sends ahead.
constexpr std::size_t kScannerConnections = 2;

class Looker {
 public:
  Looker(const DoctorOptions& options, Settings settings, const Clock& clock)
      : options_(options), settings_(std::move(settings)), clock_(clock) {
    seen_.scratch = options.scratch;
  }

  Examination Run() {
    const doctor::ClockWatch watch(clock_);
    if (settings_.cluster) LookAtCluster();
    seen_.has_schedules = seen_.has_schedules || !settings_.config.schedules.empty();
    LookAtHost();
    LookAtShards();
    if (seen_.tree) FindUnrunnable();
    seen_.host.clock_step = watch.Step();
    return std::move(seen_);
  }

 private:
  void LookAtCluster();
  Status ReadCluster(TreeFacts& tree);
  void LookAtHost();
  void LookAtShards();
  void FindUnrunnable();
  void LookAtSchedules(Shards& shards);
  void Secret(const std::string& file, const std::string& use) {
    if (!file.empty() && secrets_.insert(file).second)
      seen_.host.secrets.push_back(doctor::LookAtSecret(file, use));
  }
  std::size_t ConnectionsOf(const ShardConfig& shard) const;

  const DoctorOptions& options_;
  Settings settings_;
  const Clock& clock_;
  Examination seen_;
  std::set<std::string> secrets_;
  // What the workers that are there run; nullopt: anything, or it is not known.
  std::optional<std::set<std::string>> types_;
};

void Looker::LookAtCluster() {
  const ClusterAddress& address = *settings_.cluster;
  TreeFacts& tree = seen_.tree.emplace();
  tree.address = address.servers;
  tree.cluster = address.name;
  tree.digest = !address.auth_file.empty();
  tree.now = clock_.WallNow();
  if (const auto words = AskServers(address.servers, kServerLimit)) {
    for (const ServerWord& word : *words)
      tree.servers.push_back({word.address, word.mode, word.trouble, word.answers});
  }
  auto found = InspectZookeeper({address.servers, address.name, std::chrono::seconds(10), address.auth_file},
                                kTreeLimit);
  if (!found) {
    tree.away = found.error();
    return;
  }
  tree.open = std::move(found->open);
  tree.more = found->more;
  for (const auto& [path, bytes] : found->large) tree.large.push_back({path, bytes});
  for (const ClusterNodes& nodes : found->clusters)
    tree.clusters.push_back({nodes.name, nodes.nodes, nodes.workers, nodes.last_write});
  // Nobody works with a digest on nodes that are open.
  if (!tree.open.empty()) return;
  if (Status read = ReadCluster(tree); !read) tree.away = read.error();
}

Status Looker::ReadCluster(TreeFacts& tree) {
  BOOST_OUTCOME_TRY(client, ClusterClient::Open(*settings_.cluster, kTreeLimit));
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(*client));
  types_ = TypesOf(snapshot.workers);
  BOOST_OUTCOME_TRY(layers, ReadLayers(*client, settings_));
  settings_.config = *layers.Effective();
  seen_.has_schedules = layers.Refusals().contains("schedules");
  if (options_.common.store.empty() && !settings_.config.shards.empty())
    settings_.shards = settings_.config.shards;
  // Both are told in words of their own; the shards are looked at elsewhere.
  snapshot.plan.unrunnable.clear();
  tree.pauses = std::exchange(snapshot.pauses, {});
  ShardStates named;
  for (const auto& [name, shard] : settings_.shards) named[name];
  for (const Trouble& trouble : Troubles(snapshot, named, clock_.WallNow()))
    tree.troubles.push_back(ToText(trouble));
  return {};
}

void Looker::LookAtHost() {
  const CommonFlags& flags = options_.common;
  doctor::LookAtPlugins(PluginFolder(flags), BuiltInPlugin(), seen_.host);
  seen_.host.spaces.push_back(doctor::LookAtSpace(
      flags.state_dir.empty() ? DefaultStateFolder() : flags.state_dir, "the state folder"));
  Secret(settings_.password_file, "MILLRACE_PASSWORD_FILE");
  if (settings_.cluster) Secret(settings_.cluster->auth_file, "--zk-auth-file");
  for (const auto& [name, shard] : settings_.shards) {
    Secret(shard.password_file, "shards." + name + ".password_file");
    if (shard.doorbell) Secret(shard.doorbell->password_file, "shards." + name + ".doorbell.password_file");
  }
  seen_.host.zones_trouble = doctor::ZonesTrouble();
  for (const auto& [type, handler] : settings_.config.handlers) {
    for (const auto& [name, source] : handler.secrets)
      Secret(source.file, "handlers." + type + ".secrets." + name);
  }
}

std::size_t Looker::ConnectionsOf(const ShardConfig& shard) const {
  const ScannersConfig& scanners = settings_.config.engine.scanners;
  const std::size_t scans = scanners.by == ScannersConfig::By::Shard ? 1 : scanners.most;
  const std::size_t permits = PermitRulesOf(settings_.config).empty() ? 0 : 1;
  const std::size_t engine = kEngineConnections + permits + scans * kScannerConnections;
  if (shard.max_transactions > 0) return engine + shard.max_transactions;
  std::size_t threads = 0;
  for (const auto& [type, handler] : settings_.config.handlers) threads += handler.concurrency;
  return engine + std::max<std::size_t>(threads, HandlerConfig{}.concurrency);
}

void Looker::LookAtShards() {
  auto shards = OpenShards(settings_);
  if (!shards) {
    seen_.shards_unknown = shards.error().message;
    return;
  }
  // While ZooKeeper is away, or open to everybody, nobody can tell, and that is a finding already.
  const bool unread = seen_.tree && (seen_.tree->away || !seen_.tree->open.empty());
  if (shards->empty() && !unread) seen_.shards_unknown = "neither the cluster nor this process names a store";
  std::vector<doctor::ShardLook> looks;
  for (auto& [name, shard] : *shards) {
    doctor::ShardFacts facts{.shard = name, .where = shard.store->Describe()};
    if (shard.url.kind == StoreUrl::Kind::Sqlite) {
      const std::size_t slash = shard.url.path.rfind('/');
      const std::string folder = slash == std::string::npos ? "." : shard.url.path.substr(0, slash + 1);
      seen_.host.spaces.push_back(doctor::LookAtSpace(folder, "the store's folder"));
      if (const auto file = doctor::LookAtFile(shard.url.path)) seen_.host.files.push_back(*file);
      if (Status there = Reach(shard, Missing::Refuse); !there) facts.away = there.error();
    }
    facts.clustered = settings_.cluster.has_value();
    facts.doorbell = AsStarted(shard.config, settings_).doorbell.has_value();
    facts.connections_each = ConnectionsOf(shard.config);
    looks.emplace_back(*shard.store, clock_, std::move(facts));
  }
  ForEachAtOnce(looks.size(), [&](std::size_t i) { looks[i].Begin({.scratch = options_.scratch}); });
  Micros wait{0};
  for (const doctor::ShardLook& look : looks) wait = std::max(wait, look.Wait());
  std::this_thread::sleep_for(wait);
  seen_.shards.resize(looks.size());
  ForEachAtOnce(looks.size(), [&](std::size_t i) { seen_.shards[i] = looks[i].Finish(); });
  if (!settings_.config.schedules.empty()) LookAtSchedules(*shards);
}

void Looker::LookAtSchedules(Shards& shards) {
  std::map<std::string, ShardScheduleFacts> told;
  for (const doctor::ShardFacts& facts : seen_.shards) {
    Shard& shard = shards.at(facts.shard);
    const Status ready = facts.away ? Status(Fail(*facts.away)) : Prepare(shard, Missing::Refuse);
    told[facts.shard] = ReadShardSchedules(shard, ready, settings_.config);
  }
  KnownHandlers handlers = types_;
  if (!handlers && !settings_.cluster) handlers = HandlerNamesAtHand(options_.common);
  for (const auto& schedule : FactsOf(settings_.config, told, handlers, clock_.WallNow())) {
    for (const ScheduleTrouble& trouble : schedule.troubles)
      seen_.schedules.push_back({schedule.name, trouble.name, trouble.what});
  }
}

void Looker::FindUnrunnable() {
  if (!types_) return;
  for (const doctor::ShardFacts& shard : seen_.shards) {
    for (const std::string& type : shard.handlers) {
      if (!types_->contains(type)) seen_.tree->unrunnable[shard.shard].push_back(type);
    }
  }
}

}  // namespace

Result<Examination> Examine(const DoctorOptions& options, const Clock& clock) {
  // A cluster that names its shards needs no store of this process's.
  BOOST_OUTCOME_TRY(settings, ResolveSettings(options.common, Variable, kDefaultStore));
  return Looker(options, std::move(settings), clock).Run();
}

}  // namespace millrace::engine

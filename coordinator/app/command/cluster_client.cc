#include "coordinator/app/command/cluster_client.h"

#include "coordinator/app/cli/terminal.h"
#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/coordination/json_text.h"
#include "coordinator/coordination/zookeeper/zookeeper.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr int kTries = 5;

ErrorCode CodeOf(TreeStatus status) {
  switch (status) {
    case TreeStatus::NotFound:
      return ErrorCode::NotFound;
    case TreeStatus::Exists:
    case TreeStatus::Conflict:
      return ErrorCode::Conflict;
    case TreeStatus::Lost:
    case TreeStatus::Expired:
      return ErrorCode::Unavailable;
    default:
      return ErrorCode::Invalid;
  }
}

Failure Failed(const TreeReply& reply) {
  return Fail(CodeOf(reply.status), "ZooKeeper: " + std::string(ToString(reply.status)) +
                                        (reply.message.empty() ? "" : ": " + reply.message));
}

constexpr Micros kSilence = std::chrono::seconds(3);  // longer, and people wonder
constexpr Micros kAskPatiently = std::chrono::seconds(20);
constexpr Micros kAskBriefly = std::chrono::seconds(2);  // where there is another answer

Status AskCluster(Settings& settings, ClusterClient& client) {
  BOOST_OUTCOME_TRY(layers, ReadLayers(client, settings));
  settings.config = *layers.Effective();
  settings.shards = settings.config.shards;
  if (const std::string ignored = layers.Ignored(); !ignored.empty()) PrintNote("note: " + ignored);
  if (settings.shards.empty()) {
    const auto refused = layers.Refusals().find("shards");
    if (refused != layers.Refusals().end()) return Fail(ErrorCode::Invalid, refused->second);
    return Fail(
        ErrorCode::Invalid,
        "no store is named: give --store mysql://user@host:port/database, or name the cluster's shards "
        "with millrace config set shards");
  }
  for (auto& [name, shard] : settings.shards) {
    if (shard.password_file.empty()) shard.password_file = settings.password_file;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ClusterClient>> ClusterClient::Open(const ClusterAddress& address, Micros limit,
                                                           bool make) {
  if (limit <= 2 * kSilence) return TryToOpen(address, limit, make);
  auto client = TryToOpen(address, kSilence, make);
  if (client || client.error().code != ErrorCode::Unavailable) return client;
  PrintNote("ZooKeeper at " + address.servers + " does not answer yet; trying for " +
            FormatDuration(limit - kSilence) + " more");
  return TryToOpen(address, limit - kSilence, make);
}

Result<std::unique_ptr<ClusterClient>> ClusterClient::TryToOpen(const ClusterAddress& address, Micros limit,
                                                                bool make) {
  const ZookeeperOptions options{address.servers, address.name, std::chrono::seconds(10), address.auth_file};
  BOOST_OUTCOME_TRYV(make ? PrepareZookeeper(options, limit) : FindCluster(options, limit));
  BOOST_OUTCOME_TRY(session, OpenZookeeper(options));
  std::unique_ptr<ClusterClient> client(new ClusterClient(std::move(session)));
  const BootTime deadline = BootClock::now() + limit;
  while (BootClock::now() < deadline) {
    const auto event = client->session_->WaitEvent(std::chrono::seconds(1));
    if (event && event->kind == TreeEvent::Kind::Connected) return client;
  }
  return Fail(ErrorCode::Unavailable, "no session with ZooKeeper at " + address.servers + " within " +
                                          FormatDuration(limit) +
                                          ": see whether all of its servers run, and try again");
}

TreeReply ClusterClient::Ask(const TreeRequest& request) {
  TreeReply reply;
  for (int i = 0; i < kTries; ++i) {
    reply = session_->Perform(request);
    const bool lost = reply.status == TreeStatus::Lost || reply.status == TreeStatus::Expired;
    if (!lost || request.kind == TreeRequest::Kind::Write) break;
    (void)session_->WaitEvent(std::chrono::seconds(1));
  }
  return reply;
}

Result<std::optional<TreeNode>> ClusterClient::Get(const std::string& path) {
  TreeReply reply = Ask({TreeRequest::Kind::Get, path});
  if (reply.status == TreeStatus::Ok) return std::optional<TreeNode>(std::move(reply.node));
  if (reply.status == TreeStatus::NotFound) return std::optional<TreeNode>();
  return Failed(reply);
}

Result<std::vector<std::string>> ClusterClient::List(const std::string& path) {
  TreeReply reply = Ask({TreeRequest::Kind::List, path});
  if (reply.status == TreeStatus::Ok || reply.status == TreeStatus::NotFound)
    return std::move(reply.children);
  return Failed(reply);
}

Status ClusterClient::Write(std::vector<TreeWrite> writes, std::size_t most_bytes) {
  TreeRequest request{TreeRequest::Kind::Write};
  request.writes = std::move(writes);
  request.most_bytes = most_bytes;
  const TreeReply reply = Ask(request);
  if (reply.status == TreeStatus::Ok) return {};
  if (reply.status != TreeStatus::Lost) return Failed(reply);
  return Fail(ErrorCode::Unknown,
              "the connection to ZooKeeper was lost under the write: look, and repeat it");
}

Status ClusterClient::Put(const std::string& path, const std::string& data) {
  Status done = Write({{TreeWrite::Kind::Set, path, data}});
  if (done || done.error().code != ErrorCode::NotFound) return done;
  done = Write({{TreeWrite::Kind::Create, path, data}});
  if (done || done.error().code != ErrorCode::NotFound) return done;
  for (TreeWrite& above : FixedNodesAbove(path)) {
    Status made = Write({std::move(above)});
    if (!made && made.error().code != ErrorCode::Conflict) return made;
  }
  return Write({{TreeWrite::Kind::Create, path, data}});
}

Result<bool> ClusterClient::Remove(const std::string& path) {
  Status done = Write({{TreeWrite::Kind::Remove, path}});
  if (done) return true;
  if (done.error().code == ErrorCode::NotFound) return false;
  return Fail(done.error());
}

Result<ClusterConnection> Connect(const CommonFlags& flags, bool make) {
  BOOST_OUTCOME_TRY(settings, ResolveCluster(flags, Variable));
  BOOST_OUTCOME_TRY(client, ClusterClient::Open(*settings.cluster, std::chrono::seconds(20), make));
  return ClusterConnection{std::move(settings), std::move(client)};
}

Result<ConfigLayers> ReadLayers(ClusterClient& client, const Settings& settings) {
  ConfigLayers layers(settings.config_text, settings.config_file, settings.own_store);
  for (const char* part : kConfigParts) {
    BOOST_OUTCOME_TRY(node, client.Get(std::string("/config/") + part));
    layers.SetPart(part, node ? node->data : "");
  }
  return layers;
}

Result<Shards> OpenShards(ClusterConnection& cluster) {
  BOOST_OUTCOME_TRYV(AskCluster(cluster.settings, *cluster.client));
  return OpenShards(cluster.settings);
}

Result<Settings> ResolveShards(const CommonFlags& flags, const std::string& default_store,
                               WorkerBells* bells) {
  auto settings = ResolveSettings(flags, Variable, default_store);
  if (!settings || !settings->cluster || !flags.store.empty()) return settings;
  const bool named = !settings->shards.empty();
  auto client = ClusterClient::Open(*settings->cluster, named ? kAskBriefly : kAskPatiently);
  if (!client && named) {
    PrintNote("the cluster can't be asked for its shards, so " + settings->store_from +
              " says where to look: " + client.error().message);
    return settings;
  }
  if (!client) return Fail(client.error());
  BOOST_OUTCOME_TRYV(AskCluster(*settings, **client));
  if (bells != nullptr) *bells = WorkerBells::Of(**client);
  return settings;
}

Result<PresentWorkers> ReadWorkers(ClusterClient& client, std::size_t most) {
  PresentWorkers workers;
  BOOST_OUTCOME_TRY(ids, client.List("/workers"));
  if (ids.size() > most)
    return Fail(ErrorCode::Invalid, "there are more than " + std::to_string(most) + " workers");
  for (const std::string& id : ids) {
    BOOST_OUTCOME_TRY(node, client.Get("/workers/" + id));
    if (!node) continue;
    auto document = ReadWorker(node->data);
    workers.all_read = workers.all_read && document;
    if (document) workers.documents.emplace(id, std::move(*document));
  }
  return workers;
}

std::optional<std::set<std::string>> TypesOf(const std::map<std::string, WorkerDocument>& workers) {
  if (workers.empty()) return std::nullopt;
  std::set<std::string> types;
  for (const auto& [id, worker] : workers) {
    if (!worker.limits.handlers) return std::nullopt;
    types.insert(worker.limits.handlers->begin(), worker.limits.handlers->end());
  }
  return types;
}

Result<std::optional<std::set<std::string>>> TypesOfWorkers(ClusterClient& client) {
  BOOST_OUTCOME_TRY(workers, ReadWorkers(client));
  return workers.all_read ? TypesOf(workers.documents) : std::nullopt;
}

std::string AuditStamp(const std::string& reason) {
  nlohmann::ordered_json stamp{{"by", Actor()}, {"at", FormatTime(SystemClock().WallNow())}};
  if (!reason.empty()) stamp["reason"] = reason;
  return JsonText(stamp);
}

}  // namespace millrace::engine

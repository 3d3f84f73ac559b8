#include "coordinator/app/cluster_client.h"

#include "coordinator/coordination/fixed_nodes.h"
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

}  // namespace

Result<std::unique_ptr<ClusterClient>> ClusterClient::Open(const ClusterAddress& address, Micros limit,
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
  return Fail(ErrorCode::Unavailable,
              "no session with ZooKeeper at " + address.servers + " within " + FormatDuration(limit));
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

Status ClusterClient::Write(std::vector<TreeWrite> writes) {
  TreeRequest request{TreeRequest::Kind::Write};
  request.writes = std::move(writes);
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

}  // namespace millrace::engine

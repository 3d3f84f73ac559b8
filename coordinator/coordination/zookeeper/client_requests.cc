// The requests of a client, and the answers to them.
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "coordinator/coordination/zookeeper/client.h"
#include "coordinator/coordination/zookeeper/pending_request.h"
#include "coordinator/coordination/zookeeper/replies.h"

namespace millrace::engine {

// What the library calls, on threads of its own. The handle is closed, which ends these threads, before the
// client goes.
struct ZookeeperClient::Callbacks {
  static PendingRequest& RequestOf(const void* data) {
    return *static_cast<PendingRequest*>(const_cast<void*>(data));
  }

  // News of the session come to every watcher, too; OnSession has told them.
  static void OnWatch(zhandle_t*, int type, int, const char* path, void* context) {
    auto* const client = static_cast<ZookeeperClient*>(context);
    if (type == ZOO_SESSION_EVENT) return;
    client->events_.Push({.kind = TreeEvent::Kind::Changed, .path = client->Relative(path)});
  }

  static void OnData(int code, const char* value, int size, const Stat* stat, const void* data) {
    PendingRequest& request = RequestOf(data);
    TreeReply reply;
    if (code == ZOK) {
      // A node made by hand may hold no data at all: its size is -1.
      if (size > 0) reply.node.data.assign(value, static_cast<std::size_t>(size));
      reply.node.version = stat->version;
      reply.node.created = stat->czxid;
      reply.node.owner = stat->ephemeralOwner;
      reply.node.set_at = WallTime(std::chrono::milliseconds(stat->mtime));
      reply.node.children = stat->numChildren;
    }
    request.client->Finish(request, code, std::move(reply));
  }

  static void OnStat(int code, const Stat*, const void* data) {
    PendingRequest& request = RequestOf(data);
    request.client->Finish(request, code, {});
  }

  static void OnNames(int code, const String_vector* names, const void* data) {
    PendingRequest& request = RequestOf(data);
    TreeReply reply;
    if (code == ZOK) reply.children.assign(names->data, names->data + names->count);
    std::sort(reply.children.begin(), reply.children.end());
    request.client->Finish(request, code, std::move(reply));
  }

  static void OnWritten(int code, const void* data) {
    PendingRequest& request = RequestOf(data);
    TreeReply reply;
    // Those after the refused one have an error of their own: "not tried".
    const auto refused = std::find_if(request.results.begin(), request.results.end(), [](const auto& result) {
      return result.err != ZOK && result.err != ZRUNTIMEINCONSISTENCY;
    });
    if (IsAnswer(code) && refused != request.results.end()) {
      reply.failed = static_cast<std::size_t>(refused - request.results.begin());
      code = refused->err;
    }
    request.client->Finish(request, code, std::move(reply));
  }

  static void OnAccess(int code, ACL_vector* list, Stat*, const void* data) {
    PendingRequest& request = RequestOf(data);
    const auto for_all = [](const ACL& entry) {
      return std::strcmp(entry.id.scheme, "world") == 0 && (entry.perms & ~ZOO_PERM_READ) != 0;
    };
    request.open = code == ZOK && std::any_of(list->data, list->data + list->count, for_all);
    request.client->Finish(request, code, {});
  }

  static void OnDone(int code, const void* data) {
    PendingRequest& request = RequestOf(data);
    request.client->Finish(request, code, {});
  }

  static void OnSync(int code, const char*, const void* data) {
    PendingRequest& request = RequestOf(data);
    request.client->Finish(request, code, {});
  }
};

namespace {

void AddOperation(const TreeWrite& write, const std::string& path, const ACL_vector* acl, zoo_op_t* op) {
  const int size = static_cast<int>(write.data.size());
  switch (write.kind) {
    case TreeWrite::Kind::Check:
      return zoo_check_op_init(op, path.c_str(), write.version);
    case TreeWrite::Kind::Create:
      return zoo_create_op_init(op, path.c_str(), write.data.data(), size, acl, ZOO_PERSISTENT, nullptr, 0);
    case TreeWrite::Kind::CreateEphemeral:
      return zoo_create_op_init(op, path.c_str(), write.data.data(), size, acl, ZOO_EPHEMERAL, nullptr, 0);
    case TreeWrite::Kind::Set:
      return zoo_set_op_init(op, path.c_str(), write.data.data(), size, write.version, nullptr);
    case TreeWrite::Kind::Remove:
      return zoo_delete_op_init(op, path.c_str(), write.version);
  }
}

}  // namespace

ZookeeperClient::Sent ZookeeperClient::Get(const std::string& path, bool watch) {
  PendingRequest& request = NewRequest(false);
  return {&request, zoo_awget(handle_, Absolute(path).c_str(), watch ? Callbacks::OnWatch : nullptr, this,
                              Callbacks::OnData, &request)};
}

ZookeeperClient::Sent ZookeeperClient::WatchExistence(const std::string& path) {
  PendingRequest& request = NewRequest(false);
  return {&request, zoo_awexists(handle_, Absolute(path).c_str(), Callbacks::OnWatch, this, Callbacks::OnStat,
                                 &request)};
}

ZookeeperClient::Sent ZookeeperClient::List(const std::string& path, bool watch) {
  PendingRequest& request = NewRequest(false);
  return {&request, zoo_awget_children(handle_, Absolute(path).c_str(), watch ? Callbacks::OnWatch : nullptr,
                                       this, Callbacks::OnNames, &request)};
}

ZookeeperClient::Sent ZookeeperClient::Write(const std::vector<TreeWrite>& writes) {
  std::vector<std::string> paths;
  for (const TreeWrite& write : writes) paths.push_back(Absolute(write.path));
  return WriteTo(paths, writes);
}

void ZookeeperClient::MakeParent(BootTime deadline) {
  const std::string parent = options_.base.substr(0, options_.base.rfind('/'));
  if (!parent.empty()) (void)Await(WriteTo({parent}, {{.kind = TreeWrite::Kind::Create}}), deadline);
}

ZookeeperClient::Sent ZookeeperClient::WriteTo(const std::vector<std::string>& paths,
                                               const std::vector<TreeWrite>& writes) {
  const ACL_vector* const acl = options_.digest.empty() ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  std::vector<zoo_op_t> operations(writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) AddOperation(writes[i], paths[i], acl, &operations[i]);
  PendingRequest& request = NewRequest(true);
  request.results.resize(writes.size());
  return {&request, zoo_amulti(handle_, static_cast<int>(operations.size()), operations.data(),
                               request.results.data(), Callbacks::OnWritten, &request)};
}

ZookeeperClient::Sent ZookeeperClient::ReadAccess(const std::string& path) {
  PendingRequest& request = NewRequest(false);
  return {&request, zoo_aget_acl(handle_, Absolute(path).c_str(), Callbacks::OnAccess, &request)};
}

TreeReply ZookeeperClient::AwaitAccess(const Sent& sent, bool& open, BootTime deadline) {
  TreeReply reply = Await(sent, deadline);
  // An answered request stays until the next one is sent.
  MutexLock lock(mutex_);
  if (reply.status == TreeStatus::Ok) open = sent.request->open;
  return reply;
}

ZookeeperClient::Sent ZookeeperClient::CloseAccess(const std::string& path) {
  PendingRequest& request = NewRequest(true);
  return {&request, zoo_aset_acl(handle_, Absolute(path).c_str(), -1, &ZOO_CREATOR_ALL_ACL, Callbacks::OnDone,
                                 &request)};
}

TreeReply ZookeeperClient::Sync(BootTime deadline) { return Await(SendSync(true), deadline); }

void ZookeeperClient::Probe() {
  const Sent sent = SendSync(false);
  MutexLock lock(mutex_);
  if (sent.code != ZOK) sent.request->done = true;
}

ZookeeperClient::Sent ZookeeperClient::SendSync(bool awaited) {
  PendingRequest& request = NewRequest(true, awaited);
  request.is_sync = true;
  return {&request, zoo_async(handle_, Absolute("/").c_str(), Callbacks::OnSync, &request)};
}

ZookeeperClient::PendingRequest& ZookeeperClient::NewRequest(bool by_leader, bool awaited) {
  MutexLock lock(mutex_);
  requests_.remove_if([](const PendingRequest& request) { return request.done && !request.awaited; });
  return requests_.emplace_back(
      PendingRequest{.client = this, .sent = BootClock::now(), .by_leader = by_leader, .awaited = awaited});
}

TreeReply ZookeeperClient::Await(const Sent& sent, BootTime deadline) {
  MutexLock lock(mutex_);
  PendingRequest& request = *sent.request;
  request.awaited = false;
  if (sent.code != ZOK) {
    request.done = true;
    return {.status = StatusOf(sent.code), .message = zerror(sent.code)};
  }
  request.waits = true;
  while (!request.done) {
    const Micros left = deadline - BootClock::now();
    if (left <= Micros(0)) return {.status = TreeStatus::Lost, .message = "no reply in time"};
    answered_.WaitFor(mutex_, left);
  }
  return std::move(request.reply);
}

void ZookeeperClient::Finish(PendingRequest& request, int code, TreeReply reply) {
  reply.status = StatusOf(code);
  if (code != ZOK) reply.message = zerror(code);
  MutexLock lock(mutex_);
  if (request.by_leader && IsAnswer(code)) key_.last_contact = std::max(key_.last_contact, request.sent);
  if (request.is_sync && code == ZOK) caught_up_ = true;
  request.reply = std::move(reply);
  request.done = true;
  if (request.waits) answered_.NotifyAll();
}

std::string ZookeeperClient::Absolute(const std::string& path) const {
  if (path != "/") return options_.base + path;
  return options_.base.empty() ? "/" : options_.base;
}

std::string ZookeeperClient::Relative(const std::string& path) const {
  return path.size() <= options_.base.size() ? "/" : path.substr(options_.base.size());
}

}  // namespace millrace::engine

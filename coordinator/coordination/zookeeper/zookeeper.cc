#include "coordinator/coordination/zookeeper/zookeeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/coordination/zookeeper/address.h"
#include "coordinator/coordination/zookeeper/inspect.h"
#include "coordinator/coordination/zookeeper/zookeeper_session.h"
#include "framework/base/suggest.h"
#include "framework/store/url.h"

namespace millrace::engine {
namespace {

struct Settings {
  ZookeeperAddress address;
  std::string digest;
};

Result<std::string> ReadDigest(const std::string& file) {
  if (file.empty()) return std::string();
  BOOST_OUTCOME_TRY(digest, ReadPasswordFile(file));
  const auto colon = digest.find(':');
  if (colon == digest.npos || colon == 0 || colon + 1 == digest.size()) {
    return Fail(ErrorCode::Invalid, "the ZooKeeper auth file " + file + " must hold one line, user:password");
  }
  return digest;
}

Result<Settings> Check(const ZookeeperOptions& options) {
  BOOST_OUTCOME_TRY(address, ParseZookeeperAddress(options.servers));
  BOOST_OUTCOME_TRYV(CheckClusterName(options.cluster));
  if (options.session_timeout < std::chrono::milliseconds(500) ||
      options.session_timeout > std::chrono::minutes(10)) {
    return Fail(ErrorCode::Invalid, "the session time-out must lie between 500ms and 10m");
  }
  BOOST_OUTCOME_TRY(digest, ReadDigest(options.auth_file));
  return Settings{std::move(address), std::move(digest)};
}

constexpr std::ptrdiff_t kAskedAtOnce = 100;
// An inspection looks at so many nodes of a cluster, and tells so many of the largest.
constexpr std::size_t kMostInspected = 20'001;
constexpr std::size_t kLargest = 5;

// Looks for nodes and makes them, one by one, with its paths relative to the chroot.
class Preparation {
 public:
  Preparation(const ZookeeperOptions& options, const Settings& settings, Micros limit)
      : options_(options),
        settings_(settings),
        limit_(limit),
        session_({settings.address.hosts, settings.address.chroot, settings.digest, options.session_timeout}),
        deadline_(BootClock::now() + (BootClock::now() - begun_) + limit) {}

  Status MakeAll() {
    BOOST_OUTCOME_TRYV(FindChroot());
    BOOST_OUTCOME_TRYV(Make("/millrace", ""));
    BOOST_OUTCOME_TRYV(Make(base_, ""));
    for (const FixedNode& node : kFixedNodes) {
      BOOST_OUTCOME_TRYV(Make(base_ + std::string(node.path), std::string(node.data)));
    }
    return CheckClosed();
  }

  Status Find() {
    BOOST_OUTCOME_TRYV(FindChroot());
    const TreeReply cluster = Ask({.kind = TreeRequest::Kind::Get, .path = base_});
    if (cluster.status == TreeStatus::Ok) return CheckClosed();
    if (cluster.status != TreeStatus::NotFound) return Refused(cluster);
    const TreeReply known = Ask({.kind = TreeRequest::Kind::List, .path = "/millrace"});
    return known.children.empty() ? MakeAll() : ClusterIsMissing(known.children);
  }

  // The cluster's own node comes last: as long as it is open, there is still something to do.
  Result<Protection> Protect() {
    BOOST_OUTCOME_TRYV(FindChroot());
    const TreeReply cluster = Ask({.kind = TreeRequest::Kind::List, .path = base_});
    if (cluster.status == TreeStatus::NotFound) {
      return Fail(
          ClusterIsMissing(Ask({.kind = TreeRequest::Kind::List, .path = "/millrace"}).children).error());
    }
    if (cluster.status != TreeStatus::Ok) return Fail(Refused(cluster).error());
    Protection done;
    std::vector<std::string> level;
    for (const std::string& name : cluster.children) level.push_back(base_ + "/" + name);
    // Parents before their children: then nobody makes open ones any more.
    while (!level.empty()) {
      BOOST_OUTCOME_TRYV(Close(level, done));
      BOOST_OUTCOME_TRY(below, Below(level));
      level = std::move(below);
    }
    BOOST_OUTCOME_TRYV(Close({base_}, done));
    return done;
  }

  // Every cluster of the chroot; those of other digests may keep their nodes to themselves.
  Result<TreeInspection> Inspect() {
    BOOST_OUTCOME_TRYV(FindChroot());
    const TreeReply known = Ask({.kind = TreeRequest::Kind::List, .path = "/millrace"});
    if (known.status != TreeStatus::Ok && known.status != TreeStatus::NotFound)
      return Fail(Refused(known).error());
    if (std::find(known.children.begin(), known.children.end(), options_.cluster) == known.children.end())
      return Fail(ClusterIsMissing(known.children).error());
    TreeInspection found;
    for (const std::string& name : known.children) {
      BOOST_OUTCOME_TRYV(InspectCluster(name, found));
    }
    std::sort(found.large.begin(), found.large.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
    found.large.resize(std::min(found.large.size(), kLargest));
    return found;
  }

 private:
  using Access = ZookeeperSession::Access;

  Status InspectCluster(const std::string& name, TreeInspection& found) {
    const std::string base = "/millrace/" + name;
    const bool own = name == options_.cluster;
    ClusterNodes cluster{.name = name};
    std::vector<std::string> level = {base};
    while (!level.empty()) {
      if (cluster.nodes + level.size() > kMostInspected) {
        level.resize(kMostInspected - cluster.nodes);
        found.more = true;
      }
      cluster.nodes += level.size();
      std::vector<std::string> children;
      // Their data is not kept, however much it is.
      for (std::size_t at = 0; at < level.size(); at += kAskedAtOnce) {
        const auto begin = level.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = std::min<std::ptrdiff_t>(kAskedAtOnce, level.end() - begin);
        BOOST_OUTCOME_TRY(some, InspectSome({begin, begin + count}, own, cluster, found));
        children.insert(children.end(), some.begin(), some.end());
      }
      if (own && !settings_.digest.empty()) {
        const std::vector<Access> all = ReadAccess(level);
        for (std::size_t i = 0; i < level.size(); ++i) {
          if (all[i].reply.status == TreeStatus::Ok && all[i].open) found.open.push_back(level[i]);
        }
      }
      level = std::move(children);
    }
    found.clusters.push_back(std::move(cluster));
    return {};
  }

  // Notes what these nodes are like; returns those below them.
  Result<std::vector<std::string>> InspectSome(const std::vector<std::string>& paths, bool own,
                                               ClusterNodes& cluster, TreeInspection& found) {
    const std::vector<TreeReply> nodes = ReadEach(TreeRequest::Kind::Get, paths);
    const std::string workers = "/millrace/" + cluster.name + "/workers";
    std::vector<std::string> parents;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const TreeReply& reply = nodes[i];
      if (reply.status == TreeStatus::NotFound || (reply.status == TreeStatus::Denied && !own)) continue;
      if (reply.status != TreeStatus::Ok) return Fail(Refused(reply).error());
      cluster.last_write = std::max(cluster.last_write, reply.node.set_at);
      if (paths[i] == workers) cluster.workers = static_cast<std::size_t>(reply.node.children);
      found.large.emplace_back(paths[i], reply.node.data.size());
      if (reply.node.children > 0) parents.push_back(paths[i]);
    }
    return Below(parents);
  }

  // A digest that everybody can go around protects nothing.
  Status CheckClosed() {
    if (settings_.digest.empty()) return {};
    BOOST_OUTCOME_TRYV(CheckClosed(base_));
    for (const FixedNode& node : kFixedNodes) {
      BOOST_OUTCOME_TRYV(CheckClosed(base_ + std::string(node.path)));
    }
    return {};
  }

  Status CheckClosed(const std::string& path) {
    const Access access = ReadAccess({path}).front();
    if (access.reply.status == TreeStatus::NotFound) return {};
    if (access.reply.status != TreeStatus::Ok) return Refused(access.reply);
    if (!access.open) return {};
    return Fail(ErrorCode::Invalid,
                "the cluster " + options_.cluster + " in ZooKeeper at " + options_.servers +
                    " was made without a digest, so that everybody may change it (" + path +
                    "): close it with millrace cluster protect --zk-auth-file " + options_.auth_file);
  }

  Status Close(const std::vector<std::string>& paths, Protection& done) {
    const std::vector<Access> all = ReadAccess(paths);
    std::vector<std::string> open;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (all[i].reply.status == TreeStatus::NotFound) continue;
      if (all[i].reply.status != TreeStatus::Ok) return Refused(all[i].reply);
      ++done.nodes;
      if (all[i].open) open.push_back(paths[i]);
    }
    const auto closed = InWindows<TreeReply>(
        open, [this](const auto& some) { return session_.CloseAccess(some); },
        [](auto& reply) { return reply; });
    const std::string workers = base_ + "/workers/";
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (closed[i].status == TreeStatus::NotFound) continue;
      if (closed[i].status != TreeStatus::Ok) return Refused(closed[i]);
      ++done.closed;
      if (open[i].starts_with(workers)) done.without_digest.push_back(open[i].substr(workers.size()));
    }
    return {};
  }

  Result<std::vector<std::string>> Below(const std::vector<std::string>& paths) {
    const std::vector<TreeReply> lists = ReadEach(TreeRequest::Kind::List, paths);
    std::vector<std::string> below;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (lists[i].status == TreeStatus::NotFound) continue;
      if (lists[i].status != TreeStatus::Ok) return Fail(Refused(lists[i]).error());
      for (const std::string& name : lists[i].children) below.push_back(paths[i] + "/" + name);
    }
    return below;
  }

  std::vector<TreeReply> ReadEach(TreeRequest::Kind kind, const std::vector<std::string>& paths) {
    const auto ask = [&](const auto& some) {
      std::vector<TreeRequest> requests;
      for (const std::string& path : some) requests.push_back({.kind = kind, .path = path});
      return session_.PerformAll(requests);
    };
    return InWindows<TreeReply>(paths, ask, [](auto& reply) { return reply; });
  }

  std::vector<Access> ReadAccess(const std::vector<std::string>& paths) {
    return InWindows<Access>(
        paths, [this](const auto& some) { return session_.ReadAccess(some); },
        [](auto& access) { return access.reply; });
  }

  Status FindChroot() {
    const TreeReply chroot = Ask({.kind = TreeRequest::Kind::Get, .path = "/"});
    if (chroot.status == TreeStatus::NotFound) return ChrootIsMissing();
    return chroot.status == TreeStatus::Ok ? Status() : Refused(chroot);
  }

  Status Make(const std::string& path, const std::string& data) {
    const TreeReply there = Ask({.kind = TreeRequest::Kind::Get, .path = path});
    if (there.status == TreeStatus::Ok) return {};
    if (there.status != TreeStatus::NotFound) return Refused(there);
    TreeRequest create{.kind = TreeRequest::Kind::Write};
    create.writes.push_back({.kind = TreeWrite::Kind::Create, .path = path, .data = data});
    const TreeReply made = Ask(create);
    // Another process may have been first, or a lost reply was a success.
    if (made.status == TreeStatus::Ok || made.status == TreeStatus::Exists) return {};
    return Refused(made);
  }

  TreeReply Ask(const TreeRequest& request) {
    return Until([&] { return session_.Perform(request); });
  }

  // Asks until there is an answer, or the limit has passed.
  template <class Question>
  TreeReply Until(Question question) {
    while (true) {
      TreeReply reply = question();
      if (IsAnswer(reply) || !WaitForServer()) return reply;
    }
  }

  // The same of many nodes: a window of them is under way at once, and those without an answer are asked for
  // again. `ask` gives a reply for each path in order, `reply_of` what the tree said in it.
  template <class Reply, class Ask, class ReplyOf>
  std::vector<Reply> InWindows(const std::vector<std::string>& paths, Ask ask, ReplyOf reply_of) {
    std::vector<Reply> replies;
    while (replies.size() < paths.size()) {
      const auto begin = paths.begin() + static_cast<std::ptrdiff_t>(replies.size());
      const auto count = std::min<std::ptrdiff_t>(kAskedAtOnce, paths.end() - begin);
      for (Reply& reply : ask(std::vector<std::string>(begin, begin + count))) {
        if (IsAnswer(reply_of(reply))) {
          replies.push_back(std::move(reply));
        } else if (WaitForServer()) {
          break;  // from here on anew
        } else {
          replies.resize(paths.size());  // Lost, all of them
          return replies;
        }
      }
    }
    return replies;
  }

  static bool IsAnswer(const TreeReply& reply) {
    return reply.status != TreeStatus::Lost && reply.status != TreeStatus::Expired;
  }

  // False: the limit has passed.
  bool WaitForServer() {
    const Micros left = deadline_ - BootClock::now();
    if (left <= Micros(0)) return false;
    (void)session_.WaitEvent(std::min<Micros>(left, std::chrono::milliseconds(100)));
    return true;
  }

  Status Refused(const TreeReply& reply) const {
    const std::string where = "ZooKeeper at " + settings_.address.hosts;
    if (reply.status == TreeStatus::Lost || reply.status == TreeStatus::Expired) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit_).count();
      return Fail(ErrorCode::Unavailable,
                  "can't reach " + where + " (tried for " + std::to_string(seconds) +
                      " s): start it, or correct host and port in --zk or MILLRACE_ZK");
    }
    if (reply.status != TreeStatus::Denied) return Fail(ErrorCode::Internal, where + ": " + reply.message);
    const std::string what = where + " does not permit us to " + reply.message;
    if (options_.auth_file.empty()) {
      return Fail(ErrorCode::Invalid, what + ": name the file with the digest that made it (--zk-auth-file)");
    }
    return Fail(ErrorCode::Invalid, what + ": it was made with another digest than the one in " +
                                        options_.auth_file + "; use that one's file, or another chroot");
  }

  Status ChrootIsMissing() const {
    return Fail(ErrorCode::Invalid, "the chroot " + settings_.address.chroot +
                                        " does not exist in ZooKeeper at " + settings_.address.hosts +
                                        "; make it: " + ChrootCommands(settings_.address));
  }

  Status ClusterIsMissing(const std::vector<std::string>& known) const {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "; there are " : ", ") + name;
    const std::string hint = DidYouMean(options_.cluster, known);
    return Fail(ErrorCode::Invalid, "there is no cluster '" + options_.cluster + "' in ZooKeeper at " +
                                        options_.servers + (hint.empty() ? names : hint) +
                                        ": its first worker makes it, or millrace config set");
  }

  const ZookeeperOptions& options_;
  const std::string base_ = "/millrace/" + options_.cluster;
  const Settings& settings_;
  const Micros limit_;
  const BootTime begun_ = BootClock::now();
  ZookeeperSession session_;
  const BootTime deadline_;  // names that were looked up for the session are looked up again to connect
};

}  // namespace

Result<std::unique_ptr<TreeSession>> OpenZookeeper(const ZookeeperOptions& options) {
  BOOST_OUTCOME_TRY(settings, Check(options));
  return std::make_unique<ZookeeperSession>(
      ZookeeperClientOptions{.hosts = settings.address.hosts,
                             .base = settings.address.chroot + "/millrace/" + options.cluster,
                             .digest = settings.digest,
                             .session_timeout = options.session_timeout});
}

Status PrepareZookeeper(const ZookeeperOptions& options, Micros limit) {
  BOOST_OUTCOME_TRY(settings, Check(options));
  return Preparation(options, settings, limit).MakeAll();
}

Result<Protection> ProtectZookeeper(const ZookeeperOptions& options, Micros limit) {
  if (options.auth_file.empty()) {
    return Fail(ErrorCode::Invalid,
                "name the file with the digest that the cluster's nodes are to be for: --zk-auth-file FILE");
  }
  BOOST_OUTCOME_TRY(settings, Check(options));
  return Preparation(options, settings, limit).Protect();
}

Result<TreeInspection> InspectZookeeper(const ZookeeperOptions& options, Micros limit) {
  BOOST_OUTCOME_TRY(settings, Check(options));
  return Preparation(options, settings, limit).Inspect();
}

Status FindCluster(const ZookeeperOptions& options, Micros limit) {
  BOOST_OUTCOME_TRY(settings, Check(options));
  return Preparation(options, settings, limit).Find();
}

}  // namespace millrace::engine

// A worker's side of the cluster: registers, follows its assignment, the configuration and the pauses, and
// tells its status. What it can't read or may not do changes nothing: the last good word stays in force.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordination/config_layers.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/machine.h"
#include "coordinator/coordination/tree_mirror.h"
#include "coordinator/member/assignment.h"
#include "framework/policy/pauses.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

// A part of the configuration, as its node was read last.
struct ConfigRead {
  std::int32_t version = 0;
  std::int64_t made = 0;     // TreeNode::created
  std::string refused = {};  // why that is not in force; empty: it is
  // Of `handlers`.
  HandlerRefusals types = {};
  bool operator==(const ConfigRead&) const = default;
};

// What a worker tells at once when it changes, not at its next status.
struct MemberNews {
  std::uint64_t generation = 0;         // of the assignment
  std::uint64_t shares_generation = 0;  // of the page that has the shares
  // What is not in force, and why: `config/handlers: …`, `assign/w1: …`, `control/pause/x: …`.
  std::vector<std::string> refusals = {};
  std::map<std::string, ConfigRead> config_read = {};  // by part
  bool operator==(const MemberNews&) const = default;
};

// What a worker knows of its cluster at one time. Immutable once made.
struct MemberView : MemberNews {
  std::uint64_t epoch = 0;
  std::size_t slice_count = 0;
  std::shared_ptr<const SlicesByShard> slices = std::make_shared<const SlicesByShard>();
  // Of the limits, for this life of the worker.
  std::shared_ptr<const LimitShares> shares = std::make_shared<const LimitShares>();
  std::shared_ptr<const Config> config = std::make_shared<const Config>();
  std::shared_ptr<const Pauses> pauses = std::make_shared<const Pauses>();
  bool contact = false;    // the cluster's nodes have been read
  bool id_in_use = false;  // another process has had the id for longer than a session lasts: give up
  // Of the config/schedules that is in force: greater the later it was written, also by who made the node
  // anew, since each write of a node takes a transaction number of its own.
  std::int64_t schedules_number = 0;
  bool shards_refused = false;  // config/shards is not in force: there may be shards that nobody here knows
  std::string ignored = {};     // what this process was started with and does not follow, and why
};

// The text of the status node. `more`: what the worker adds, one JSON object. Of many refusals the first are
// told, of long ones the beginning; where that is not enough only the essence of `more`.
std::string StatusText(const std::string& incarnation, const MemberView& view, const std::string& more);

struct MemberOptions {
  std::string id;
  WorkerDocument document;  // its incarnation is unique to this life; its lists are sorted
  Micros session_timeout = std::chrono::seconds(10);
  Micros status_interval = std::chrono::seconds(2);
  bool registers = true;  // false: only the configuration and the pauses are followed
  // Of what is assigned these task types alone are scanned; sorted. nullopt: all.
  std::optional<std::vector<std::string>> handlers = {};
};

class Member final : public TreeMachine {
 public:
  struct Calls {
    // There is a new view. Called from Next.
    std::function<void(const MemberView&)> publish;
    // What the worker has to tell, one JSON object; asked each status_interval, and where `pressing` says so.
    // All that the cluster says was read in the present session. May be empty.
    std::function<std::string()> status;
    // The task types that the worker runs under this configuration; nullopt: what the document says.
    std::function<std::optional<std::vector<std::string>>(const Config&)> types;
    // The shards of this configuration that the worker can open, sorted. Empty function: every shard.
    std::function<std::vector<std::string>(const Config&)> shards = {};
    // Nodes that always exist were missing, and this process makes them again. May be empty.
    std::function<void(const std::vector<std::string>&)> made_again = {};
    // The time of the wall for people. Empty: they are told no times.
    std::function<WallTime()> wall = {};
    // By shard: which database the worker has found there, as far as it has; asked each status_interval. May
    // be empty.
    std::function<std::map<std::string, std::string>()> databases = {};
    // What the process has made of `engine.http` of this configuration: nullopt where it has not tried yet,
    // why it does not answer there, or nothing. Asked often; an empty function: it does not follow that key.
    std::function<std::optional<std::string>(const EngineConfig&)> listens = {};
    // What the handlers refuse of this configuration; nullopt where they have not been asked yet. Asked
    // often; an empty function: it runs none.
    std::function<std::optional<HandlerRefusals>(const std::shared_ptr<const Config>&)> handlers = {};
    // Whether what the leader divides limits by has changed since `status` was asked; nullopt: there are
    // none. May be empty.
    std::function<std::optional<bool>()> pressing = {};
  };

  Member(MemberOptions options, ConfigLayers layers, Calls calls);

  void Event(const TreeEvent& event, BootTime now) override;
  std::optional<TreeRequest> Next(BootTime now) override;
  void Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) override;
  BootTime WakeAt(BootTime now) const override;
  // Takes its node away and announces its leave, so that nobody takes its end for a crash.
  std::optional<TreeRequest> Farewell() override;

  bool Registered() const { return registered_; }
  const MemberView& View() const { return view_; }

 private:
  std::optional<TreeRequest> MakeMissingAgain(BootTime now);
  bool IsMissing(const std::string& path) const;
  bool IsEmptied(const std::string& path) const;
  std::optional<std::string> LastWord(const std::string& path) const;
  std::optional<TreeRequest> Register(BootTime now);
  std::optional<TreeRequest> TellStatus(BootTime now);
  void LookAtDatabases(BootTime now);
  void LookAtProcess();
  void Recompute();
  bool FollowAssignment();
  bool FollowConfig();
  // The configuration in force, with what operators say of this worker in place of some of it.
  bool FollowRowLimits(bool changed);
  bool NoteConfigRead();
  bool FollowPauses();
  bool FollowLimits();
  WorkerLimits Served() const;
  void ReadLimitsNode();
  void Refuse(const std::string& node, std::string why);
  std::vector<std::string> Refusals() const;
  bool AnotherHasIt(const TreeNode& node, BootTime now);

  const MemberOptions options_;
  ConfigLayers layers_;
  const Calls calls_;
  const std::string own_;     // workers/<id>
  const std::string assign_;  // assign/<id>
  const std::string status_;  // status/<id>
  const std::string limits_;  // control/limits/<id>
  TreeMirror mirror_;
  std::string document_;  // what the own node should say: with its types, and within the limits
  std::int64_t session_ = 0;
  Micros session_timeout_;  // the longer of what was asked for and what the servers granted
  bool registered_ = false;
  std::string other_;  // the incarnation of another process that has the id
  BootTime other_since_{};

  bool dirty_ = true;                 // something was read since the last Recompute
  std::vector<std::string> missing_;  // of the nodes that always exist
  BootTime make_again_from_{};
  std::map<std::string, TreeNode> config_nodes_;  // of the parts, by path: the last word
  std::uint64_t term_ = 0;                        // the highest in which a page of its was written
  std::vector<std::string> assign_texts_;
  std::shared_ptr<const SlicesByShard> assigned_ = std::make_shared<const SlicesByShard>();
  std::map<std::string, std::uint32_t> row_limits_;  // that the view's configuration has
  LimitsDocument limited_;                           // by operators, while it runs
  WorkerLimits scans_;                               // of what it scans
  std::set<std::string> pause_names_;
  std::map<std::string, std::string> refusals_;  // by node
  MemberView view_;
  MemberNews told_;
  BootTime told_at_{};
  BootTime written_at_{};
  std::map<std::string, std::string> databases_;
  BootTime databases_at_{};  // when they are asked for next
  // As the process said last.
  std::optional<std::string> listens_ = std::string();
  std::optional<HandlerRefusals> handlers_ = HandlerRefusals();
  bool has_limits_ = false;      // as the process said last
  bool status_refused_ = false;  // the last time that it was written
};

}  // namespace millrace::engine

// Machines on one tree without a network: every request is answered at once, every change told to all.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/coordination/machine.h"
#include "coordinator/testing/tree_replica.h"

namespace millrace::engine {

class MachineRoom {
 public:
  MachineRoom() {
    for (const FixedNode& node : kFixedNodes) {
      Write({{TreeWrite::Kind::Create, std::string(node.path), std::string(node.data)}});
    }
  }

  // The machine's process has a session of its own.
  void Add(TreeMachine& machine) {
    machines_[&machine] = ++sessions_;
    machine.Event({TreeEvent::Kind::Connected, "", sessions_, granted_}, now_);
  }
  // So long the servers let sessions live from now on; 0: they do not say.
  void Grant(Micros timeout) { granted_ = timeout; }
  // Its process is gone, and its session with it.
  void Kill(TreeMachine& machine) {
    TreeChanges changes;
    tree_.RemoveOwned(machines_.at(&machine), changes);
    machines_.erase(&machine);
    Tell(changes);
  }
  // Its process asks and does nothing any more, and its session is not over yet.
  void Freeze(TreeMachine& machine) { frozen_.insert(&machine); }
  // Its process ends in good order.
  void Leave(TreeMachine& machine) {
    if (const auto last = machine.Farewell()) Apply(last->writes, machines_.at(&machine));
    Kill(machine);
  }
  // The machine was cut off, and is back within its session.
  void Reconnect(TreeMachine& machine) {
    machine.Event({TreeEvent::Kind::Disconnected}, now_);
    machine.Event({TreeEvent::Kind::Connected, "", machines_.at(&machine), granted_}, now_);
  }
  // The session is over; the process lives, and has a new one.
  void Expire(TreeMachine& machine) {
    TreeChanges changes;
    tree_.RemoveOwned(machines_.at(&machine), changes);
    machine.Event({TreeEvent::Kind::Expired}, now_);
    machines_[&machine] = ++sessions_;
    machine.Event({TreeEvent::Kind::Connected, "", sessions_, granted_}, now_);
    Tell(changes);
  }
  TreeReply Read(const TreeRequest& request) const { return tree_.Read(request); }
  // Somebody writes with zkCli.
  TreeStatus Write(std::vector<TreeWrite> writes) { return Apply(writes, 0).status; }
  void Put(const std::string& path, const std::string& data) {
    if (Write({{TreeWrite::Kind::Set, path, data}}) == TreeStatus::Ok) return;
    Write({{TreeWrite::Kind::Create, path, data}});
  }

  // Somebody deletes a node with all that is below it.
  void Delete(const std::string& top) {
    std::vector<TreeWrite> writes;
    const std::string below = top == "/" ? top : top + "/";
    for (auto node = tree_.nodes().rbegin(); node != tree_.nodes().rend(); ++node) {
      if (node->first == top || node->first.starts_with(below))
        writes.push_back({TreeWrite::Kind::Remove, node->first});
    }
    Write(std::move(writes));
  }

  // Until nobody has anything to ask. False: it did not come to rest.
  bool Settle() {
    for (int i = 0; i < 10000; ++i) {
      if (!Step()) return true;
    }
    return false;
  }
  bool Pass(Micros time) {
    now_ += time;
    return Settle();
  }

  bool Has(const std::string& path) const { return tree_.nodes().contains(path); }
  const std::string& Data(const std::string& path) const { return tree_.nodes().at(path).data; }
  std::int32_t Version(const std::string& path) const { return tree_.nodes().at(path).version; }
  BootTime now() const { return now_; }
  int writes() const { return writes_; }
  // Changes are told to nobody: a watch is only a hint.
  void LoseNews(bool lose) { news_lost_ = lose; }
  // The answer to the next write is lost on its way back.
  void LoseNextReply() { lose_ = true; }
  // The next write of a machine is not permitted.
  void RefuseNext() { refuse_ = true; }
  // The node has an access list by which no machine may read or set it.
  void Deny(const std::string& path) { denied_.insert(path); }
  void Allow(const std::string& path) { denied_.erase(path); }

 private:
  bool Step() {
    bool any = false;
    for (const auto& [machine, session] : std::map(machines_)) {
      if (!machines_.contains(machine) || frozen_.contains(machine)) continue;
      const auto request = machine->Next(now_);
      if (!request) continue;
      any = true;
      machine->Replied(*request, Answer(*request, session), now_);
    }
    return any;
  }
  TreeReply Answer(const TreeRequest& request, std::int64_t session) {
    if (request.kind != TreeRequest::Kind::Write)
      return denied_.contains(request.path) ? TreeReply{.status = TreeStatus::Denied} : tree_.Read(request);
    const bool denied =
        std::any_of(request.writes.begin(), request.writes.end(), [&](const TreeWrite& write) {
          return write.kind == TreeWrite::Kind::Set && denied_.contains(write.path);
        });
    if (std::exchange(refuse_, false) || denied) return {.status = TreeStatus::Denied};
    if (BytesOf(request.writes) > request.most_bytes) return {.status = TreeStatus::Invalid};
    TreeReply reply = Apply(request.writes, session);
    if (!lose_) return reply;
    lose_ = false;
    return {};
  }
  TreeReply Apply(const std::vector<TreeWrite>& writes, std::int64_t session) {
    TreeChanges changes;
    ++writes_;
    TreeReply reply = tree_.Apply(writes, session, ++transactions_, changes);
    if (reply.status == TreeStatus::Ok) Tell(changes);
    return reply;
  }
  void Tell(const TreeChanges& changes) {
    if (news_lost_) return;
    for (const auto& [machine, session] : machines_) {
      for (const auto& path : changes.nodes) machine->Event({TreeEvent::Kind::Changed, path}, now_);
      for (const auto& path : changes.parents) machine->Event({TreeEvent::Kind::Changed, path}, now_);
    }
  }

  TreeReplica tree_;
  std::map<TreeMachine*, std::int64_t> machines_;
  std::set<TreeMachine*> frozen_;
  std::int64_t sessions_ = 0;
  Micros granted_{0};
  std::int64_t transactions_ = 0;
  BootTime now_{std::chrono::hours(1)};
  int writes_ = 0;
  bool lose_ = false;
  bool news_lost_ = false;
  bool refuse_ = false;
  std::set<std::string> denied_;
};

}  // namespace millrace::engine

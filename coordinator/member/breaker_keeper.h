// A worker's part in the cluster's breakers: one node for each that is open, `control/breaker/<type>`.
// Whoever opens one makes the node, whoever wants to probe writes its name into it, and whose probes succeed
// removes it. Each write names the version that it has read, so of all who want the same turn one gets it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/machine.h"
#include "coordinator/coordination/tree_mirror.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// control/breaker/<type>: it is open.
struct BreakerDocument {
  std::string since;  // RFC 3339
  std::string why;
  std::string by;      // the worker that opened it
  std::string prober;  // who took the last turn at probing; empty: nobody has yet
  std::string life;    // that worker's incarnation
  std::string probed;  // when; RFC 3339
  bool operator==(const BreakerDocument&) const = default;
};
// What can't be read of it is left empty: that the node is there says that the breaker is open.
BreakerDocument ReadBreaker(std::string_view text);
std::string ToText(const BreakerDocument& document);

class BreakerKeeper final : public TreeMachine {
 public:
  struct Calls {
    // What the worker asks for; nullopt: no task type has a breaker.
    std::function<std::optional<BreakerAsks>()> asks;
    std::function<void(BreakerWords)> publish;
    std::function<WallTime()> wall;  // for people
  };

  BreakerKeeper(std::string id, std::string incarnation, Calls calls);

  void Event(const TreeEvent& event, BootTime now) override;
  std::optional<TreeRequest> Next(BootTime now) override;
  void Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) override;
  BootTime WakeAt(BootTime now) const override;

 private:
  void Publish();
  std::optional<TreeRequest> Fulfil(const std::string& type, const BreakerAsk& ask);

  const std::string id_;
  const std::string incarnation_;
  const Calls calls_;
  TreeMirror mirror_;
  bool connected_ = false;
  bool dirty_ = true;
  bool asked_ = false;  // some task type has a breaker
  BootTime write_from_{};
};

}  // namespace millrace::engine

// Runs the machines of one modelled process on its session, as the real driver does on a real one: of each
// several reads at a time, or a write, events in between.
#pragma once

#include <memory>
#include <vector>

#include "coordinator/coordination/machine.h"
#include "coordinator/testing/modelled_process.h"

namespace millrace::engine {

class TreeDriver {
 public:
  TreeDriver(Timeline& timeline, ModelledEnsemble& ensemble, ModelledProcess& process, Journal& journal,
             Micros timeout, std::vector<TreeMachine*> machines);
  TreeDriver(const TreeDriver&) = delete;

  // The machines say farewell, and the session is closed. They are asked nothing more.
  void Leave();
  // Asks every machine again soon, since something changed outside of the tree.
  void Wake() { WakeAt(timeline_.Now()); }

  const ModelledClient& client() const { return client_; }

 private:
  struct Place {
    TreeMachine* machine;
    BootTime ask_from{};    // after a request that was lost
    std::size_t asked = 0;  // requests under way
    bool writing = false;   // the last of them is a write
  };

  void Event(const TreeEvent& event);
  void Pump();
  // Asks a machine for all that it wants now; when to do so again.
  BootTime Serve(Place& place, BootTime now);
  void Ask(Place& place, const TreeRequest& request);
  void WakeAt(BootTime when);

  void Trace(const TreeRequest& request, const TreeReply& reply);

  Timeline& timeline_;
  Journal& journal_;
  const std::string name_;
  Strand& strand_;
  std::vector<Place> places_;
  bool left_ = false;
  BootTime wake_at_ = BootTime::max();
  ModelledClient client_;
};

}  // namespace millrace::engine

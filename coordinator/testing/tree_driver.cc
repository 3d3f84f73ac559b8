#include "coordinator/testing/tree_driver.h"

#include <algorithm>
#include <array>

namespace millrace::engine {
namespace {

constexpr Micros kAfterLost = std::chrono::milliseconds(100);
constexpr Micros kShortestPause = std::chrono::milliseconds(1);
constexpr std::size_t kReadsAtOnce = 100;  // of one machine

}  // namespace

TreeDriver::TreeDriver(Timeline& timeline, ModelledEnsemble& ensemble, ModelledProcess& process,
                       Journal& journal, Micros timeout, std::vector<TreeMachine*> machines)
    : timeline_(timeline),
      journal_(journal),
      name_(process.name),
      strand_(process.On(ThreadName::Tree)),
      client_({timeline, ensemble, strand_, process.tree, timeout},
              [this](const TreeEvent& event) { Event(event); }) {
  for (TreeMachine* machine : machines) places_.push_back({machine});
}

void TreeDriver::Event(const TreeEvent& event) {
  if (journal_.Traces()) {
    constexpr std::array kWords{"is told of a change of ", "is connected", "is disconnected",
                                "is told of its expiry"};
    journal_.Trace(name_ + " " + kWords.at(static_cast<std::size_t>(event.kind)) + event.path);
  }
  for (Place& place : places_) {
    place.ask_from = {};
    place.machine->Event(event, timeline_.Now());
  }
  // A step of its own: a machine is never asked from within what it was told.
  WakeAt(timeline_.Now());
}

void TreeDriver::Leave() {
  if (left_) return;
  for (const Place& place : places_) {
    if (auto last = place.machine->Farewell()) client_.Ask(std::move(*last), [](const TreeReply&) {});
  }
  client_.Close();
  left_ = true;
}

void TreeDriver::Pump() {
  if (left_) return;
  const BootTime now = timeline_.Now();
  BootTime wake = BootTime::max();
  for (Place& place : places_) wake = std::min(wake, Serve(place, now));
  WakeAt(std::max(wake, now + kShortestPause));
}

BootTime TreeDriver::Serve(Place& place, BootTime now) {
  if (place.ask_from > now) return place.ask_from;
  while (!place.writing && place.asked < kReadsAtOnce) {
    const auto request = place.machine->Next(now);
    if (!request) return place.machine->WakeAt(now);
    Ask(place, *request);
  }
  return BootTime::max();  // the next reply goes on
}

void TreeDriver::Ask(Place& place, const TreeRequest& request) {
  ++place.asked;
  place.writing = request.kind == TreeRequest::Kind::Write;
  client_.Ask(request, [this, &place, request](const TreeReply& reply) {
    --place.asked;
    if (request.kind == TreeRequest::Kind::Write) place.writing = false;
    const BootTime now = timeline_.Now();
    if (reply.status == TreeStatus::Lost || reply.status == TreeStatus::Expired) {
      place.ask_from = now + kAfterLost;
    }
    if (journal_.Traces()) Trace(request, reply);
    place.machine->Replied(request, reply, now);
    WakeAt(now);
  });
}

void TreeDriver::Trace(const TreeRequest& request, const TreeReply& reply) {
  std::string line = name_ + " reads " + request.path;
  if (request.kind == TreeRequest::Kind::Write) {
    line = name_ + " writes";
    for (const TreeWrite& write : request.writes) line += " " + write.path;
  }
  journal_.Trace(line + ": " + ToString(reply.status));
}

void TreeDriver::WakeAt(BootTime when) {
  if (when >= wake_at_ || when == BootTime::max()) return;
  wake_at_ = when;
  timeline_.After(when - timeline_.Now(), &strand_, [this, when] {
    if (wake_at_ == when) wake_at_ = BootTime::max();
    Pump();
  });
}

}  // namespace millrace::engine

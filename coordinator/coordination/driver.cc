#include "coordinator/coordination/driver.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace {
namespace {

// How long a machine whose request was lost, or whose write was refused, waits for an event before it is
// asked again: it must not keep a server busy with what it will go on refusing.
constexpr Micros kAfterFailure = std::chrono::milliseconds(100);
// A machine that has nothing to ask and yet wants to be asked at once must not keep the thread busy.
constexpr Micros kShortestPause = std::chrono::milliseconds(1);
constexpr Micros kLongestPause = std::chrono::hours(1);

}  // namespace

Driver::Driver(std::unique_ptr<TreeSession> session, std::vector<TreeMachine*> machines, const Clock& clock)
    : clock_(clock), tree_(session.get()), session_(std::move(session)) {
  for (TreeMachine* machine : machines) places_.push_back({.machine = machine});
}

void Driver::Start() {
  MutexLock life(life_);
  if (started_ || stopping_) return;
  started_ = true;
  thread_ = Thread("coordination", [this] { Run(); });
}

void Driver::Stop() {
  MutexLock life(life_);
  stopping_ = true;
  Wake();
  thread_.Join();
  Close();  // where it never ran
}

void Driver::Wake() {
  MutexLock lock(mutex_);
  if (session_ != nullptr) session_->Interrupt();
}

SessionView Driver::View() const {
  MutexLock lock(mutex_);
  SessionView view = view_;
  if (session_ == nullptr) return view;
  view.last_contact = session_->LastContact();
  view.timeout = session_->Timeout();
  return view;
}

void Driver::Run() {
  while (!stopping_) {
    const bool busy = ServeEach();
    Micros limit = busy ? Micros(0) : Pause();
    while (auto event = tree_->WaitEvent(limit)) {
      Tell(*event);
      limit = Micros(0);
    }
  }
  for (const Place& place : places_) {
    if (const auto last = place.machine->Farewell()) (void)tree_->Perform(*last);
  }
  Close();
}

bool Driver::ServeEach() {
  bool busy = false;
  for (Place& place : places_) busy = Serve(place) || busy;
  return busy;
}

// Performs one request, so that every machine has its turn. False: it has nothing to ask now.
bool Driver::Serve(Place& place) {
  if (stopping_ || clock_.Now() < place.ask_from) return false;
  const auto request = place.machine->Next(clock_.Now());
  if (!request) return false;
  const TreeReply reply = tree_->Perform(*request);
  const BootTime now = clock_.Now();
  const bool read = request->kind != TreeRequest::Kind::Write;
  if (reply.status != TreeStatus::Ok && !(read && reply.status == TreeStatus::NotFound)) {
    place.ask_from = now + kAfterFailure;
  }
  place.machine->Replied(*request, reply, now);
  return true;
}

void Driver::Tell(const TreeEvent& event) {
  if (event.kind != TreeEvent::Kind::Changed) {
    MutexLock lock(mutex_);
    view_.connected = event.kind == TreeEvent::Kind::Connected;
    if (view_.connected) view_.session = event.session;
  }
  const BootTime now = clock_.Now();
  for (Place& place : places_) {
    place.ask_from = {};
    place.machine->Event(event, now);
  }
}

Micros Driver::Pause() const {
  const BootTime now = clock_.Now();
  BootTime wake = now + kLongestPause;
  for (const Place& place : places_) {
    // One that is left alone after a lost request has more to ask, whatever its WakeAt.
    wake = std::min(wake, place.ask_from > now ? place.ask_from : place.machine->WakeAt(now));
  }
  return std::max(wake - now, kShortestPause);
}

void Driver::Close() {
  std::unique_ptr<TreeSession> session;  // goes after the lock, since it says farewell to a server
  MutexLock lock(mutex_);
  if (session_ == nullptr) return;
  view_ = {.session = view_.session, .last_contact = session_->LastContact(), .timeout = session_->Timeout()};
  session.swap(session_);
}

}  // namespace millrace

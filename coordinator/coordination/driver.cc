#include "coordinator/coordination/driver.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace::engine {
namespace {

// How long a machine whose request was lost, or whose write was refused, waits for an event before it is
// asked again: it must not keep a server busy with what it will go on refusing.
constexpr Micros kAfterFailure = std::chrono::milliseconds(100);
// A machine that has nothing to ask and yet wants to be asked at once must not keep the thread busy.
constexpr Micros kShortestPause = std::chrono::milliseconds(1);
constexpr Micros kLongestPause = std::chrono::hours(1);
// A request takes a session time-out at the latest, and that is ten minutes at most. So may a wait, beyond
// its limit: a session may be opened in it, which looks up host names, and a new connection brought up to
// date. Of name servers and servers that are slow or away the thread must not be said to stand still.
constexpr Micros kLongestReply = std::chrono::minutes(10);
// So many reads of a machine go out together: enough that the way to the server and back no longer counts,
// and not so many that others wait for long.
constexpr std::size_t kReadsAtOnce = 100;

}  // namespace

Driver::Driver(std::unique_ptr<TreeSession> session, std::vector<TreeMachine*> machines, const Clock& clock)
    : clock_(clock), tree_(session.get()), session_(std::move(session)) {
  for (TreeMachine* machine : machines) places_.push_back({.machine = machine});
}

Status Driver::Start() {
  MutexLock life(life_);
  if (started_ || stopping_) return {};
  Status started = thread_.Start("coordination", [this] { Run(); });
  started_ = started.has_value();
  return started;
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
    const bool busy = ServeAll();
    Micros limit = busy ? Micros(0) : Pause();
    while (auto event = Wait(limit)) {
      Tell(*event);
      limit = Micros(0);
    }
  }
  pulse_.Never();
  for (const Place& place : places_) {
    if (const auto last = place.machine->Farewell()) (void)tree_->Perform(*last);
  }
  Close();
}

std::optional<TreeEvent> Driver::Wait(Micros limit) {
  pulse_.Within(limit + kLongestReply);
  auto event = tree_->WaitEvent(limit);
  pulse_.Now();
  return event;
}

// Performs what the machines ask for now: of each some reads, or up to its next write. False: there is
// nothing.
bool Driver::ServeAll() {
  std::vector<Asked> asked;
  for (Place& place : places_) Collect(place, asked);
  if (asked.empty()) return false;
  std::vector<TreeRequest> requests;
  for (const Asked& each : asked) requests.push_back(each.request);
  pulse_.Within(kLongestReply);
  const std::vector<TreeReply> replies = tree_->PerformAll(requests);
  pulse_.Now();
  for (std::size_t i = 0; i < asked.size(); ++i) Answer(asked[i], replies[i]);
  return true;
}

void Driver::Collect(Place& place, std::vector<Asked>& asked) {
  const BootTime now = clock_.Now();
  if (stopping_ || now < place.ask_from) return;
  for (std::size_t i = 0; i < kReadsAtOnce; ++i) {
    auto request = place.machine->Next(now);
    if (!request) return;
    const bool write = request->kind == TreeRequest::Kind::Write;
    asked.push_back({&place, std::move(*request)});
    if (write) return;
  }
}

void Driver::Answer(const Asked& asked, const TreeReply& reply) {
  const BootTime now = clock_.Now();
  const bool read = asked.request.kind != TreeRequest::Kind::Write;
  if (reply.status != TreeStatus::Ok && !(read && reply.status == TreeStatus::NotFound)) {
    asked.place->ask_from = now + kAfterFailure;
  }
  asked.place->machine->Replied(asked.request, reply, now);
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

}  // namespace millrace::engine

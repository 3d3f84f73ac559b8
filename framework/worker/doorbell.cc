#include "framework/worker/doorbell.h"

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr const char* kOn = "on";
constexpr Micros kOneWait = std::chrono::seconds(10);

}  // namespace

Doorbell::Doorbell(const Clock& clock, Mill& mill, std::unique_ptr<ChangeFeed> feed)
    : clock_(clock), mill_(mill), feed_(std::move(feed)) {}

void Doorbell::Start() {
  if (!feed_) return;
  if (Status started = thread_.Start("bell", [this] { Run(); }); !started) Note(started.error().message);
}

void Doorbell::RequestStop() {
  stopping_.store(true);
  stop_.Notify();
  if (feed_) feed_->Interrupt();
}

void Doorbell::Stop() {
  RequestStop();
  thread_.Join();
}

std::string Doorbell::State() const {
  MutexLock lock(mutex_);
  return state_;
}

void Doorbell::Run() {
  Redial redial;
  while (!stopping_.load()) {
    Micros listened{0};
    const Error ended = Listen(listened);
    mill_.SetAttended(false);
    if (stopping_.load()) return;
    Note(ended.message);
    stop_.WaitFor(redial.After(ended.code, listened));
  }
}

Error Doorbell::Listen(Micros& listened) {
  if (const Status opened = feed_->Open(); !opened) return opened.error();
  const BootTime begun = clock_.Now();
  Note(kOn);
  mill_.SetAttended(true);
  mill_.Rung({});  // for what happened before
  while (true) {
    const auto rings = feed_->Next();
    listened = clock_.Now() - begun;
    if (!rings) return rings.error();
    if (stopping_.load()) return {ErrorCode::Cancelled, "the worker ends"};
    for (const Ring& ring : *rings) mill_.Rung(ring);
  }
}

// Once for each change: a server that is away for hours is tried again and again.
void Doorbell::Note(const std::string& state) {
  const bool on = state == kOn;
  {
    const std::string told = on ? state : "off: " + state;
    MutexLock lock(mutex_);
    if (state_ == told) return;
    state_ = told;
  }
  if (on) {
    LogInfo("the doorbell is on: new tasks are heard of at once", {{"shard", mill_.shard()}});
  } else {
    LogWarning("the doorbell is off: the shard is polled; it is tried again",
               {{"shard", mill_.shard()}, {"why", state}});
  }
}

Status RingListener::Start(const std::string& address) {
  BOOST_OUTCOME_TRY(socket, RingSocket::Open(address));
  socket_ = std::move(socket);
  Status started = thread_.Start("rings", [this] {
    while (!stopping_.load()) {
      if (const auto ring = socket_->Wait(kOneWait)) on_ring_(*ring);
    }
  });
  if (!started) socket_.reset();
  return started;
}

void RingListener::Stop() {
  stopping_.store(true);
  if (socket_) socket_->Interrupt();
  thread_.Join();
}

}  // namespace millrace::engine

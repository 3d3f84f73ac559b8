#include "framework/worker/permit_driver.h"

#include <map>
#include <set>

#include "framework/base/mutex.h"
#include "framework/worker/blocking_port.h"

namespace millrace::engine {

class PermitDriver::Port final : public Blocking<PermitPort> {
 public:
  using Mills = std::map<std::string, std::shared_ptr<ShardDriver>>;

  void Follow(const std::vector<std::shared_ptr<ShardDriver>>& mills) {
    Mills served;
    for (const auto& mill : mills) {
      if (!mill->Retired()) served.emplace(mill->shard(), mill);
    }
    MutexLock lock(mutex_);
    mills_.swap(served);
  }
  void RoomAgain() const {
    for (const auto& [shard, mill] : Current()) mill->RoomAgain();
  }

  std::vector<std::string> Shards() override {
    const Mills mills = Current();
    std::erase_if(sessions_, [&](const auto& session) { return !mills.contains(session.first); });
    std::vector<std::string> shards;
    for (const auto& [shard, mill] : mills) shards.push_back(shard);
    return shards;
  }
  std::string AddressOf(const std::string& shard) override {
    const auto mill = MillOf(shard);
    return shard + (mill ? " in " + mill->store()->Describe() : "");
  }
  std::shared_ptr<Lease> Life(const std::string& shard) override {
    const auto mill = MillOf(shard);
    return mill ? mill->Life() : nullptr;
  }
  bool OthersLive(const std::string& shard) override {
    const auto mill = MillOf(shard);
    return mill && mill->OthersLive();
  }

  Reply<Result<std::string>> Home(const std::string& shard) override {
    return AskOf<Result<std::string>>(shard, [&](PermitStore& store) { return store.Home(); });
  }
  Reply<Status> NameHome(const std::string& shard, const std::string& home) override {
    return AskOf<Status>(shard, [&](PermitStore& store) { return store.NameHome(home); });
  }
  Reply<Result<std::vector<Permit>>> Permits(const std::string& home,
                                             const std::vector<std::string>& handlers) override {
    return AskOf<Result<std::vector<Permit>>>(home,
                                              [&](PermitStore& store) { return store.Permits(handlers); });
  }
  Reply<Status> Make(const std::string& home, const std::string& handler, std::uint32_t count) override {
    return AskOf<Status>(home, [&](PermitStore& store) { return store.Make(handler, count); });
  }
  Reply<Result<std::vector<PermitAnswer>>> Change(const std::string& home, const std::string& incarnation,
                                                  const std::vector<PermitChange>& changes) override {
    return AskOf<Result<std::vector<PermitAnswer>>>(
        home, [&](PermitStore& store) { return store.Change(incarnation, changes); });
  }

 private:
  struct Session {
    std::shared_ptr<Store> store;
    std::unique_ptr<PermitStore> permits;  // last: ends before its store
  };

  Mills Current() const {
    MutexLock lock(mutex_);
    return mills_;
  }
  std::shared_ptr<ShardDriver> MillOf(const std::string& shard) const {
    MutexLock lock(mutex_);
    const auto mill = mills_.find(shard);
    return mill == mills_.end() ? nullptr : mill->second;
  }

  template <class Answer, class Statement>
  Answer AskOf(const std::string& shard, Statement statement) {
    const auto mill = MillOf(shard);
    if (!mill) {
      sessions_.erase(shard);
      return Fail(ErrorCode::Unavailable, "shard " + shard + " is served no more");
    }
    Session& session = sessions_[shard];
    if (session.store != mill->store()) {
      session.permits.reset();
      session = {mill->store(), mill->store()->OpenPermits()};
    }
    if (!session.permits) {
      return Fail(ErrorCode::Invalid, "the store of shard " + shard + " keeps no permits");
    }
    return Ask([&] { return statement(*session.permits); });
  }

  std::map<std::string, Session> sessions_;  // the strand's own
  mutable Mutex mutex_;
  Mills mills_ MILLRACE_GUARDED_BY(mutex_);
};

PermitDriver::PermitDriver(const Clock& clock, Runner& runner, Registry& metrics)
    : clock_(clock),
      port_(std::make_unique<Port>()),
      permits_({clock, runner, metrics, [this] { port_->RoomAgain(); }, Random::FromSystem().Next()},
               *port_) {}

PermitDriver::~PermitDriver() { Stop(); }

void PermitDriver::Watch(const std::vector<std::shared_ptr<ShardDriver>>& mills) {
  if (!permits_.Any()) return;
  port_->Follow(mills);
  permits_.Watch(clock_.Now());
  if (thread_.Started()) return;
  (void)thread_.Start("permits", [this] {
    port_->pulse().Now();
    (void)permits_.Run();
    port_->pulse().Never();
  });
}

void PermitDriver::Stop() {
  RequestStop();
  thread_.Join();
  port_->Follow({});
}

void PermitDriver::Tell(WorkerStatus& status) const {
  const Permits::View permits = permits_.Look();
  for (const PermitView& type : permits.types) {
    status.permits.push_back({type.handler, type.concurrency, type.held, type.waiting});
  }
  status.permit_home = permits.home;
  status.permit_trouble = permits.trouble;
  status.permits_locked = permits.locked;
}

bool PermitDriver::StandsStill(BootTime now, Micros patience) const {
  return port_->pulse().StandsStill(now, patience);
}

}  // namespace millrace::engine

#include "coordinator/testing/simulated_permits.h"

#include <algorithm>

namespace millrace::engine {

class SimulatedPermits::Port final : public Simulated<PermitPort> {
 public:
  explicit Port(const Parts& parts)
      : Simulated(parts.timeline, parts.process.On(ThreadName::Permits)), parts_(parts) {}

  void RoomAgain() const {
    for (std::size_t shard = 0; shard < parts_.shards.size(); ++shard) {
      if (Mill* mill = parts_.mill(shard)) mill->attempts().RoomAgain();
    }
  }

  std::vector<std::string> Shards() override {
    std::vector<std::string> served;
    for (std::size_t shard = 0; shard < parts_.shards.size(); ++shard) {
      if (parts_.mill(shard) != nullptr) served.push_back(parts_.shards[shard]);
    }
    return served;
  }
  std::shared_ptr<Lease> Life(const std::string& shard) override {
    Mill* mill = parts_.mill(NumberOf(shard));
    return mill == nullptr ? nullptr : mill->lives().Own();
  }
  bool OthersLive(const std::string& shard) override {
    Mill* mill = parts_.mill(NumberOf(shard));
    const auto live = mill == nullptr ? nullptr : mill->lives().Live();
    return live && live->size() > 1;
  }

  Reply<Result<std::string>> Home(const std::string& shard) override {
    return ReadOf<std::string>(DatabaseOf(shard), LinkTo(shard),
                               [](CheckedShard& checked) { return checked.shard().Home(); });
  }
  Reply<Status> NameHome(const std::string& shard, const std::string& home) override {
    return WriteOf<void>(DatabaseOf(shard), LinkTo(shard),
                         [home](CheckedShard& checked) { return checked.shard().NameHome(home); });
  }
  Reply<Result<std::vector<Permit>>> Permits(const std::string& home,
                                             const std::vector<std::string>& handlers) override {
    return ReadOf<std::vector<Permit>>(DatabaseOf(home), LinkTo(home), [handlers](CheckedShard& checked) {
      return checked.shard().Permits(handlers);
    });
  }
  Reply<Status> Make(const std::string& home, const std::string& handler, std::uint32_t count) override {
    return WriteOf<void>(DatabaseOf(home), LinkTo(home), [handler, count](CheckedShard& checked) {
      return checked.shard().Make(handler, count);
    });
  }
  Reply<Result<std::vector<PermitAnswer>>> Change(const std::string& home, const std::string& incarnation,
                                                  const std::vector<PermitChange>& changes) override {
    auto mail = std::make_shared<Mail<Result<std::vector<PermitAnswer>>>>();
    DatabaseOf(home).Change(LinkTo(home), strand_, incarnation, changes, Deliver(mail));
    return Reply<Result<std::vector<PermitAnswer>>>(std::move(mail));
  }

 private:
  std::size_t NumberOf(const std::string& shard) const {
    return static_cast<std::size_t>(std::find(parts_.shards.begin(), parts_.shards.end(), shard) -
                                    parts_.shards.begin());
  }
  ModelledDatabase& DatabaseOf(const std::string& shard) { return parts_.databases.at(NumberOf(shard)); }
  const DatabaseLink& LinkTo(const std::string& shard) const {
    return parts_.process.databases.at(NumberOf(shard));
  }

  const Parts parts_;
};

SimulatedPermits::SimulatedPermits(const Parts& parts)
    : port_(std::make_unique<Port>(parts)),
      permits_({parts.clock, parts.runner, parts.metrics, [this] { port_->RoomAgain(); },
                parts.timeline.random().Next()},
               *port_) {}

SimulatedPermits::~SimulatedPermits() = default;

void SimulatedPermits::Watch(BootTime now) {
  if (!permits_.Any()) return;
  permits_.Watch(now);
  if (!strand_) strand_.emplace(permits_.Run());
}

}  // namespace millrace::engine

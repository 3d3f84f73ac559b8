#include "coordinator/testing/simulated_mills.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "coordinator/testing/simulated_port.h"
#include "framework/policy/group_order.h"

namespace millrace::engine {
namespace {

using Tasks = std::vector<Task>;
using Rows = std::vector<ScanRow>;
using Ids = std::vector<std::uint64_t>;

}  // namespace

// A port to the shard's database.
template <class Port>
class OfShard : public Simulated<Port> {
 public:
  OfShard(const SimulatedMill::Parts& parts, ThreadName thread)
      : Simulated<Port>(parts.timeline, parts.process.On(thread, parts.number)),
        database_(parts.database),
        link_(parts.process.databases.at(parts.number)) {}

 protected:
  using Simulated<Port>::strand_;
  using Simulated<Port>::timeline_;
  using Simulated<Port>::Deliver;

  template <class T>
  using Statement = std::function<Result<T>(CheckedShard&)>;

  template <class T>
  Reply<Result<T>> Read(Statement<T> statement) {
    return Simulated<Port>::template ReadOf<T>(database_, link_, std::move(statement));
  }
  template <class T>
  Reply<Result<T>> Write(Statement<T> statement) {
    return Simulated<Port>::template WriteOf<T>(database_, link_, std::move(statement));
  }
  Reply<Result<std::vector<Rows>>> ReadPages(const std::vector<ScanRequest>& requests) {
    return Read<std::vector<Rows>>([requests](CheckedShard& shard) {
      return ScanInTurn(requests, [&](const ScanRequest& request) { return shard.shard().Scan(request); });
    });
  }
  // Waits for the claims that hold the flag of `id`.
  Reply<Result<bool>> SetFlag(const std::string& id, Statement<bool> statement) {
    auto mail = std::make_shared<Mail<Result<bool>>>();
    database_.SetFlag(link_, strand_, id, std::move(statement), Deliver(mail));
    return Reply<Result<bool>>(std::move(mail));
  }

  ModelledDatabase& database_;
  const DatabaseLink& link_;
};

class SimulatedScan final : public OfShard<ScanPort> {
 public:
  SimulatedScan(const SimulatedMill::Parts& parts, ThreadName thread)
      : OfShard(parts, thread),
        journal_(parts.journal),
        process_(parts.process),
        claims_(parts.claims),
        aging_now_(parts.aging),
        gated_(parts.gated),
        round_aging_(aging_now_()),
        aging_(round_aging_) {}

  Reply<Result<DueMap>> Due(const std::vector<TableSlices>& tables, const DueWanted& wanted) override {
    if (wanted.IsPart()) database_.NotePart();
    mapped_ = std::make_shared<WallTime>();
    aging_ = round_aging_;
    read_.clear();
    taken_.clear();
    return Read<DueMap>([tables, wanted, mapped = mapped_](CheckedShard& shard) {
      Result<DueMap> map = shard.shard().Due(tables, wanted);
      if (map) *mapped = map->now;
      return map;
    });
  }
  Reply<Result<std::vector<Rows>>> ScanEach(const std::vector<ScanRequest>& requests) override {
    CheckOrder(requests);
    return ReadPages(requests);
  }
  Reply<Result<Ids>> GreatestIds(const std::vector<TableName>& tables) override {
    return Read<Ids>([tables](CheckedShard& shard) { return shard.shard().GreatestIds(tables); });
  }
  bool UnchangedSince(BootTime, BootTime) const override { return false; }
  // As in the product: what came of a claim that was sent ahead is told by Landed, however long it is there.
  Reply<Claimed> Claim(ClaimRequest& request, bool ahead) override {
    claims_();
    taken_.clear();
    auto mail = std::make_shared<Mail<Claimed>>();
    if (ahead) ahead_ = mail;
    database_.Claim(link_, strand_, request, ahead,
                    [this, mail, ahead, sent = timeline_.Now()](Result<Tasks> tasks) {
                      Claimed claimed{std::move(tasks), timeline_.Now() - sent};
                      if (!ahead) return mail->Deliver(std::move(claimed));
                      arrived_ = std::move(claimed);
                      if (landing_) std::exchange(landing_, nullptr)->Deliver(TellLanded());
                    });
    request.contents.clear();
    return Reply<Claimed>(std::move(mail));
  }
  bool HasLanded() const override { return !ahead_ || arrived_; }
  Reply<bool> Landed() override {
    if (HasLanded()) return TellLanded();
    landing_ = std::make_shared<Mail<bool>>();
    return Reply<bool>(landing_);
  }
  Reply<Result<Ids>> FailUnclaimed(const ClaimRequest& request, const std::string&) override {
    return Write<Ids>([request](CheckedShard& shard) { return shard.FailUnclaimed(request); });
  }
  Reply<Result<Tasks>> Resolve(const ClaimRequest& request) override {
    auto mail = std::make_shared<Mail<Result<Tasks>>>();
    resolving_.emplace(ResolveInto(request, mail));
    return Reply<Result<Tasks>>(std::move(mail));
  }
  Reply<Result<std::vector<KeyVerdict>>> ConfirmKeys(const std::string& incarnation,
                                                     const Tasks& tasks) override {
    auto mail = std::make_shared<Mail<Result<std::vector<KeyVerdict>>>>();
    database_.ConfirmKeys(link_, strand_, incarnation, tasks, Deliver(mail));
    return Reply<Result<std::vector<KeyVerdict>>>(std::move(mail));
  }
  Reply<Result<RescueCounts>> RescuesOf(const TableName& table,
                                        const std::vector<std::uint64_t>& ids) override {
    return Read<RescueCounts>([table, ids](CheckedShard& shard) {
      RescueCounts counts;
      for (const std::uint64_t id : ids) {
        const CompactRow* row = shard.shard().Find({table, id});
        if (row != nullptr && row->rescues > 0) counts[id] = row->rescues;
      }
      return Result<RescueCounts>(std::move(counts));
    });
  }

 private:
  using Group = std::tuple<TableName, std::uint32_t, std::string, std::uint32_t>;  // slice, type, urgency
  struct Taken {
    std::string handler;
    std::uint32_t urgency = 0;  // as aged
    WallTime since;             // it waits
  };

  bool TellLanded() {
    if (ahead_) std::exchange(ahead_, nullptr)->Deliver(*std::exchange(arrived_, std::nullopt));
    return true;
  }

  // A look goes by the configuration of its round's beginning, and what is claimed goes by the last look.
  void Woken() override {
    round_aging_ = aging_now_();
    taken_.clear();
  }

  // What is claimed together is looked for in the groups of one type, each as it has aged: the most urgent
  // first; or, in one turn of eight, those that have waited longest.
  void CheckOrder(const std::vector<ScanRequest>& requests) {
    if (requests.empty() || !mapped_) return;
    const std::string& type = requests.front().group.handler;
    // Where a policy gives room in between, what follows may be of another turn.
    if (taken_.empty() || taken_.front().handler != type || gated_(type)) taken_.clear();
    const std::size_t before = taken_.size();
    for (const ScanRequest& request : requests) {
      const DueGroup& group = request.group;
      if (!read_.insert({group.table, group.slice, group.handler, group.urgency}).second) continue;
      const WallTime since = std::max(request.after.run_at, group.first_run_at);
      taken_.push_back({group.handler, AgedUrgency(group.urgency, *mapped_ - since, aging_), since});
    }
    // Joined groups are read in the order of their slices, and taken from in that of their ages.
    if (requests.front().joined > 0) {
      std::sort(taken_.begin() + static_cast<std::ptrdiff_t>(before), taken_.end(),
                [](const Taken& a, const Taken& b) { return a.since < b.since; });
    }
    // A turn of the oldest that claims nothing, since another strand has filled the room meanwhile, is
    // followed at once by one that goes by urgency.
    const auto oldest = std::is_sorted_until(
        taken_.begin(), taken_.end(), [](const Taken& a, const Taken& b) { return a.since < b.since; });
    const auto less_urgent = [](const Taken& a, const Taken& b) { return a.urgency < b.urgency; };
    const bool by_urgency = std::is_sorted(taken_.begin(), taken_.end(), less_urgent);
    const bool by_both = std::is_sorted(oldest, taken_.end(), less_urgent);
    if (!by_urgency && !by_both) {
      journal_.Violation(process_.name + " takes a group before one that is more urgent, as it has waited");
    }
  }

  // The statements of the MySQL store's Resolve, each with its own way there and back.
  Step<> ResolveInto(ClaimRequest request, std::shared_ptr<Mail<Result<Tasks>>> mail) {
    Result<Tasks> tasks = co_await RaiseAndAdopt(std::move(request));
    timeline_.After(kWaking, &strand_, [mail, tasks]() mutable { mail->Deliver(std::move(tasks)); });
  }
  Step<Result<Tasks>> RaiseAndAdopt(ClaimRequest request) {
    Statement<std::size_t> raise = [request](CheckedShard& shard) {
      return shard.shard().RaiseWaiting(request);
    };
    BOOST_OUTCOME_CO_TRYV(co_await Write<std::size_t>(std::move(raise)));
    Result<Tasks> adopted = co_await AdoptReached(request);
    if (adopted) {
      half_resolved_.erase(request.ids);
    } else {
      half_resolved_.insert(request.ids);
    }
    co_return adopted;
  }
  // The rows that the lost claim reached have the number that it gave them, or a higher one where an earlier
  // adoption was half known.
  Step<Result<Tasks>> AdoptReached(ClaimRequest request) {
    Statement<Rows> look = [request](CheckedShard& shard) { return shard.shard().RunningAbove(request); };
    BOOST_OUTCOME_CO_TRY(rows, co_await Read<Rows>(std::move(look)));
    std::map<std::uint32_t, Ids> reached;
    for (const ScanRow& row : rows) {
      if (row.attempt == request.attempt + 1 || half_resolved_.contains(request.ids)) {
        reached[row.attempt].push_back(row.id);
      }
    }
    Tasks tasks;
    for (auto& [attempt, ids] : reached) {
      const std::size_t count = ids.size();
      ClaimRequest of_attempt{request.table, request.incarnation, attempt, std::move(ids)};
      Statement<Tasks> adopt = [of_attempt](CheckedShard& shard) { return shard.Adopt(of_attempt); };
      const auto adopted = co_await Write<Tasks>(std::move(adopt));
      if (!adopted || adopted->size() < count) {
        co_return Fail(ErrorCode::Unknown, "an unknown claim is only partly resolved");
      }
      tasks.insert(tasks.end(), adopted->begin(), adopted->end());
    }
    co_return tasks;
  }

  Journal& journal_;
  const ModelledProcess& process_;
  const std::function<void()> claims_;
  const std::function<Micros()> aging_now_;
  const std::function<bool(const std::string& type)> gated_;
  Micros round_aging_;                // in this round of work
  Micros aging_;                      // by which the newest map was looked at
  std::shared_ptr<WallTime> mapped_;  // the time of the newest map; null: there was none
  std::set<Group> read_;              // those of which a page was asked for since
  std::vector<Taken> taken_;          // since the last claim, in their order
  std::set<Ids> half_resolved_;
  std::shared_ptr<Mail<Claimed>> ahead_;  // of the claim that was sent ahead; null: there is none
  std::optional<Claimed> arrived_;        // what came of it
  std::shared_ptr<Mail<bool>> landing_;   // null: nobody waits for it
  std::optional<Step<>> resolving_;
};

class SimulatedSettle final : public OfShard<SettlePort> {
 public:
  SimulatedSettle(const SimulatedMill::Parts& parts, ThreadName thread) : OfShard(parts, thread) {}

  Reply<Result<SettleReport>> Settle(const std::string& incarnation,
                                     std::span<const Settlement> batch) override {
    auto mail = std::make_shared<Mail<Result<SettleReport>>>();
    database_.Settle(link_, strand_, incarnation, {batch.begin(), batch.end()}, Deliver(mail));
    return Reply<Result<SettleReport>>(std::move(mail));
  }
  Reply<Result<std::vector<bool>>> StillRunning(const std::string& incarnation,
                                                std::span<const Settlement> batch) override {
    return Read<std::vector<bool>>(
        [incarnation, copy = std::vector(batch.begin(), batch.end())](CheckedShard& shard) {
          return shard.shard().StillRunning(incarnation, copy);
        });
  }
};

class SimulatedTend final : public OfShard<TendPort> {
 public:
  SimulatedTend(const SimulatedMill::Parts& parts, std::vector<std::string> dead)
      : OfShard(parts, ThreadName::Tend), dead_(std::move(dead)) {}

  Reply<Result<std::vector<TaskKey>>> Cancelled(const std::string& incarnation,
                                                const std::vector<TaskKey>& running) override {
    return Read<std::vector<TaskKey>>([incarnation, running](CheckedShard& shard) {
      return shard.shard().Cancelled(incarnation, running);
    });
  }
  // Modelled handlers save none, and nothing depends on it.
  Reply<Result<std::vector<TaskKey>>> SaveProgress(const std::string&,
                                                   const std::vector<TaskProgress>&) override {
    return Result<std::vector<TaskKey>>();
  }
  Reply<Result<DueMap>> Due(const std::vector<TableSlices>& tables) override {
    return Read<DueMap>([tables](CheckedShard& shard) { return shard.shard().Due(tables); });
  }
  Reply<Result<std::vector<Rows>>> ScanEach(const std::vector<ScanRequest>& requests) override {
    return ReadPages(requests);
  }
  Reply<Result<Tasks>> Adopt(const ClaimRequest& request) override {
    return Write<Tasks>([request](CheckedShard& shard) { return shard.Adopt(request); });
  }
  Reply<Result<Ids>> Rescue(const RescueRequest& request) override {
    return Write<Ids>([request](CheckedShard& shard) { return shard.Rescue(request); });
  }
  Reply<Result<std::size_t>> ChargeCrashes(const std::string&, const std::vector<Crash>& crashes) override {
    return Write<std::size_t>([crashes](CheckedShard&) { return Result<std::size_t>(crashes.size()); });
  }
  Reply<Result<bool>> Retire(const std::string& incarnation) override {
    return SetFlag(incarnation,
                   [incarnation](CheckedShard& shard) { return shard.shard().Retire(incarnation); });
  }
  std::vector<Burial> Burials() override {
    std::vector<Burial> burials;
    for (const std::string& life : dead_) burials.push_back({life, life, {}});
    return burials;
  }
  void Done(const Burial& burial) override { std::erase(dead_, burial.incarnation); }
  void LookAtPeers(const std::vector<Incarnation>&) override {}

 private:
  std::vector<std::string> dead_;
};

class SimulatedBeat final : public OfShard<BeatPort> {
 public:
  explicit SimulatedBeat(const SimulatedMill::Parts& parts)
      : OfShard(parts, ThreadName::Beat), bugs_(parts.bugs), registered_(parts.registered) {}

  Reply<Status> Register(const Incarnation& self) override {
    self_ = self.id;
    auto mail = std::make_shared<Mail<Status>>();
    database_.Write<Status>(
        link_, strand_, [self](CheckedShard& shard) { return shard.shard().Register(self); },
        [this, mail](Status status) {
          if (status) registered_();
          mail->Deliver(std::move(status));
        });
    return Reply<Status>(std::move(mail));
  }
  Reply<Result<bool>> Renew(const std::string& id) override {
    if (bugs_.watches_through_outages && !database_.Up()) return Result<bool>(true);
    return Write<bool>([id](CheckedShard& shard) { return shard.shard().Renew(id); });
  }
  Reply<Result<std::vector<PeerBeat>>> Peers() override {
    if (bugs_.watches_through_outages && !database_.Up()) return Result<std::vector<PeerBeat>>(*seen_);
    return Read<std::vector<PeerBeat>>([bugs = bugs_, self = self_, seen = seen_](CheckedShard& shard) {
      auto peers = shard.shard().Peers();
      if (bugs.rescues_from_the_living) {
        std::erase_if(*peers, [&](const PeerBeat& peer) { return peer.incarnation.id != self; });
      }
      for (PeerBeat& peer : *peers) {
        if (bugs.marks_without_watching) peer.incarnation.lease = Micros(0);
      }
      *seen = *peers;
      for (PeerBeat& peer : *seen) {  // one's own that stands still would be taken for a failover's
        if (peer.incarnation.id == self) peer.beat.reset();
      }
      return peers;
    });
  }
  Reply<Result<bool>> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) override {
    return SetFlag(id, [id, seen_beat](CheckedShard& shard) { return shard.MarkDead(id, seen_beat); });
  }
  Reply<Result<bool>> Retire(const std::string& id) override {
    return SetFlag(id, [id](CheckedShard& shard) { return shard.shard().Retire(id); });
  }

 private:
  const MillBugs bugs_;
  const std::function<void()> registered_;
  std::string self_;
  const std::shared_ptr<std::vector<PeerBeat>> seen_ = std::make_shared<std::vector<PeerBeat>>();
};

namespace {

Incarnation SelfOf(const SimulatedMill::Parts& parts) {
  Incarnation self;
  self.worker = parts.process.name;
  self.host = parts.process.name;
  self.pid = 1;
  return self;
}

}  // namespace

struct SimulatedMill::Body {
  Body(const Parts& its_parts, std::vector<std::string> dead)
      : parts(its_parts),
        scan(parts, ThreadName::Scan),
        second_scan(parts, ThreadName::SecondScan),
        settle(parts, ThreadName::Settle),
        second_settle(parts, ThreadName::SecondSettle),
        tend(parts, std::move(dead)),
        beat(parts),
        mill(parts.shared, {scan, settle, second_settle, tend, beat, {}},
             {parts.shard, "modelled", SelfOf(parts), parts.timeline.random().Next()}) {}

  const Parts parts;
  SimulatedScan scan;
  SimulatedScan second_scan;
  SimulatedSettle settle;
  SimulatedSettle second_settle;
  SimulatedTend tend;
  SimulatedBeat beat;
  Mill mill;
  std::vector<Step<>> strands;  // last: they use all the others
};

SimulatedMill::SimulatedMill(const Parts& parts, std::vector<std::string> dead)
    : body_(std::make_unique<Body>(parts, std::move(dead))) {}

SimulatedMill::~SimulatedMill() = default;

void SimulatedMill::Start() {
  body_->strands.push_back(body_->mill.RunSettle());
  body_->strands.push_back(body_->mill.RunSecondSettle());
  body_->strands.push_back(body_->mill.RunBeat());
  body_->strands.push_back(body_->mill.RunScan());
  body_->strands.push_back(body_->mill.RunTend());
}

void SimulatedMill::AddScans() {
  Mill& mill = body_->mill;
  if (mill.WantedScans() > 1 && mill.ScanCount() == 1 && !mill.attempts().Retired()) {
    body_->strands.push_back(mill.RunScan(mill.AddScan(body_->second_scan)));
  }
}

Mill& SimulatedMill::mill() { return body_->mill; }

std::string SimulatedMill::Incarnation() const {
  const std::shared_ptr<Lease> life = body_->mill.lives().Own();
  return life ? life->incarnation() : "";
}

bool SimulatedMill::Ended() const {
  return std::all_of(body_->strands.begin(), body_->strands.end(),
                     [](const Step<>& strand) { return strand.Done(); });
}

}  // namespace millrace::engine

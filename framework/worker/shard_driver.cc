#include "framework/worker/shard_driver.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "framework/base/log.h"
#include "framework/base/mutex.h"
#include "framework/worker/beside.h"
#include "framework/worker/blocking_port.h"

namespace millrace::engine {
namespace {

// How long a strand waits for its statements of one kind, and how many of them it has to try again.
class Meter {
 public:
  Meter(Registry& registry, const std::string& shard, const char* kind)
      : registry_(registry),
        shard_(shard),
        took_(registry.GetHistogram("millrace_query_seconds", {{"shard", shard}, {"kind", kind}})) {}

  template <class Call>
  auto Ask(Call call) {
    const BootTime asked = BootClock::now();
    auto answer = call();
    took_.Observe(BootClock::now() - asked);
    if (!answer) NoteFailed(answer.error().code);
    return answer;
  }

 private:
  void NoteFailed(ErrorCode code) {
    if (code != ErrorCode::Conflict && code != ErrorCode::Unavailable && code != ErrorCode::Unknown) return;
    registry_
        .GetCounter("millrace_transaction_retries_total",
                    {{"shard", shard_}, {"code", code == ErrorCode::Unknown ? "unknown" : ToString(code)}})
        .Add();
  }

  Registry& registry_;
  const std::string shard_;
  Histogram& took_;
};

// Of a thread that each scan strand has.
std::string NumberedName(const std::string& name, std::size_t strand) {
  return name + (strand == 0 ? "" : std::to_string(strand + 1));
}

class BlockingScan final : public Blocking<ScanPort> {
 public:
  BlockingScan(Store& store, Registry& registry, const std::string& shard, std::size_t strand)
      : store_(store.OpenTasks()),
        claims_(store.OpenTasks()),
        operations_(store.OpenOperations()),
        alerts_(store.OpenAlerts()),
        heard_(store.Heard()),
        due_(registry, shard, "due"),
        scan_(registry, shard, "scan"),
        claim_(registry, shard, "claim"),
        beside_(NumberedName("claim", strand)) {}

  Reply<Result<DueMap>> Due(const std::vector<TableSlices>& tables, const DueWanted& wanted) override {
    return Ask(due_, [&] { return store_->Due(tables, wanted); });
  }
  Reply<Result<std::vector<std::vector<ScanRow>>>> ScanEach(
      const std::vector<ScanRequest>& requests) override {
    return Ask(scan_, [&] { return store_->ScanEach(requests); });
  }
  Reply<Result<std::vector<std::uint64_t>>> GreatestIds(const std::vector<TableName>& tables) override {
    return Ask(scan_, [&] { return store_->GreatestIds(tables); });
  }
  bool UnchangedSince(BootTime read, BootTime now) const override { return heard_.UnchangedSince(read, now); }
  Reply<Claimed> Claim(ClaimRequest& request, bool ahead) override {
    if (ahead && beside_.Begin([this, &request] { claimed_ = ClaimBy(*claims_, request); })) {
      ahead_ = std::make_shared<Mail<Claimed>>();
      return Reply<Claimed>(ahead_);
    }
    return Ask([&] { return ClaimBy(*store_, request); });
  }
  bool HasLanded() const override { return beside_.IsDone(); }
  Reply<bool> Landed() override {
    if (!ahead_) return true;
    Ask([&] { beside_.Wait(); });
    std::exchange(ahead_, nullptr)->Deliver(std::move(*claimed_));
    return true;
  }
  Reply<Result<std::vector<std::uint64_t>>> FailUnclaimed(const ClaimRequest& request,
                                                          const std::string& why) override {
    return Ask([&] { return store_->FailUnclaimed(request, why); });
  }
  Reply<Result<std::vector<Task>>> Resolve(const ClaimRequest& request) override {
    return Ask([&] { return store_->Resolve(request); });
  }
  Reply<Result<std::vector<KeyVerdict>>> ConfirmKeys(const std::string& incarnation,
                                                     const std::vector<Task>& tasks) override {
    return Ask([&] { return store_->ConfirmKeys(incarnation, tasks); });
  }
  Reply<Result<RescueCounts>> RescuesOf(const TableName& table,
                                        const std::vector<std::uint64_t>& ids) override {
    return Ask([&] { return operations_->Rescues(table, ids); });
  }

 private:
  Claimed ClaimBy(TaskStore& store, ClaimRequest& request) {
    ClaimRequest given{request.table, request.incarnation, request.attempt, request.ids,
                       std::exchange(request.contents, {})};
    const BootTime asked = BootClock::now();
    auto tasks = claim_.Ask([&] { return store.Claim(std::move(given)); });
    if (!tasks && tasks.error().code == ErrorCode::Cancelled) NoteRefused(request);
    return {std::move(tasks), BootClock::now() - asked};
  }
  // This life was marked dead, and its worker worked on: one row for a life.
  void NoteRefused(const ClaimRequest& request) {
    if (alerts_ == nullptr || request.ids.empty() || noted_ == request.incarnation) return;
    noted_ = request.incarnation;
    (void)alerts_->Note(kClaimRefused, noted_, ToString(TaskKey{request.table, request.ids.front()}), "");
  }

  const std::unique_ptr<TaskStore> store_;
  const std::unique_ptr<TaskStore> claims_;  // those that are sent ahead
  const std::unique_ptr<TaskOperations> operations_;
  const std::unique_ptr<AlertStore> alerts_;
  const HeardWrites& heard_;
  std::string noted_;  // the incarnation
  Meter due_;
  Meter scan_;
  Meter claim_;
  std::shared_ptr<Mail<Claimed>> ahead_;  // null: no claim was sent ahead
  std::optional<Claimed> claimed_;        // what came of it, once `beside_` has done it
  Beside beside_;
};

class BlockingSettle final : public Blocking<SettlePort> {
 public:
  BlockingSettle(Store& store, Registry& registry, const std::string& shard)
      : store_(store.OpenTasks()), alerts_(store.OpenAlerts()), settle_(registry, shard, "settle") {}

  Reply<Result<SettleReport>> Settle(const std::string& incarnation,
                                     std::span<const Settlement> batch) override {
    auto report = Ask(settle_, [&] { return store_->Settle(incarnation, batch); });
    if (report) NoteRefused(incarnation, batch, *report);
    return report;
  }
  Reply<Result<std::vector<bool>>> StillRunning(const std::string& incarnation,
                                                std::span<const Settlement> batch) override {
    return Ask([&] { return store_->StillRunning(incarnation, batch); });
  }

 private:
  // It should never happen, so people are to hear of it; one row a batch, and whether it gets there changes
  // nothing for the tasks.
  void NoteRefused(const std::string& incarnation, std::span<const Settlement> batch,
                   const SettleReport& report) {
    const auto refused = std::find(report.verdicts.begin(), report.verdicts.end(), SettleVerdict::Refused);
    if (refused == report.verdicts.end() || alerts_ == nullptr) return;
    const auto place = static_cast<std::size_t>(refused - report.verdicts.begin());
    (void)alerts_->Note(kSettleRefused, incarnation, ToString(batch[place].key), batch[place].handler);
  }

  const std::unique_ptr<TaskStore> store_;
  const std::unique_ptr<AlertStore> alerts_;
  Meter settle_;
};

// Which database the shard is: found out once in each life, by the strand that may wait for it. Thread-safe.
class FoundDatabase {
 public:
  explicit FoundDatabase(Store& store) : store_(store) {}

  void NewLife() { known_.store(false); }
  void Look() {
    if (known_.exchange(true)) return;
    const auto identity = store_.OpenSchema()->Identity();
    if (!identity) return known_.store(false);  // with the next look
    MutexLock lock(mutex_);
    identity_ = *identity;
  }
  std::string Identity() const {
    MutexLock lock(mutex_);
    return identity_;
  }

 private:
  Store& store_;
  std::atomic<bool> known_{false};
  mutable Mutex mutex_;
  std::string identity_ MILLRACE_GUARDED_BY(mutex_);
};

class BlockingTend final : public Blocking<TendPort> {
 public:
  BlockingTend(Store& store, DeadRecorders& dead, CoverageWatch* coverage, FoundDatabase& database,
               Registry& registry, const std::string& shard)
      : store_(store.OpenTasks()),
        incarnations_(store.OpenIncarnations()),
        address_(store.Describe()),
        dead_(dead),
        coverage_(coverage),
        database_(database),
        tend_(registry, shard, "tend") {}

  Reply<Result<std::vector<TaskKey>>> Cancelled(const std::string& incarnation,
                                                const std::vector<TaskKey>& running) override {
    return Ask(tend_, [&] { return store_->Cancelled(incarnation, running); });
  }
  Reply<Result<std::vector<TaskKey>>> SaveProgress(const std::string& incarnation,
                                                   const std::vector<TaskProgress>& progress) override {
    return Ask([&] { return store_->SaveProgress(incarnation, progress); });
  }
  Reply<Result<DueMap>> Due(const std::vector<TableSlices>& tables) override {
    return Ask(tend_, [&] { return store_->Due(tables, DueWanted{}); });
  }
  Reply<Result<std::vector<std::vector<ScanRow>>>> ScanEach(
      const std::vector<ScanRequest>& requests) override {
    return Ask([&] { return store_->ScanEach(requests); });
  }
  Reply<Result<std::vector<Task>>> Adopt(const ClaimRequest& request) override {
    return Ask([&] { return store_->Adopt(request); });
  }
  Reply<Result<std::vector<std::uint64_t>>> Rescue(const RescueRequest& request) override {
    return Ask(tend_, [&] { return store_->Rescue(request); });
  }
  Reply<Result<std::size_t>> ChargeCrashes(const std::string& incarnation,
                                           const std::vector<Crash>& crashes) override {
    return Ask([&] { return incarnations_->ChargeCrashes(incarnation, crashes); });
  }
  Reply<Result<bool>> Retire(const std::string& incarnation) override {
    return Ask([&] { return incarnations_->Bury(incarnation); });
  }
  std::vector<Burial> Burials() override { return dead_.For(address_); }
  void Done(const Burial& burial) override { dead_.Done(burial); }
  void LookAtPeers(const std::vector<Incarnation>& peers) override {
    Ask([&] {
      database_.Look();
      if (coverage_ != nullptr) coverage_->Look(peers);
    });
  }

 private:
  const std::unique_ptr<TaskStore> store_;
  const std::unique_ptr<IncarnationStore> incarnations_;
  const std::string address_;
  DeadRecorders& dead_;
  CoverageWatch* const coverage_;  // null: a coordinator sees to that
  FoundDatabase& database_;
  Meter tend_;
};

class BlockingBeat final : public Blocking<BeatPort> {
 public:
  BlockingBeat(Store& store, FoundDatabase& database, const ShardDriver::Parts& parts,
               const std::string& shard)
      : store_(store.OpenIncarnations()),
        address_(store.Describe()),
        recorder_(parts.recorder),
        database_(database),
        control_(parts.control),
        beat_(parts.metrics, shard, "beat") {}

  Reply<Status> Register(const Incarnation& self) override {
    Status registered = Ask([&] { return store_->Register(self); });
    if (registered) {
      recorder_.NoteLife(address_, self.id);
      lives_.push_back(self.id);
      signed_off_ = false;
      database_.NewLife();
      control_.LifeBegun();
    }
    return registered;
  }
  Reply<Result<bool>> Renew(const std::string& id) override {
    return Ask(beat_, [&] { return store_->Renew(id); });
  }
  Reply<Result<std::vector<PeerBeat>>> Peers() override {
    return Ask([&] { return store_->Peers(); });
  }
  Reply<Result<bool>> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) override {
    return Ask([&] { return store_->MarkDead(id, seen_beat); });
  }
  Reply<Result<bool>> Retire(const std::string& id) override {
    auto retired = Ask([&] { return store_->Retire(id); });
    signed_off_ = retired.has_value();
    return retired;
  }
  // The strand has ended. Where it has signed off nobody has to bury this process in the shard: who finds its
  // recorder need not serve that, which may be nobody's any more.
  void ForgetLives() {
    if (!signed_off_) return;
    for (const std::string& id : std::exchange(lives_, {})) recorder_.ForgetLife(id);
  }

 private:
  const std::unique_ptr<IncarnationStore> store_;
  const std::string address_;
  FlightRecorder& recorder_;
  std::vector<std::string> lives_;  // that were noted
  bool signed_off_ = false;         // of the last of them
  FoundDatabase& database_;
  ControlPlane& control_;
  Meter beat_;
};

}  // namespace

struct ShardDriver::Ports {
  Ports(Store& store, const Parts& parts, const std::string& shard, CoverageWatch* coverage)
      : database(store),
        settle(store, parts.metrics, shard),
        second_settle(store, parts.metrics, shard),
        tend(store, parts.dead_recorders, coverage, database, parts.metrics, shard),
        beat(store, database, parts, shard) {
    scans[0] = std::make_unique<BlockingScan>(store, parts.metrics, shard, 0);
  }

  FoundDatabase database;
  BlockingSettle settle;
  BlockingSettle second_settle;
  BlockingTend tend;
  BlockingBeat beat;
  std::array<std::unique_ptr<BlockingScan>, ScanStrands::kMost> scans;  // as many as the mill has strands
};

ShardDriver::ShardDriver(const Parts& parts, const std::string& shard, std::shared_ptr<Store> store)
    : parts_(parts),
      store_(std::move(store)),
      coverage_(parts_.self.slices.empty()
                    ? nullptr
                    : std::make_unique<CoverageWatch>(parts_.mill.clock, shard, store_->OpenSchema())),
      ports_(std::make_unique<Ports>(*store_, parts_, shard, coverage_.get())),
      mill_(std::make_unique<Mill>(
          parts_.mill,
          Mill::Ports{*ports_->scans[0], ports_->settle, ports_->second_settle, ports_->tend, ports_->beat,
                      [this](Micros limit) { return store_->OpenTransaction(limit); }},
          Mill::Options{shard, store_->Describe(), parts_.self, Random::FromSystem().Next(),
                        parts_.watch_idle})),
      doorbell_(parts_.mill.clock, *mill_, store_->OpenChanges([this](const TableName& table) {
        return mill_->scope().Touches({table, {}});
      })) {}

ShardDriver::~ShardDriver() { End(); }

engine::Status ShardDriver::Start() {
  mill_->attempts().KeptBy(weak_from_this());
  Follow();
  const auto strand = [this](Thread& thread, const char* name, Pulse& pulse, Step<> (Mill::*run)()) {
    return Begin(thread, name, pulse, [this, run] { return (*mill_.*run)(); });
  };
  engine::Status started = strand(settle_, "settle", ports_->settle.pulse(), &Mill::RunSettle);
  if (started && !store_->WritesInTurn()) {
    started = strand(second_settle_, "settle2", ports_->second_settle.pulse(), &Mill::RunSecondSettle);
  }
  if (started) started = strand(beat_, "beat", ports_->beat.pulse(), &Mill::RunBeat);
  if (started) started = BeginScan(0);
  if (started) started = strand(tend_, "tend", ports_->tend.pulse(), &Mill::RunTend);
  if (!started) End();
  if (started) doorbell_.Start();
  if (started) AddScans();
  return started;
}

engine::Status ShardDriver::Begin(Thread& thread, const std::string& name, Pulse& pulse,
                                  const std::function<Step<>()>& run) {
  return thread.Start(name, [&pulse, run] {
    pulse.Now();
    (void)run();
    pulse.Never();
  });
}

engine::Status ShardDriver::BeginScan(std::size_t strand) {
  return Begin(scans_[strand], NumberedName("scan", strand), ports_->scans[strand]->pulse(),
               [this, strand] { return mill_->RunScan(strand); });
}

// Those that are asked for and missing. One that can't be started scans nothing: what it would have is the
// others'.
void ShardDriver::AddScans() {
  // Retired first: the strands of one that is are joined by another thread.
  while (!mill_->attempts().Retired() && scans_[0].Started() && mill_->ScanCount() < mill_->WantedScans()) {
    const std::size_t strand = mill_->ScanCount();
    if (!ports_->scans[strand]) {
      ports_->scans[strand] = std::make_unique<BlockingScan>(*store_, parts_.metrics, mill_->shard(), strand);
    }
    mill_->AddScan(*ports_->scans[strand]);
    if (engine::Status begun = BeginScan(strand); !begun) {
      mill_->DropScan();
      if (!std::exchange(told_few_, true)) {
        LogError("a scan thread of a shard can't be started; the others do its work",
                 {{"shard", mill_->shard()}, {"error", begun.error().message}});
      }
      return;
    }
  }
}

void ShardDriver::RequestEnd() {
  mill_->Stop();
  doorbell_.RequestStop();
}

bool ShardDriver::Follow() {
  const bool followed = mill_->Follow(parts_.control.Slices(mill_->shard()), parts_.control.Paused());
  AddScans();
  return followed;
}

void ShardDriver::End() {
  RequestEnd();
  for (Thread& scan : scans_) scan.Join();
  tend_.Join();
  settle_.Join();
  second_settle_.Join();
  beat_.Join();
  ports_->beat.ForgetLives();
  doorbell_.Stop();
  mill_->attempts().Close();
}

std::string ShardDriver::StandsStill(BootTime now, Micros patience) const {
  const std::pair<const char*, Pulse&> strands[] = {{"settle", ports_->settle.pulse()},
                                                    {"settle2", ports_->second_settle.pulse()},
                                                    {"beat", ports_->beat.pulse()},
                                                    {"tend", ports_->tend.pulse()}};
  for (const auto& [name, pulse] : strands) {
    if (pulse.StandsStill(now, patience)) return std::string(name) + " of shard " + mill_->shard();
  }
  for (std::size_t i = 0; i < mill_->ScanCount(); ++i) {
    if (ports_->scans[i]->pulse().StandsStill(now, patience))
      return NumberedName("scan", i) + " of shard " + mill_->shard();
  }
  return "";
}

bool ShardDriver::OthersLive() const {
  const auto live = mill_->lives().Live();
  return live && live->size() > 1;
}

ShardStatus ShardDriver::Status() const {
  const std::shared_ptr<Lease> life = mill_->lives().Own();
  const ScanView view = mill_->View();
  const std::string trouble = mill_->lives().Trouble();
  ShardStatus status;
  status.shard = mill_->shard();
  status.incarnation = life ? life->incarnation() : "";
  status.database = ports_->database.Identity();
  status.error = trouble.empty() ? view.error : trouble;
  status.reachable = life && status.error.empty();
  status.beats = life && life->MayStart(parts_.mill.clock.Now());
  status.lag = view.lag;
  status.poll = view.poll;
  status.speed = view.speed;
  status.doorbell = doorbell_.State();
  status.unrunnable = view.unrunnable;
  for (const auto& [table, why] : view.resting) status.resting.emplace(table.text(), why);
  const Clock& clock = parts_.mill.clock;
  for (const RoundView& round : view.rounds) {
    RoundStatus& of_type =
        status.rounds.emplace_back(RoundStatus{round.handler, round.open, round.claimed, {}});
    if (round.next) of_type.next = clock.WallNow() + (*round.next - clock.Now());
  }
  for (const BandView& band : view.bands) {
    status.bands.push_back(
        {band.handler, band.rule, band.claimed, clock.WallNow() + (band.next - clock.Now())});
  }
  if (coverage_) status.uncovered = coverage_->Uncovered();
  status.retiring = mill_->attempts().Retired();
  return status;
}

}  // namespace millrace::engine

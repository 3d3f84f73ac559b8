// A worker's mill over a real store in a time that a test moves: one thread, handlers that take a moment of
// that time, and what was asked of the store, counted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driven_port.h"
#include "framework/mill/mill.h"
#include "framework/task/retry_ladder.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {

// What was asked for.
struct Asked {
  int maps = 0;
  int parts = 0;  // of them
  int pages = 0;
  int trips = 0;    // for pages
  int joined = 0;   // of them
  int most = 0;     // rows that one of them may have brought
  int created = 0;  // pages with the time of creation
  int greatest = 0;
  int claims = 0;
  int ahead = 0;  // of them
  int resolves = 0;
  int refused = 0;     // maps, of a table that can't be read
  int rescues = 0;     // times that it was asked how often tasks have been rescued
  int rescues_of = 0;  // tasks
  int beside = 0;      // times that pages were asked for while a claim was on its way
  bool operator==(const Asked&) const = default;
};

// A claim that found its rows.
struct ClaimSeen {
  BootTime at;
  WallTime mapped;  // when the map was read that it goes by
  std::vector<Task> tasks;
};

class StoreScan final : public Driven<ScanPort> {
 public:
  StoreScan(ManualClock& clock, Store& store) : Driven(clock), clock_(clock), store_(store.OpenTasks()) {}

  Reply<bool> Rest(Micros limit) override {
    EXPECT_FALSE(ahead_) << "a claim is on its way";
    return Driven::Rest(limit);
  }
  Reply<Result<DueMap>> Due(const std::vector<TableSlices>& tables, const DueWanted& wanted) override {
    ++asked.maps;
    if (hangs) return Reply<Result<DueMap>>(hanging_ = std::make_shared<Mail<Result<DueMap>>>());
    mapped_ = clock_.WallNow();
    std::vector<TableSlices> readable = tables;
    const bool refused =
        std::erase_if(readable, [this](const TableSlices& one) { return one.table == unreadable; }) > 0;
    Result<DueMap> map = store_->Due(readable, wanted);
    if (wanted.IsPart()) ++asked.parts;
    clock_.Advance(refused ? std::chrono::seconds(2) : wanted.IsPart() ? parts_take : maps_take);
    if (refused) ++asked.refused;
    if (map && refused) map->refused.emplace(*unreadable, "somebody has locked the table");
    if (map && brings) Bring(wanted, *map);
    return map;
  }
  // The map that hangs fails.
  void GoOn() {
    hangs = false;
    std::exchange(hanging_, nullptr)->Deliver(Fail(ErrorCode::Unavailable, "the connection was lost"));
  }
  Reply<Result<std::vector<std::vector<ScanRow>>>> ScanEach(
      const std::vector<ScanRequest>& requests) override {
    asked.pages += static_cast<int>(requests.size());
    ++asked.trips;
    int most = 0;
    for (const ScanRequest& request : requests) most += static_cast<int>(request.limit);
    if (requests.front().joined > 0) most = static_cast<int>(requests.front().joined);
    asked.most = std::max(asked.most, most);
    if (ahead_) ++asked.beside;
    if (at_page) at_page();
    clock_.Advance(pages_take);
    for (const ScanRequest& request : requests) asked.created += request.with_created ? 1 : 0;
    auto pages = store_->ScanEach(requests);
    if (pages && requests.front().joined > 0) {
      ++asked.joined;
      pages->resize(std::min(pages->size(), joined_pages));
    }
    if (after_page) std::exchange(after_page, nullptr)();
    return pages;
  }
  Reply<Result<std::vector<std::uint64_t>>> GreatestIds(const std::vector<TableName>& tables) override {
    asked.greatest += static_cast<int>(tables.size());
    return store_->GreatestIds(tables);
  }
  bool UnchangedSince(BootTime read, BootTime now) const override {
    return heard && heard->UnchangedSince(read, now);
  }
  Reply<Claimed> Claim(ClaimRequest& request, bool ahead) override {
    EXPECT_FALSE(ahead_) << "one claim beside another";
    ++asked.claims;
    if (!ahead) return ClaimNow(request);
    ++asked.ahead;
    ahead_ = std::make_shared<Mail<Claimed>>();
    sent_ = &request;
    if (answers_at_once) answer_ = ClaimNow(request);
    return Reply<Claimed>(ahead_);
  }
  bool HasLanded() const override { return !ahead_ || answer_; }
  Reply<bool> Landed() override {
    if (!ahead_) return true;
    Claimed answer = answer_ ? *std::exchange(answer_, std::nullopt) : ClaimNow(*sent_);
    std::exchange(ahead_, nullptr)->Deliver(std::move(answer));
    return true;
  }
  Reply<Result<std::vector<std::uint64_t>>> FailUnclaimed(const ClaimRequest& request,
                                                          const std::string& why) override {
    return store_->FailUnclaimed(request, why);
  }
  Reply<Result<std::vector<Task>>> Resolve(const ClaimRequest& request) override {
    ++asked.resolves;
    if (request.table != locked) return store_->Resolve(request);
    clock_.Advance(std::chrono::seconds(1));
    return Result<std::vector<Task>>(Fail(ErrorCode::Unavailable, "somebody has locked the table"));
  }
  Reply<Result<std::vector<KeyVerdict>>> ConfirmKeys(const std::string& incarnation,
                                                     const std::vector<Task>& tasks) override {
    return store_->ConfirmKeys(incarnation, tasks);
  }
  Reply<Result<RescueCounts>> RescuesOf(const TableName&, const std::vector<std::uint64_t>& ids) override {
    ++asked.rescues;
    asked.rescues_of += static_cast<int>(ids.size());
    return Result<RescueCounts>(RescueCounts());
  }

  Asked asked;
  std::vector<ClaimSeen> seen;
  std::function<void()> at_page;
  std::function<void()> after_page;                    // once
  bool brings = false;                                 // with a map, the tasks that it is asked for by id
  bool hangs = false;                                  // in the next map, until GoOn
  bool OnItsWay() const { return ahead_ != nullptr; }  // a claim that was sent ahead
  bool loses_a_claim = false;                          // the next one
  bool loses_claims = false;                           // all of them
  int loses_claim = 0;                                 // that of this number, from 1 on
  ErrorCode lost_as = ErrorCode::Unavailable;
  std::uint64_t refused_id = 0;         // no claim with it is taken
  std::optional<TableName> locked;      // no claim of it is resolved, after a wait of a second
  std::optional<TableName> unwritable;  // no claim of it is taken, after a wait of two
  std::optional<TableName> unreadable;  // no map has it, after a wait of two
  const HeardWrites* heard = nullptr;   // null: nobody hears what is written
  bool answers_at_once = false;         // those that are sent ahead, too: else when asked
  Micros claim_takes{0};
  Micros pages_take{0};
  std::size_t joined_pages = std::numeric_limits<std::size_t>::max();  // that a statement reaches
  Micros maps_take{0};                                                 // whole ones
  Micros parts_take{0};

 private:
  void Bring(const DueWanted& wanted, DueMap& map) {
    for (const DueGroup& group : map.groups) {
      const auto ids = wanted.rows.find(group.table);
      if (ids == wanted.rows.end()) continue;
      auto page = store_->Scan({.group = group, .with_bytes = true, .with_contents = true});
      for (ScanRow& row : *page) {
        const bool is_wanted = std::ranges::find(ids->second, row.id) != ids->second.end();
        if (is_wanted && row.state == TaskState::Waiting)
          map.rows[GroupKeyOf(group)].push_back(std::move(row));
      }
    }
  }
  Claimed ClaimNow(ClaimRequest& request) {
    ClaimRequest given = request;
    request.contents.clear();
    clock_.Advance(claim_takes);
    if (std::exchange(loses_a_claim, false) || loses_claims || asked.claims == loses_claim) {
      return Claimed{Fail(lost_as, "the connection was lost"), claim_takes};
    }
    if (std::find(request.ids.begin(), request.ids.end(), refused_id) != request.ids.end()) {
      return Claimed{Fail(ErrorCode::Invalid, "a trigger refuses it"), claim_takes};
    }
    if (request.table == unwritable) {
      clock_.Advance(std::chrono::seconds(2));
      return Claimed{Fail(ErrorCode::Conflict, "somebody has locked the table"), std::chrono::seconds(2)};
    }
    Result<std::vector<Task>> tasks = store_->Claim(std::move(given));
    if (tasks) seen.push_back({clock_.Now(), mapped_, *tasks});
    return Claimed{std::move(tasks), claim_takes};
  }

  ManualClock& clock_;
  const std::unique_ptr<TaskStore> store_;
  WallTime mapped_;
  std::shared_ptr<Mail<Result<DueMap>>> hanging_;
  std::shared_ptr<Mail<Claimed>> ahead_;  // null: no claim is on its way
  ClaimRequest* sent_ = nullptr;
  std::optional<Claimed> answer_;  // to that
};

class StoreSettle final : public Driven<SettlePort> {
 public:
  StoreSettle(ManualClock& clock, Store& store) : Driven(clock), clock_(clock), store_(store.OpenTasks()) {}
  Reply<Result<SettleReport>> Settle(const std::string& incarnation,
                                     std::span<const Settlement> batch) override {
    if (away) return Result<SettleReport>(Fail(ErrorCode::Unavailable, "the database is gone"));
    if (!refused) return store_->Settle(incarnation, batch);
    std::vector<Settlement> others;
    for (const Settlement& one : batch) {
      if (one.key.table != *refused) others.push_back(one);
    }
    if (!others.empty()) {
      EXPECT_TRUE(store_->Settle(incarnation, others));
    }
    if (others.size() < batch.size()) clock_.Advance(std::chrono::seconds(2));
    SettleReport report;
    for (const Settlement& one : batch) {
      const bool busy = one.key.table == *refused;
      report.verdicts.push_back(busy ? SettleVerdict::Busy : SettleVerdict::Settled);
      report.errors.push_back(busy ? "its pool is locked" : "");
    }
    return Result<SettleReport>(std::move(report));
  }
  Reply<Result<std::vector<bool>>> StillRunning(const std::string& incarnation,
                                                std::span<const Settlement> batch) override {
    return store_->StillRunning(incarnation, batch);
  }

  bool away = false;
  std::optional<TableName> refused;  // what is to be written of its tasks, after a wait of two seconds

 private:
  ManualClock& clock_;
  const std::unique_ptr<TaskStore> store_;
};

class StoreBeat final : public Driven<BeatPort> {
 public:
  StoreBeat(ManualClock& clock, Store& store) : Driven(clock), store_(store.OpenIncarnations()) {}
  Reply<Status> Register(const Incarnation& self) override { return store_->Register(self); }
  Reply<Result<bool>> Renew(const std::string& id) override { return store_->Renew(id); }
  Reply<Result<std::vector<PeerBeat>>> Peers() override { return store_->Peers(); }
  Reply<Result<bool>> MarkDead(const std::string&, std::optional<std::uint64_t>) override {
    return Result<bool>(false);
  }
  Reply<Result<bool>> Retire(const std::string& id) override { return store_->Retire(id); }

 private:
  const std::unique_ptr<IncarnationStore> store_;
};

// Its strand is not run.
class Untended final : public Driven<TendPort> {
 public:
  using Driven::Driven;
  Reply<Result<std::vector<TaskKey>>> Cancelled(const std::string&, const std::vector<TaskKey>&) override {
    return Result<std::vector<TaskKey>>();
  }
  Reply<Result<std::vector<TaskKey>>> SaveProgress(const std::string&,
                                                   const std::vector<TaskProgress>&) override {
    return Result<std::vector<TaskKey>>();
  }
  Reply<Result<DueMap>> Due(const std::vector<TableSlices>&) override { return Result<DueMap>(); }
  Reply<Result<std::vector<std::vector<ScanRow>>>> ScanEach(const std::vector<ScanRequest>& asked) override {
    return Result<std::vector<std::vector<ScanRow>>>(std::vector<std::vector<ScanRow>>(asked.size()));
  }
  Reply<Result<std::vector<Task>>> Adopt(const ClaimRequest&) override { return Result<std::vector<Task>>(); }
  Reply<Result<std::vector<std::uint64_t>>> Rescue(const RescueRequest&) override {
    return Result<std::vector<std::uint64_t>>();
  }
  Reply<Result<std::size_t>> ChargeCrashes(const std::string&, const std::vector<Crash>&) override {
    return Result<std::size_t>(0);
  }
  Reply<Result<bool>> Retire(const std::string&) override { return Result<bool>(true); }
  std::vector<Burial> Burials() override { return {}; }
  void Done(const Burial&) override {}
  void LookAtPeers(const std::vector<Incarnation>&) override {}
};

// Each task takes a while, many at once.
class TimedRunner final : public Runner {
 public:
  explicit TimedRunner(ManualClock& clock) : clock_(clock) {}

  bool Runs(const std::string& type) override { return type != unopened; }
  LaneRoom Room(const std::string& type, const AttemptHost&, std::uint32_t urgency) override {
    if (type == full_for) return {};
    const std::size_t bound = urgency <= urgent ? most : most - reserve;
    LaneRoom room{bound - std::min(bound, running_.size())};
    if (most_bytes > 0) room.bytes = most_bytes - std::min(most_bytes, Bytes());
    room.gives_back = gives_back;
    return room;
  }
  Micros BusyFor() override { return busy; }
  bool Take(const std::string&, std::vector<AttemptPtr>& attempts) override {
    took += attempts.size();
    for (AttemptPtr& attempt : attempts) running_.emplace_back(clock_.Now() + takes, std::move(attempt));
    return true;
  }

  void EndThoseDue() {
    while (!running_.empty() && running_.front().first <= clock_.Now()) {
      const AttemptPtr attempt = std::move(running_.front().second);
      running_.pop_front();
      attempt->started.store(true);
      const auto outcome = outcomes.find(attempt->task.key.id);
      const Outcome done = outcome == outcomes.end() ? Outcome() : outcome->second;
      if (outcome != outcomes.end()) outcomes.erase(outcome);
      attempt->host->Ended({attempt, Settle({}, attempt->task, done, 0)});
      attempt->host->RoomAgain();
    }
  }

  // All that it has taken, before it starts.
  void GiveAllBack(std::optional<Micros> delay = std::nullopt) {
    for (const auto& [ends, attempt] : std::exchange(running_, {})) GiveBack(attempt, "", delay);
  }

  // Of what it has taken and not ended, as MemoryBudget counts.
  std::size_t Bytes() const {
    std::size_t bytes = 0;
    for (const auto& [ends, attempt] : running_) bytes += MemoryBudget::Of(TextBytes(attempt->task));
    return bytes;
  }
  std::vector<AttemptPtr> Taken() const {
    std::vector<AttemptPtr> attempts;
    for (const auto& [ends, attempt] : running_) attempts.push_back(attempt);
    return attempts;
  }

  std::size_t most = 250;
  std::size_t reserve = 0;  // of `most`, for what is as urgent as this
  std::uint32_t urgent = 0;
  std::size_t most_bytes = 0;  // zero: no bound
  std::string full_for;        // this type has no room at all
  std::string unopened;        // this one has no handler that could run
  bool gives_back = false;     // it says so of its room
  std::size_t took = 0;
  Micros takes = std::chrono::milliseconds(50);
  Micros busy{0};                             // for so long what runs is said to go on
  std::map<std::uint64_t, Outcome> outcomes;  // by task, once; others are done

 private:
  ManualClock& clock_;
  std::deque<std::pair<BootTime, AttemptPtr>> running_;
};

class RoundWorker {
 public:
  RoundWorker(ManualClock& clock, Store& store, const std::string& name, ScanRules rules,
              bool watch_idle = false, std::shared_ptr<SoloGate> gate = nullptr)
      : scan(clock, store),
        runner(clock),
        clock_(clock),
        store_(store),
        live_(EngineConfig{}, std::move(rules)),
        admission_(clock),
        gate_(gate ? std::move(gate) : std::make_shared<SoloGate>(clock)),
        settle_(clock, store),
        second_settle_(clock, store),
        tend_(clock),
        beat_(clock, store),
        mill_({clock, runner, *gate_, memory_, counters_, live_, admission_},
              {scan, settle_, second_settle_, tend_, beat_, {}},
              {"main", store.Describe(), SelfOf(name), 1, watch_idle}) {
    Own({{"tasks", true, {}}});
  }

  Mill& mill() { return mill_; }
  Admission& admission() { return admission_; }
  SoloGate& gate() { return *gate_; }
  // No more of its settles succeeds.
  void LoseSettles() { settle_.away = second_settle_.away = true; }
  void RefuseSettlesOf(std::optional<TableName> table) { settle_.refused = second_settle_.refused = table; }
  void Own(std::vector<TableSlices> slices) {
    slices_ = std::move(slices);
    Follow();
  }
  void Pause(const std::vector<std::string>& names) {
    paused_ = std::make_shared<const Pauses>(*Pauses::Parse(names));
    Follow();
  }
  void SetScans(ScanRules rules) {
    live_.SetScans(std::move(rules));
    Follow();
  }
  void Configure(EngineConfig engine, ScanOrder order = {}) {
    live_.Set(std::move(engine));
    live_.SetOrder(std::move(order));
    Follow();
  }
  // One more scan strand.
  StoreScan& AddScan() {
    more_scans_.push_back(std::make_unique<StoreScan>(clock_, store_));
    const std::size_t strand = mill_.AddScan(*more_scans_.back());
    Follow();
    strands_.push_back(mill_.RunScan(strand));
    return *more_scans_.back();
  }
  // Does what is due now; it begins with the first time.
  void Work() {
    if (!std::exchange(begun_, true)) {
      strands_.push_back(mill_.RunSettle());
      strands_.push_back(mill_.RunSecondSettle());
      strands_.push_back(mill_.RunBeat());
      strands_.push_back(mill_.RunScan());
    }
    runner.EndThoseDue();
    for (int i = 0; i < 3; ++i) {
      beat_.Go(Micros(0));
      scan.Go(Micros(0));
      for (const auto& more : more_scans_) more->Go(Micros(0));
      settle_.Go(Micros(0));
      second_settle_.Go(Micros(0));
    }
  }

  StoreScan scan;
  TimedRunner runner;

 private:
  static Incarnation SelfOf(const std::string& name) {
    Incarnation self;
    self.worker = self.host = name;
    self.pid = 1;
    return self;
  }
  void Follow() { (void)mill_.Follow(slices_, paused_); }

  ManualClock& clock_;
  Store& store_;
  LiveEngine live_;
  Admission admission_;
  const std::shared_ptr<SoloGate> gate_;
  MemoryBudget memory_;
  Registry metrics_;
  MillCounters counters_{metrics_};
  StoreSettle settle_;
  StoreSettle second_settle_;
  Untended tend_;
  StoreBeat beat_;
  std::vector<std::unique_ptr<StoreScan>> more_scans_;
  bool begun_ = false;
  std::vector<TableSlices> slices_;
  std::shared_ptr<const Pauses> paused_ = std::make_shared<const Pauses>();
  Mill mill_;
  std::vector<Step<>> strands_;
};

}  // namespace millrace::engine

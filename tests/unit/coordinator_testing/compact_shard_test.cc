// The compact shard does what a store does that is held to the contract of all stores.
#include "coordinator/testing/compact_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "framework/base/random.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kSlices = 4;
constexpr std::array<TableName, 2> kTables{"tasks_000", "tasks_001"};

std::string Text(const Error& error) { return ToString(error.code); }
std::string Text(const Task& task) {
  return std::to_string(task.key.id) + ":" + std::to_string(task.slice) + ":" + ToString(task.state) + ":" +
         task.handler + ":" + std::to_string(task.attempt) + ":" + std::to_string(task.failures) + ":" +
         task.claimed_by + ":" + std::to_string(task.run_at.time_since_epoch().count());
}
std::string Text(const ScanRow& row) {
  return std::to_string(row.id) + ":" + ToString(row.state) + ":" + std::to_string(row.attempt) + ":" +
         row.claimed_by;
}
std::string Text(const DueGroup& group) {
  return std::to_string(group.slice) + ":" + group.handler + ":" + std::to_string(group.urgency) + ":" +
         std::to_string(group.first_run_at.time_since_epoch().count());
}
std::string Text(const PeerBeat& peer) {
  return peer.incarnation.id + ":" + std::to_string(peer.beat.value());
}
std::string Text(const KeyVerdict& verdict) {
  return ToString(verdict.task) + ":" + (verdict.mine ? "mine" : verdict.holder);
}
std::string Text(const Permit& permit) {
  return permit.handler + ":" + std::to_string(permit.number) + ":" + std::to_string(permit.turn) + ":" +
         permit.holder + (permit.lapsed ? ":lapsed:" : ":") + permit.task + ":" +
         std::to_string(permit.attempt);
}
std::string Text(const std::string& text) { return text; }
std::string Text(const TableInfo& info) {
  std::string text = info.table + ":" + std::to_string(info.slices);
  for (const std::uint32_t number : info.beyond) text += ":" + std::to_string(number);
  return text;
}
std::string Text(std::uint64_t id) { return std::to_string(id); }
std::string Text(bool value) { return value ? "yes" : "no"; }
std::string Text(PermitAnswer answer) { return Text(answer == PermitAnswer::Done); }
std::string Text(const DueMap& map);
std::string Text(const SettleReport& report) {
  std::string text;
  for (const SettleVerdict verdict : report.verdicts) text += std::to_string(static_cast<int>(verdict)) + " ";
  return text;
}
template <class Item>
std::string Text(const std::vector<Item>& items) {
  std::string text;
  for (const auto& item : items) text += Text(item) + " ";
  return text;
}
std::string Text(const DueMap& map) { return Text(map.groups); }
template <class Value>
std::string Text(const Result<Value>& result) {
  return result ? Text(*result) : Text(result.error());
}
std::string Text(const Status& status) { return status ? "ok" : Text(status.error()); }

// Both of them, and random statements that are sent to both.
class Pair {
 public:
  explicit Pair(std::uint64_t seed)
      : random_(seed),
        compact_(clock_, {}, {kTables.begin(), kTables.end()}, kSlices),
        store_(clock_, {.tables = kTables.size(), .slices = kSlices}),
        tasks_(store_.OpenTasks()),
        lives_(store_.OpenIncarnations()),
        schema_(store_.OpenSchema()),
        permits_(store_.OpenPermits()) {}

  void Step() {
    switch (random_.Below(21)) {
      case 0:
      case 1:
        return Insert();
      case 2:
        clock_.Advance(milliseconds(random_.Below(500)));
        return;
      case 3: {
        const Incarnation life{Life(), "w", "h", 1, std::chrono::seconds(1), {}};
        return Same("Register", compact_.Register(life), lives_->Register(life));
      }
      case 4: {
        const std::string life = Life();
        return Same("Renew", compact_.Renew(life), lives_->Renew(life));
      }
      case 5: {
        const std::string life = Life();
        const std::uint64_t beat = random_.Below(3);
        return Same("MarkDead", compact_.MarkDead(life, beat), lives_->MarkDead(life, beat));
      }
      case 6: {
        if (random_.Below(4) != 0) return Same("Peers", compact_.Peers(), lives_->Peers());
        const std::string life = Life();
        return Same("Retire", compact_.Retire(life), lives_->Retire(life));
      }
      case 7:
        return Look();
      case 8: {
        const ClaimRequest request = Request();
        return Same("Resolve", Resolve(request), tasks_->Resolve(request));
      }
      case 9: {
        const ClaimRequest request = Request();
        return Same("Adopt", compact_.Adopt(request), tasks_->Adopt(request));
      }
      case 10: {
        const ClaimRequest claim = Request();
        const RescueRequest request{claim.table, claim.incarnation, claim.attempt, claim.ids};
        return Same("Rescue", compact_.Rescue(request), tasks_->Rescue(request));
      }
      case 11:
      case 12: {
        const std::string life = Life();
        const std::vector<Settlement> batch = Batch();
        Same("StillRunning", compact_.StillRunning(life, batch), tasks_->StillRunning(life, batch));
        return Same("Settle", compact_.Settle(life, batch), tasks_->Settle(life, batch));
      }
      case 13: {
        const std::string life = Life();
        const std::vector<Task> tasks = Claimed();
        return Same("ConfirmKeys", Ordered(compact_.ConfirmKeys(life, tasks)),
                    Ordered(tasks_->ConfirmKeys(life, tasks)));
      }
      case 14:
        return Resize();
      case 15:
      case 16:
        return ChangePermits();
      default: {
        const ClaimRequest request = Request();
        return Same("Claim", compact_.Claim(request), tasks_->Claim(request));
      }
    }
  }

 private:
  template <class Reply>
  static void Same(const char* what, const Reply& compact, const Reply& store) {
    ASSERT_EQ(Text(compact), Text(store)) << what;
  }

  std::string Life() { return "w." + std::to_string(random_.Below(4)); }
  std::string Handler() { return random_.Below(2) == 0 ? "a" : "b"; }

  static Result<std::vector<KeyVerdict>> Ordered(Result<std::vector<KeyVerdict>> verdicts) {
    const auto before = [](const KeyVerdict& a, const KeyVerdict& b) { return a.task < b.task; };
    if (verdicts) std::sort(verdicts->begin(), verdicts->end(), before);
    return verdicts;
  }

  TableName Table() { return kTables.at(random_.Below(kTables.size())); }

  // Of one table, as they stand.
  std::vector<Task> Claimed() {
    std::vector<Task> tasks;
    const CompactTable& table = compact_.tables()[random_.Below(kTables.size())];
    for (const CompactRow& row : table.rows) {
      if (random_.Below(3) == 0) continue;
      Task& task = tasks.emplace_back();
      task.key = {table.name, row.id};
      task.handler = row.handler;
      task.biz_key = row.key;
      task.attempt = row.attempt;
    }
    return tasks;
  }

  void Resize() {
    const TableName table = Table();
    const auto slices = 1 + static_cast<std::uint32_t>(random_.Below(2 * kSlices));
    Same("Resize", compact_.Resize(table, slices), schema_->Resize(table, slices));
    Same("RenumberStep", Result<std::size_t>(compact_.RenumberStep(table, 1000)),
         schema_->RenumberStep(table, 1000));
    auto tables = schema_->Tables();
    ASSERT_TRUE(tables && schema_->ReadBeyond(*tables));
    Same("Tables", Result<std::vector<TableInfo>>(compact_.Tables()), tables);
  }

  void ChangePermits() {
    const std::vector<std::string> types = {"a", "b"};
    const std::string made = Handler();
    const auto count = static_cast<std::uint32_t>(random_.Below(3));
    Same("Make", compact_.Make(made, count), permits_->Make(made, count));
    const auto before = compact_.Permits(types);
    Same("Permits", before, permits_->Permits(types));
    std::vector<PermitChange> changes;
    for (const Permit& row : *before) {
      if (random_.Below(2) == 0) continue;
      using To = PermitChange::To;
      constexpr To kWays[] = {To::Held, To::Held, To::Free, To::Voided};
      changes.push_back({row.handler, row.number, row.turn + (random_.Below(8) == 0 ? 1 : 0),
                         kWays[random_.Below(4)], "main/t/" + std::to_string(random_.Below(9)), 1});
    }
    const std::string life = Life();
    if (!changes.empty()) Same("Change", compact_.Change(life, changes), permits_->Change(life, changes));
    Same("Permits", compact_.Permits(types), permits_->Permits(types));
    if (random_.Below(4) == 0) Same("NameHome", compact_.NameHome(life), permits_->NameHome(life));
    Same("Home", compact_.Home(), permits_->Home());
  }

  void Insert() {
    const TableName table = Table();
    const auto slice = static_cast<std::uint32_t>(random_.Below(kSlices));
    const std::string handler = Handler();
    const std::string key = random_.Below(2) == 0 ? "key " + std::to_string(random_.Below(3)) : "";
    NewTask task;
    task.handler = handler;
    task.run_at = clock_.WallNow() + milliseconds(random_.Below(1000)) - milliseconds(500);
    const std::uint64_t id = compact_.Insert(table, slice, handler, *task.run_at, key);
    const auto other = operations_->Submit(table, std::span(&task, 1));
    ASSERT_TRUE(other && other->ids[0] == id);
    // As a producer inserts it: nobody has entered its key.
    store_.Run("UPDATE " + table + " SET slice=" + std::to_string(slice) +
               (key.empty() ? "" : ", biz_key='" + key + "'") + " WHERE id=" + std::to_string(id));
  }

  ClaimRequest Request() {
    const CompactTable& table = compact_.tables()[random_.Below(kTables.size())];
    ClaimRequest request{table.name, Life(), static_cast<std::uint32_t>(random_.Below(3)), {}};
    for (std::uint64_t id = 1; id <= table.rows.size() + 1; ++id) {
      if (random_.Below(3) == 0) request.ids.push_back(id);
    }
    return request;
  }

  std::vector<Settlement> Batch() {
    std::vector<Settlement> batch;
    const CompactTable& table = compact_.tables()[random_.Below(kTables.size())];
    for (const CompactRow& row : table.rows) {
      if (random_.Below(4) != 0) continue;
      Settlement settlement;
      settlement.key = {table.name, row.id};
      settlement.handler = row.handler;
      settlement.biz_key = row.key;
      settlement.started = random_.Below(2) == 0;
      settlement.attempt = row.attempt - static_cast<std::uint32_t>(row.attempt > 0 && random_.Below(4) == 0);
      using To = Settlement::To;
      constexpr To kEnds[] = {To::Succeeded, To::Cancelled, To::Failed, To::Waiting, To::Held};
      settlement.to = kEnds[random_.Below(std::size(kEnds))];
      settlement.failed_attempt = random_.Below(2) == 0;
      if (random_.Below(2) == 0) settlement.delay = milliseconds(random_.Below(300));
      batch.push_back(settlement);
    }
    return batch;
  }

  // In one go, what the mill does step by step.
  Result<std::vector<Task>> Resolve(const ClaimRequest& request) {
    std::vector<Task> adopted;
    EXPECT_TRUE(compact_.RaiseWaiting(request));
    const auto reached = compact_.RunningAbove(request);
    for (const ScanRow& row : *reached) {
      if (row.attempt != request.attempt + 1) continue;
      const auto one = compact_.Adopt({request.table, request.incarnation, row.attempt, {row.id}});
      if (one) adopted.insert(adopted.end(), one->begin(), one->end());
    }
    return adopted;
  }

  void Look() {
    TableSlices slices{Table(), random_.Below(2) == 0};
    for (std::uint32_t i = 0; i < kSlices; ++i) {
      if (random_.Below(2) == 0) slices.slices.push_back(i);
    }
    if (random_.Below(2) == 0) slices.handlers = {Handler()};
    const auto map = compact_.Due({&slices, 1});
    Same("Due", map, tasks_->Due({&slices, 1}));
    if (map->groups.empty()) return;
    ScanRequest request{map->groups[random_.Below(map->groups.size())], {}, 1 + random_.Below(5)};
    const auto page = compact_.Scan(request);
    Same("Scan", page, tasks_->Scan(request));
    if (page->empty()) return;
    request.after = {page->back().run_at, page->back().id};
    Same("Scan on", compact_.Scan(request), tasks_->Scan(request));
  }

  Random random_;
  ManualClock clock_;
  CompactShard compact_;
  ScratchStore store_;
  std::unique_ptr<TaskOperations> operations_ = store_.OpenOperations();
  std::unique_ptr<TaskStore> tasks_;
  std::unique_ptr<IncarnationStore> lives_;
  std::unique_ptr<SchemaStore> schema_;
  std::unique_ptr<PermitStore> permits_;
};

TEST(CompactShardTest, DoesWhatAStoreDoes) {
  for (std::uint64_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pair pair(seed);
    for (int step = 0; step < 250 && !testing::Test::HasFailure(); ++step) pair.Step();
  }
}

TEST(CompactShardTest, APlantedBugLeavesOneGuardOut) {
  ManualClock clock;
  CompactShard shard(clock, {.claim_needs_life = false});
  const std::uint64_t id = shard.Insert(CompactShard::kTable, 0, "a", clock.WallNow());
  EXPECT_EQ(shard.Claim({CompactShard::kTable, "nobody", 0, {id}})->size(), 1u);
}

}  // namespace
}  // namespace millrace::engine

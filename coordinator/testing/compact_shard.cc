#include "coordinator/testing/compact_shard.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "framework/task/task.h"

namespace millrace::engine {
namespace {

Status MustLive(bool alive, const std::string& incarnation) {
  if (alive) return {};
  return Fail(ErrorCode::Cancelled, incarnation + " was marked dead");
}

Task ViewOf(const TableName& table, const CompactRow& row) {
  Task task;
  task.key = {table, row.id};
  task.slice = row.slice;
  task.state = row.state;
  task.handler = row.handler;
  task.priority = row.priority;
  task.run_at = row.run_at;
  task.attempt = row.attempt;
  task.failures = row.failures;
  task.claimed_by = row.claimed_by;
  task.cancel = row.cancel;
  task.biz_key = row.key;
  return task;
}

DueGroup GroupOf(const TableName& table, const CompactRow& row) {
  return {table, row.slice, row.handler, Urgency(row.priority, row.failures), row.run_at};
}

auto PlaceOf(const DueGroup& group) { return std::tie(group.slice, group.handler, group.urgency); }

bool IsOneGroup(const DueGroup& a, const DueGroup& b) {
  return a.table == b.table && PlaceOf(a) == PlaceOf(b);
}

// One row more, where groups are told by them.
void Join(std::vector<DueGroup>& groups, DueGroup row, WallTime now) {
  row.later = row.first_run_at > now;
  row.rows = row.later ? 0 : 1;
  const auto known = std::find_if(groups.begin(), groups.end(),
                                  [&](const DueGroup& group) { return IsOneGroup(group, row); });
  if (known == groups.end()) return groups.push_back(std::move(row));
  known->first_run_at = std::min(known->first_run_at, row.first_run_at);
  known->later = known->later || row.later;
  known->rows += row.rows;
}

// A held row has no urgency: it stands in no group.
bool HasGroup(const CompactRow& row) { return row.state != TaskState::Held; }

bool Belongs(const CompactRow& row, const DueGroup& group) {
  return HasGroup(row) && row.slice == group.slice && Urgency(row.priority, row.failures) == group.urgency &&
         row.handler == group.handler;
}

std::vector<std::uint64_t> Sorted(std::vector<std::uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

CompactShard::CompactShard(const Clock& clock, ShardGuards guards, const std::vector<TableName>& tables,
                           std::uint32_t slices)
    : clock_(clock), guards_(guards) {
  for (const TableName& table : tables) state_.tables.push_back({table, slices});
}

const CompactTable* CompactShard::TableOf(const TableName& name) const {
  for (const CompactTable& table : state_.tables) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

CompactTable* CompactShard::TableOf(const TableName& name) {
  return const_cast<CompactTable*>(std::as_const(*this).TableOf(name));
}

std::uint64_t CompactShard::Insert(const TableName& name, std::uint32_t slice, const std::string& handler,
                                   WallTime run_at, const std::string& key, std::uint32_t priority) {
  CompactTable& table = *TableOf(name);
  const std::uint64_t id = table.rows.size() + 1;
  table.rows.push_back(
      {id, slice, handler, TaskState::Waiting, run_at, clock_.WallNow(), 0, 0, {}, 0, false, key, priority});
  table.open.push_back(id);
  return id;
}

const CompactRow* CompactShard::Find(const TaskKey& key) const {
  const CompactTable* table = TableOf(key.table);
  const bool there = table != nullptr && key.id > 0 && key.id <= table->rows.size();
  return there ? &table->rows[key.id - 1] : nullptr;
}

CompactRow* CompactShard::FindRow(const TableName& table, std::uint64_t id) {
  return const_cast<CompactRow*>(Find({table, id}));
}

std::size_t CompactShard::Open() const {
  std::size_t open = 0;
  for (const CompactTable& table : state_.tables) open += table.open.size();
  return open;
}

DueMap CompactShard::Part(std::span<const TableSlices> tables, const DueWanted& wanted) const {
  DueMap map;
  map.now = clock_.WallNow();
  for (const TableSlices& slices : tables) {
    const CompactTable* table = TableOf(slices.table);
    const auto newer = wanted.newer.find(slices.table);
    if (table == nullptr) continue;
    for (const std::uint64_t id : table->open) {
      const CompactRow& row = table->rows[id - 1];
      const DueGroup group = GroupOf(slices.table, row);
      if (newer != wanted.newer.end() && id > newer->second) {
        std::uint64_t& greatest = map.greatest[slices.table];
        greatest = std::max(greatest, id);
        const bool waits = row.state == TaskState::Waiting && slices.Covers(row.slice, row.handler);
        if (waits) Join(map.groups, group, map.now);
      }
      for (const DueGroup& after : wanted.after) {
        if (HasGroup(row) && IsOneGroup(after, group) && row.run_at > after.first_run_at)
          Join(map.after, group, map.now);
      }
    }
  }
  return map;
}

Result<DueMap> CompactShard::Due(std::span<const TableSlices> tables, const DueWanted& wanted) const {
  if (wanted.IsPart()) return Part(tables, wanted);
  DueMap map;
  map.now = clock_.WallNow();
  for (const TableSlices& slices : tables) {
    const auto first = static_cast<std::ptrdiff_t>(map.groups.size());
    const CompactTable* table = TableOf(slices.table);
    if (table == nullptr) continue;
    for (const std::uint64_t id : table->open) {
      const CompactRow& row = table->rows[id - 1];
      if (!HasGroup(row) || !slices.Covers(row.slice, row.handler)) continue;
      map.groups.push_back(GroupOf(slices.table, row));
    }
    if (wanted.begins_parts) map.greatest[slices.table] = table->rows.size();
    const auto begin = map.groups.begin() + first;
    std::sort(begin, map.groups.end(), [](const DueGroup& a, const DueGroup& b) {
      return PlaceOf(a) != PlaceOf(b) ? PlaceOf(a) < PlaceOf(b) : a.first_run_at < b.first_run_at;
    });
    std::vector<DueGroup> heads;
    std::for_each(begin, map.groups.end(), [&](DueGroup& row) {
      const bool later = row.first_run_at > map.now;
      if (heads.empty() || PlaceOf(heads.back()) != PlaceOf(row)) heads.push_back(std::move(row));
      heads.back().later = wanted.begins_parts && later;
    });
    map.groups.erase(begin, map.groups.end());
    std::move(heads.begin(), heads.end(), std::back_inserter(map.groups));
  }
  return map;
}

Result<std::vector<ScanRow>> CompactShard::Scan(const ScanRequest& request) const {
  const WallTime now = clock_.WallNow();
  std::vector<ScanRow> rows;
  const CompactTable* table = TableOf(request.group.table);
  if (table == nullptr) return rows;
  for (const std::uint64_t id : table->open) {
    const CompactRow& row = table->rows[id - 1];
    if (!Belongs(row, request.group) || row.run_at > now) continue;
    if (ScanPosition{row.run_at, id} <= request.after) continue;
    rows.push_back({id, row.run_at, row.state, row.attempt, 0, row.claimed_by});
    if (request.with_created) rows.back().created_at = row.created_at;
  }
  std::sort(rows.begin(), rows.end(), [](const ScanRow& a, const ScanRow& b) {
    return std::pair(a.run_at, a.id) < std::pair(b.run_at, b.id);
  });
  if (rows.size() > request.limit) rows.resize(request.limit);
  if (request.running_only)
    std::erase_if(rows, [](const ScanRow& row) { return row.state != TaskState::Running; });
  return rows;
}

Result<std::vector<std::uint64_t>> CompactShard::GreatestIds(std::span<const TableName> tables) const {
  std::vector<std::uint64_t> greatest;
  for (const TableName& name : tables) {
    const CompactTable* table = TableOf(name);
    greatest.push_back(table == nullptr || table->open.empty() ? 0 : table->open.back());
  }
  return greatest;
}

Result<std::vector<Task>> CompactShard::Claim(const ClaimRequest& request) {
  if (guards_.claim_needs_life) {
    BOOST_OUTCOME_TRYV(MustLive(IsAlive(request.incarnation), request.incarnation));
  }
  const WallTime now = clock_.WallNow();
  std::vector<Task> claimed;
  for (const std::uint64_t id : Sorted(request.ids)) {
    CompactRow* row = FindRow(request.table, id);
    if (row == nullptr || row->state != TaskState::Waiting || row->attempt != request.attempt) continue;
    if (row->run_at > now) continue;
    row->state = TaskState::Running;
    ++row->attempt;
    row->claimed_by = request.incarnation;
    claimed.push_back(ViewOf(request.table, *row));
  }
  return claimed;
}

bool CompactShard::RunsUnder(const CompactRow& row, const std::string& incarnation,
                             std::uint32_t attempt) const {
  return row.state == TaskState::Running && row.claimed_by == incarnation && row.attempt == attempt;
}

Result<std::size_t> CompactShard::RaiseWaiting(const ClaimRequest& request) {
  std::size_t raised = 0;
  for (const std::uint64_t id : request.ids) {
    CompactRow* row = FindRow(request.table, id);
    if (row == nullptr || row->state != TaskState::Waiting || row->attempt != request.attempt) continue;
    ++row->attempt;
    ++raised;
  }
  return raised;
}

Result<std::vector<ScanRow>> CompactShard::RunningAbove(const ClaimRequest& request) const {
  std::vector<ScanRow> rows;
  for (const std::uint64_t id : Sorted(request.ids)) {
    const CompactRow* row = Find({request.table, id});
    if (row == nullptr || row->state != TaskState::Running || row->claimed_by != request.incarnation)
      continue;
    if (row->attempt > request.attempt) {
      rows.push_back({id, row->run_at, row->state, row->attempt, 0, row->claimed_by});
    }
  }
  return rows;
}

Result<std::vector<Task>> CompactShard::Adopt(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(MustLive(IsAlive(request.incarnation), request.incarnation));
  std::vector<Task> raised;
  for (const std::uint64_t id : Sorted(request.ids)) {
    CompactRow* row = FindRow(request.table, id);
    if (row == nullptr || !RunsUnder(*row, request.incarnation, request.attempt)) continue;
    ++row->attempt;
    raised.push_back(ViewOf(request.table, *row));
  }
  return raised;
}

Result<std::vector<std::uint64_t>> CompactShard::Rescue(const RescueRequest& request) {
  std::vector<std::uint64_t> rescued;
  if (guards_.rescue_needs_death && IsAlive(request.claimed_by)) return rescued;
  for (const std::uint64_t id : Sorted(request.ids)) {
    CompactRow* row = FindRow(request.table, id);
    if (row == nullptr || !RunsUnder(*row, request.claimed_by, request.attempt)) continue;
    row->state = TaskState::Waiting;
    row->claimed_by.clear();
    ++row->rescues;
    state_.keys.Rescued(row->handler, row->key, {request.table, id});
    rescued.push_back(id);
  }
  return rescued;
}

void CompactShard::Cancel(const TaskKey& key) {
  if (CompactRow* row = FindRow(key.table, key.id)) row->cancel = true;
}

Result<std::vector<std::uint64_t>> CompactShard::FailUnclaimed(const ClaimRequest& request) {
  std::vector<std::uint64_t> failed;
  for (const std::uint64_t id : Sorted(request.ids)) {
    CompactRow* row = FindRow(request.table, id);
    if (row == nullptr || row->state != TaskState::Waiting || row->attempt != request.attempt) continue;
    Close(request.table, *row, TaskState::Failed);
    failed.push_back(id);
  }
  return failed;
}

std::vector<Task> CompactShard::Running(const std::string& incarnation, std::span<const Task> tasks) const {
  std::vector<Task> running;
  for (const Task& task : tasks) {
    const CompactRow* row = Find(task.key);
    if (row != nullptr && !row->key.empty() && RunsUnder(*row, incarnation, task.attempt))
      running.push_back(task);
  }
  return running;
}

std::vector<KeyVerdict> CompactShard::EnterKeys(std::span<const Task> tasks) {
  std::vector<KeyVerdict> verdicts;
  for (const Task& task : tasks) {
    const TaskKey holder = state_.keys.Enter(task.handler, task.biz_key, task.key,
                                             [this](const TaskKey& key) { return Find(key) == nullptr; });
    const bool mine = holder == task.key;
    verdicts.push_back({task.key, mine, mine ? "" : ToString(holder)});
  }
  return verdicts;
}

Result<std::vector<KeyVerdict>> CompactShard::ConfirmKeys(const std::string& incarnation,
                                                          std::span<const Task> tasks) {
  return EnterKeys(Running(incarnation, tasks));
}

Result<std::vector<TaskKey>> CompactShard::Cancelled(const std::string& incarnation,
                                                     std::span<const TaskKey> running) const {
  std::vector<TaskKey> cancelled;
  for (const TaskKey& key : running) {
    const CompactRow* row = Find(key);
    if (row == nullptr || !row->cancel) continue;
    if (row->state == TaskState::Running && row->claimed_by == incarnation) cancelled.push_back(key);
  }
  return cancelled;
}

void CompactShard::End(CompactRow& row, const Settlement& settlement) {
  if (settlement.failed_attempt) ++row.failures;
  row.claimed_by.clear();
  state_.keys.Ended(row.handler, row.key, settlement);
  if (StaysHot(settlement.to)) {
    row.state = StateAfter(settlement.to);
    if (settlement.run_at) row.run_at = *settlement.run_at;
    if (settlement.delay) row.run_at = clock_.WallNow() + *settlement.delay;
    return;
  }
  Close(settlement.key.table, row, StateAfter(settlement.to));
}

void CompactShard::Close(const TableName& table, CompactRow& row, TaskState state) {
  row.state = state;
  std::vector<std::uint64_t>& open = TableOf(table)->open;
  open.erase(std::lower_bound(open.begin(), open.end(), row.id));
}

Result<SettleReport> CompactShard::Settle(const std::string& incarnation, std::span<const Settlement> batch) {
  SettleReport report;
  report.verdicts.resize(batch.size(), SettleVerdict::Refused);
  report.errors.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    CompactRow* row = FindRow(batch[i].key.table, batch[i].key.id);
    if (row == nullptr) continue;
    const std::uint32_t attempt = guards_.settle_needs_attempt ? batch[i].attempt : row->attempt;
    const std::string claimer = guards_.settle_needs_claimer ? incarnation : row->claimed_by;
    if (!RunsUnder(*row, claimer, attempt)) continue;
    End(*row, batch[i]);
    report.verdicts[i] = SettleVerdict::Settled;
  }
  return report;
}

Result<std::vector<bool>> CompactShard::StillRunning(const std::string& incarnation,
                                                     std::span<const Settlement> batch) const {
  std::vector<bool> running;
  for (const Settlement& settlement : batch) {
    const CompactRow* row = Find(settlement.key);
    running.push_back(row != nullptr && RunsUnder(*row, incarnation, settlement.attempt));
  }
  return running;
}

std::vector<TableInfo> CompactShard::Tables() const {
  std::vector<TableInfo> infos;
  for (const CompactTable& table : state_.tables) {
    std::set<std::uint32_t> beyond;
    for (const std::uint64_t id : table.open) {
      if (table.rows[id - 1].slice >= table.slices) beyond.insert(table.rows[id - 1].slice);
    }
    infos.push_back({table.name, table.slices, {beyond.begin(), beyond.end()}});
  }
  return infos;
}

Status CompactShard::Resize(const TableName& name, std::uint32_t slices) {
  CompactTable* table = TableOf(name);
  if (table == nullptr) return Fail(ErrorCode::NotFound, "there is no such table");
  table->slices = slices;
  return {};
}

std::size_t CompactShard::RenumberStep(const TableName& name, std::size_t limit) {
  CompactTable& table = *TableOf(name);
  std::size_t moved = 0;
  for (const std::uint64_t id : table.open) {
    CompactRow& row = table.rows[id - 1];
    if (moved == limit) break;
    if (row.slice < table.slices || row.state == TaskState::Running) continue;
    row.slice = static_cast<std::uint32_t>(id % table.slices);
    ++moved;
  }
  return moved;
}

}  // namespace millrace::engine

#include <algorithm>
#include <iterator>
#include <map>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/task_store.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/task_store.h"

namespace millrace::engine::mysql {

namespace {

// Rows that an earlier claim of the same incarnation took look alike but for their time.
void KeepNewest(std::vector<Task>& tasks, std::uint64_t claimed) {
  if (tasks.size() <= claimed) return;
  const auto newest = std::max_element(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) {
                        return a.claimed_at < b.claimed_at;
                      })->claimed_at;
  std::erase_if(tasks, [&](const Task& task) { return task.claimed_at != newest; });
}

// What a scan has read of these rows, which are sorted; nothing where one of them is missing.
std::vector<ScannedTask*> Scanned(ClaimRequest& request, std::span<const std::uint64_t> ids) {
  std::vector<ScannedTask*> scanned;
  if (request.contents.size() < ids.size()) return scanned;
  scanned.reserve(request.contents.size());
  for (ScannedTask& one : request.contents) scanned.push_back(&one);
  const auto id_of = [](const ScannedTask* one) { return one->task.key.id; };
  std::ranges::sort(scanned, {}, id_of);
  if (scanned.size() > ids.size()) {
    std::erase_if(scanned, [&](const ScannedTask* one) {
      return !std::binary_search(ids.begin(), ids.end(), id_of(one));
    });
  }
  if (!std::ranges::equal(scanned, ids, {}, id_of)) scanned.clear();
  return scanned;
}

// Each row by itself: a time that stands in another of them must not do. Rows that were put in together have
// one time.
std::string Unchanged(std::span<ScannedTask* const> scanned) {
  std::vector<FromId> parts;
  WallTime last{};
  for (const ScannedTask* one : scanned) {
    if (!parts.empty() && one->updated_at == last) continue;
    last = one->updated_at;
    parts.push_back({one->task.key.id, "TIMESTAMP" + TimeLiteral(last)});
  }
  return " AND updated_at=" + ById(parts);
}

// Keeps a takeover from slipping past until the claim has ended.
std::string Lives(const std::string& claimer) {
  return " AND EXISTS (SELECT 1 FROM millrace_incarnations WHERE number=" + claimer +
         " AND dead=0 LOCK IN SHARE MODE)";
}

}  // namespace

std::string ClaimText(const TableName& table, const std::string& ids, std::uint64_t claimer,
                      std::uint32_t attempt, const std::string& unchanged) {
  const std::string me = std::to_string(claimer);
  return "UPDATE " + table + " FORCE INDEX (PRIMARY) SET state=2, attempt=attempt+1, claimed_by=" + me +
         ", claimed_at=UTC_TIMESTAMP(6), updated_at=updated_at WHERE " + ids +
         " AND state=0 AND attempt=" + std::to_string(attempt) + " AND run_at<=UTC_TIMESTAMP(6)" + unchanged +
         Lives(me);
}

std::string RunningRows(const TableName& table, const std::string& ids, std::uint64_t claimer,
                        std::uint32_t attempt) {
  return " FROM " + table + " FORCE INDEX (PRIMARY) WHERE " + ids +
         " AND state=2 AND claimed_by=" + std::to_string(claimer) + " AND attempt=" + std::to_string(attempt);
}

Result<std::vector<Task>> MysqlTaskStore::Claim(ClaimRequest request) {
  BOOST_OUTCOME_TRYV(sql::CheckBatch(request.ids.size()));
  BOOST_OUTCOME_TRY(claimer, ByName(request.incarnation));
  std::vector<std::uint64_t> ids = Sorted(request.ids);
  // A second look is enough for rows that stay locked; one that is locked in between is left for later.
  for (int look = 0; !ids.empty(); ++look) {
    auto claimed = ClaimIds(request, claimer, ids);
    if (claimed || claimed.error().code != ErrorCode::Conflict || look == 2) return claimed;
    BOOST_OUTCOME_TRY(free, FreeIds(request.table, ids));
    ids = std::move(free);
  }
  return std::vector<Task>{};
}

Result<std::vector<Task>> MysqlTaskStore::ClaimIds(ClaimRequest& request, const sql::Claimer& claimer,
                                                   std::span<const std::uint64_t> ids) {
  const std::vector<ScannedTask*> scanned = Scanned(request, ids);
  return scanned.empty() ? ClaimUnscanned(request, claimer, ids)
                         : ClaimScanned(request, claimer, ids, scanned);
}

Result<std::vector<Task>> MysqlTaskStore::ReadHit(const ClaimRequest& request, const sql::Claimer& claimer,
                                                  const std::string& rows, std::uint64_t hit) {
  auto tasks = ReadClaimed(request.table, claimer, rows, request.attempt + 1);
  // They are claimed, and nobody knows their contents.
  if (!tasks) {
    return Fail(ErrorCode::Unknown, "a claim's rows can't be read: " + tasks.error().message);
  }
  KeepNewest(*tasks, hit);
  return tasks;
}

Result<std::vector<Task>> MysqlTaskStore::ClaimScanned(const ClaimRequest& request,
                                                       const sql::Claimer& claimer,
                                                       std::span<const std::uint64_t> ids,
                                                       std::span<ScannedTask* const> scanned) {
  const std::string rows = WithIds(ids);
  BOOST_OUTCOME_TRY(hit, session_.Write(ClaimText(request.table, rows, claimer.number, request.attempt,
                                                  Unchanged(scanned))));
  std::vector<Task> tasks;
  if (hit == ids.size()) {
    tasks.reserve(hit);
    for (ScannedTask* one : scanned) {
      Task& task = tasks.emplace_back(std::move(one->task));
      task.state = TaskState::Running;
      task.attempt = request.attempt + 1;
      task.claimed_by = claimer.name;
    }
    return tasks;
  }
  std::vector<std::uint64_t> missed(ids.begin(), ids.end());
  if (hit > 0) {
    BOOST_OUTCOME_TRY(read, ReadHit(request, claimer, rows, hit));
    tasks = std::move(read);
    std::vector<std::uint64_t> taken;
    for (const Task& task : tasks) taken.push_back(task.key.id);
    std::ranges::sort(taken);
    missed.clear();
    std::ranges::set_difference(ids, taken, std::back_inserter(missed));
  }
  auto rest = ClaimUnscanned(request, claimer, missed);
  if (!rest) {
    const ErrorCode code = rest.error().code;
    // Those in hand are claimed whatever became of the others, unless nobody can tell or the life has ended.
    if (tasks.empty() || code == ErrorCode::Unknown || code == ErrorCode::Cancelled) return rest;
    return tasks;
  }
  std::move(rest->begin(), rest->end(), std::back_inserter(tasks));
  return tasks;
}

Result<std::vector<Task>> MysqlTaskStore::ClaimUnscanned(const ClaimRequest& request,
                                                         const sql::Claimer& claimer,
                                                         std::span<const std::uint64_t> ids) {
  const std::string rows = WithIds(ids);
  BOOST_OUTCOME_TRY(hit, session_.Write(ClaimText(request.table, rows, claimer.number, request.attempt)));
  if (hit > 0) return ReadHit(request, claimer, rows, hit);
  BOOST_OUTCOME_TRY(alive, IsAlive(claimer));
  if (alive) return std::vector<Task>{};
  return Fail(ErrorCode::Cancelled, session_.where() + ": the incarnation " + request.incarnation +
                                        " is marked dead; register anew");
}

// Which rows could be changed without waiting for somebody else's lock, sorted. The locks end with the
// statement.
Result<std::vector<std::uint64_t>> MysqlTaskStore::FreeIds(const TableName& table,
                                                           std::span<const std::uint64_t> ids) {
  std::vector<std::uint64_t> free;
  BOOST_OUTCOME_TRYV(session_.Query("SELECT id FROM " + table + " FORCE INDEX (PRIMARY) WHERE " +
                                        WithIds(ids) + " ORDER BY id FOR UPDATE SKIP LOCKED",
                                    [&](const Row& row) { free.push_back(row.Number(1)); }));
  return free;
}

Result<std::vector<Task>> MysqlTaskStore::ReadClaimed(const TableName& table, const sql::Claimer& claimer,
                                                      const std::string& ids, std::uint32_t attempt) {
  std::vector<Task> tasks;
  static const std::string columns = sql::TaskColumns(sql::TaskRows::Claimed);
  BOOST_OUTCOME_TRYV(session_.Query("SELECT " + columns + RunningRows(table, ids, claimer.number, attempt),
                                    [&](const Row& row) {
                                      tasks.push_back(sql::ReadTask(table, row));
                                      tasks.back().claimed_by = claimer.name;
                                    }));
  return tasks;
}

Result<std::vector<Task>> MysqlTaskStore::Resolve(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(sql::CheckBatch(request.ids.size()));
  const std::vector<std::uint64_t> ids = Sorted(request.ids);
  if (ids.empty()) return std::vector<Task>{};
  BOOST_OUTCOME_TRY(claimer, ByName(request.incarnation));
  const std::string rows = WithIds(ids);
  // A locking read would let the lost statement land afterwards; a raised number does not.
  auto raised =
      session_.Write("UPDATE " + request.table + " FORCE INDEX (PRIMARY) SET attempt=attempt+1 WHERE " +
                     rows + " AND state=0 AND attempt=" + std::to_string(request.attempt));
  if (!raised) {
    Error error = raised.error();
    if (error.code == ErrorCode::Conflict) error.code = ErrorCode::Unavailable;
    return Fail(error);
  }
  auto tasks = AdoptReached(request, claimer, rows);
  if (tasks) {
    half_resolved_.erase({request.table, rows});
  } else {
    half_resolved_.insert({request.table, rows});
  }
  return tasks;
}

// The rows that the lost statement reached have the number that it gave them. Only a Resolve that failed
// half-way can have raised some of them further without anybody knowing.
Result<std::vector<Task>> MysqlTaskStore::AdoptReached(const ClaimRequest& request,
                                                       const sql::Claimer& claimer, const std::string& rows) {
  const bool again = half_resolved_.contains({request.table, rows});
  std::map<std::uint32_t, std::vector<std::uint64_t>> running;
  BOOST_OUTCOME_TRYV(session_.Query(
      "SELECT id,attempt FROM " + request.table + " FORCE INDEX (PRIMARY) WHERE " + rows +
          " AND state=2 AND claimed_by=" + std::to_string(claimer.number) + " AND attempt" +
          (again ? ">=" : "=") + std::to_string(request.attempt + 1),
      [&](const Row& row) { running[static_cast<std::uint32_t>(row.Number(2))].push_back(row.Number(1)); }));
  std::vector<Task> tasks;
  for (const auto& [seen, found] : running) {
    auto adopted = AdoptAttempt(request.table, claimer, found, seen);
    // Those adopted before are known to nobody but the database: all of it must be asked again.
    if (!adopted) {
      return Fail(ErrorCode::Unknown, "an unknown claim is only partly resolved: " + adopted.error().message);
    }
    if (adopted->size() < found.size()) {
      auto alive = IsAlive(claimer);
      if (alive && !*alive) return std::vector<Task>{};  // whoever marked it dead sees to its rows
      return Fail(ErrorCode::Unknown,
                  "an unknown claim is only partly resolved: an earlier adoption was still under way");
    }
    for (Task& task : *adopted) tasks.push_back(std::move(task));
  }
  return tasks;
}

Result<std::vector<Task>> MysqlTaskStore::Adopt(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(sql::CheckBatch(request.ids.size()));
  const std::vector<std::uint64_t> ids = Sorted(request.ids);
  if (ids.empty()) return std::vector<Task>{};
  BOOST_OUTCOME_TRY(claimer, ByName(request.incarnation));
  return AdoptAttempt(request.table, claimer, ids, request.attempt);
}

Result<std::vector<Task>> MysqlTaskStore::AdoptAttempt(const TableName& table, const sql::Claimer& claimer,
                                                       std::span<const std::uint64_t> ids,
                                                       std::uint32_t seen) {
  const std::string rows = WithIds(ids);
  const std::string me = std::to_string(claimer.number);
  BOOST_OUTCOME_TRY(
      hit, session_.Write("UPDATE " + table +
                          " FORCE INDEX (PRIMARY) SET attempt=attempt+1, claimed_at=UTC_TIMESTAMP(6) WHERE " +
                          rows + " AND state=2 AND claimed_by=" + me +
                          " AND attempt=" + std::to_string(seen) + Lives(me)));
  if (hit == 0) return std::vector<Task>{};
  auto tasks = ReadClaimed(table, claimer, rows, seen + 1);
  if (!tasks) return Fail(ErrorCode::Unknown, "adopted rows can't be read: " + tasks.error().message);
  KeepNewest(*tasks, hit);
  return tasks;
}

}  // namespace millrace::engine::mysql

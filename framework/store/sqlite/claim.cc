#include "framework/store/sqlite/task_store.h"

#include "framework/store/sql/operations.h"
#include "framework/store/sql/task_store.h"

namespace millrace::engine::sqlite {
namespace {

// Appends the row that a statement gives, if it gives one.
Status TakeTask(Rows rows, const TableName& table, const sql::Claimer& claimer, std::vector<Task>& tasks) {
  if (rows.Next()) {
    tasks.push_back(sql::ReadTask(table, PortRow(rows)));
    tasks.back().claimed_by = claimer.name;
  }
  return rows.Finish();
}

}  // namespace

std::string ClaimSql(const TableName& table) {
  return "UPDATE " + table +
         " SET state=2, attempt=attempt+1, claimed_by=?, claimed_at=?, updated_at=?"
         " WHERE id=? AND state=0 AND attempt=? AND run_at<=?";
}

Status SqliteTaskStore::CheckAlive(const sql::Claimer& claimer) {
  BOOST_OUTCOME_TRY(alive, IsAlive(claimer));
  if (alive) return {};
  return Fail(ErrorCode::Cancelled, "the incarnation " + claimer.name + " was marked dead in this shard");
}

Result<std::vector<Task>> SqliteTaskStore::Claim(ClaimRequest request) {
  BOOST_OUTCOME_TRYV(sql::CheckBatch(request.ids.size()));
  BOOST_OUTCOME_TRY(claimer, ByName(request.incarnation));
  return db_.Write([&]() -> Result<std::vector<Task>> {
    BOOST_OUTCOME_TRYV(CheckAlive(claimer));
    const std::string now = TimeText(db_.Now());
    const std::string claim = ClaimSql(request.table);
    // Two plain statements are quicker than RETURNING, for which SQLite runs a trigger and a table beside.
    const std::string read =
        "SELECT " + sql::TaskColumns(sql::TaskRows::Claimed) + " FROM " + request.table + " WHERE id=?";
    std::vector<Task> claimed;
    claimed.reserve(request.ids.size());
    for (const std::uint64_t id : sql::Sorted(request.ids)) {
      BOOST_OUTCOME_TRY(row, db_.Run(claim, claimer.number, now, now, id, request.attempt, now));
      if (row == 0) continue;
      BOOST_OUTCOME_TRYV(TakeTask(db_.Select(read, id), request.table, claimer, claimed));
    }
    return claimed;
  });
}

Status SqliteTaskStore::AdoptRows(const ClaimRequest& request, const sql::Claimer& claimer,
                                  std::uint32_t attempt, std::vector<Task>& adopted) {
  const std::string sql = "UPDATE " + request.table + " SET attempt=attempt+1, claimed_at=?, updated_at=?" +
                          kMine + " RETURNING " + sql::TaskColumns(sql::TaskRows::Claimed);
  const std::string now = TimeText(db_.Now());
  for (const std::uint64_t id : sql::Sorted(request.ids)) {
    auto rows = db_.Select(sql, now, now, id, claimer.number, attempt);
    BOOST_OUTCOME_TRYV(TakeTask(std::move(rows), request.table, claimer, adopted));
  }
  return {};
}

Result<std::vector<Task>> SqliteTaskStore::Resolve(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(sql::CheckBatch(request.ids.size()));
  BOOST_OUTCOME_TRY(claimer, ByName(request.incarnation));
  return db_.Write([&]() -> Result<std::vector<Task>> {
    std::vector<Task> adopted;
    // The adoption comes first: a row that it raised no longer has the number that the other statement looks
    // for.
    BOOST_OUTCOME_TRY(alive, IsAlive(claimer));
    if (alive) {
      BOOST_OUTCOME_TRYV(AdoptRows(request, claimer, request.attempt + 1, adopted));
    }
    const std::string sql = "UPDATE " + request.table +
                            " SET attempt=attempt+1, updated_at=? WHERE id=? AND state=0 AND attempt=?";
    const std::string now = TimeText(db_.Now());
    for (const std::uint64_t id : sql::Sorted(request.ids)) {
      BOOST_OUTCOME_TRYV(db_.Run(sql, now, id, request.attempt));
    }
    return adopted;
  });
}

Result<std::vector<Task>> SqliteTaskStore::Adopt(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(sql::CheckBatch(request.ids.size()));
  BOOST_OUTCOME_TRY(claimer, ByName(request.incarnation));
  return db_.Write([&]() -> Result<std::vector<Task>> {
    BOOST_OUTCOME_TRYV(CheckAlive(claimer));
    std::vector<Task> adopted;
    BOOST_OUTCOME_TRYV(AdoptRows(request, claimer, request.attempt, adopted));
    return adopted;
  });
}

}  // namespace millrace::engine::sqlite

#include "framework/store/sqlite/counters.h"
#include "framework/store/sqlite/key_ledger.h"
#include "framework/store/sqlite/rows.h"
#include "framework/store/sqlite/sqlite_task_store.h"

namespace millrace::engine {
namespace {

constexpr char kKept[] =
    "id, slice, handler, priority, run_at, params, biz_key, batch, failures, attempt, crashes, progress, "
    "created_at";

}  // namespace

Result<bool> SqliteTaskStore::FailOne(const TaskKey& key, std::uint32_t attempt, const std::string& why,
                                      CounterSums& sums) {
  std::string handler;
  std::string biz_key;
  std::string batch;
  {
    // A number beyond those that the program knows reads as the largest of them.
    auto rows = db_.Select("SELECT handler, biz_key, batch FROM " + key.table +
                               " WHERE id=? AND state=0 AND min(attempt, 4294967295)=?",
                           key.id, attempt);
    const bool waits = rows.Next();
    if (rows.error()) return Fail(*rows.error());
    if (!waits) return false;
    handler = rows.Text(0);
    biz_key = rows.Text(1);
    batch = rows.Text(2);
  }
  const WallTime now = StoreNow();
  BOOST_OUTCOME_TRYV(db_.Run("INSERT INTO " + key.table + "_failed (" + kKept +
                                 ", state, last_error, error_class, finished_at) SELECT " + kKept +
                                 ", -1, ?, ?, ? FROM " + key.table + " WHERE id=?",
                             Shorten(why), kUnclaimable, TimeText(now), key.id));
  BOOST_OUTCOME_TRYV(db_.Run("DELETE FROM " + key.table + " WHERE id=?", key.id));
  sums.Of(key.table, handler, batch).failed += 1;
  BOOST_OUTCOME_TRYV(SetKeyFate(db_, handler, biz_key, key, KeyFate::Failed, now));
  return true;
}

Result<std::vector<std::uint64_t>> SqliteTaskStore::FailUnclaimed(const ClaimRequest& request,
                                                                  const std::string& why) {
  return db_.Write([&]() -> Result<std::vector<std::uint64_t>> {
    std::vector<std::uint64_t> failed;
    CounterSums sums;
    for (const std::uint64_t id : request.ids) {
      BOOST_OUTCOME_TRY(done, FailOne({request.table, id}, request.attempt, why, sums));
      if (done) failed.push_back(id);
    }
    BOOST_OUTCOME_TRYV(sums.Write(db_, request.incarnation));
    return failed;
  });
}

}  // namespace millrace::engine

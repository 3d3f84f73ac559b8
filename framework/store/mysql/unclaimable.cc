#include "framework/store/mysql/mysql_task_store.h"
#include "framework/store/mysql/settle_text.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

constexpr const char* kKept =
    "id,slice,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,progress,created_at";

}  // namespace

Result<std::vector<std::uint64_t>> MysqlTaskStore::FailUnclaimed(const ClaimRequest& request,
                                                                 const std::string& why) {
  std::vector<std::uint64_t> failed;
  if (request.ids.empty()) return failed;
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  std::vector<Settlement> ended;
  BOOST_OUTCOME_TRYV(session_.Query("SELECT id,handler,biz_key,batch FROM " + request.table +
                                        " FORCE INDEX (PRIMARY) WHERE id IN (" + List(Sorted(request.ids)) +
                                        ") AND state=0 AND attempt=" + std::to_string(request.attempt) +
                                        " ORDER BY id FOR UPDATE SKIP LOCKED",
                                    [&](const Row& row) {
                                      failed.push_back(row.Number(1));
                                      Settlement& one = ended.emplace_back();
                                      one.key = {request.table, row.Number(1)};
                                      one.to = Settlement::To::Failed;
                                      one.handler = row.Text(2);
                                      one.biz_key = row.Text(3);
                                      one.batch = row.Text(4);
                                    }));
  if (failed.empty()) return failed;
  std::vector<const Settlement*> batch;
  for (const Settlement& one : ended) batch.push_back(&one);
  const std::string ids = " FORCE INDEX (PRIMARY) WHERE id IN (" + List(failed) + ")";
  std::vector<std::string> texts = {"INSERT INTO " + request.table + "_failed (" + kKept +
                                        ",state,last_error,error_class,finished_at) SELECT " + kKept +
                                        ",-1," + Quote(Shorten(why)) + "," + Quote(kUnclaimable) +
                                        ",UTC_TIMESTAMP(6) FROM " + request.table + ids,
                                    "DELETE " + request.table + " FROM " + request.table + ids};
  for (std::string& text : KeysTexts(batch)) texts.push_back(std::move(text));
  texts.push_back(CountersText(request.incarnation, batch));
  for (const std::string& sql : texts) {
    BOOST_OUTCOME_TRYV(session_.Write(sql));
  }
  BOOST_OUTCOME_TRYV(session_.Commit());
  return failed;
}

}  // namespace millrace::engine::mysql

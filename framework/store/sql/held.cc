#include "framework/store/sql/held.h"

#include <algorithm>

#include "framework/base/time_text.h"
#include "framework/store/sql/counters.h"
#include "framework/store/sql/keys.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

constexpr const char* kBeforeAll = "0001-01-01 00:00:00.000000";

}  // namespace

Status HeldWalk::Begin(const HoldRule& rule) {
  groups_.clear();
  refused_.reset();
  run_at_ = kBeforeAll;
  id_ = 0;
  return db_.Query("SELECT slice,handler,MIN(run_at) FROM " + rule.table + "$held(" + rule.table +
                       ") WHERE urgency IS NULL GROUP BY slice,handler",
                   {}, [&](const Row& row) {
                     Group group{static_cast<std::uint32_t>(row.Number(1)), row.Text(2)};
                     if (rule.by_handler.contains(group.handler)) groups_.push_back(std::move(group));
                   });
}

Result<PruneStep> HeldWalk::Step(const HoldRule& rule, const std::string& after, std::size_t limit) {
  PruneStep step;
  if (rule.by_handler.empty()) return step;
  if (after.empty()) {
    BOOST_OUTCOME_TRYV(Begin(rule));
  }
  if (groups_.empty() && refused_) return Fail(*refused_);
  if (groups_.empty()) return step;
  limit = std::min(limit, kMaxBatchRows);
  const Group group = groups_.back();
  const auto held_for = rule.by_handler.find(group.handler);
  std::vector<std::uint64_t> overdue;
  std::size_t seen = 0;
  const std::string from = run_at_;
  BOOST_OUTCOME_TRYV(db_.Query(
      "SELECT id,run_at,updated_at,$now FROM " + rule.table + "$held(" + rule.table +
          ") WHERE slice=? AND handler=? AND urgency IS NULL AND (run_at=? AND id>? OR run_at>?) ORDER BY "
          "run_at,id LIMIT ?",
      {group.slice, group.handler, from, id_, from, std::uint64_t{limit}}, [&](const Row& row) {
        ++seen;
        id_ = row.Number(1);
        run_at_ = row.Text(2);
        const auto changed = row.Time(3);
        const auto now = row.Time(4);
        if (held_for != rule.by_handler.end() && changed && now && *changed < *now - held_for->second)
          overdue.push_back(id_);
      }));
  if (!overdue.empty()) {
    BOOST_OUTCOME_TRY(ended, EndMost(rule, group, overdue));
    step.removed = ended;
  }
  if (seen < limit) {
    groups_.pop_back();
    run_at_ = kBeforeAll;
    id_ = 0;
  }
  if (!groups_.empty() || refused_) step.next = "more";
  return step;
}

Result<std::size_t> HeldWalk::EndMost(const HoldRule& rule, const Group& group,
                                      std::span<const std::uint64_t> ids) {
  const auto ended = End(rule, group, {ids.begin(), ids.end()});
  if (ended || ended.error().code != ErrorCode::Invalid) return ended;
  if (ids.size() == 1) {
    refused_ = ended.error();
    return std::size_t{0};
  }
  const std::size_t half = ids.size() / 2;
  BOOST_OUTCOME_TRY(first, EndMost(rule, group, ids.first(half)));
  BOOST_OUTCOME_TRY(second, EndMost(rule, group, ids.subspan(half)));
  return first + second;
}

// They are looked at again under their locks: somebody may have released one, or have changed it.
Result<std::size_t> HeldWalk::End(const HoldRule& rule, const Group& group,
                                  const std::vector<std::uint64_t>& ids) {
  const Micros held_for = rule.by_handler.at(group.handler);
  const std::string table(rule.table.text());
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  std::vector<std::uint64_t> ending;
  CounterSums sums;
  KeyEntries keys;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id,biz_key,batch FROM " + table + "$primary WHERE id IN (" +
                                   List(Sorted(ids)) +
                                   ") AND state=3 AND handler=? AND updated_at<$after(?) ORDER BY id$free",
                               {group.handler, std::int64_t{-held_for.count()}}, [&](const Row& row) {
                                 ending.push_back(row.Number(1));
                                 sums.Of(rule.table, group.handler, row.Text(3)).cancelled += 1;
                                 if (!row.Text(2).empty())
                                   keys.push_back({group.handler, row.Text(2), {rule.table, row.Number(1)}});
                               }));
  if (ending.empty()) return std::size_t{0};
  const std::string kept =
      "id,slice,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,progress,created_at,"
      "expires_at";
  const std::string in = " WHERE id IN (" + List(ending) + ")";
  BOOST_OUTCOME_TRYV(db_.Write("INSERT INTO " + table + "_done (" + kept +
                                   ",state,last_error,result,finished_at) SELECT " + kept +
                                   ",4,?,'',$now FROM " + table + "$primary" + in,
                               {"held longer than " + FormatDuration(held_for)}));
  BOOST_OUTCOME_TRYV(db_.Write("$remove(" + table + ")" + in));
  // As cancelling does: a key of a task that was never started is free again.
  BOOST_OUTCOME_TRYV(SetFate(db_, std::move(keys), KeyFate::Cancel));
  BOOST_OUTCOME_TRYV(sums.Write(db_, ""));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return ending.size();
}

}  // namespace millrace::engine::sql

#include "framework/store/mysql/settle.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

using To = Settlement::To;

// One expression for all rows, by id where they differ.
std::string PerRow(const SettleGroup& group, const std::function<std::string(const Settlement&)>& value) {
  std::vector<FromId> parts;
  for (const Settlement* row : group.rows) {
    std::string own = value(*row);
    if (parts.empty() || parts.back().value != own) parts.push_back({row->key.id, std::move(own)});
  }
  return ById(parts);
}

std::string TextOr(const Settlement& row, const char* otherwise) {
  return row.text.empty() ? otherwise : Quote(Shorten(row.text));
}

std::string DueAgain(const Settlement& row) {
  if (row.run_at) return TimeLiteral(*row.run_at);
  if (row.delay) return After(*row.delay);
  return "run_at";
}

std::string Progress(const SettleGroup& group) {
  return PerRow(group, [](const Settlement& row) {
    return row.progress ? Quote(Shorten(*row.progress)) : std::string("progress");
  });
}

// Somebody may have written the largest number there is: it does not keep its row from being settled.
std::string Failures(const SettleGroup& group) {
  return group.failed_attempt ? "LEAST(failures,4294967294)+1" : "failures";
}

}  // namespace

std::vector<SettleGroup> GroupSettlements(const std::vector<const Settlement*>& batch) {
  const auto key_of = [](const Settlement& one) {
    return std::tuple(one.key.table, one.attempt, one.to, one.failed_attempt, LeavesNoRow(one));
  };
  std::map<decltype(key_of(*batch.front())), SettleGroup> groups;
  auto group = groups.end();  // neighbours are of one, mostly
  for (const Settlement* one : batch) {
    const auto key = key_of(*one);
    if (group == groups.end() || group->first != key) group = groups.find(key);
    if (group == groups.end()) {
      SettleGroup first{one->key.table, one->attempt, one->to, one->failed_attempt, LeavesNoRow(*one), {}};
      group = groups.emplace(key, std::move(first)).first;
    }
    group->second.rows.push_back(one);
  }
  std::vector<SettleGroup> list;
  for (auto& [key, of_key] : groups) {
    std::sort(of_key.rows.begin(), of_key.rows.end(),
              [](const Settlement* a, const Settlement* b) { return a->key.id < b->key.id; });
    list.push_back(std::move(of_key));
  }
  return list;
}

std::string WithIdsOf(const SettleGroup& group) {
  std::vector<std::uint64_t> ids;
  ids.reserve(group.rows.size());
  for (const Settlement* row : group.rows) ids.push_back(row->key.id);
  return WithIds(ids);
}

std::string MoveText(const SettleGroup& group, const sql::Claimer& claimer, const std::string& ids) {
  const bool failed = group.to == To::Failed;
  const std::string own = failed ? "error_class" : "result";
  std::string error = "last_error";
  std::string last = "''";
  if (group.to == To::Succeeded) {
    last = PerRow(group, [](const Settlement& row) { return TextOr(row, "''"); });
  } else {
    error = PerRow(group, [](const Settlement& row) { return TextOr(row, "last_error"); });
  }
  if (failed)
    last =
        PerRow(group, [](const Settlement& row) { return Quote(Shorten(row.error_class, kMaxErrorClass)); });
  constexpr const char* kKept =
      "id,slice,handler,priority,run_at,params,biz_key,batch,attempt,crashes,claimed_at,created_at,"
      "expires_at";
  return "INSERT INTO " + group.table + (failed ? "_failed (" : "_done (") + kKept +
         ",progress,claimed_by,state,failures,last_error," + own + ",finished_at) SELECT " + kKept + "," +
         Progress(group) + "," + Quote(claimer.name) + "," +
         std::to_string(static_cast<int>(StateAfter(group.to))) + "," + Failures(group) + "," + error + "," +
         last + ",UTC_TIMESTAMP(6)" + RunningRows(group.table, ids, claimer.number, group.attempt) +
         " FOR UPDATE";
}

std::string DeleteText(const SettleGroup& group, std::uint64_t claimer, const std::string& ids) {
  return "DELETE " + group.table + RunningRows(group.table, ids, claimer, group.attempt);
}

std::string WaitText(const SettleGroup& group, std::uint64_t claimer, const std::string& ids) {
  return "UPDATE " + group.table +
         " FORCE INDEX (PRIMARY) SET state=" + std::to_string(static_cast<int>(StateAfter(group.to))) +
         ", claimed_by=0, failures=" + Failures(group) + ", run_at=" + PerRow(group, DueAgain) +
         ", last_error=" + PerRow(group, [](const Settlement& row) { return TextOr(row, "last_error"); }) +
         ", progress=" + Progress(group) + ", updated_at=UTC_TIMESTAMP(6) WHERE " + ids +
         " AND state=2 AND claimed_by=" + std::to_string(claimer) +
         " AND attempt=" + std::to_string(group.attempt);
}

std::string AttemptsText(const std::string& incarnation, const std::vector<const Settlement*>& batch) {
  std::string rows;
  for (const Settlement* one : batch) {
    if (!one->failed_attempt) continue;
    rows += (rows.empty() ? "(" : ",(") + Quote(one->key.table) + "," + std::to_string(one->key.id) + "," +
            std::to_string(one->attempt) + ",UTC_TIMESTAMP(6)," + Quote(incarnation) + ",'failed'," +
            Quote(Shorten(one->error_class, kMaxErrorClass)) + "," + Quote(Shorten(one->text)) + ")";
  }
  if (rows.empty()) return rows;
  return "INSERT INTO millrace_attempts (task_table,task_id,attempt,at,incarnation,kind,error_class,message) "
         "VALUES " +
         rows + " ON DUPLICATE KEY UPDATE task_id=VALUES(task_id)";
}

}  // namespace millrace::engine::mysql

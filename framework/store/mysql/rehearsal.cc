#include "framework/store/mysql/rehearsal.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/schema.h"
#include "framework/store/mysql/sessions.h"
#include "framework/store/rehearsal.h"
#include "framework/store/sql/sessions.h"

namespace millrace::engine::mysql {
namespace {

constexpr int kLockWait = 1205;

bool HasPlan(std::string_view sql) {
  sql.remove_prefix(std::min(sql.find_first_not_of('('), sql.size()));  // several, in brackets, by UNION ALL
  constexpr std::array<std::string_view, 4> kWords = {"SELECT", "INSERT", "UPDATE", "DELETE"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return sql.starts_with(word); });
}

// These end a transaction, or are about the server: nothing of them is ours to plan.
bool IsRun(std::string_view sql) { return HasPlan(sql) || sql.starts_with("SHOW "); }

}  // namespace

Status Rehearsal::Control(const char* sql) {
  auto done = session_.Write(sql);
  if (!done) return Fail(done.error());
  return {};
}

Status Rehearsal::Explain(const std::string& sql) {
  if (!HasPlan(sql) || sql.find("information_schema") != std::string::npos) return {};
  const Status explained = session_.Query(kExplainInRows + sql, [&](const Row& line) { Judge(sql, line); });
  if (explained) return {};
  findings_.push_back(
      {"a statement of the program",
       "the server refuses it: " + explained.error().message + "; it begins with " + Shorten(sql, 120),
       "compare the tables with `millrace schema print`"});
  return explained;
}

// Other tables are as small as they happen to be, so that reading them whole may be the best plan.
void Rehearsal::Judge(const std::string& sql, const Row& line) {
  const std::string table = line.Named("table");
  // A table that is inserted into has a line of its own, which says nothing.
  if (line.Named("select_type") == "INSERT" || (table != table_ && table != "t")) return;
  const std::string type = line.Named("type");
  const std::string how = line.Named("Extra");
  const bool jumps = how.find("group-by") != std::string::npos || how.find("skip scan") != std::string::npos;
  const bool whole = type == "ALL" || (type == "index" && !jumps);
  const bool sorts = how.find("filesort") != std::string::npos;
  if (!whole && !sorts) return;
  const std::string begin = Shorten(sql, 160);
  if (!told_.insert(begin).second) return;
  findings_.push_back({"the statement that begins with " + begin,
                       std::string("the server ") +
                           (whole ? "reads the whole table for it" : "sorts for it") + " (key `" +
                           line.Named("key") + "`, type " + type + ", " + how + ")",
                       "check the server's optimizer_switch against its defaults"});
}

Status Rehearsal::Query(const std::string& sql, const Session::OnRow& on_row) {
  if (!IsRun(sql)) return {};
  BOOST_OUTCOME_TRYV(Explain(sql));
  Status done = session_.Query(sql, on_row);
  last_code_ = done ? 0 : session_.last_code();
  return done;
}

Result<std::uint64_t> Rehearsal::Write(const std::string& sql) {
  if (!IsRun(sql)) return std::uint64_t{0};
  BOOST_OUTCOME_TRYV(Explain(sql));
  if (refuse_ > 0 && --refuse_ == 0) {
    last_code_ = kLockWait;
    return Fail(ErrorCode::Conflict, "refused for the rehearsal");
  }
  auto done = session_.Write(sql);
  last_code_ = done ? 0 : session_.last_code();
  return done;
}

Result<std::vector<SchemaFinding>> Rehearsal::Run(const Endpoint& endpoint) {
  Endpoint here = endpoint;
  here.rehearsal = this;
  ConnectionPool pool(1);  // lends nothing
  sql::Claimers claimers;
  const auto tasks = OpenTasks(here, pool, claimers);
  const auto operations = sql::OpenOperations(std::make_unique<Session>(here, here.options.lease));
  const auto incarnations =
      sql::OpenIncarnations(std::make_unique<Session>(here, here.options.lease), claimers);
  const auto pruning = sql::OpenPruning(std::make_unique<Session>(here, here.options.lease));
  const auto schema = OpenSchema(here);
  const auto overview = OpenOverview(here, pool);
  const auto alerts = sql::OpenAlerts(std::make_unique<Session>(here, here.options.lease));
  const auto schedules = sql::OpenSchedules(std::make_unique<Session>(here, here.options.lease));
  const auto fan_outs = sql::OpenFanOuts(std::make_unique<Session>(here, here.options.lease));
  const auto batches = sql::OpenBatches(std::make_unique<Session>(here, here.options.lease));
  const auto permits = sql::OpenPermits(std::make_unique<Session>(here, here.options.lease), claimers);
  RehearsalStage stage{.tasks = *tasks,
                       .incarnations = *incarnations,
                       .operations = *operations,
                       .pruning = *pruning,
                       .schema = *schema,
                       .overview = *overview,
                       .alerts = *alerts,
                       .schedules = *schedules,
                       .fan_outs = *fan_outs,
                       .batches = *batches,
                       .permits = *permits,
                       .table = table_,
                       .name = "rehearsal_" + std::string(table_.text()),
                       .run = [this](const std::string& sql) -> Status {
                         BOOST_OUTCOME_TRYV(session_.Write(sql));
                         return {};
                       },
                       .refuse = [this](int write) { refuse_ = write; }};
  const Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  if (Status walked = Rehearse(stage); !walked && findings_.empty()) return Fail(walked.error());
  return std::move(findings_);
}

}  // namespace millrace::engine::mysql

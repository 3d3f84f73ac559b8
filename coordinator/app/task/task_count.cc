// millrace task count: how many tasks match, without counting a pool.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/task/task_lookup.h"

namespace millrace::engine {
namespace {

// A filter that matches little would look at every row of a pool.
constexpr Micros kCountFor = std::chrono::seconds(2);

constexpr TaskState kStates[] = {TaskState::Waiting, TaskState::Running,   TaskState::Held,
                                 TaskState::Failed,  TaskState::Succeeded, TaskState::Cancelled};

struct Counting {
  std::map<TaskState, Counted> states;
  BootTime deadline = BootClock::now() + kCountFor;

  Counted Sum() const {
    Counted sum;
    for (const auto& [state, counted] : states) sum += counted;
    if (sum.count < kExactBacklog) return sum;
    return {kExactBacklog, true};
  }
};

bool Wants(const TaskFilter& filter, TaskState state) { return !filter.state || *filter.state == state; }

// The due index knows the types of waiting, running and held tasks; what else is asked of them the rows say.
bool IndexKnows(const TaskFilter& filter) {
  TaskFilter simple;
  simple.state = filter.state;
  simple.handler = filter.handler;
  return simple == filter;
}

// The counters know the types and batches of failed tasks.
bool CountersKnow(const TaskFilter& filter) {
  TaskFilter simple;
  simple.state = filter.state;
  simple.handler = filter.handler;
  simple.batch = filter.batch;
  return simple == filter;
}

bool MayBeHot(const TaskFilter& filter) {
  return filter.error_class.empty() && (Wants(filter, TaskState::Waiting) ||
                                        Wants(filter, TaskState::Running) || Wants(filter, TaskState::Held));
}

Status CountByIndex(OverviewStore& overview, const std::vector<TableName>& tables, const TaskFilter& filter,
                    Counting& counting) {
  BOOST_OUTCOME_TRY(waiting, overview.Waiting(tables));
  for (const HandlerOverview& one : waiting.handlers) {
    if (!filter.handler.empty() && one.handler != filter.handler) continue;
    if (Wants(filter, TaskState::Waiting)) counting.states[TaskState::Waiting] += one.waiting;
    if (Wants(filter, TaskState::Running)) counting.states[TaskState::Running] += one.running;
    if (Wants(filter, TaskState::Held)) counting.states[TaskState::Held] += one.held;
  }
  return {};
}

Status CountByCounters(TaskOperations& operations, const std::vector<TableName>& tables,
                       const TaskFilter& filter, Counting& counting) {
  const std::vector<std::string> batches(filter.batch.empty() ? 0 : 1, filter.batch);
  BOOST_OUTCOME_TRY(totals, operations.TypeTotals(batches));
  for (const TaskTotals& total : totals) {
    const bool meant = std::any_of(tables.begin(), tables.end(),
                                   [&](const TableName& table) { return total.table == table.text(); });
    if (!meant || (!filter.handler.empty() && total.handler != filter.handler)) continue;
    if (!filter.batch.empty() && total.batch != filter.batch) continue;
    counting.states[TaskState::Failed].count += total.failed;
  }
  return {};
}

Status CountRows(TaskOperations& operations, const std::vector<TableName>& tables, TaskPool pool,
                 const TaskFilter& filter, Counting& counting) {
  std::uint64_t known = 0;
  bool more = false;
  for (const TableName& table : tables) {
    if (known >= kExactBacklog) more = true;
    if (more) break;
    BOOST_OUTCOME_TRY(count, operations.Count(table, pool, filter, kExactBacklog - known, counting.deadline));
    for (const auto& [state, rows] : count.states) counting.states[state].count += rows;
    known += count.Sum();
    more = count.more;
  }
  if (!more) return {};
  for (const TaskState state : kStates) {
    if (PoolOf(state) == pool && Wants(filter, state)) counting.states[state].more = true;
  }
  return {};
}

Status CountShard(TaskShards& open, const std::string& shard, const std::vector<TableName>& tables,
                  const TaskFilter& filter, Counting& counting) {
  TaskOperations& operations = open.Operations(shard);
  if (MayBeHot(filter)) {
    const auto overview = open.shards.at(shard).store->OpenOverview();
    BOOST_OUTCOME_TRYV(IndexKnows(filter) ? CountByIndex(*overview, tables, filter, counting)
                                          : CountRows(operations, tables, TaskPool::Hot, filter, counting));
  }
  if (Wants(filter, TaskState::Failed)) {
    BOOST_OUTCOME_TRYV(CountersKnow(filter)
                           ? CountByCounters(operations, tables, filter, counting)
                           : CountRows(operations, tables, TaskPool::Failed, filter, counting));
  }
  if (Wants(filter, TaskState::Succeeded) || Wants(filter, TaskState::Cancelled)) {
    BOOST_OUTCOME_TRYV(CountRows(operations, tables, TaskPool::Done, filter, counting));
  }
  return {};
}

std::string NumberText(const Counted& counted) {
  if (counted.count >= kExactBacklog) return WithCommas(kExactBacklog) + " or more";
  return WithCommas(counted.count) + (counted.more ? " or more" : "");
}

void PrintCount(const Counting& counting, bool by_state) {
  const Counted sum = counting.Sum();
  std::string text = NumberText(sum) + (sum.count == 1 && !sum.more ? " task" : " tasks");
  std::string states;
  for (const TaskState state : kStates) {
    const auto found = counting.states.find(state);
    if (found == counting.states.end()) continue;
    const Counted& counted = found->second;
    if (counted.count == 0) continue;
    states += (states.empty() ? ": " : ", ") + NumberText(counted) + " " + ToString(state);
  }
  PrintLine(text + (by_state ? states : ""));
}

nlohmann::ordered_json ToJson(const Counting& counting, const TaskShards& open) {
  const Counted sum = counting.Sum();
  nlohmann::ordered_json out{{"count", sum.count}, {"more", sum.more}};
  out["states"] = nlohmann::ordered_json::array();
  for (const TaskState state : kStates) {
    const auto found = counting.states.find(state);
    const Counted counted = found == counting.states.end() ? Counted() : found->second;
    out["states"].push_back({{"state", ToString(state)}, {"count", counted.count}, {"more", counted.more}});
  }
  out["away"] = AwayJson(open.away);
  return out;
}

Result<ExitCode> RunTaskCount(const TaskChoice& choice) {
  BOOST_OUTCOME_TRY(filter, FilterOf(choice));
  BOOST_OUTCOME_TRY(open, OpenTaskShards(choice.common, choice.shard));
  BOOST_OUTCOME_TRY(tables, TablesOf(open, choice));
  std::map<std::string, std::vector<TableName>> by_shard;
  for (const auto& [shard, table] : tables) by_shard[shard].push_back(table);
  Counting counting;
  for (const auto& [shard, names] : by_shard) {
    const Status counted = CountShard(open, shard, names, filter, counting);
    if (!counted) open.away[shard] = counted.error();
  }
  if (choice.common.json) {
    PrintJson(ToJson(counting, open), OutputIsTerminal() ? 2 : -1);
  } else {
    PrintCount(counting, choice.state.empty());
  }
  return TellAway(open.away, "the tasks of shard ", " are not counted");
}

}  // namespace

void AddTaskCount(CLI::App& task, Chosen& chosen) {
  const auto count = AddCommand(task, chosen, "count", "Count tasks, exactly below 10,000",
                                "  millrace task count --state failed --handler award_points", RunTaskCount);
  AddChoice(*count.app, *count.options);
  AddFilters(*count.app, *count.options);
}

}  // namespace millrace::engine

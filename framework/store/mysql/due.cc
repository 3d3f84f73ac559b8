#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/task_store.h"

namespace millrace::engine::mysql {
namespace {

// As few ranges as can be, so that the server's plan stays a handful of jumps. Empty: no condition.
std::string SliceCondition(const TableSlices& scope) {
  if (scope.all) return "";
  std::string text;
  for (const auto& [first, last] : scope.Ranges()) {
    text += (text.empty() ? "(slice BETWEEN " : " OR slice BETWEEN ") + std::to_string(first) + " AND " +
            std::to_string(last);
  }
  return text + ") AND ";
}

// The server plans with every pair of a range and a handler. Beyond so many it would give up its ranges and
// read the index from end to end: then the handlers are told apart here.
constexpr std::size_t kMostPairs = 10'000;

std::string HandlerCondition(const TableSlices& scope) {
  if (!scope.handlers || scope.handlers->size() * scope.Ranges().size() > kMostPairs) return "";
  std::string names;
  for (const std::string& handler : *scope.handlers) names += (names.empty() ? "" : ",") + Quote(handler);
  return "handler IN (" + names + ") AND ";
}

// The first query of a map brings the clock and the pauses with it; the later ones have no more than the
// form.
std::string HeadText(bool first, const char* beside) {
  std::string text = std::string("SELECT '',0,'',0,UTC_TIMESTAMP(6),0,0,0") + beside;
  if (first)
    text += std::string(" UNION ALL SELECT '',0,what,0,NULL,0,0,0") + beside + " FROM millrace_pauses";
  return text;
}

constexpr const char* kTextBytes =
    ",LENGTH(params)+COALESCE(LENGTH(last_error),0)+COALESCE(LENGTH(progress),0)";

// What an attempt needs beside what stands in every row of a scan and what the group says. Large params are
// read once their rows are claimed, as far as there is room for them. Times are dear to write and to read,
// and those of most rows are one: due at once, and not changed since.
constexpr const char* kContents =
    ",IF(state=0 AND LENGTH(params)<=4096,params,NULL),biz_key,batch,failures,cancel,progress,created_at,"
    "NULLIF(updated_at,created_at),expires_at";
constexpr unsigned kContentsColumn = 9;
constexpr unsigned kCreatedColumn = kContentsColumn + 6;
constexpr unsigned kTaskBytesColumn = kContentsColumn + 9;  // of a map's row of a task alone

std::optional<ScannedTask> ReadContents(const DueGroup& group, const ScanRow& row, const Row& read) {
  constexpr unsigned kFirst = kContentsColumn;
  std::optional<ScannedTask> contents;
  if (row.state != TaskState::Waiting || read.Null(kFirst)) return contents;
  contents.emplace();
  Task& task = contents->task;
  task.key = {group.table, row.id};
  task.slice = group.slice;
  task.handler = group.handler;
  task.priority = PriorityOf(group.urgency);
  task.run_at = row.run_at;
  task.params = read.Text(kFirst);
  task.biz_key = read.Text(kFirst + 1);
  task.batch = read.Text(kFirst + 2);
  task.failures = static_cast<std::uint32_t>(read.Number(kFirst + 3));
  task.attempt = row.attempt;
  task.crashes = row.crashes;
  task.cancel = read.Number(kFirst + 4) != 0;
  task.progress = read.Text(kFirst + 5);
  task.created_at = row.created_at;
  contents->updated_at = read.Time(kFirst + 7).value_or(row.created_at);
  task.expires_at = read.Time(kFirst + 8);
  return contents;
}

// One that a map has brought.
ScanRow ReadDueRow(const DueGroup& group, const Row& read) {
  ScanRow row;
  row.id = read.Number(8);
  row.run_at = group.first_run_at;
  row.attempt = static_cast<std::uint32_t>(read.Number(6));
  row.crashes = static_cast<std::uint32_t>(read.Number(7));
  row.bytes = read.Number(kTaskBytesColumn);
  row.created_at = read.Time(kCreatedColumn).value_or(WallTime{});
  row.contents = ReadContents(group, row, read);
  return row;
}

constexpr const char* kScanColumns = ",state,attempt,crashes,claimed_by";

std::string ColumnsText(const ScanRequest& request) {
  return std::string("id,") + (request.with_contents ? "NULLIF(run_at,created_at)" : "run_at") +
         kScanColumns + (request.with_bytes ? kTextBytes : ",0") +
         (request.with_contents  ? kContents
          : request.with_created ? ",created_at"
                                 : "");
}

// The due rows of such groups in all slices.
std::string DueRowsText(const DueGroup& group) {
  return " FROM " + group.table + " FORCE INDEX (due) WHERE handler=" + Quote(group.handler) +
         " AND urgency=" + std::to_string(group.urgency) + " AND run_at<=UTC_TIMESTAMP(6)";
}

std::string Behind(const ScanPosition& after) {
  if (after == ScanPosition{}) return "";
  const std::string at = TimeLiteral(after.run_at);
  if (after.id == 0) return " AND run_at>=" + at;
  return " AND (run_at=" + at + " AND id>" + std::to_string(after.id) + " OR run_at>" + at + ")";
}

bool AreJoined(std::span<const ScanRequest> requests) {
  const auto goes_on = [](const ScanRequest& one, const ScanRequest& next) {
    return one.joined > 0 && one.joined == next.joined && !one.running_only && !next.running_only &&
           one.group.table == next.group.table && one.group.handler == next.group.handler &&
           one.group.urgency == next.group.urgency && one.group.slice < next.group.slice;
  };
  return requests.size() > 1 &&
         std::adjacent_find(requests.begin(), requests.end(), std::not_fn(goes_on)) == requests.end();
}

// What one table may cost without being suspected; measured: 0.1 ms.
constexpr Micros kEachTable = std::chrono::milliseconds(1);

void DropUncovered(const std::vector<DueScope>& asked, std::vector<DueGroup>& groups) {
  std::map<TableName, const DueScope*> by_table;
  for (const DueScope& scope : asked) by_table[scope.whole.table] = &scope;
  std::erase_if(groups, [&](const DueGroup& group) { return !by_table.at(group.table)->Covers(group); });
}

}  // namespace

std::string DueText(const TableSlices& scope, bool with_later, const char* beside) {
  return "SELECT " + Quote(scope.table) + ",slice,handler,urgency,MIN(run_at)," +
         (with_later ? "MAX(run_at)>UTC_TIMESTAMP(6)" : "0") + ",0,0" + beside + " FROM " + scope.table +
         " FORCE INDEX (due) WHERE " + SliceCondition(scope) + HandlerCondition(scope) +
         "urgency IS NOT NULL GROUP BY slice,handler,urgency";
}

std::string GreatestText(const TableName& table, std::uint64_t id) {
  const std::string least = std::to_string(id);
  const std::string head =
      "SELECT " + Quote(table) + ",0,'',0,NULL,0,0,COALESCE(MAX(id)," + least + ") FROM ";
  if (id == 0) return head + table;
  return head + "(SELECT id FROM " + table + " FORCE INDEX (PRIMARY) WHERE id>" + least +
         " ORDER BY id LIMIT " + std::to_string(kMostNewRows) + ") newer";
}

std::string NewRowsText(const TableName& table, std::uint64_t id) {
  return "SELECT " + Quote(table) +
         ",slice,handler,urgency,MIN(IF(state=0,run_at,NULL)),"
         "MAX(IF(state=0,run_at,NULL))>UTC_TIMESTAMP(6),"
         "COUNT(IF(state=0 AND run_at<=UTC_TIMESTAMP(6),1,NULL)),MAX(id) "
         "FROM (SELECT id,slice,handler,urgency,state,run_at FROM " +
         table + " FORCE INDEX (PRIMARY) WHERE id>" + std::to_string(id) + " ORDER BY id LIMIT " +
         std::to_string(kMostNewRows) + ") newer GROUP BY slice,handler,urgency";
}

std::string DueAfterText(const DueGroup& group) {
  const std::string slice = std::to_string(group.slice);
  const std::string handler = Quote(group.handler);
  const std::string urgency = std::to_string(group.urgency);
  return "SELECT " + Quote(group.table) + "," + slice + "," + handler + "," + urgency +
         ",MIN(run_at),0,0,0 FROM " + group.table + " FORCE INDEX (due) WHERE slice=" + slice +
         " AND handler=" + handler + " AND urgency=" + urgency + " AND run_at>" +
         TimeLiteral(group.first_run_at) + " HAVING MIN(run_at) IS NOT NULL";
}

std::string RowsText(const TableSlices& scope, const std::string& ids) {
  return "SELECT " + Quote(scope.table) + ",slice,handler,urgency,run_at,attempt,crashes,id" + kContents +
         kTextBytes + " FROM " + scope.table + " FORCE INDEX (PRIMARY) WHERE " + SliceCondition(scope) + ids +
         " AND state=0 AND urgency IS NOT NULL AND run_at<=UTC_TIMESTAMP(6)";
}

std::string ScanText(const ScanRequest& request, std::size_t number) {
  const DueGroup& group = request.group;
  const std::string page = DueRowsText(group) + " AND slice=" + std::to_string(group.slice) +
                           Behind(request.after) + " ORDER BY run_at,id LIMIT " +
                           std::to_string(request.limit);
  const std::string first = "SELECT " + std::to_string(number) + ",";
  if (request.running_only) {  // in a UNION an order counts only beside a LIMIT
    return first + "page.*,0 FROM (SELECT id,run_at" + kScanColumns + page +
           ") page WHERE state=2 ORDER BY run_at,id LIMIT " + std::to_string(request.limit);
  }
  return first + ColumnsText(request) + page;
}

std::string ScanJoinedText(std::span<const ScanRequest> requests, std::size_t limit) {
  std::string slices;
  for (const ScanRequest& request : requests) {
    slices += (slices.empty() ? " AND (slice=" : " OR slice=") + std::to_string(request.group.slice) +
              Behind(request.after);
  }
  return "SELECT slice," + ColumnsText(requests[0]) + DueRowsText(requests[0].group) + slices +
         ") ORDER BY slice,run_at,id LIMIT " + std::to_string(limit);
}

Result<DueMap> MysqlTaskStore::Due(std::span<const TableSlices> tables, const DueWanted& wanted) {
  const std::vector<DueScope> asked = ScopesOf(tables);
  DueMap map;
  std::size_t next = 0;
  do {
    const auto part = std::span(asked).subspan(next, std::min(kTablesPerQuery, asked.size() - next));
    const std::size_t groups = map.groups.size();
    const std::size_t after = map.after.size();
    Status read = ReadTables(part, next == 0, wanted, map);
    if (!read && asked.size() > 1 && IsOfTheTable(read.error().code, session_.last_code())) {
      map.groups.erase(map.groups.begin() + static_cast<std::ptrdiff_t>(groups), map.groups.end());
      map.after.erase(map.after.begin() + static_cast<std::ptrdiff_t>(after), map.after.end());
      read = ReadEach(part, next == 0, wanted, map);
    }
    BOOST_OUTCOME_TRYV(read);
    next += part.size();
  } while (next < asked.size());
  if (!map.refused.empty() && map.refused.size() == asked.size())
    return Fail(ErrorCode::Conflict, map.refused.begin()->second);
  DropUncovered(asked, map.groups);
  std::sort(map.groups.begin(), map.groups.end(), [](const DueGroup& a, const DueGroup& b) {
    const auto order = [](const DueGroup& g) { return std::tie(g.table, g.slice, g.handler, g.urgency); };
    return order(a) < order(b);
  });
  return map;
}

Status MysqlTaskStore::ReadTables(std::span<const DueScope> part, bool first, const DueWanted& wanted,
                                  DueMap& map) {
  const bool any_rows = std::any_of(part.begin(), part.end(), [&](const DueScope& scope) {
    return wanted.rows.contains(scope.whole.table);
  });
  const char* const beside = any_rows ? kNoTask : "";
  std::string sql = HeadText(first, beside);
  for (const DueScope& scope : part) {
    const TableName& table = scope.whole.table;
    const auto newer = wanted.newer.find(table);
    if (!wanted.IsPart()) sql += " UNION ALL (" + DueText(scope.whole, wanted.begins_parts, beside) + ")";
    const std::uint64_t id = newer == wanted.newer.end() ? 0 : newer->second;
    if (wanted.begins_parts) sql += " UNION ALL (" + GreatestText(table, id) + ")";
    if (wanted.IsPart()) sql += " UNION ALL (" + NewRowsText(table, id) + ")";
    for (const DueGroup& group : wanted.after) {
      if (group.table == table) sql += " UNION ALL (" + DueAfterText(group) + ")";
    }
    if (const auto rows = wanted.rows.find(table); rows != wanted.rows.end())
      sql += " UNION ALL (" + RowsText(scope.whole, WithIds(Sorted(rows->second))) + ")";
  }
  std::set<TableName> with_rows;
  DueRows rows;
  const BootTime start = BootClock::now();
  BOOST_OUTCOME_TRYV(session_.Query(sql, [&](const Row& row) {
    const bool timed = !row.Null(5);
    const WallTime at = row.Time(5).value_or(WallTime{});
    const auto table = ParseTableName(row.Text(1));
    if (!table) {  // a row of the head
      if (!timed) map.pauses.push_back(row.Text(3));
      if (timed) map.now = at;
      return;
    }
    const std::uint64_t id = row.Number(8);
    DueGroup group{*table, static_cast<std::uint32_t>(row.Number(2)), row.Text(3),
                   static_cast<std::uint32_t>(row.Number(4)), at};
    if (any_rows && !row.Null(kTaskBytesColumn)) {
      rows[GroupKeyOf(group)].push_back(ReadDueRow(group, row));
      return;
    }
    if (id > 0 || !timed) {
      std::uint64_t& greatest = map.greatest[*table];
      greatest = std::max(greatest, id);
    }
    if (!timed) return;
    with_rows.insert(*table);
    std::vector<DueGroup>& groups = wanted.IsPart() && id == 0 ? map.after : map.groups;
    group.later = row.Number(6) != 0;
    group.rows = row.Number(7);
    groups.push_back(std::move(group));
  }));
  map.rows.merge(rows);
  // An empty table takes its time for being opened; only one with rows can be read in the wrong way.
  const Micros beyond = BootClock::now() - start - kEachTable * static_cast<int>(part.size());
  if (wanted.IsPart()) return {};
  for (const TableName& table : with_rows) plan_.Mend(session_, table, beyond);
  return {};
}

Status MysqlTaskStore::ReadEach(std::span<const DueScope> part, bool first, const DueWanted& wanted,
                                DueMap& map) {
  if (first) {
    map.pauses.clear();
    BOOST_OUTCOME_TRYV(ReadTables({}, true, wanted, map));
  }
  for (const DueScope& scope : part) {
    DueMap own;
    const Status read = ReadTables({&scope, 1}, false, wanted, own);
    if (read) {
      map.groups.insert(map.groups.end(), own.groups.begin(), own.groups.end());
      map.after.insert(map.after.end(), own.after.begin(), own.after.end());
      map.greatest.merge(own.greatest);
      map.rows.merge(own.rows);
    } else if (IsOfTheTable(read.error().code, session_.last_code())) {
      map.refused.insert_or_assign(scope.whole.table, read.error().message);
    } else {
      return read;
    }
  }
  return {};
}

Result<std::vector<ScanRow>> MysqlTaskStore::Scan(const ScanRequest& request) {
  BOOST_OUTCOME_TRY(pages, ScanEach(std::span(&request, 1)));
  return std::move(pages.front());
}

Result<std::vector<std::vector<ScanRow>>> MysqlTaskStore::ScanEach(std::span<const ScanRequest> requests) {
  if (requests.empty()) return std::vector<std::vector<ScanRow>>();
  if (AreJoined(requests)) return ScanJoined(requests);
  std::string text;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string one = ScanText(requests[i], i);
    text += requests.size() == 1 ? one : (i == 0 ? "(" : " UNION ALL (") + one + ")";
  }
  return ReadPages(text, requests, [](std::uint64_t first) { return first; });
}

// Where some have more than was expected, the last ones are not reached, or of one of them not all that was
// asked for.
Result<std::vector<std::vector<ScanRow>>> MysqlTaskStore::ScanJoined(std::span<const ScanRequest> requests) {
  const std::size_t limit = requests.front().joined;
  const auto place_of = [&](std::uint64_t slice) {
    const auto found = std::partition_point(requests.begin(), requests.end(),
                                            [&](const ScanRequest& one) { return one.group.slice < slice; });
    return static_cast<std::size_t>(found - requests.begin());
  };
  BOOST_OUTCOME_TRY(pages, ReadPages(ScanJoinedText(requests, limit), requests, place_of));
  std::size_t rows = 0;
  for (const auto& page : pages) rows += page.size();
  if (rows < limit) return pages;
  while (pages.back().empty()) pages.pop_back();
  if (pages.back().size() < requests[pages.size() - 1].limit) pages.pop_back();
  return pages;
}

Result<std::vector<std::vector<ScanRow>>> MysqlTaskStore::ReadPages(
    const std::string& text, std::span<const ScanRequest> requests,
    const std::function<std::size_t(std::uint64_t first)>& place_of) {
  std::vector<std::vector<ScanRow>> pages(requests.size());
  std::vector<std::vector<std::uint64_t>> claimers(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    // Few rows of a page run.
    if (!requests[i].running_only && requests[i].joined == 0)
      pages[i].reserve(std::min(requests[i].limit, kMaxBatchRows));
  }
  BOOST_OUTCOME_TRYV(session_.Query(text, [&](const Row& read) {
    const std::size_t i = place_of(read.Number(1));
    ScanRow& row = pages.at(i).emplace_back();
    row.id = read.Number(2);
    const ScanRequest& request = requests[i];
    const unsigned created = request.with_contents ? kCreatedColumn : kContentsColumn;
    if (request.with_contents || request.with_created)
      row.created_at = read.Time(created).value_or(WallTime{});
    row.run_at = read.Time(3).value_or(row.created_at);
    row.state = static_cast<TaskState>(read.Signed(4));
    row.attempt = static_cast<std::uint32_t>(read.Number(5));
    row.crashes = static_cast<std::uint32_t>(read.Number(6));
    row.bytes = read.Number(8);
    if (request.with_contents) row.contents = ReadContents(request.group, row, read);
    claimers[i].push_back(read.Number(7));
  }));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    BOOST_OUTCOME_TRYV(NameClaimers(claimers[i], pages[i]));
  }
  return pages;
}

std::unique_ptr<TaskStore> OpenTasks(const Endpoint& endpoint, ConnectionPool& pool,
                                     sql::Claimers& claimers) {
  return std::make_unique<MysqlTaskStore>(endpoint, pool, claimers);
}

}  // namespace millrace::engine::mysql

#include "framework/store/sql/overview.h"

#include <algorithm>
#include <tuple>

#include "framework/store/sql/text.h"

namespace millrace::engine::sql {

struct SqlOverviewStore::Item {
  HandlerOverview out;
  HandlerGroups groups;
  bool done = false;
};

namespace {

// Items of one statement: each costs a server some 0.1 ms beside its rows, and most are one part.
constexpr std::size_t kParts = 50;
// SQLite takes 500 parts; one that stands in thousands of slices takes many.
constexpr std::size_t kMostParts = 400;
// As many ranges as the servers' optimizers still plan as such.
constexpr std::size_t kRanges = 1000;
// The first look at a table's rows: most have fewer, and tables that have more make up kExactBacklog soon.
constexpr std::uint64_t kFirstLook = 400;

// Of the heads: groups and rows, of all tables together.
constexpr std::size_t kHeads = 200;
constexpr std::size_t kHeadRows = 4'000;
constexpr std::size_t kMostOfAHead = 256;

constexpr std::size_t kFailedRows = 2'000;
constexpr std::size_t kMostFailedTables = 200;

// A statement of parts, `UNION ALL` between them. Its values are borrowed until it has run.
struct Parts {
  std::string text;
  std::vector<Value> values;
  std::size_t count = 0;
  std::string& Next() {
    if (count++ > 0) text += " UNION ALL ";
    return text;
  }
};

std::string Numbers(const std::set<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::set<std::uint32_t> SlicesOf(const HandlerGroups& groups) {
  std::set<std::uint32_t> slices;
  for (const DueGroup& group : groups.due) slices.insert(group.slice);
  return slices;
}

std::set<std::uint32_t> UrgenciesOf(const HandlerGroups& groups) {
  std::set<std::uint32_t> urgencies;
  for (const DueGroup& group : groups.due) urgencies.insert(group.urgency);
  return urgencies;
}

// So many each.
std::vector<std::set<std::uint32_t>> Cut(const std::set<std::uint32_t>& numbers, std::size_t each) {
  std::vector<std::set<std::uint32_t>> parts;
  for (const std::uint32_t number : numbers) {
    if (parts.empty() || parts.back().size() == each) parts.emplace_back();
    parts.back().insert(number);
  }
  return parts;
}

struct Head {
  std::size_t item = 0;
  const DueGroup* group = nullptr;
};

// What a look at one head showed.
struct Seen {
  std::size_t rows = 0;
  std::uint64_t running = 0;
  std::optional<WallTime> waiting;  // the first of them
  WallTime last{};
  bool last_runs = false;
};

void See(Seen& seen, TaskState state, WallTime at) {
  const bool runs = state == TaskState::Running;
  ++seen.rows;
  seen.running += runs ? 1 : 0;
  if (!runs && (!seen.waiting || at < *seen.waiting)) seen.waiting = at;
  if (seen.rows == 1 || at >= seen.last) seen.last_runs = runs;
  seen.last = std::max(seen.last, at);
}

}  // namespace

// Counts the waiting rows of these, each up to `limit`: in one statement, unless some of them stand in very
// many slices.
Status SqlOverviewStore::Count(std::vector<Item*> items, std::uint64_t limit) {
  std::vector<std::uint64_t> counts(items.size());
  Parts parts;
  const auto ask = [&]() -> Status {
    BOOST_OUTCOME_TRYV(db_.Query(parts.text, Connection::Values(parts.values),
                                 [&](const Row& row) { counts[row.Number(1)] += row.Number(2); }));
    parts = {};
    return {};
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = *items[i];
    const auto urgencies = UrgenciesOf(item.groups);
    const std::string due = item.out.table + "$due(" + item.out.table + ")";
    for (const auto& slices :
         Cut(SlicesOf(item.groups), std::max<std::size_t>(1, kRanges / urgencies.size()))) {
      parts.Next() += "SELECT " + std::to_string(i) + ",COUNT(*) FROM (SELECT 1 FROM " + due +
                      " WHERE slice IN (" + Numbers(slices) + ") AND handler=? AND urgency IN (" +
                      Numbers(urgencies) + ") AND urgency IS NOT NULL LIMIT ?) AS counted" +
                      std::to_string(parts.count);
      parts.values.insert(parts.values.end(), {item.out.handler, limit});
      if (parts.count < kMostParts) continue;
      BOOST_OUTCOME_TRYV(ask());
      if (counts[i] >= limit) break;
    }
  }
  if (parts.count > 0) {
    BOOST_OUTCOME_TRYV(ask());
  }
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i]->out.waiting = {std::min(counts[i], limit), counts[i] >= limit};
  return {};
}

// First a short look at each, which settles most; then what is left of a handler's number, table by table.
Status SqlOverviewStore::CountWaiting(std::vector<Item>& items) {
  std::map<std::string, std::uint64_t> of_handler;
  const auto left = [&](const Item& item) {
    const std::uint64_t known = of_handler[item.out.handler];
    return known >= kExactBacklog ? 0 : kExactBacklog - known;
  };
  std::vector<Item*> next;
  const auto look = [&]() -> Status {
    BOOST_OUTCOME_TRYV(Count(next, kFirstLook));
    for (const Item* item : next) of_handler[item->out.handler] += item->out.waiting.count;
    next.clear();
    return {};
  };
  for (Item& item : items) {
    if (item.groups.due.empty()) continue;
    item.out.waiting = {item.groups.due.size(), true};  // a row in each, at least
    if (left(item) == 0) continue;
    next.push_back(&item);
    if (next.size() < kParts) continue;
    BOOST_OUTCOME_TRYV(look());
  }
  if (!next.empty()) {
    BOOST_OUTCOME_TRYV(look());
  }
  for (Item& item : items) {
    const bool looked = item.out.waiting.more && item.out.waiting.count == kFirstLook;
    if (!looked || left(item) == 0) continue;
    of_handler[item.out.handler] -= item.out.waiting.count;
    BOOST_OUTCOME_TRYV(Count({&item}, left(item)));
    of_handler[item.out.handler] += item.out.waiting.count;
  }
  return {};
}

Status SqlOverviewStore::CountHeld(std::vector<Item>& items) {
  for (Item& item : items) {
    item.out.held = item.groups.held;
    std::uint64_t count = 0;
    for (const auto& slices : Cut(item.groups.held_in, kRanges)) {
      if (count >= kExactBacklog) break;
      BOOST_OUTCOME_TRYV(db_.Query("SELECT COUNT(*) FROM (SELECT 1 FROM " + item.out.table + "$due(" +
                                       item.out.table + ") WHERE slice IN (" + Numbers(slices) +
                                       ") AND handler=? AND urgency IS NULL LIMIT ?) AS counted",
                                   {item.out.handler, kExactBacklog - count},
                                   [&](const Row& row) { count += row.Number(1); }));
    }
    item.out.held += {count, count >= kExactBacklog};
  }
  return {};
}

// Running rows were claimed in due order, so they stand at the heads of their groups, and so does the first
// that waits. The oldest heads of each handler are looked at first.
Status SqlOverviewStore::ReadHeads(std::vector<Item>& items, WallTime now) {
  std::vector<Head> heads;
  std::vector<std::vector<const DueGroup*>> due(items.size());
  std::size_t most = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (const DueGroup& group : items[i].groups.due) {
      auto& next = items[i].out.next_due;
      if (group.first_run_at <= now) {
        due[i].push_back(&group);
      } else if (!next || group.first_run_at < *next) {
        next = group.first_run_at;
      }
    }
    std::sort(due[i].begin(), due[i].end(),
              [](const auto* a, const auto* b) { return a->first_run_at < b->first_run_at; });
    if (!due[i].empty()) items[i].out.next_due.reset();
    most = std::max(most, due[i].size());
  }
  for (std::size_t turn = 0; turn < most; ++turn) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (turn >= due[i].size()) continue;
      if (heads.size() < kHeads) {
        heads.push_back({i, due[i][turn]});
        continue;
      }
      // Nobody looks at it: it may be running, and its first row may be what waits.
      HandlerOverview& out = items[i].out;
      out.running.more = true;
      out.oldest_due = std::min(out.oldest_due.value_or(now), due[i][turn]->first_run_at);
    }
  }
  if (heads.empty()) return {};
  const std::uint64_t rows = std::min(kHeadRows / heads.size(), kMostOfAHead);
  const std::string until = TimeText(now);
  std::vector<Seen> seen(heads.size());
  for (std::size_t from = 0; from < heads.size(); from += kParts) {
    Parts parts;
    for (std::size_t i = from; i < std::min(from + kParts, heads.size()); ++i) {
      const DueGroup& group = *heads[i].group;
      parts.Next() += "SELECT " + std::to_string(i) + ",state,run_at FROM (SELECT state,run_at FROM " +
                      group.table + "$due(" + group.table +
                      ") WHERE slice=? AND handler=? AND urgency=? AND "
                      "urgency IS NOT NULL AND run_at<=? ORDER BY run_at,id LIMIT ?) AS head" +
                      std::to_string(i);
      parts.values.insert(parts.values.end(), {group.slice, group.handler, group.urgency, until, rows});
    }
    BOOST_OUTCOME_TRYV(db_.Query(parts.text, Connection::Values(parts.values), [&](const Row& row) {
      See(seen[row.Number(1)], static_cast<TaskState>(row.Signed(2)), row.Time(3).value_or(WallTime{}));
    }));
  }
  for (std::size_t i = 0; i < heads.size(); ++i) {
    HandlerOverview& out = items[heads[i].item].out;
    out.running += {seen[i].running, seen[i].rows == rows && seen[i].last_runs};
    if (seen[i].waiting && (!out.oldest_due || *seen[i].waiting < *out.oldest_due))
      out.oldest_due = seen[i].waiting;
  }
  return {};
}

Result<WaitingOverview> SqlOverviewStore::Waiting(std::span<const TableName> tables) {
  WaitingOverview overview;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT $now", {}, [&](const Row& row) { overview.now = row.Time(1).value_or(WallTime{}); }));
  TableGroups groups;
  BOOST_OUTCOME_TRYV(ReadGroups(tables, groups));
  std::vector<Item> items;
  for (auto& [key, found] : groups)
    items.push_back({{.table = key.first, .handler = key.second}, std::move(found)});
  BOOST_OUTCOME_TRYV(CountWaiting(items));
  BOOST_OUTCOME_TRYV(CountHeld(items));
  BOOST_OUTCOME_TRYV(ReadHeads(items, overview.now));
  for (Item& item : items) {
    // The due order has running rows too.
    Counted& waiting = item.out.waiting;
    if (!waiting.more) waiting.count -= std::min(waiting.count, item.out.running.count);
    overview.handlers.push_back(std::move(item.out));
  }
  return overview;
}

Result<FailedOverview> SqlOverviewStore::Failed(std::span<const TableName> tables,
                                                std::span<const TaskTotals> totals) {
  std::set<TableName> wanted;
  for (const TaskTotals& group : totals) {
    const auto table = ParseTableName(group.table);
    if (group.failed > 0 && table && std::find(tables.begin(), tables.end(), *table) != tables.end())
      wanted.insert(*table);
  }
  FailedOverview overview;
  overview.all = wanted.size() <= kMostFailedTables;
  const std::uint64_t rows = kFailedRows / std::clamp<std::size_t>(wanted.size(), 1, kMostFailedTables);
  std::map<std::tuple<TableName, std::string, std::string>, FailedClass> classes;
  auto next = wanted.begin();
  for (std::size_t looked = 0; next != wanted.end() && looked < kMostFailedTables;) {
    Parts parts;
    std::vector<TableName> names;
    for (; next != wanted.end() && parts.count < kParts && looked < kMostFailedTables; ++next, ++looked) {
      parts.Next() += "SELECT " + std::to_string(names.size()) +
                      ",handler,error_class,id,finished_at,error FROM (SELECT handler,error_class,id,"
                      "finished_at,SUBSTR(last_error,1,200) AS error FROM " +
                      *next + "_failed$primary ORDER BY id DESC LIMIT ?) AS newest" +
                      std::to_string(parts.count);
      parts.values.emplace_back(rows);
      names.push_back(*next);
    }
    std::vector<std::uint64_t> found(names.size());
    BOOST_OUTCOME_TRYV(db_.Query(parts.text, Connection::Values(parts.values), [&](const Row& row) {
      const TableName& table = names[row.Number(1)];
      ++found[row.Number(1)];
      const auto [at, is_new] = classes.try_emplace(
          {table, row.Text(2), row.Text(3)},
          FailedClass{.table = table, .handler = row.Text(2), .error_class = row.Text(3)});
      FailedClass& one = at->second;
      ++one.count;
      if (!is_new && row.Number(4) <= one.newest) return;
      one.newest = row.Number(4);
      one.at = row.Time(5).value_or(WallTime{});
      one.error = row.Text(6);
    }));
    for (const std::uint64_t count : found) {
      overview.looked_at += count;
      if (count == rows) overview.all = false;
    }
  }
  for (auto& [key, one] : classes) overview.classes.push_back(std::move(one));
  std::stable_sort(overview.classes.begin(), overview.classes.end(),
                   [](const FailedClass& a, const FailedClass& b) { return a.count > b.count; });
  return overview;
}

}  // namespace millrace::engine::sql

#include <algorithm>

#include "framework/base/time_text.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

TEST_P(StoreContract, PlainInsertTakesEveryDefault) {
  const WallTime before = Now() - minutes(1);
  const auto id = Add();
  const Task task = Get(id).task;
  EXPECT_EQ(task.state, TaskState::Waiting);
  EXPECT_LT(task.slice, 4U);
  EXPECT_EQ(task.priority, 5U);
  EXPECT_EQ(task.params, "{}");
  EXPECT_EQ(task.biz_key, "");
  EXPECT_EQ(task.batch, "");
  EXPECT_EQ(task.attempt + task.failures + task.crashes, 0U);
  EXPECT_FALSE(task.cancel);
  EXPECT_EQ(task.claimed_by, "");
  EXPECT_GT(task.run_at, before);
  EXPECT_LE(task.run_at, Now());
  EXPECT_GT(task.created_at, before);
}

TEST_P(StoreContract, PlainInsertsSpreadOverAllSlices) {
  for (int i = 0; i < 200; ++i) Add();
  std::vector<std::uint32_t> slices;
  for (const DueGroup& group : Due().groups) slices.push_back(group.slice);
  EXPECT_EQ(slices, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_P(StoreContract, ConstraintsRefuseWhatCannotBe) {
  EXPECT_FALSE(fixture().Insert("tasks", {.params = "not json"}));
  for (const char* params : {"[]", "7", "\"x\"", "null", " [{}]"})
    EXPECT_FALSE(fixture().Insert("tasks", {.params = params})) << params;
  EXPECT_TRUE(fixture().Insert("tasks", {.params = "\n {} "}));
  EXPECT_FALSE(fixture().Insert("tasks", {.params = "{\"x\":\"" + std::string(kMaxParams, 'x') + "\"}"}));
  EXPECT_FALSE(fixture().Insert("tasks", {.slice = kMaxSlices}));
  EXPECT_FALSE(fixture().Insert("tasks", {.state = 1}));
  EXPECT_FALSE(fixture().Insert("tasks", {.state = 2})) << "a running row needs a claimer";
  EXPECT_FALSE(fixture().Insert("tasks", {.priority = 10}));
  EXPECT_FALSE(fixture().Insert("tasks", {.priority = -1}));
  for (const char* handler : {"", "Noop", "noop\n", "noop\n\n", "noop ", "no op", "9noop", "noop\r"})
    EXPECT_FALSE(fixture().Insert("tasks", {.handler = handler})) << "'" << handler << "'";
  EXPECT_TRUE(fixture().Insert("tasks", {.handler = "a.b_9"}));
  EXPECT_TRUE(fixture().Insert("tasks", {.params = "{\"x\":\"" + std::string(kMaxParams - 8, 'x') + "\"}"}));
}

TEST_P(SqlStoreContract, ConstraintsRefuseTimesThatThereAreNot) {
  const auto client = sql().NewClient();
  const auto takes = [&](const std::string& run_at) {
    return client->Run("INSERT INTO tasks (handler,params,run_at) VALUES ('noop','{}','" + run_at + "')")
        .has_value();
  };
  for (const char* day : {"2026-02-28", "2024-02-29", "2000-02-29", "2026-01-31", "2026-04-30", "2026-12-31"})
    EXPECT_TRUE(takes(day + std::string(" 23:59:59.999999"))) << day;
  for (const char* day :
       {"2026-02-29", "2026-02-30", "2100-02-29", "2026-04-31", "2026-11-31", "2026-01-32", "2026-13-01"})
    EXPECT_FALSE(takes(day + std::string(" 10:00:00.000000"))) << day;
  EXPECT_FALSE(takes("2026-02-10 24:00:00.000000"));
  EXPECT_FALSE(takes("2026-02-10 25:00:00.000000"));
  const auto expires = client->Run(
      "INSERT INTO tasks (handler,params,expires_at) VALUES ('noop','{}','2199-02-30 10:00:00.000000')");
  EXPECT_FALSE(expires);
}

// The servers round, or refuse them by the column's type.
TEST_P(SqlStoreContract, ConstraintsRefuseNumbersThatAreNotWhole) {
  if (GetParam().name != "sqlite") return;
  const auto client = sql().NewClient();
  for (const char* column : {"slice", "priority", "failures", "attempt", "crashes"}) {
    const auto insert = [&](const char* value) {
      return client->Run(std::string("INSERT INTO tasks (handler,params,") + column +
                         ") VALUES ('noop','{}'," + value + ")");
    };
    EXPECT_FALSE(insert("1.5")) << column;
    EXPECT_TRUE(insert("2.0")) << column;
    EXPECT_TRUE(insert("'3'")) << column;
  }
}

TEST_P(StoreContract, DueMapNamesEachGroupOnceInOrderWithItsEarliestRow) {
  const WallTime now = Now();
  Add({.handler = "b", .slice = 2, .run_at = now - hours(1)});
  Add({.handler = "b", .slice = 2, .run_at = now - hours(3)});
  Add({.handler = "a", .slice = 2, .priority = 9, .run_at = now + hours(5)});
  Add({.handler = "a", .slice = 2, .priority = 0, .run_at = now - hours(2)});
  Add({.handler = "z", .slice = 0, .run_at = now - hours(2)});
  const auto groups = Due().groups;
  ASSERT_EQ(groups.size(), 4U);
  const auto expect = [&](std::size_t i, std::uint32_t slice, const char* handler, std::uint32_t urgency,
                          WallTime first) {
    EXPECT_EQ(groups[i].table, "tasks");
    EXPECT_EQ(groups[i].slice, slice) << i;
    EXPECT_EQ(groups[i].handler, handler) << i;
    EXPECT_EQ(groups[i].urgency, urgency) << i;
    EXPECT_EQ(groups[i].first_run_at, first) << i;
  };
  expect(0, 0, "z", 50, now - hours(2));
  expect(1, 2, "a", 0, now - hours(2));
  expect(2, 2, "a", 90, now + hours(5));
  expect(3, 2, "b", 50, now - hours(3));
}

TEST_P(StoreContract, AMapThatBeginsPartsTellsTheGreatestIdsAndWhatIsDueLater) {
  const WallTime now = Now();
  Add({.handler = "due", .slice = 1, .run_at = now - hours(3)});
  Add({.handler = "both", .slice = 1, .run_at = now - hours(3)});
  Add({.handler = "both", .slice = 1, .run_at = now - hours(2)});
  Add({.handler = "both", .slice = 1, .run_at = now + hours(2)});
  const auto last = Add({.handler = "later", .slice = 1, .run_at = now + hours(3)});
  const std::vector<TableSlices> all{{.table = "tasks"}};
  auto map = tasks().Due(all, {.begins_parts = true});
  ASSERT_TRUE(map) << map.error().message;
  ASSERT_EQ(map->groups.size(), 3U);
  EXPECT_EQ(map->greatest.at("tasks"), last);
  EXPECT_EQ(map->groups[0].handler, "both");
  EXPECT_EQ(map->groups[0].first_run_at, now - hours(3));
  EXPECT_TRUE(map->groups[0].later);
  EXPECT_EQ(map->groups[1].handler, "due");
  EXPECT_FALSE(map->groups[1].later);
  EXPECT_TRUE(map->groups[2].later);
}

TEST_P(StoreContract, AMapOfAnEmptyTableBeginsPartsAtItsBeginning) {
  const std::vector<TableSlices> all{{.table = "tasks"}};
  const auto map = tasks().Due(all, {.begins_parts = true});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->greatest.at("tasks"), 0U);
}

TEST_P(StoreContract, APartTellsOfNewRowsAndOfWhatItAsksFor) {
  const WallTime now = Now();
  const std::vector<TableSlices> some{{.table = "tasks", .all = false, .slices = {1, 3}}};
  Add({.handler = "old", .slice = 1, .run_at = now - hours(1)});
  Add({.handler = "old", .slice = 1, .run_at = now + minutes(1)});
  Add({.handler = "old", .slice = 1, .run_at = now + minutes(2)});
  const auto known = Add({.handler = "ended", .slice = 1, .run_at = now - hours(1)});
  const auto first = tasks().Due(some, {.begins_parts = true});
  ASSERT_TRUE(first) << first.error().message;
  Add({.handler = "new", .slice = 1, .run_at = now - minutes(3)});
  Add({.handler = "new", .slice = 1, .run_at = now - minutes(4)});
  Add({.handler = "new", .slice = 1, .run_at = now + minutes(5)});
  Add({.handler = "later", .slice = 3, .run_at = now + hours(1)});
  Add({.handler = "held", .slice = 3, .state = 3});
  Claim({Add({.handler = "running", .slice = 3, .run_at = now - minutes(1)})});
  const auto last = Add({.handler = "others", .slice = 2, .run_at = now - minutes(1)});
  const DueGroup old{"tasks", 1, "old", 50, now};
  const DueGroup ended{"tasks", 1, "ended", 50, now};
  const auto part = tasks().Due(some, {.newer = {{kDefaultTable, known}}, .after = {old, ended}});
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_GE(part->now, now);
  EXPECT_EQ(part->greatest.at("tasks"), last) << "that of a slice that was not asked for, too";
  ASSERT_EQ(part->groups.size(), 2U);
  EXPECT_EQ(part->groups[0].handler, "new");
  EXPECT_EQ(part->groups[0].first_run_at, now - minutes(4));
  EXPECT_EQ(part->groups[0].rows, 2U);
  EXPECT_TRUE(part->groups[0].later);
  EXPECT_EQ(part->groups[1].handler, "later");
  EXPECT_EQ(part->groups[1].rows, 0U);
  EXPECT_TRUE(part->groups[1].later);
  ASSERT_EQ(part->after.size(), 1U);
  EXPECT_EQ(part->after[0].handler, "old");
  EXPECT_EQ(part->after[0].first_run_at, now + minutes(1));
  const auto nothing = tasks().Due(some, {.newer = {{kDefaultTable, last}}});
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_TRUE(nothing->groups.empty() && nothing->after.empty() && nothing->greatest.empty());
}

// All that a page brings of a task.
std::string AsText(const ScannedTask& scanned) {
  const Task& task = scanned.task;
  std::string text = ToString(task.key);
  for (const std::string& one : {task.handler, task.params, task.biz_key, task.batch, task.progress})
    text += " " + one;
  for (const std::uint64_t one :
       {std::uint64_t{task.slice}, std::uint64_t{task.priority}, std::uint64_t{task.attempt},
        std::uint64_t{task.failures}, std::uint64_t{task.crashes}, std::uint64_t{task.cancel}})
    text += " " + std::to_string(one);
  for (const WallTime one :
       {task.run_at, task.created_at, task.expires_at.value_or(WallTime{}), scanned.updated_at})
    text += " " + FormatTime(one);
  return text;
}

TEST_P(StoreContract, AMapBringsTheDueTasksOfTheseIdsAsAPageDoes) {
  const WallTime now = Now();
  const auto first = operations()
                         .Submit("tasks", {{{.handler = "asked",
                                             .params = R"({"n":1})",
                                             .biz_key = "k",
                                             .batch = "b",
                                             .run_at = now - hours(1),
                                             .slice = 1,
                                             .expires_at = now + hours(1)}}})
                         .value()
                         .ids[0];
  const Task claimed = ClaimOne(first);
  ASSERT_TRUE(tasks().SaveProgress("w.1", std::vector<TaskProgress>{{claimed.key, claimed.attempt, "half"}}));
  Settlement retry = End(claimed, Settlement::To::Waiting, "why");
  retry.failed_attempt = true;
  Settle({retry});
  const auto second = Add({.handler = "asked", .slice = 1, .run_at = now - hours(2)});
  const std::string params = R"({"text":")" + std::string(5000, 'x') + R"("})";
  const auto large = Add({.handler = "large", .params = params, .slice = 2});
  std::vector<std::uint64_t> asked{second, large, first, first};
  asked.push_back(Add({.handler = "later", .slice = 1, .run_at = now + hours(1)}));
  asked.push_back(Add({.handler = "held", .slice = 1, .state = 3}));
  asked.push_back(Add({.handler = "running", .slice = 1}));
  Claim({asked.back()});
  asked.push_back(asked.back() + 1000);  // there is none
  Add({.handler = "asked", .slice = 1});
  const std::vector<TableSlices> all{{.table = "tasks"}};
  const auto plain = tasks().Due(all);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_TRUE(plain->rows.empty());
  const auto map = tasks().Due(all, {.rows = {{kDefaultTable, asked}}});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->groups.size(), plain->groups.size());
  EXPECT_EQ(map->rows.empty(), !fixture().brings_tasks());
  if (map->rows.empty()) return;
  ASSERT_EQ(map->rows.size(), 3U) << "one that has failed is of another urgency";
  std::vector<std::uint64_t> brought;
  for (const DueGroup& group : plain->groups) {
    const auto found = map->rows.find(GroupKeyOf(group));
    if (found == map->rows.end()) continue;
    ASSERT_EQ(found->second.size(), 1U);
    const ScanRow& row = found->second[0];
    brought.push_back(row.id);
    const auto page = tasks().Scan({.group = group, .limit = 1, .with_bytes = true, .with_contents = true});
    ASSERT_TRUE(page) << page.error().message;
    const ScanRow& read = page->at(0);
    EXPECT_EQ(row.id, read.id);
    EXPECT_EQ(row.run_at, read.run_at);
    EXPECT_EQ(row.state, read.state);
    EXPECT_EQ(row.attempt, read.attempt);
    EXPECT_EQ(row.bytes, read.bytes);
    EXPECT_EQ(row.created_at, read.created_at);
    EXPECT_EQ(row.contents.has_value(), row.id != large) << "it is read once it is claimed";
    ASSERT_EQ(row.contents.has_value(), read.contents.has_value());
    if (row.contents) {
      EXPECT_EQ(AsText(*row.contents), AsText(*read.contents));
      EXPECT_EQ(row.contents->updated_at > row.created_at, row.id == first);
    }
  }
  std::ranges::sort(brought);
  EXPECT_EQ(brought, (std::vector{first, second, large}));
  const std::vector<TableSlices> others{{.table = "tasks", .all = false, .slices = {3}}};
  const auto of_others = tasks().Due(others, {.rows = {{kDefaultTable, asked}}});
  ASSERT_TRUE(of_others) << of_others.error().message;
  EXPECT_TRUE(of_others->rows.empty()) << "of slices that were not asked for";
}

TEST_P(StoreContract, DueMapLeavesHeldRowsOutAndRunningOnesIn) {
  Add({.handler = "held", .slice = 1, .state = 3});
  const auto running = AddDue(1, "running");
  Claim(running);
  const auto groups = Due().groups;
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].handler, "running");
}

TEST_P(StoreContract, DueMapAnswersForTheSlicesAskedForAlone) {
  for (std::uint32_t slice = 0; slice < 4; ++slice) Add({.slice = slice});
  const TableSlices some{.table = "tasks", .all = false, .slices = {1, 3}};
  auto map = tasks().Due(std::span(&some, 1));
  ASSERT_TRUE(map) << map.error().message;
  ASSERT_EQ(map->groups.size(), 2U);
  EXPECT_EQ(map->groups[0].slice, 1U);
  EXPECT_EQ(map->groups[1].slice, 3U);
  const TableSlices none{.table = "tasks", .all = false};
  map = tasks().Due(std::span(&none, 1));
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->groups.empty());
}

// slice and handler of each group, for short.
std::vector<std::string> Names(const DueMap& map) {
  std::vector<std::string> names;
  for (const DueGroup& group : map.groups) names.push_back(std::to_string(group.slice) + group.handler);
  return names;
}

TEST_P(StoreContract, DueMapAnswersForTheHandlersAskedForAlone) {
  for (std::uint32_t slice = 0; slice < 4; ++slice) {
    for (const char* handler : {"a", "b", "c"}) {
      Add({.handler = handler, .slice = slice});
      Add({.handler = handler, .slice = slice, .priority = 0});
    }
  }
  const auto ask = [&](std::vector<TableSlices> tables) {
    auto map = tasks().Due(tables);
    EXPECT_TRUE(map) << map.error().message;
    return map ? Names(*map) : std::vector<std::string>{};
  };
  using Names = std::vector<std::string>;
  const auto on = [](std::vector<std::uint32_t> slices, std::optional<std::vector<std::string>> handlers) {
    return TableSlices{
        .table = "tasks", .all = false, .slices = std::move(slices), .handlers = std::move(handlers)};
  };
  EXPECT_EQ(ask({on({0, 3}, {{"a", "c", "zz"}})}), (Names{"0a", "0a", "0c", "0c", "3a", "3a", "3c", "3c"}));
  EXPECT_EQ(ask({{.table = "tasks", .handlers = {{"b"}}}}),
            (Names{"0b", "0b", "1b", "1b", "2b", "2b", "3b", "3b"}));
  EXPECT_EQ(ask({on({1}, {{}})}), Names{});
  // One table several times: each part's slices with its own handlers, and nothing twice.
  EXPECT_EQ(ask({on({0, 1}, {{"a"}}), on({1, 2}, {{"b"}})}),
            (Names{"0a", "0a", "1a", "1a", "1b", "1b", "2b", "2b"}));
  EXPECT_EQ(ask({on({0}, {{"a"}}), on({2}, std::nullopt), on({2}, {{"b"}})}),
            (Names{"0a", "0a", "2a", "2a", "2b", "2b", "2c", "2c"}));
}

TEST_P(StoreContract, RetriedRowsStandBehindFreshOnesOfTheirPriority) {
  const auto ids = AddDue(2);
  const Task task = ClaimOne(ids[0]);
  Settlement retry = End(task, Settlement::To::Waiting, "later");
  retry.failed_attempt = true;
  Settle({retry});
  const auto groups = Due().groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].urgency, 50U);
  EXPECT_EQ(groups[1].urgency, 51U);
}

TEST_P(StoreContract, ScanReadsDueRowsInOrderWithTiesById) {
  const WallTime now = Now();
  const auto late = Add({.slice = 1, .run_at = now - hours(1)});
  const auto tie1 = Add({.slice = 1, .run_at = now - hours(2)});
  const auto tie2 = Add({.slice = 1, .run_at = now - hours(2)});
  Add({.slice = 1, .run_at = now + hours(1)});
  Add({.slice = 2, .run_at = now - hours(9)});
  const DueGroup group{"tasks", 1, "noop", 50, {}};
  auto rows = tasks().Scan({.group = group});
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ((*rows)[0].id, tie1);
  EXPECT_EQ((*rows)[1].id, tie2);
  EXPECT_EQ((*rows)[2].id, late);
  EXPECT_EQ((*rows)[2].run_at, now - hours(1));
  EXPECT_EQ((*rows)[2].state, TaskState::Waiting);
}

TEST_P(StoreContract, ScanPagesByPlaceWithinTiesToo) {
  const auto ids = AddDue(7);
  const DueGroup group{"tasks", 1, "noop", 50, {}};
  ScanPosition after;
  std::vector<std::uint64_t> seen;
  while (true) {
    auto rows = tasks().Scan({.group = group, .after = after, .limit = 3});
    ASSERT_TRUE(rows) << rows.error().message;
    if (rows->empty()) break;
    EXPECT_LE(rows->size(), 3U);
    for (const ScanRow& row : *rows) seen.push_back(row.id);
    after = {rows->back().run_at, rows->back().id};
  }
  EXPECT_EQ(seen, ids);
}

TEST_P(StoreContract, ScanSeesRunningRowsWithTheirClaimer) {
  const auto ids = AddDue(2);
  Claim({ids[0]});
  const auto rows = ScanAll();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].state, TaskState::Running);
  EXPECT_EQ(rows[0].claimed_by, "w.1");
  EXPECT_EQ(rows[0].attempt, 1U);
  EXPECT_EQ(rows[1].state, TaskState::Waiting);
  EXPECT_EQ(rows[1].claimed_by, "");
}

TEST_P(StoreContract, OfAPageThoseThatRunCanBeAskedForAlone) {
  const auto ids = AddDue(5);
  Claim({ids[1], ids[3]});
  const auto running = [&](std::size_t limit) {
    std::vector<std::uint64_t> found;
    const auto rows =
        tasks().Scan({.group = {"tasks", 1, "noop", 50, {}}, .limit = limit, .running_only = true});
    EXPECT_TRUE(rows) << rows.error().message;
    if (!rows) return found;
    for (const ScanRow& row : *rows) {
      EXPECT_EQ(row.claimed_by, "w.1");
      found.push_back(row.id);
    }
    return found;
  };
  EXPECT_EQ(running(5), (std::vector{ids[1], ids[3]}));
  EXPECT_EQ(running(3), std::vector{ids[1]}) << "a page is what it would be with the others";
  EXPECT_TRUE(running(1).empty());
}

TEST_P(StoreContract, OfSeveralGroupsThoseThatRunComeInTheirDueOrder) {
  const auto ids = AddDue(3);
  const auto other = Add({.slice = 2, .run_at = Now() - std::chrono::hours(1)});
  const auto earlier = Add({.slice = 1, .run_at = Now() - std::chrono::days(1)});
  Claim({ids[0], ids[2], other, earlier});
  std::vector<ScanRequest> requests;
  for (const std::uint32_t slice : {2U, 3U, 1U}) {
    requests.push_back({.group = {"tasks", slice, "noop", 50, {}}, .limit = 4, .running_only = true});
  }
  const auto pages = tasks().ScanEach(requests);
  ASSERT_TRUE(pages) << pages.error().message;
  std::vector<std::vector<std::uint64_t>> found(pages->size());
  for (std::size_t i = 0; i < pages->size(); ++i) {
    for (const ScanRow& row : (*pages)[i]) {
      EXPECT_EQ(row.claimed_by, "w.1");
      found[i].push_back(row.id);
    }
  }
  EXPECT_EQ(found, (std::vector<std::vector<std::uint64_t>>{{other}, {}, {earlier, ids[0], ids[2]}}));
}

TEST_P(StoreContract, AScanTellsWhatTheTextsOfATaskTake) {
  const auto ids = AddDue(1);
  const auto large = Add({.params = "{\"x\":\"" + std::string(kMaxParams - 10, 'x') + "ü\"}", .slice = 1});
  Settlement failed = End(ClaimOne(ids[0]), Settlement::To::Waiting, "why it failed: größer");
  Settle({failed});
  const ScanRequest request{.group = {"tasks", 1, "noop", 50, {}}, .with_bytes = true};
  const auto rows = tasks().Scan(request);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].bytes, TextBytes(Get(ids[0]).task));
  EXPECT_EQ((*rows)[0].bytes, 2 + failed.text.size());
  EXPECT_EQ((*rows)[1].id, large);
  EXPECT_EQ((*rows)[1].bytes, kMaxParams);
  EXPECT_EQ(ScanAll()[1].bytes, 0U) << "not asked for";
}

TEST_P(StoreContract, AScanTellsWhenTasksWereCreatedWhereThatIsAskedFor) {
  const auto ids = AddDue(2);
  Claim({ids[1]});
  for (const bool contents : {false, true}) {
    ScanRequest request{
        .group = {"tasks", 1, "noop", 50, {}}, .with_contents = contents, .with_created = true};
    const auto pages = tasks().ScanEach(std::vector<ScanRequest>(2, request));
    ASSERT_TRUE(pages) << pages.error().message;
    for (const auto& page : *pages) {
      ASSERT_EQ(page.size(), 2U);
      for (std::size_t i = 0; i < page.size(); ++i) {
        EXPECT_EQ(page[i].created_at, Get(ids[i]).task.created_at) << "contents: " << contents;
      }
    }
  }
  EXPECT_EQ(ScanAll()[0].created_at, WallTime{}) << "not asked for";
}

TEST_P(StoreContract, TheGreatestIdIsBelowThatOfEveryLaterRow) {
  const std::vector<TableName> tables{"tasks"};
  const auto greatest = [&] {
    const auto ids = this->tasks().GreatestIds(tables);
    EXPECT_TRUE(ids) << ids.error().message;
    return ids ? ids->at(0) : 0;
  };
  EXPECT_EQ(greatest(), 0U) << "an empty table";
  const auto ids = AddDue(3);
  EXPECT_EQ(greatest(), ids[2]);
  Settle({End(ClaimOne(ids[2]), Settlement::To::Succeeded, "")});
  const auto later = greatest();
  EXPECT_GE(later, ids[1]);
  EXPECT_GT(AddDue(1)[0], ids[2]) << "no id comes again";
}

TEST_P(StoreContract, RowsOfLongAgoAreSeen) {
  const auto id =
      Add({.slice = 1, .run_at = WallTime(std::chrono::sys_days(std::chrono::year(1971) / 1 / 1))});
  const auto rows = ScanAll();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].id, id);
}

}  // namespace
}  // namespace millrace::engine

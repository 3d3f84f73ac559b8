// What a claim makes of the contents that a scan has brought: a row is claimed as it is, whatever happened to
// it between the two.
#include <algorithm>
#include <map>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using Params = std::map<std::uint64_t, std::string>;  // by id

DueGroup Group(std::uint32_t slice = 1) { return {"tasks", slice, "noop", 50, {}}; }

}  // namespace

std::vector<ScanRow> ScannedContract::Scan() {
  auto rows = tasks().Scan({.group = Group(), .with_bytes = true, .with_contents = true});
  EXPECT_TRUE(rows) << rows.error().message;
  return rows ? *rows : std::vector<ScanRow>{};
}

Result<std::vector<Task>> ScannedContract::ClaimScanned(const std::vector<ScanRow>& rows) {
  ClaimRequest request{.table = "tasks", .incarnation = "w.1", .attempt = rows.at(0).attempt};
  for (const ScanRow& row : rows) {
    request.ids.push_back(row.id);
    if (row.contents) request.contents.push_back(*row.contents);
  }
  std::reverse(request.contents.begin(), request.contents.end());
  return tasks().Claim(request);
}

std::map<std::uint64_t, std::string> ScannedContract::ClaimedParams(const std::vector<ScanRow>& rows) {
  Params params;
  auto claimed = ClaimScanned(rows);
  EXPECT_TRUE(claimed) << claimed.error().message;
  if (!claimed) return params;
  for (const Task& task : *claimed) {
    EXPECT_EQ(task.state, TaskState::Running);
    EXPECT_EQ(task.attempt, rows.at(0).attempt + 1);
    EXPECT_EQ(task.claimed_by, "w.1");
    params[task.key.id] = task.params;
  }
  return params;
}

void ScannedContract::Edit(std::uint64_t id, const std::string& set) {
  auto done = sql().NewClient()->Run("UPDATE tasks SET " + set + " WHERE id=" + std::to_string(id));
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(done->affected, 1U);
}

namespace {

TEST_P(ScannedContract, AClaimReturnsWhatAScanHasReadAndWhatItReadsItselfAlike) {
  const std::string large = R"({"x":")" + std::string(5000, 'x') + R"("})";
  for (int i = 0; i < 2; ++i) {
    const auto due = Now() - std::chrono::hours(1);
    Add({.params = R"({"a":"ü\\\\'"})",
         .slice = 1,
         .run_at = due,
         .biz_key = "k" + std::to_string(i),
         .batch = "b"});
    Add({.params = large, .slice = 1, .run_at = due});
    Add({.slice = 1, .run_at = due});
  }
  const std::string expiry = "expires_at='2099-01-01 00:00:00.000000'";
  ASSERT_TRUE(sql().NewClient()->Run("UPDATE tasks SET " + expiry));
  const auto rows = Scan();
  ASSERT_EQ(rows.size(), 6U);
  std::vector<std::uint64_t> read;
  for (std::size_t i = 3; i < 6; ++i) read.push_back(rows[i].id);
  const std::vector<Task> unscanned = Claim(read);
  auto scanned = ClaimScanned({rows[0], rows[2]});
  ASSERT_TRUE(scanned) << scanned.error().message;
  auto mixed = ClaimScanned({rows[1]});
  ASSERT_TRUE(mixed) << mixed.error().message;
  ASSERT_EQ(scanned->size() + mixed->size(), unscanned.size());
  for (const Task& one : {(*scanned)[0], (*mixed)[0], (*scanned)[1]}) {
    const Task& other = unscanned[one.key.id - rows[0].id];
    EXPECT_EQ(one.slice, other.slice);
    EXPECT_EQ(one.state, other.state);
    EXPECT_EQ(one.handler, other.handler);
    EXPECT_EQ(one.priority, other.priority);
    EXPECT_EQ(one.params, other.params);
    EXPECT_EQ(one.biz_key.size(), other.biz_key.size());
    EXPECT_EQ(one.batch, other.batch);
    EXPECT_EQ(one.failures, other.failures);
    EXPECT_EQ(one.attempt, other.attempt);
    EXPECT_EQ(one.crashes, other.crashes);
    EXPECT_EQ(one.cancel, other.cancel);
    EXPECT_EQ(one.claimed_by, other.claimed_by);
    EXPECT_TRUE(one.expires_at);
    EXPECT_EQ(one.expires_at, other.expires_at);
    EXPECT_EQ(one.progress, other.progress);
    EXPECT_EQ(Get(one.key.id).task.created_at, one.created_at);
    EXPECT_EQ(Get(one.key.id).task.run_at, one.run_at);
  }
}

TEST_P(ScannedContract, ARowThatIsEditedBetweenScanAndClaimIsRunAsItIsThen) {
  const auto ids = AddDue(5);
  const auto rows = Scan();
  Edit(ids[1], "params='{\"new\":1}'");  // whoever edits by hand need not think of the time
  Edit(ids[4], "params='{\"new\":4}', updated_at='2031-01-01 00:00:00.000000'");
  const auto params = ClaimedParams(rows);
  EXPECT_EQ(
      params,
      (Params{
          {ids[0], "{}"}, {ids[1], "{\"new\":1}"}, {ids[2], "{}"}, {ids[3], "{}"}, {ids[4], "{\"new\":4}"}}));
}

TEST_P(ScannedContract, AnEditIsSeenThoughItsTimeIsThatOfAnotherRow) {
  const auto ids = AddDue(3);
  for (const std::uint64_t id : ids)
    Edit(id, "updated_at='2026-01-01 00:00:00.00000" + std::to_string(id % 10) + "'");
  const auto rows = Scan();
  Edit(ids[2],
       "params='{\"new\":2}', updated_at='2026-01-01 00:00:00.00000" + std::to_string(ids[0] % 10) + "'");
  EXPECT_EQ(ClaimedParams(rows).at(ids[2]), "{\"new\":2}");
}

TEST_P(ScannedContract, AnotherTaskUnderTheSameNumberIsNotTakenForTheOneThatWasScanned) {
  const auto ids = AddDue(2);
  const auto rows = Scan();
  const auto client = sql().NewClient();
  const std::string id = std::to_string(ids[1]);
  ASSERT_TRUE(sql().Remove("tasks", ids[1]));
  ASSERT_TRUE(
      client->Run("INSERT INTO tasks (id,slice,handler,params) VALUES (" + id + ",1,'noop','{\"b\":2}')"));
  Edit(ids[1], "run_at='2026-01-01 00:00:00.000000'");
  EXPECT_EQ(ClaimedParams(rows), (Params{{ids[0], "{}"}, {ids[1], "{\"b\":2}"}}));
}

TEST_P(ScannedContract, WhatPeopleDoToAWaitingRowIsSeenByItsClaim) {
  const auto ids = AddDue(2);
  for (const std::uint64_t id : ids) Edit(id, "cancel=1");
  const auto rows = Scan();
  ASSERT_TRUE(operations().Apply(TaskAction::Retry, "tasks", std::span(&ids[1], 1), "anna"));
  auto claimed = ClaimScanned(rows);
  ASSERT_TRUE(claimed) << claimed.error().message;
  ASSERT_EQ(claimed->size(), 2U);
  for (const Task& task : *claimed) EXPECT_EQ(task.cancel, task.key.id == ids[0]);
}

TEST_P(ScannedContract, WhatIsClaimedAlreadyOrHeldIsLeftToThoseWhoHaveIt) {
  const auto ids = AddDue(4);
  Register("w.2");
  const auto rows = Scan();
  Claim({ids[0]}, 0, "w.2");
  Claim({ids[1]});
  ASSERT_TRUE(operations().Apply(TaskAction::Hold, "tasks", std::span(&ids[2], 1), "anna"));
  EXPECT_EQ(ClaimedParams(rows), (Params{{ids[3], "{}"}}));
  EXPECT_EQ(StateOf(ids[2]), TaskState::Held);
}

TEST_P(ScannedContract, TheDeadClaimNothingThatTheyHaveScanned) {
  AddDue(2);
  const auto rows = Scan();
  ASSERT_TRUE(incarnations().Retire("w.1"));
  const auto claimed = ClaimScanned(rows);
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ErrorCode::Cancelled);
}

TEST_P(ScannedContract, SeveralGroupsAreScannedAtOnce) {
  const auto first = AddDue(3);
  const auto due = Now() - std::chrono::hours(1);
  const auto other = Add({.slice = 2, .run_at = due});
  Add({.slice = 3, .run_at = due});
  const std::vector<ScanRequest> requests{
      {Group(2)}, {Group(0)}, {Group(1), {}, 2}, {Group(1), {due - std::chrono::hours(1), 0}}};
  auto pages = tasks().ScanEach(requests);
  ASSERT_TRUE(pages) << pages.error().message;
  const auto ids = [](const std::vector<ScanRow>& rows) {
    std::vector<std::uint64_t> list;
    for (const ScanRow& row : rows) list.push_back(row.id);
    return list;
  };
  ASSERT_EQ(pages->size(), 4U);
  EXPECT_EQ(ids((*pages)[0]), std::vector{other});
  EXPECT_TRUE((*pages)[1].empty());
  EXPECT_EQ(ids((*pages)[2]), (std::vector{first[0], first[1]}));
  EXPECT_EQ(ids((*pages)[3]), first);
}

// Whatever of it was expected wrongly: what is told of a group is what it is told by itself, or more of it.
TEST_P(ScannedContract, JoinedGroupsHaveTheSamePagesAsFarAsTheyAreReached) {
  const auto due = Now() - std::chrono::hours(1);
  for (const auto& [slice, rows] : std::map<std::uint32_t, int>{{1, 3}, {2, 130}, {4, 90}, {5, 2}, {7, 30}}) {
    for (int i = 0; i < rows; ++i) Add({.slice = slice, .run_at = due + std::chrono::seconds(i % 7)});
  }
  // How many groups were reached.
  const auto compare = [&](std::vector<ScanRequest> requests, std::size_t most) -> std::size_t {
    for (ScanRequest& request : requests) request.with_bytes = request.with_contents = true;
    const auto alone = tasks().ScanEach(requests);
    for (ScanRequest& request : requests) request.joined = most;
    const auto joined = tasks().ScanEach(requests);
    EXPECT_TRUE(alone && joined);
    if (!alone || !joined || joined->empty() || joined->size() > alone->size()) return 0;
    for (std::size_t i = 0; i < joined->size(); ++i) {
      const auto of = [](const ScanRow& row) {
        return std::tuple(row.id, row.run_at, row.bytes, row.contents ? row.contents->task.slice : 0);
      };
      std::vector<decltype(of({}))> one, other;
      std::transform((*alone)[i].begin(), (*alone)[i].end(), std::back_inserter(one), of);
      std::transform((*joined)[i].begin(), (*joined)[i].end(), std::back_inserter(other), of);
      if (one.size() == requests[i].limit && other.size() > one.size()) other.resize(one.size());
      EXPECT_EQ(other, one) << "request " << i;
    }
    return joined->size();
  };
  const ScanPosition from{due + std::chrono::seconds(2), 0};
  EXPECT_EQ(compare({{Group(0)}, {Group(1)}, {Group(5)}, {Group(7)}}, 999), 4U);
  EXPECT_EQ(compare({{Group(1)}, {Group(2)}, {Group(4)}, {Group(5)}, {Group(7)}}, 999), 5U);
  const ScanRequest rest{Group(4), from, 99};
  EXPECT_EQ(compare({{Group(1)}, {Group(2), {}, 99}, {Group(3)}, rest, {Group(5), {}, 1}}, 999), 5U);
  const auto reached = [&](std::size_t of_2, std::size_t of_4, std::size_t most) {
    return compare({{Group(1), {}, 10},
                    {Group(2), {}, of_2},
                    {Group(4), {}, of_4},
                    {Group(5), {}, 10},
                    {Group(7), {}, 10}},
                   most);
  };
  EXPECT_EQ(reached(20, 15, 65), 2U) << "not what is behind slice 2, which has more than was asked for";
  EXPECT_EQ(reached(20, 15, 23), 2U) << "as much of it as was asked for";
  EXPECT_EQ(reached(100, 50, 180), 2U) << "nor a part of slice 4";
  EXPECT_EQ(reached(100, 50, 183), 3U) << "but as much of it as was asked for";
  EXPECT_EQ(reached(130, 90, 223), 3U) << "all of it";
  EXPECT_EQ(compare({{Group(4), {}, 10}, {Group(2), {}, 10}, {Group(1), {}, 10}}, 999), 3U) << "in no order";
}

}  // namespace
}  // namespace millrace::engine

// Requests and replies that the network loses, at the places where that leaves an outcome open.
#include "tests/integration/store/store_faults.h"

namespace millrace::engine {
namespace {

using Evil = TcpProxy::Evil;

// The whole command, with the byte that says that it is one: READ COMMITTED holds the word too.
constexpr const char* kCommit =
    "\x03"
    "COMMIT";

class LostMessages : public StoreFaults, public testing::WithParamInterface<Evil> {
 protected:
  // Reads back until the database answers, as a worker does.
  std::vector<bool> ReadBack(TaskStore& tasks, const std::vector<Settlement>& batch) {
    for (int look = 0; look < 20; ++look) {
      auto running = tasks.StillRunning("w.1", batch);
      if (running) return *running;
      EXPECT_EQ(running.error().code, ErrorCode::Unavailable) << running.error().message;
    }
    ADD_FAILURE() << "the database never answered";
    return std::vector<bool>(batch.size(), false);
  }
};

TEST_P(LostMessages, CommitOfASettleIsResolvedByReadingBack) {
  auto tasks = proxied_->OpenTasks();
  std::size_t added = 0;
  const int rounds = Rounds(20, 200);
  for (int round = 0; round < rounds; ++round) {
    const auto batch = Succeeded(Claim(*tasks, Add(3)));
    added += 3;
    ASSERT_EQ(batch.size(), 3U);
    proxy_.Arm(GetParam(), kCommit);
    auto settled = tasks->Settle("w.1", batch);
    ASSERT_FALSE(settled);
    ASSERT_EQ(settled.error().code, ErrorCode::Unknown) << settled.error().message;
    const auto running = ReadBack(*tasks, batch);
    for (const bool still : running) ASSERT_EQ(still, GetParam() == Evil::LoseRequest);
    if (GetParam() == Evil::LoseRequest) {
      auto again = tasks->Settle("w.1", batch);
      ASSERT_TRUE(again) << again.error().message;
      for (const auto verdict : again->verdicts) ASSERT_EQ(verdict, SettleVerdict::Settled);
    }
    ASSERT_EQ(Count("tasks_done"), added);
  }
  ExpectNothingLostOrDoubled(added);
  EXPECT_EQ(sql_->Ask("SELECT SUM(succeeded) FROM millrace_counters"), std::to_string(added));
  ReportRounds("a settle's COMMIT is lost on the way or in its reply", rounds);
}

TEST_P(LostMessages, CommitOfATaskTransactionIsResolvedByReadingBack) {
  sql_->Ask("CREATE TABLE points (id BIGINT UNSIGNED, points INT)");
  auto tasks = direct_->OpenTasks();
  auto transaction = proxied_->OpenTransaction(std::chrono::seconds(5));
  std::size_t added = 0;
  const int rounds = Rounds(20, 200);
  for (int round = 0; round < rounds; ++round) {
    const auto claimed = Claim(*tasks, Add(1));
    ++added;
    ASSERT_EQ(claimed.size(), 1U);
    const auto batch = Succeeded(claimed);
    const auto run = [&] {
      const SqlValue id = static_cast<std::int64_t>(claimed[0].key.id);
      auto done = transaction->Execute("INSERT INTO points VALUES (?,1)", std::span(&id, 1));
      EXPECT_TRUE(done) << done.error().message;
      return transaction->Commit("w.1", batch);
    };
    proxy_.Arm(GetParam(), kCommit);
    const CommitReport report = run();
    ASSERT_EQ(report.verdict, CommitVerdict::Unknown) << report.message;
    const bool still = ReadBack(*tasks, batch).at(0);
    ASSERT_EQ(still, GetParam() == Evil::LoseRequest);
    if (still) {
      ASSERT_EQ(run().verdict, CommitVerdict::Committed);
    }
    ASSERT_EQ(Count("points"), added);
    ASSERT_EQ(Count("tasks_done"), added);
  }
  ExpectNothingLostOrDoubled(added);
  ReportRounds("a task transaction's COMMIT is lost on the way or in its reply", rounds);
}

TEST_P(LostMessages, ClaimIsResolvedByAWriteAndOrphansNothing) {
  auto tasks = proxied_->OpenTasks();
  const int rounds = Rounds(20, 100);
  for (int round = 0; round < rounds; ++round) {
    const auto ids = Add(5);
    proxy_.Arm(GetParam(), "SET state=2");
    auto claimed = tasks->Claim(Request(ids));
    ASSERT_FALSE(claimed);
    ASSERT_EQ(claimed.error().code, ErrorCode::Unknown) << claimed.error().message;
    auto adopted = tasks->Resolve(Request(ids));
    ASSERT_TRUE(adopted) << adopted.error().message;
    if (GetParam() == Evil::LoseReply) {
      ASSERT_EQ(adopted->size(), 5U);
      for (const Task& task : *adopted) ASSERT_EQ(task.attempt, 2U);
    } else {
      ASSERT_TRUE(adopted->empty());
      // A statement that was still under way finds nothing to claim.
      ASSERT_TRUE(Claim(*tasks, ids, 0).empty());
      *adopted = Claim(*tasks, ids, 1);
      ASSERT_EQ(adopted->size(), 5U);
    }
    auto settled = tasks->Settle("w.1", Succeeded(*adopted));
    ASSERT_TRUE(settled) << settled.error().message;
  }
  EXPECT_EQ(Count("tasks"), 0U);
  ReportRounds("a claim is lost on the way or in its reply", rounds);
}

// Whoever decides looks at the row again, and decides only where it has not ended.
TEST_P(LostMessages, CommitOfTheEndOfABatchAddsItsCallbackOnce) {
  auto batches = proxied_->OpenBatches();
  const int rounds = Rounds(10, 100);
  for (int round = 0; round < rounds; ++round) {
    const std::string name = "june-" + std::to_string(round);
    ASSERT_TRUE(batches->Make({.name = name, .home = {"main", "tasks"}, .made_by = "me"}));
    ASSERT_TRUE(batches->Close(name, ""));
    NewTask callback{.handler = "noop"};
    callback.biz_key = EndKey(name);
    const BatchEnd end{name, "tasks", {1, 0, 0}, {}, {callback}};
    proxy_.Arm(GetParam(), kCommit);
    const auto ended = batches->End(end);
    ASSERT_FALSE(ended);
    ASSERT_EQ(ended.error().code, ErrorCode::Unknown) << ended.error().message;
    auto closed = batches->List(BatchStore::Which::Closed, "", 10);
    for (int look = 0; !closed && look < 20; ++look)
      closed = batches->List(BatchStore::Which::Closed, "", 10);
    ASSERT_TRUE(closed) << closed.error().message;
    ASSERT_EQ(closed->size(), GetParam() == Evil::LoseRequest ? 1U : 0U);
    if (!closed->empty()) {
      const auto again = batches->End(end);
      ASSERT_TRUE(again) << again.error().message;
      ASSERT_TRUE(*again);
    }
    ASSERT_EQ(Count("tasks WHERE biz_key='" + EndKey(name) + "'"), 1U);
    ASSERT_EQ(batches->Find(name).value()->state, BatchState::Ended);
  }
  ReportRounds("the COMMIT of a batch's end is lost on the way or in its reply", rounds);
}

TEST_P(LostMessages, ReadOfClaimedRowsLeavesTheClaimUnknown) {
  auto tasks = proxied_->OpenTasks();
  const auto ids = Add(5);
  proxy_.Arm(GetParam(), "SELECT id,slice");
  auto claimed = tasks->Claim(Request(ids));
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ErrorCode::Unknown) << claimed.error().message;
  auto adopted = tasks->Resolve(Request(ids));
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(adopted->size(), 5U);
}

TEST_P(LostMessages, ResolveMayBeRepeatedWhenItIsLostItself) {
  auto tasks = proxied_->OpenTasks();
  const auto ids = Add(5);
  proxy_.Arm(Evil::LoseReply, "SET state=2");
  ASSERT_FALSE(tasks->Claim(Request(ids)));
  proxy_.Arm(GetParam(), "SET attempt=attempt+1, claimed_at");
  ASSERT_FALSE(tasks->Resolve(Request(ids)));
  auto adopted = tasks->Resolve(Request(ids));
  ASSERT_TRUE(adopted) << adopted.error().message;
  ASSERT_EQ(adopted->size(), 5U);
  auto settled = tasks->Settle("w.1", Succeeded(*adopted));
  ASSERT_TRUE(settled) << settled.error().message;
  for (const auto verdict : settled->verdicts) EXPECT_EQ(verdict, SettleVerdict::Settled);
}

TEST_P(LostMessages, StatementsWithinASettleChangeNothing) {
  auto tasks = proxied_->OpenTasks();
  const auto batch = Succeeded(Claim(*tasks, Add(5)));
  for (const char* text : {"INSERT INTO tasks_done", "DELETE tasks", "INSERT INTO millrace_counters"}) {
    proxy_.Arm(GetParam(), text);
    auto settled = tasks->Settle("w.1", batch);
    ASSERT_FALSE(settled);
    EXPECT_EQ(settled.error().code, ErrorCode::Unavailable) << settled.error().message;
    EXPECT_EQ(Count("tasks_done"), 0U);
  }
  // The server may still hold the locks of the connection that was cut.
  for (int look = 0; look < 20 && Count("tasks_done") == 0; ++look) (void)tasks->Settle("w.1", batch);
  EXPECT_EQ(Count("tasks_done"), 5U);
  ExpectNothingLostOrDoubled(5);
}

INSTANTIATE_TEST_SUITE_P(Proxy, LostMessages, testing::Values(Evil::LoseRequest, Evil::LoseReply),
                         [](const auto& info) {
                           return info.param == Evil::LoseRequest ? "LostRequest" : "LostReply";
                         });

}  // namespace
}  // namespace millrace::engine

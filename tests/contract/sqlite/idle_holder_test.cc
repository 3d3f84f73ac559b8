// A handler that idles within its open transaction holds up every other writer of the file, but only for its
// time limit: whoever waits ends it.
#include <atomic>
#include <thread>

#include "tests/contract/sqlite/sqlite_fixture.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

constexpr Micros kLimit = std::chrono::milliseconds(100);

class IdleHolder : public testing::Test, public StoreTest {
 protected:
  void SetUp() override {
    made_ = MakeSqliteFixture({.tables = 1, .slices = 4});
    Begin(*made_);
    ASSERT_TRUE(made_->NewClient()->Run("CREATE TABLE account (id INTEGER)"));
    task_ = ClaimOne(AddDue(1)[0]);
    holder_ = store().OpenTransaction(kLimit);
  }
  void TearDown() override {
    holder_.reset();
    EXPECT_EQ(made_->Ask("SELECT COUNT(*) FROM account").value_or("?"), "0");
  }
  // Returns how long the writer was held up.
  Micros WriteBeside() {
    const BootTime start = BootClock::now();
    auto renewed = incarnations().Renew("w.1");
    EXPECT_TRUE(renewed) << renewed.error().message;
    return BootClock::now() - start;
  }

  std::unique_ptr<SqlFixture> made_;
  Task task_;
  std::unique_ptr<TaskTransaction> holder_;
};

TEST_F(IdleHolder, IsEvictedByWhoeverWaits) {
  ASSERT_TRUE(holder_->Execute("INSERT INTO account VALUES (1)", {}));
  const Micros held_up = WriteBeside();  // on this very thread: the holder does nothing at all
  EXPECT_LT(held_up, std::chrono::seconds(2));
  EXPECT_EQ(holder_->state(), TransactionState::Poisoned);
  const auto next = holder_->Execute("INSERT INTO account VALUES (2)", {});
  ASSERT_FALSE(next);
  EXPECT_NE(next.error().message.find("open for longer than"), std::string::npos) << next.error().message;
  const Settlement end = End(task_, Settlement::To::Succeeded);
  EXPECT_EQ(holder_->Commit("w.1", std::span(&end, 1)).verdict, CommitVerdict::Broken);
  EXPECT_EQ(StateOf(task_.key.id), TaskState::Running) << "the attempt is the worker's to settle";
}

TEST_F(IdleHolder, FindsTheTransactionPoisonedAlsoAtItsCommit) {
  ASSERT_TRUE(holder_->Execute("INSERT INTO account VALUES (1)", {}));
  WriteBeside();
  const Settlement end = End(task_, Settlement::To::Succeeded);
  EXPECT_EQ(holder_->Commit("w.1", std::span(&end, 1)).verdict, CommitVerdict::Broken);
  ASSERT_TRUE(holder_->Execute("SELECT 1", {})) << "the next attempt begins anew";
  holder_->Rollback();
}

TEST_F(IdleHolder, InTheMiddleOfAStatementIsInterrupted) {
  std::atomic<bool> over{false};
  std::thread busy([&] {
    const auto endless = holder_->Execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT COUNT(*) FROM n", {});
    EXPECT_FALSE(endless);
    over.store(true);
  });
  while (!over.load()) EXPECT_LT(WriteBeside(), std::chrono::seconds(2));
  busy.join();
  EXPECT_LT(WriteBeside(), std::chrono::seconds(2)) << "the file is free before the handler rolls back";
}

TEST_F(IdleHolder, ManyWaitersEvictOnce) {
  ASSERT_TRUE(holder_->Execute("INSERT INTO account VALUES (1)", {}));
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&] {
      auto renewed = store().OpenIncarnations()->Renew("w.1");
      EXPECT_TRUE(renewed) << renewed.error().message;
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(holder_->state(), TransactionState::Poisoned);
}

}  // namespace
}  // namespace millrace::engine

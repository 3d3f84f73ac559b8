#include "coordinator/app/submit/submitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class ListedRows final : public InputRows {
 public:
  void Add(Result<NewTask> task) { rows_.push_back({rows_.size() + 1, std::move(task)}); }
  std::optional<InputRow> Next() override {
    return next_ == rows_.size() ? std::nullopt : std::optional(rows_[next_++]);
  }

 private:
  std::vector<InputRow> rows_;
  std::size_t next_ = 0;
};

NewTask AnyTask(const std::string& params = "{}", const std::string& key = "") {
  NewTask task;
  task.handler = "noop";
  task.params = params;
  task.biz_key = key;
  return task;
}

NewTask TaskOf(const std::string& batch, const std::string& key) {
  NewTask task = AnyTask("{}", key);
  task.batch = batch;
  return task;
}

// The rows of an input, and a store with one table.
class SubmitterTest : public testing::Test {
 protected:
  Status InBatches() { return SubmitBatches(*operations_, target_, rows_, totals_, calls_); }
  Status AtOnce() {
    auto transaction = store_.OpenTransaction(std::chrono::minutes(1));
    return SubmitAtOnce(*transaction, target_, rows_, totals_, calls_);
  }
  std::size_t TasksThere() { return operations_->List("tasks", {}, "", kMaxBatchRows)->records.size(); }
  // From now on what is announced of the batch is noted.
  void SubmitToBatch(const std::string& name) {
    target_.batch = name;
    calls_.announce = [this](std::int64_t rows) {
      announced_.push_back(rows);
      return Status();
    };
    calls_.announce_within = [this](TaskTransaction&, std::int64_t rows) { return calls_.announce(rows); };
  }

  ManualClock clock_;
  ScratchStore store_{clock_};
  std::unique_ptr<TaskOperations> operations_ = store_.OpenOperations();
  ListedRows rows_;
  SubmitTarget target_{"tasks", SliceRuns(4, 0, Random(1))};
  SubmitTotals totals_;
  int reports_ = 0;
  std::vector<std::int64_t> announced_;
  SubmitCalls calls_{.progress = [this](const SubmitTotals&) { ++reports_; }};
};

TEST_F(SubmitterTest, ManyRowsGoInByBatches) {
  for (std::size_t i = 0; i < kRowsOfTransaction + 1; ++i) rows_.Add(AnyTask());
  ASSERT_TRUE(InBatches());
  EXPECT_EQ(totals_.added, kRowsOfTransaction + 1);
  EXPECT_EQ(reports_, 2);
}

// Those that are rung for: of the tasks that are new.
TEST_F(SubmitterTest, TheSlicesOfWhatWasAddedAreKnown) {
  rows_.Add(AnyTask("{}", "k"));
  ASSERT_TRUE(AtOnce());
  const std::uint32_t slice = operations_->List("tasks", {}, "", 1)->records.at(0).task.slice;
  EXPECT_THAT(totals_.slices, testing::ElementsAre(slice));
  totals_ = {};
  for (int i = 0; i < 50; ++i) rows_.Add(AnyTask("{}", "k"));
  ASSERT_TRUE(InBatches());
  EXPECT_THAT(totals_.slices, testing::IsEmpty());
}

TEST_F(SubmitterTest, EverySliceGetsItsShareInRuns) {
  for (std::size_t i = 0; i < 2'000; ++i) rows_.Add(AnyTask());
  ASSERT_TRUE(InBatches());
  std::map<std::uint32_t, int> share;
  int changes = 0;
  std::uint32_t last = 4;
  std::string mark;
  do {
    const auto page = operations_->List("tasks", {}, mark, kMaxBatchRows);
    for (const TaskRecord& record : page->records) {
      changes += record.task.slice != last;
      last = record.task.slice;
      ++share[last];
    }
    mark = page->next;
  } while (!mark.empty());
  ASSERT_EQ(share.size(), 4u);
  for (const auto& [slice, rows] : share) EXPECT_GT(rows, 300) << slice;
  EXPECT_LT(changes, 250);
}

TEST_F(SubmitterTest, AllThatWereAddedAreKeptWhereTheyAreAskedForAndWhoHasTheOthersKeys) {
  totals_.keep_tasks = true;
  for (int i = 0; i < 20; ++i) rows_.Add(AnyTask("{}", "k" + std::to_string(i / 2)));
  ASSERT_TRUE(AtOnce());
  EXPECT_EQ(totals_.added, 10u);
  ASSERT_EQ(totals_.tasks.size(), 20u);
  EXPECT_EQ(totals_.tasks[0], totals_.tasks[1]);
  EXPECT_NE(totals_.tasks[1], totals_.tasks[2]);
}

TEST_F(SubmitterTest, ARowThatTheStoreRefusesIsFoundAndTheOthersGoIn) {
  for (int i = 1; i <= 10; ++i) rows_.Add(AnyTask(i == 7 ? "no JSON" : "{}"));
  rows_.Add(Fail(ErrorCode::Invalid, "no such column"));
  ASSERT_TRUE(InBatches());
  EXPECT_EQ(totals_.added, 9u);
  EXPECT_EQ(totals_.bad, 2u);
  EXPECT_THAT(totals_.problems, ElementsAre(Pair(11, "no such column"), Pair(7, HasSubstr("JSON"))));
  EXPECT_EQ(TasksThere(), 9u);
}

TEST_F(SubmitterTest, OfOneKeyOneTaskGoesInAndTheHolderIsNamed) {
  rows_.Add(AnyTask("{}", "k"));
  rows_.Add(AnyTask("{}", "k"));
  ASSERT_TRUE(InBatches());
  EXPECT_EQ(totals_.added, 1u);
  EXPECT_EQ(totals_.duplicates, 1u);
  EXPECT_THAT(totals_.holders, ElementsAre(HasSubstr("tasks/")));
}

TEST_F(SubmitterTest, AtOnceABadRowKeepsAllOut) {
  rows_.Add(AnyTask());
  rows_.Add(Fail(ErrorCode::Invalid, "no such column"));
  ASSERT_TRUE(AtOnce());
  EXPECT_EQ(totals_.added, 0u);
  EXPECT_EQ(totals_.bad, 1u);
  EXPECT_EQ(TasksThere(), 0u);
}

TEST_F(SubmitterTest, AtOnceWhatIsReadBehindABadRowHoldsUpNobody) {
  for (std::size_t i = 0; i < kRowsOfTransaction; ++i) rows_.Add(AnyTask());
  rows_.Add(Fail(ErrorCode::Invalid, "no such column"));
  rows_.Add(AnyTask());
  int looks = 0;
  bool others_write = false;
  calls_.stop = [&] {
    const NewTask other = AnyTask();
    if (++looks == 3) others_write = operations_->Submit("tasks", std::span(&other, 1)).has_value();
    return false;
  };
  ASSERT_TRUE(AtOnce());
  EXPECT_TRUE(others_write);
  EXPECT_EQ(totals_.added, 0u);
  EXPECT_EQ(TasksThere(), 1u);
}

TEST_F(SubmitterTest, AtOnceGoodRowsGoInTogether) {
  rows_.Add(AnyTask());
  rows_.Add(AnyTask());
  ASSERT_TRUE(AtOnce());
  EXPECT_EQ(totals_.added, 2u);
  EXPECT_THAT(totals_.problems, IsEmpty());
  EXPECT_EQ(TasksThere(), 2u);
}

TEST_F(SubmitterTest, WhereItIsStoppedTheBatchesBeforeAreInAndTheLineIsKnown) {
  for (std::size_t i = 0; i < 3 * kRowsOfTransaction; ++i) rows_.Add(AnyTask());
  calls_.stop = [this] { return reports_ == 2; };
  ASSERT_TRUE(InBatches());
  EXPECT_TRUE(totals_.stopped);
  EXPECT_EQ(totals_.added, 2 * kRowsOfTransaction);
  EXPECT_EQ(totals_.last_line, 2 * kRowsOfTransaction);
}

TEST_F(SubmitterTest, AtOnceAStopKeepsAllOut) {
  for (std::size_t i = 0; i < 2 * kRowsOfTransaction; ++i) rows_.Add(AnyTask());
  calls_.stop = [this] { return reports_ == 1; };
  ASSERT_TRUE(AtOnce());
  EXPECT_TRUE(totals_.stopped);
  EXPECT_EQ(totals_.added, 0u);
  EXPECT_EQ(TasksThere(), 0u);
}

// Of two files whose rows have the same numbers the second would be lost without a word.
TEST_F(SubmitterTest, AKeyThatStandsWithOtherParamsIsToldByItsLine) {
  rows_.Add(AnyTask(R"({"a":1,"b":2})", "k"));
  rows_.Add(AnyTask(R"({"b":2.0, "a":1})", "k"));  // says the same
  rows_.Add(AnyTask(R"({"a":1,"b":3})", "k"));
  ASSERT_TRUE(InBatches());
  rows_.Add(AnyTask(R"({"a":1})", "k"));
  rows_.Add(AnyTask(R"({"a":1,"b":2})", "k"));
  ASSERT_TRUE(InBatches());
  EXPECT_EQ(totals_.added, 1u);
  EXPECT_EQ(totals_.duplicates, 4u);
  EXPECT_EQ(totals_.differing, 2u);
  ASSERT_EQ(totals_.others.size(), 2u);
  EXPECT_EQ(totals_.others[0].line, 3u);
  EXPECT_EQ(totals_.others[0].key, "k");
  EXPECT_EQ(totals_.others[0].holder, "tasks/1");
  EXPECT_EQ(totals_.others[1].line, 4u);
}

// Its end would wait for what is another's, or come with nothing run.
TEST_F(SubmitterTest, OfTheRowsOfTwoBatchesThoseOfTheOneThatIsSubmittedToAreAnnounced) {
  SubmitToBatch("redo");
  rows_.Add(TaskOf("redo", "a"));
  rows_.Add(TaskOf("may", "b"));
  rows_.Add(TaskOf("may", "c"));
  ASSERT_TRUE(InBatches());
  EXPECT_THAT(announced_, ElementsAre(1));
  EXPECT_EQ(totals_.added, 3u);
  EXPECT_EQ(totals_.added_to_batch, 1u);
  // Of those that are there already only its own are taken back.
  rows_.Add(TaskOf("redo", "a"));
  rows_.Add(TaskOf("may", "b"));
  rows_.Add(TaskOf("redo", "d"));
  ASSERT_TRUE(InBatches());
  EXPECT_THAT(announced_, ElementsAre(1, 2, -1));
  EXPECT_EQ(totals_.added_to_batch, 2u);
}

TEST_F(SubmitterTest, RowsOfOtherBatchesAloneAnnounceNothing) {
  SubmitToBatch("redo");
  rows_.Add(TaskOf("may", "b"));
  ASSERT_TRUE(InBatches());
  EXPECT_THAT(announced_, IsEmpty());
  EXPECT_EQ(totals_.added, 1u);
  EXPECT_EQ(totals_.added_to_batch, 0u);
}

TEST_F(SubmitterTest, AtOnceTheRowsOfTheBatchThatIsSubmittedToAreAnnounced) {
  SubmitToBatch("redo");
  rows_.Add(TaskOf("may", "a"));
  rows_.Add(TaskOf("redo", "b"));
  rows_.Add(TaskOf("may", "c"));
  ASSERT_TRUE(AtOnce());
  EXPECT_THAT(announced_, ElementsAre(1));
  EXPECT_EQ(totals_.added, 3u);
}

TEST_F(SubmitterTest, AtOnceAKeyWithOtherParamsKeepsAllOut) {
  rows_.Add(AnyTask("{}", "k"));
  rows_.Add(AnyTask("{}", "k"));
  ASSERT_TRUE(AtOnce());
  EXPECT_EQ(totals_.added, 1u);
  rows_.Add(AnyTask("{}", "new"));
  rows_.Add(AnyTask(R"({"a":1})", "k"));
  ASSERT_TRUE(AtOnce());
  EXPECT_EQ(totals_.differing, 1u);
  EXPECT_EQ(TasksThere(), 1u);
}

}  // namespace
}  // namespace millrace::engine

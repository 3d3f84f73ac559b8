#include "coordinator/doctor/shard_look.h"

#include <gmock/gmock.h>

#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine::doctor {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

class SoundDiagnosis final : public StoreDiagnosis {
 public:
  explicit SoundDiagnosis(const Clock& clock) : clock_(clock) {}
  Result<StoreFacts> Examine(const DiagnosisOptions&) override { return StoreFacts{}; }
  Result<WallTime> Now() override { return clock_.WallNow(); }

 private:
  const Clock& clock_;
};

// One that was well when it was examined.
class SoundStore final : public Store {
 public:
  explicit SoundStore(const Clock& clock) : scratch_(clock), clock_(clock) {}
  std::string Describe() const override { return scratch_.Describe(); }
  Status Ping() override { return scratch_.Ping(); }
  std::unique_ptr<TaskStore> OpenTasks() override { return scratch_.OpenTasks(); }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override { return scratch_.OpenIncarnations(); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return scratch_.OpenTransaction(limit);
  }
  std::unique_ptr<TaskOperations> OpenOperations() override { return scratch_.OpenOperations(); }
  std::unique_ptr<SchemaStore> OpenSchema() override { return scratch_.OpenSchema(); }
  std::unique_ptr<PruneStore> OpenPruning() override { return scratch_.OpenPruning(); }
  std::unique_ptr<OverviewStore> OpenOverview() override { return scratch_.OpenOverview(); }
  std::unique_ptr<StoreDiagnosis> OpenDiagnosis() override {
    return std::make_unique<SoundDiagnosis>(clock_);
  }
  void Run(const std::string& script) { scratch_.Run(script); }

 private:
  ScratchStore scratch_;
  const Clock& clock_;
};

class ShardLookTest : public testing::Test {
 protected:
  ShardFacts Look() {
    ShardLook look(store_, clock_, {.shard = "main"});
    look.Begin({});
    return look.Finish();
  }
  ManualClock clock_;
  SoundStore store_{clock_};
};

TEST_F(ShardLookTest, WhatWaitsIsSeenAndNothingIsInDoubt) {
  store_.Run("INSERT INTO tasks (handler,params) VALUES ('noop','{}')");
  const ShardFacts facts = Look();
  EXPECT_FALSE(facts.away);
  EXPECT_THAT(facts.handlers, Contains("noop"));
  EXPECT_THAT(facts.store.unknown, IsEmpty());
}

TEST_F(ShardLookTest, TablesThatCannotBeReadAreSaid) {
  store_.Run("ALTER TABLE millrace_schema RENAME COLUMN slices TO parts");
  const ShardFacts facts = Look();
  EXPECT_THAT(facts.store.unknown, Contains(AllOf(Field(&UnknownFact::what, HasSubstr("the task tables")),
                                                  Field(&UnknownFact::why, HasSubstr("slices")))));
}

TEST_F(ShardLookTest, RowsThatCannotBeReadAreSaidOnce) {
  store_.Run(
      "INSERT INTO tasks (handler,params,slice) VALUES ('noop','{}',1),('noop','{}',2);"
      "ALTER TABLE tasks RENAME COLUMN state TO condition");
  const ShardFacts facts = Look();
  EXPECT_THAT(facts.handlers, Contains("noop"));
  ASSERT_EQ(facts.store.unknown.size(), 1u);
  EXPECT_EQ(facts.store.unknown[0].what, "orphans in tasks");
}

TEST_F(ShardLookTest, WhatWaitsInTheLastOfManyTablesIsSeen) {
  ASSERT_TRUE(store_.OpenSchema()->Apply({.tables = 33}));
  store_.Run("INSERT INTO tasks_032 (handler,params) VALUES ('noop','{}')");
  const ShardFacts facts = Look();
  EXPECT_THAT(facts.handlers, Contains("noop"));
  EXPECT_THAT(facts.store.unknown, IsEmpty());
}

TEST_F(ShardLookTest, ThatThereAreMoreGroupsThanItLooksIntoIsSaid) {
  store_.Run(
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<64) INSERT INTO tasks "
      "(handler,params,slice,priority) SELECT 'noop','{}',i%64,i/64 FROM n");
  const ShardFacts facts = Look();
  EXPECT_THAT(facts.store.unknown, Contains(AllOf(Field(&UnknownFact::what, HasSubstr("first 64 due groups")),
                                                  Field(&UnknownFact::why, HasSubstr("there are 65")))));
}

TEST_F(ShardLookTest, LivesThatWereNotSeenTwiceAreInDoubt) {
  Incarnation life{.id = "w1.a", .worker = "w1", .lease = std::chrono::seconds(10)};
  ASSERT_TRUE(store_.OpenIncarnations()->Register(life));
  store_.Run("ALTER TABLE millrace_beats RENAME TO away");
  ShardLook look(store_, clock_, {.shard = "main"});
  look.Begin({});
  store_.Run("ALTER TABLE away RENAME TO millrace_beats");
  const ShardFacts facts = look.Finish();
  ASSERT_EQ(facts.lives.size(), 1u);
  ASSERT_EQ(facts.store.unknown.size(), 1u);
  EXPECT_EQ(facts.store.unknown[0].what, "whether workers are alive");
}

TEST_F(ShardLookTest, AWorkerIsWatchedForAsLongAsItTakesToBeat) {
  Incarnation life{.id = "w1.a", .worker = "w1", .lease = std::chrono::seconds(30)};
  ASSERT_TRUE(store_.OpenIncarnations()->Register(life));
  ShardLook look(store_, clock_, {.shard = "main"});
  look.Begin({});
  EXPECT_EQ(look.Wait(), std::chrono::seconds(9));
  const ShardFacts facts = look.Finish();
  ASSERT_EQ(facts.lives.size(), 1u);
  EXPECT_FALSE(facts.lives[0].beats);
  EXPECT_THAT(facts.store.unknown, IsEmpty());
}

TEST_F(ShardLookTest, AWorkerThatWouldHaveToBeWatchedForTooLongIsNotCalledSilent) {
  Incarnation life{.id = "w1.a", .worker = "w1", .lease = std::chrono::minutes(10)};
  ASSERT_TRUE(store_.OpenIncarnations()->Register(life));
  ShardLook look(store_, clock_, {.shard = "main"});
  look.Begin({});
  EXPECT_LE(look.Wait(), std::chrono::seconds(10));
  const ShardFacts facts = look.Finish();
  ASSERT_EQ(facts.lives.size(), 1u);
  EXPECT_TRUE(facts.lives[0].beats);
  ASSERT_EQ(facts.store.unknown.size(), 1u);
  EXPECT_EQ(facts.store.unknown[0].what, "whether the worker w1 is alive");
}

}  // namespace
}  // namespace millrace::engine::doctor

#include "coordinator/upkeep/breaker_rows.h"

#include <gmock/gmock.h>

#include "framework/policy/pauses.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BreakerRowsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Rows() {
    std::vector<std::string> names;
    const auto pauses = store_->OpenOperations()->Pauses();
    EXPECT_TRUE(pauses);
    for (const PauseRecord& pause : *pauses)
      names.push_back(pause.what + " " + pause.actor + " " + pause.reason);
    return names;
  }

  ManualClock clock_;
  const std::shared_ptr<Store> store_ = std::make_shared<ScratchStore>(clock_);
};

TEST_F(BreakerRowsTest, WhatIsOpenStandsThereWithItsReasonUntilItIsClosed) {
  BreakerRows rows("main", store_);
  rows.Tell({"w1", {{"pay", "20 of 20 calls failed within 10s"}}});
  EXPECT_THAT(Rows(), ElementsAre("breaker:pay:tripped:w1 w1 20 of 20 calls failed within 10s"));
  rows.Tell({"w1", {}});
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(BreakerRowsTest, WhatAnEarlierLifeOfTheWorkerLeftGoesAndOthersStay) {
  BreakerRows("main", store_).Tell({"w1", {{"pay", "x"}}});
  BreakerRows("main", store_).Tell({"w2", {{"pay", "y"}}});
  ASSERT_TRUE(store_->OpenOperations()->SetPause("handler:pay", "ann", true, {}));
  BreakerRows("main", store_).Tell({"w1", {}});
  EXPECT_THAT(Rows(), ElementsAre("breaker:pay:tripped:w2 w2 y", "handler:pay ann "));
}

TEST_F(BreakerRowsTest, RowsOfWorkersThatLiveNoMoreAreRemoved) {
  const auto incarnations = store_->OpenIncarnations();
  ASSERT_TRUE(incarnations->Register(Incarnation{.id = "w1.a", .worker = "w1"}));
  BreakerRows own("main", store_);
  own.Tell({"w1", {{"pay", "x"}}});
  BreakerRows("main", store_).Tell({"w2", {{"pay", "y"}}});
  ASSERT_TRUE(store_->OpenOperations()->SetPause("handler:pay", "ann", true, {}));
  own.TidyUp();
  EXPECT_THAT(Rows(), ElementsAre("breaker:pay:tripped:w1 w1 x", "handler:pay ann "));
}

TEST_F(BreakerRowsTest, AWorkerWhoseRowsOthersHaveRemovedTellsThemAnew) {
  BreakerRows own("main", store_);
  own.Tell({"w1", {{"pay", "x"}}});
  BreakerRows("main", store_).TidyUp();
  ASSERT_THAT(Rows(), IsEmpty()) << "it was taken for dead";
  ASSERT_TRUE(store_->OpenIncarnations()->Register(Incarnation{.id = "w1.b", .worker = "w1"}));
  own.TidyUp();
  own.Tell({"w1", {{"pay", "x"}}});
  EXPECT_THAT(Rows(), ElementsAre("breaker:pay:tripped:w1 w1 x"));
}

}  // namespace
}  // namespace millrace::engine

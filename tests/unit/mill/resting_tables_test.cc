#include "framework/mill/resting_tables.h"

#include <gmock/gmock.h>

#include "tests/unit/mill/start_time.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr TableName kTable = "tasks";

TEST(RestingTablesTest, WhatIsRefusedInPassingIsNotToldAsLasting) {
  RestingTables tables;
  tables.Rest(kTable, kStart, seconds(1), "locked");
  for (int passed = 0; passed < 60; ++passed)
    EXPECT_THAT(tables.Lasting(kStart + seconds(passed)), IsEmpty()) << passed;
}

TEST(RestingTablesTest, WhatIsRefusedAgainAndAgainIsToldWithItsLastReason) {
  RestingTables tables;
  for (int passed = 0; passed <= 8; passed += 2)
    tables.Rest(kTable, kStart + seconds(passed), seconds(1), "locked");
  EXPECT_THAT(tables.Lasting(kStart + seconds(10)), IsEmpty());
  tables.Rest(kTable, kStart + seconds(10), seconds(1), "gone");
  EXPECT_THAT(tables.Lasting(kStart + seconds(10)), ElementsAre(Pair(kTable, "gone")));
}

TEST(RestingTablesTest, WhatIsRefusedNoMoreIsForgottenAndBeginsAnew) {
  RestingTables tables;
  for (int passed = 0; passed <= 20; passed += 5)
    tables.Rest(kTable, kStart + seconds(passed), seconds(1), "locked");
  EXPECT_THAT(tables.Lasting(kStart + seconds(25)), ElementsAre(Pair(kTable, "locked")));
  EXPECT_THAT(tables.Lasting(kStart + seconds(45)), IsEmpty());
  tables.Rest(kTable, kStart + seconds(50), seconds(1), "locked");
  EXPECT_THAT(tables.Lasting(kStart + seconds(52)), IsEmpty()) << "it is refused for two seconds";
}

}  // namespace
}  // namespace millrace::engine

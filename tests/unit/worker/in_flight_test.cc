#include "framework/worker/in_flight.h"

#include <gmock/gmock.h>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(InFlightTest, AnIdEntersOnceUntilItLeaves) {
  InFlight flights;
  const std::vector<std::uint64_t> ids{1, 2, 3};
  EXPECT_THAT(flights.Enter("tasks", ids), ElementsAre(1, 2, 3));
  EXPECT_THAT(flights.Enter("tasks", std::vector<std::uint64_t>{2, 4}), ElementsAre(4));
  flights.Leave(TaskKey{"tasks", 2});
  EXPECT_THAT(flights.Enter("tasks", std::vector<std::uint64_t>{2}), ElementsAre(2));
}

TEST(InFlightTest, WhatAClaimMissedLeavesAndWhatItGotStays) {
  InFlight flights;
  const ClaimRequest request{"tasks", "w.1", 0, {1, 2, 3}};
  flights.Enter("tasks", request.ids);
  Task claimed;
  claimed.key = {"tasks", 2};
  flights.LeaveMissed(request, std::span(&claimed, 1));
  EXPECT_TRUE(flights.Contains("tasks", 2));
  EXPECT_EQ(flights.Size(), 1u);
}

TEST(InFlightTest, TablesAreApart) {
  InFlight flights;
  const std::vector<std::uint64_t> ids{7};
  flights.Enter("tasks_000", ids);
  EXPECT_FALSE(flights.Contains("tasks_001", 7));
  EXPECT_THAT(flights.Enter("tasks_001", ids), ElementsAre(7));
  flights.Leave("tasks_000", ids);
  EXPECT_EQ(flights.Size(), 1u);
  EXPECT_THAT(flights.Flights(), IsEmpty());
}

}  // namespace
}  // namespace millrace

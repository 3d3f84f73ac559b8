#include "coordinator/testing/simulation.h"

#include <glog/logging.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

class SimulationTest : public testing::Test {
 protected:
  SimulationTest() { FLAGS_minloglevel = google::GLOG_FATAL; }  // the product's machines say what they do

  // The first of these seeds in which something is wrong.
  static SimulationReport FirstFound(PlantedBug bug, std::uint64_t seeds) {
    SimulationReport report;
    for (std::uint64_t seed = 1; seed <= seeds && report.violation.empty(); ++seed)
      report = Simulate({.seed = seed, .bug = bug});
    return report;
  }
};

TEST_F(SimulationTest, TheSameSeedGivesTheSameRun) {
  std::string first;
  std::string second;
  const auto keep = [](std::string& into) {
    return [&into](const std::string& line) { into += line + "\n"; };
  };
  const SimulationReport report = Simulate({.seed = 7, .trace = keep(first)});
  Simulate({.seed = 7, .trace = keep(second)});
  EXPECT_EQ(first, second);
  EXPECT_EQ(report.violation, "");
  EXPECT_GE(report.simulated, std::chrono::seconds(60));
  EXPECT_EQ(report.faults, 21u);
}

TEST_F(SimulationTest, AnotherSeedGivesAnotherRun) {
  EXPECT_NE(Simulate({.seed = 7}).steps, Simulate({.seed = 8}).steps);
}

TEST_F(SimulationTest, APlantedBugStopsItWhereItShows) {
  Micros shortest = std::chrono::hours(1);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SimulationReport report = Simulate({.seed = seed, .bug = PlantedBug::SnoozeCommits});
    if (report.violation.empty()) continue;
    EXPECT_NE(report.violation.find("took effect, and it did not succeed"), std::string::npos)
        << report.violation;
    shortest = std::min(shortest, report.simulated);
  }
  EXPECT_LT(shortest, std::chrono::seconds(60)) << "the shortest of whole ones";
}

// And not by something else that is found on the way.
TEST_F(SimulationTest, AKeyThatIsEnteredWithoutALockIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::KeyWithoutLock, 30);
  EXPECT_NE(report.violation.find("is told to be a duplicate"), std::string::npos) << report.violation;
}

// Where a worker happens to end first it leaves tasks running, which is found as well.
TEST_F(SimulationTest, ATaskThatRunsBesideItselfIsFoundForThat) {
  bool found = false;
  for (std::uint64_t seed = 1; seed <= 30 && !found; ++seed) {
    const SimulationReport report = Simulate({.seed = seed, .bug = PlantedBug::ForgetsInFlight});
    found = report.violation.find("beside attempt") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

TEST_F(SimulationTest, APermitThatIsFreeBeforeTheSettleIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::PermitBeforeSettle, 30);
  EXPECT_NE(report.violation.find("(not settled)"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, APermitThatTheDeadTakeIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::PermitWithoutDeadCheck, 80);
  EXPECT_NE(report.violation.find("which is marked dead"), std::string::npos) << report.violation;
  EXPECT_NE(report.violation.find("permit"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, ARateThatEachWorkerHasAsAWholeIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::LimitUndivided, 30);
  EXPECT_NE(report.violation.find("start within"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, ATaskThatIsGivenUpEarlyIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::GivesUpEarly, 30);
  EXPECT_NE(report.violation.find("was given up after"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, ALifeThatDiesOfAnOutageIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::WatchesThroughOutages, 30);
  EXPECT_NE(report.violation.find("within a lease after an outage"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, AStartUnderAPauseIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::PauseUnheeded, 30);
  EXPECT_NE(report.violation.find("has been paused for"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, ASliceThatADrainedWorkerGetsIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::DrainUnheeded, 30);
  EXPECT_NE(report.violation.find("which is being drained"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, ARateThatIsExceededByAThirdIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::RateExceeded, 30);
  EXPECT_NE(report.violation.find("start within"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, AStartOutsideItsHoursIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::HoursUnheeded, 30);
  EXPECT_NE(report.violation.find("outside its hours"), std::string::npos) << report.violation;
}

TEST_F(SimulationTest, ABreakerThatChargesFailuresIsFoundForThat) {
  const SimulationReport report = FirstFound(PlantedBug::BreakerCharges, 30);
  EXPECT_NE(report.violation.find("a failure is charged to task"), std::string::npos) << report.violation;
}

}  // namespace
}  // namespace millrace::engine

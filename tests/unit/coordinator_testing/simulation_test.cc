#include "coordinator/testing/simulation.h"

#include <glog/logging.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

class SimulationTest : public testing::Test {
 protected:
  SimulationTest() { FLAGS_minloglevel = google::GLOG_FATAL; }  // the product's machines say what they do
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

// That each planted bug is found, and for what it does, is shown by tests/simulation.
TEST_F(SimulationTest, APlantedBugStopsItWhereItShows) {
  Micros shortest = std::chrono::hours(1);
  for (std::uint64_t seed = 1; seed <= 20 && shortest >= std::chrono::seconds(60); ++seed) {
    const SimulationReport report = Simulate({.seed = seed, .bug = PlantedBug::SnoozeCommits});
    if (report.violation.empty()) continue;
    EXPECT_NE(report.violation.find("took effect, and it did not succeed"), std::string::npos)
        << report.violation;
    shortest = std::min(shortest, report.simulated);
  }
  EXPECT_LT(shortest, std::chrono::seconds(60)) << "the shortest of whole ones";
}

}  // namespace
}  // namespace millrace::engine

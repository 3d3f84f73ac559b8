// The simulator finds the bugs that are planted on purpose.
#include "coordinator/testing/planted_bugs.h"

#include <gtest/gtest.h>

#include "coordinator/testing/simulation.h"

namespace millrace {
namespace {

constexpr std::uint64_t kSeeds = 2000;

class PlantedBugsTest : public testing::TestWithParam<PlantedBugName> {};

TEST_P(PlantedBugsTest, IsFound) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SimulationReport report = Simulate({.seed = seed, .bug = GetParam().bug});
    if (report.violation.empty()) continue;
    RecordProperty("seed", std::to_string(seed));
    RecordProperty("violation", report.violation);
    return;
  }
  FAIL() << "not found in " << kSeeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBugsTest, testing::ValuesIn(kPlantedBugs), [](const auto& info) {
  std::string name(info.param.name);
  std::erase(name, '-');
  return name;
});

TEST(SimulationTest, TheSameSeedGivesTheSameRun) {
  const SimulationReport first = Simulate({.seed = 7});
  const SimulationReport second = Simulate({.seed = 7});
  EXPECT_EQ(first.steps, second.steps);
  EXPECT_EQ(first.violation, second.violation);
}

}  // namespace
}  // namespace millrace

// Plans of clusters that exist in a file alone.
#include <nlohmann/json.hpp>

#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using nlohmann::json;

json Cluster(int workers, int slices) {
  json cluster{{"workers", json::array()}, {"slices", json::array()}, {"current", json::object()}};
  for (int w = 0; w < workers; ++w) {
    cluster["workers"].push_back(
        {{"id", "w" + std::to_string(w)}, {"weight", 1}, {"handlers", nullptr}, {"slices", nullptr}});
  }
  for (int s = 0; s < slices; ++s) {
    cluster["slices"].push_back({{"id", "main/tasks/" + std::to_string(s)}, {"group", "default"}});
  }
  return cluster;
}

class ClusterPlanTest : public CommandTest {
 protected:
  json Simulate(const json& cluster) const {
    Write("cluster.json", cluster.dump());
    const ProcessResult result = Run("cluster plan --simulate cluster.json");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return json::parse(result.output);
  }
};

TEST_F(ClusterPlanTest, AnEleventhWorkerMoves93Of1024Slices) {
  json cluster = Cluster(11, 1024);
  json joiner = cluster["workers"].back();
  cluster["workers"].erase(10);
  const json first = Simulate(cluster);
  EXPECT_EQ(first["moves"], 1024);
  EXPECT_EQ(first["plan"].size(), 1024u);
  EXPECT_GE(first["solve_ms"], 0);
  cluster["current"] = first["plan"];
  EXPECT_EQ(Simulate(cluster)["moves"], 0);
  cluster["workers"].push_back(joiner);
  EXPECT_EQ(Simulate(cluster)["moves"], 93);
}

TEST_F(ClusterPlanTest, WhatNobodyAcceptsIsUnplaceableAndDone) {
  json cluster = Cluster(1, 2);
  cluster["workers"][0]["handlers"] = {"a", "b"};
  cluster["slices"][0]["group"] = "pair";
  cluster["slices"][1]["group"] = "c";
  cluster["groups"] = {{"pair", {"a", "b"}}};
  cluster["current"] = {{"main/tasks/0", "gone"}};
  const json answer = Simulate(cluster);
  EXPECT_EQ(answer["plan"], (json{{"main/tasks/0", "w0"}}));
  EXPECT_EQ(answer["unplaceable"], json{"main/tasks/1"});
  EXPECT_EQ(answer["moves"], 1);
}

TEST_F(ClusterPlanTest, ReadsStandardInput) {
  Write("cluster.json", Cluster(1, 1).dump());
  const ProcessResult result = Run("cluster plan --simulate - < cluster.json");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, ::testing::HasSubstr(R"("plan":{"main/tasks/0":"w0"})"));
}

TEST_F(ClusterPlanTest, AWrongFileIsRefusedWithItsLine) {
  Write("cluster.json", "{\"workers\":[],\n\"slices\":[{\"id\":\"s\"}]}");
  const ProcessResult result = Run("cluster plan --simulate cluster.json");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, ::testing::HasSubstr("cluster.json:2: slices.0.group: missing"));
}

}  // namespace
}  // namespace millrace::engine::testing

#include "coordinator/app/cluster/limit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;

std::vector<std::string> Shares(const std::map<std::string, std::string>& statuses) {
  ClusterSnapshot snapshot;
  for (const auto& [id, text] : statuses) snapshot.statuses[id] = ordered_json::parse(text);
  std::vector<std::string> shares;
  for (const LimitLine& line : LimitLines(snapshot))
    shares.push_back(line.type + " " + line.worker + " " + line.share);
  return shares;
}

TEST(LimitReportTest, SharesOfARateAreInItsUnit) {
  EXPECT_THAT(Shares({{"w1", R"({"limits": {"sms": {"share": {"rate": 3.625}}}})"},
                      {"w2", R"({"limits": {"sms": {"share": {"rate": 1.375}}}})"}}),
              ElementsAre("sms w1 3.63/s", "sms w2 1.38/s"));
}

TEST(LimitReportTest, WhatIsHeldByPermitsSaysSoAndWhoHasOne) {
  EXPECT_THAT(Shares({{"w1", R"({"limits": {"settlement": {"share": {"concurrency": 0}}},
                         "permits": {"settlement": {"of": 1, "held": 1, "waiting": 3}}})"},
                      {"w2", R"({"limits": {"settlement": {"share": {"rate": 10, "concurrency": 0}}},
                         "permits": {"settlement": {"of": 1, "held": 0, "waiting": 0}}})"},
                      {"w3", R"({"limits": {"settlement": {"share": {"concurrency": 0, "permits": 1}}}})"}}),
              ElementsAre("settlement w1 by permit, has 1", "settlement w2 10/s, by permit",
                          "settlement w3 by permit"));
}

TEST(LimitReportTest, AStatusOfAnyShapeIsRead) {
  EXPECT_THAT(Shares({{"w1", R"({"limits": {"sms": {"share": 5}}, "permits": []})"},
                      {"w2", R"({"limits": {"sms": {"share": {"rate": "x"}}}, "permits": {"sms": 1}})"},
                      {"w3", R"({"limits": 5})"},
                      {"w4", "{}"}}),
              ElementsAre("sms w1 nothing", "sms w2 nothing"));
}

}  // namespace
}  // namespace millrace::engine

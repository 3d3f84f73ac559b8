#include "coordinator/app/config/config_word.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using State = ConfigWord::State;

ConfigWord Of(const char* status) { return ReadConfigWord("w1", status, {"handlers", 7, 300}); }

TEST(ConfigWordTest, AWorkerFollowsTheVersionOrALaterOne) {
  EXPECT_EQ(Of(R"({"config":{"handlers":{"version":7}}})").state, State::InForce);
  EXPECT_EQ(Of(R"({"config":{"handlers":{"version":8}}})").state, State::InForce);
  EXPECT_EQ(Of(R"({"config":{"handlers":{"version":6}}})").state, State::Silent);
  EXPECT_EQ(Of(R"({"config":{"engine":{"version":7}}})").state, State::Silent);
  EXPECT_EQ(ReadConfigWord("w1", std::nullopt, {"handlers", 7}).state, State::Silent);
}

TEST(ConfigWordTest, ARefusalSaysWhy) {
  const ConfigWord word = Of(R"({"config":{"handlers":{"version":7,"refused":"handlers.b: no"}}})");
  EXPECT_EQ(word.state, State::Refused);
  EXPECT_EQ(word.why, "handlers.b: no");
  EXPECT_EQ(Of(R"({"config":{"handlers":{"version":6,"refused":"of the one before"}}})").state,
            State::Silent);
}

TEST(ConfigWordTest, WhatAHandlerRefusesOfAChangeIsRefused) {
  const char* told =
      R"({"config":{"handlers":{"version":7,"types":{"b":"no such program","old":"since long"}}}})";
  EXPECT_EQ(Of(told).state, State::InForce) << "none of it is changed now";
  const ConfigWord word = ReadConfigWord("w1", told, {"handlers", 7, 300, {"a", "b"}});
  EXPECT_EQ(word.state, State::Refused);
  EXPECT_EQ(word.why, "handlers.b: no such program");
  EXPECT_EQ(ReadConfigWord("w1", told, {"handlers", 8, 300, {"b"}}).state, State::Silent);
}

TEST(ConfigWordTest, VersionsOfTheNodeThatStoodThereBeforeSayNothing) {
  EXPECT_EQ(Of(R"({"config":{"handlers":{"version":7,"made":300}}})").state, State::InForce);
  EXPECT_EQ(Of(R"({"config":{"handlers":{"version":6,"made":300}}})").state, State::Silent);
  EXPECT_EQ(Of(R"({"config":{"handlers":{"version":99,"made":200}}})").state, State::Silent);
  EXPECT_EQ(Of(R"({"config":{"handlers":{"version":0,"made":400}}})").state, State::InForce) << "a later one";
  EXPECT_EQ(ReadConfigWord("w1", R"({"config":{"handlers":{"version":7,"made":5}}})", {"handlers", 7}).state,
            State::InForce);
}

TEST(ConfigWordTest, AStatusThatTellsNoVersionsIsHeldAgainstNobody) {
  for (const char* status : {"", "rubbish", "[1]", "{}", R"({"config":7})"}) {
    EXPECT_EQ(Of(status).state, State::Unknown) << status;
  }
}

TEST(ConfigWordTest, ALeaseThatHoldsLaterIsToldSo) {
  EXPECT_THAT(HoldsLater(Changes("engine", R"({"lease":"10s"})", R"({"lease":"20s","poll":"1s"})")),
              HasSubstr("engine.lease holds in each worker from its next registration"));
  EXPECT_THAT(HoldsLater(Changes("engine", R"({"lease":"10s"})", "{}")), HasSubstr("engine.lease"));
  EXPECT_EQ(HoldsLater(Changes("engine", "{}", R"({"poll":"1s"})")), "");
}

TEST(ConfigWordTest, WhoDoesNotFollowIsNamed) {
  const std::vector<ConfigWord> words{{"w1", State::Refused, "handlers.b: no"},
                                      {"w2", State::InForce},
                                      {"w3", State::Silent},
                                      {"w4", State::Unknown}};
  EXPECT_EQ(InForceText(words), "in force on 1 of 4 workers");
  EXPECT_THAT(Complaints(words),
              ElementsAre(HasSubstr("w1 refuses it: handlers.b: no"), HasSubstr("w3 has not answered"),
                          HasSubstr("w4 does not tell")));
  EXPECT_FALSE(AllFollow({words[0]}));
  EXPECT_FALSE(AllFollow({words[2]}));
  EXPECT_TRUE(AllFollow({words[1], words[3]}));
  EXPECT_TRUE(AllFollow({}));
  EXPECT_THAT(Complaints({words[1]}), IsEmpty());
  EXPECT_EQ(ToJson({words[0]}).dump(), R"([{"worker":"w1","state":"refused","why":"handlers.b: no"}])");
}

}  // namespace
}  // namespace millrace::engine

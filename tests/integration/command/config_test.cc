// A configuration file that is looked at without a cluster, and without work.
#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandTest, AWholeFileIsCheckedAsARunWouldAndNothingIsMade) {
  Write("good.json", R"({"handlers":{"call":{"uses":"exec","options":{"program":"/bin/true"}}}})");
  const ProcessResult good = Run("config validate --config good.json");
  EXPECT_EQ(good.exit_code, 0) << good.output;
  EXPECT_THAT(good.output, HasSubstr("it is good"));
  EXPECT_THAT(Run("config validate --config good.json --json").output, HasSubstr(R"({"valid":true})"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/millrace.db"));

  Write("keys.json", "{\"engine\": {\n\"bach\": 1},\n\"handlers\": {\"noop\": {\n\"timeout\": 5}}}\n");
  const ProcessResult keys = Run("config validate --config keys.json");
  EXPECT_EQ(keys.exit_code, 2) << keys.output;
  EXPECT_THAT(keys.output, AllOf(HasSubstr("keys.json:2: engine.bach: unknown key"),
                                 HasSubstr("keys.json:4: handlers.noop.timeout")));
}

TEST_F(CommandTest, EveryHandlerOfAFileThatCannotBeOpenedIsToldWithItsLine) {
  Write(
      "bad.json",
      "{\"handlers\": {\n\"call\": {\"uses\": \"exec\",\n\"options\": {\"programm\": \"x\"}},\n"
      "\"mute\": {\"uses\": \"noop\",\n\"secrets\": {\"a\": {\"variable\": \"MILLRACE_NO_SUCH_SECRET\"}}},\n"
      "\"other\": {\"uses\": \"nobody\"}}}\n");
  const ProcessResult bad = Run("config validate --config bad.json");
  EXPECT_EQ(bad.exit_code, 2) << bad.output;
  EXPECT_THAT(bad.output,
              AllOf(ContainsRegex("bad.json:3: .*'programm' is none of its options"),
                    HasSubstr("bad.json:5: handlers.mute.secrets.a: the environment variable"),
                    HasSubstr("bad.json:6: handlers.other.uses: no plugin here has a handler 'nobody'")));
}

TEST_F(CommandTest, WhatAFilePutsInForceIsShownWithoutACluster) {
  Write("ok.json", R"({"engine":{"poll":"50ms"},"handlers":{"noop":{"concurrency":7}}})");
  const ProcessResult all = Run("config get --effective --config ok.json");
  EXPECT_EQ(all.exit_code, 0) << all.output;
  EXPECT_THAT(all.output, AllOf(ContainsRegex("handlers.noop.concurrency +7 +ok.json"),
                                ContainsRegex("engine.poll +\"50ms\" +ok.json"),
                                ContainsRegex("engine.batch +999 +default")));
  const ProcessResult one = Run("config get --effective engine.poll --config ok.json --json");
  EXPECT_THAT(one.output, AllOf(HasSubstr(R"({"key":"engine.poll","value":"50ms","from":"ok.json"})"),
                                Not(HasSubstr("noop"))));
}

TEST_F(CommandTest, WithoutAFileOrAClusterItSaysWhatToGive) {
  EXPECT_THAT(Run("config validate").output, HasSubstr("a whole file with --config FILE"));
  EXPECT_THAT(Run("config validate handlers").output, HasSubstr("value is required"));
  EXPECT_THAT(Run("config get --effective").output, HasSubstr("no cluster is named"));
}

}  // namespace
}  // namespace millrace::engine::testing

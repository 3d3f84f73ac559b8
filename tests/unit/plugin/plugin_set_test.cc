#include "framework/plugin/plugin_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/plugins/recording_context.h"

namespace millrace::engine {
namespace {

using testing::HasSubstr;

class PluginSetTest : public testing::Test {
 protected:
  PluginSetTest() {
    std::string pattern = testing::TempDir() + "millrace-plugins-XXXXXX";
    state_ = ::mkdtemp(pattern.data());
    auto loaded = PluginSet::Load(std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/tests/plugins", state_);
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
    if (loaded) plugins_ = *std::move(loaded);
  }
  ~PluginSetTest() override { std::filesystem::remove_all(state_); }

  Outcome RunOne(const std::string& handler, const std::string& params) {
    const auto opened = plugins_->Open(handler, handler, "{}", {});
    EXPECT_TRUE(opened.has_value());
    const std::vector<Task> tasks = {SomeTask(handler, params)};
    return (*opened)->Run("main", PointersTo(tasks), context_).at(0);
  }

  std::string state_;
  std::unique_ptr<PluginSet> plugins_;
  RecordingContext context_;
};

TEST_F(PluginSetTest, ListsHandlersByName) {
  const auto handlers = plugins_->Handlers();
  ASSERT_GE(handlers.size(), 3U);
  EXPECT_EQ(handlers.front().name, "award_points");
  EXPECT_EQ(handlers.front().plugin, "award_points 1.0");
  EXPECT_EQ(handlers.front().max_batch, 250U);
  EXPECT_THAT(handlers.front().file, HasSubstr("/tests/plugins/award_points.so"));
}

TEST_F(PluginSetTest, TellsWhatAHandlerBrings) {
  for (const HandlerInfo& info : plugins_->Handlers()) {
    EXPECT_EQ(DefaultsText(info.defaults),
              info.name == "decide"
                  ? R"({"concurrency":2,"timeout":"5s","retry":{"delays":["1s","2m"],"max_failures":9}})"
                  : "{}");
    EXPECT_EQ(info.defaults.next_retry, info.name == "decide") << info.name;
  }
}

TEST_F(PluginSetTest, RunsAHandler) { EXPECT_EQ(RunOne("noop", "{}").kind, OutcomeKind::Done); }

TEST_F(PluginSetTest, AMisspeltHandlerIsNotFoundWithASuggestion) {
  const auto opened = plugins_->Open("award_pionts", "x", "{}", {});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::NotFound);
  EXPECT_THAT(opened.error().message, HasSubstr("did you mean 'award_points'?"));
}

TEST_F(PluginSetTest, AnEscapedExceptionIsAFailedAttemptWithItsMessage) {
  const Outcome outcome = RunOne("throw", R"({"what":"no such customer"})");
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.error_class, "exception");
  EXPECT_EQ(outcome.text, "no such customer");
  EXPECT_FALSE(outcome.at || outcome.delay);
  EXPECT_EQ(RunOne("throw", R"({"strange":true})").error_class, "exception");
}

TEST_F(PluginSetTest, WrongParametersFailAtOnceAndSayWhich) {
  const Outcome outcome = RunOne("commit_behind", "{}");
  EXPECT_EQ(outcome.kind, OutcomeKind::Fail);
  EXPECT_EQ(outcome.error_class, "bad_params");
  EXPECT_EQ(outcome.text, "'procedure' is missing");
}

TEST_F(PluginSetTest, RubbishOutcomesBecomeFailedAttempts) {
  for (const char* what : {"none", "kind", "null", "small", "time", "index"}) {
    const Outcome outcome = RunOne("rubbish", std::string(R"({"what":")") + what + "\"}");
    EXPECT_EQ(outcome.kind, OutcomeKind::Retry) << what;
    EXPECT_EQ(outcome.error_class, "bad_outcome") << what;
    EXPECT_THAT(outcome.text, HasSubstr("defect of the plugin")) << what;
  }
}

TEST_F(PluginSetTest, TextsOfAHandlerAreMadeStorable) {
  const Outcome binary = RunOne("rubbish", R"({"what":"binary"})");
  EXPECT_EQ(binary.kind, OutcomeKind::Done);
  EXPECT_EQ(binary.text, R"(a\x00b\xff\xed\xa0\x80)"
                         "\x1b[31m")
      << "what is shown is escaped there";
  EXPECT_EQ(RunOne("rubbish", R"({"what":"long"})").text, std::string(kMaxText, 'x'));
}

TEST_F(PluginSetTest, AnExceptionOfTheContextNeverCrosses) {
  context_.throws = true;
  const Outcome outcome = RunOne("sql", R"({"sql":["UPDATE t SET a=1"]})");
  EXPECT_EQ(outcome.error_class, "exception");
  EXPECT_EQ(outcome.text, "the context threw");
}

TEST_F(PluginSetTest, ASqlErrorReachesTheHandler) {
  context_.sql_answer = Fail(ErrorCode::Internal, "no such table: t");
  EXPECT_EQ(RunOne("sql", R"({"sql":["UPDATE t SET a=1"]})").text, "no such table: t");
  EXPECT_EQ(RunOne("swallow", R"({"sql":["UPDATE t SET a=1"]})").text, "swallowed: no such table: t");
}

TEST_F(PluginSetTest, SubmitHandsOverTheTask) {
  EXPECT_EQ(RunOne("submit", R"({"count":2,"handler":"noop","key":"k"})").text, "2 added");
  ASSERT_EQ(context_.submitted.size(), 2U);
  EXPECT_EQ(context_.submitted[1].biz_key, "k1");
  EXPECT_FALSE(context_.submitted[1].priority || context_.submitted[1].run_at || context_.submitted[1].delay);
}

TEST_F(PluginSetTest, ABadNewTaskIsRefusedBeforeTheContextSeesIt) {
  EXPECT_THAT(RunOne("submit", R"({"handler":"No Handler"})").error_class, "exception");
  EXPECT_TRUE(context_.submitted.empty());
}

}  // namespace
}  // namespace millrace::engine

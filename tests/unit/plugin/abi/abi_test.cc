// Each plugin, whatever version of the header it was built with, in this host. Built twice: for the host as
// it is, and for one whose structs have grown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "framework/plugin/plugin_set.h"
#include "tests/support/plugins/recording_context.h"

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AbiTest : public ::testing::TestWithParam<const char*> {
 protected:
  AbiTest() {
    std::string pattern = ::testing::TempDir() + "millrace-abi-XXXXXX";
    state_ = ::mkdtemp(pattern.data());
    auto loaded = PluginSet::Load(
        std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/tests/abi_plugins/" + GetParam(), state_);
    EXPECT_TRUE(loaded) << loaded.error().message;
    if (loaded) plugins_ = *std::move(loaded);
  }
  ~AbiTest() override { std::filesystem::remove_all(state_); }

  std::string state_;
  std::unique_ptr<PluginSet> plugins_;
  RecordingContext context_;
};

TEST_P(AbiTest, ItIsLoadedOpenedAndDoesAllThatAHandlerCan) {
  ASSERT_TRUE(plugins_);
  const auto handler = plugins_->Open("plain_c", "type", R"({"a":1})", {{"token", "t0ken"}});
  ASSERT_TRUE(handler) << handler.error().message;
  EXPECT_EQ((*handler)->MaxBatch(), 10U);
  context_.sql_answer = SqlResult{.columns = {"c"}, .rows = {{"abc"}}, .affected = 2};
  const std::vector<Task> tasks = {SomeTask("type", "{\"x\":1}", 1), SomeTask("type", "{\"x\":2}", 2),
                                   SomeTask("type", "{\"x\":3}", 3)};
  const std::vector<Outcome> outcomes = (*handler)->Run("main", PointersTo(tasks), context_);
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].kind, OutcomeKind::Done);
  EXPECT_EQ(outcomes[0].text, R"(0 type {"a":1} t0ken main/tasks/1 {"x":1} 1)");
  EXPECT_EQ(outcomes[1].kind, OutcomeKind::Retry);
  EXPECT_EQ(outcomes[1].text, R"(0 type {"a":1} t0ken main/tasks/2 {"x":2} 1)");
  EXPECT_EQ(outcomes[1].error_class, "odd");
  EXPECT_EQ(outcomes[1].delay, std::chrono::seconds(5));
  EXPECT_EQ(outcomes[2].text, R"(0 type {"a":1} t0ken main/tasks/3 {"x":3} 1)");
  EXPECT_THAT(context_.logged, ElementsAre("hello from C"));
  EXPECT_THAT(context_.saved, ElementsAre(std::pair<std::size_t, std::string>(0, "half")));
  ASSERT_EQ(context_.submitted.size(), 1U);
  EXPECT_EQ(context_.submitted[0].params, R"({"n":1})");
  EXPECT_EQ(context_.submitted[0].biz_key, "k");
}

TEST_P(AbiTest, ItsRefusalArrives) {
  ASSERT_TRUE(plugins_);
  EXPECT_THAT(plugins_->Open("plain_c", "type", "{}", {}).error().message, HasSubstr("it needs a token"));
}

// A SELECT gives one cell, every other statement two affected rows.
class AnsweringContext final : public RecordingContext {
 public:
  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override {
    (void)RecordingContext::Execute(sql, values);
    if (!sql.starts_with("SELECT")) return SqlResult{.affected = 2};
    return SqlResult{.columns = {"a"}, .rows = {{"3"}}};
  }
};

class WrittenFor0_1Test : public AbiTest {
 protected:
  std::vector<Outcome> Run(const std::string& handler, const std::vector<Task>& tasks) {
    const auto opened =
        plugins_->Open(handler, "type", R"({"names":["a","b"],"loud":true})", {{"token", "t0ken"}});
    EXPECT_TRUE(opened) << opened.error().message;
    return (*opened)->Run("main", PointersTo(tasks), answering_);
  }

  AnsweringContext answering_;
};

TEST_P(WrittenFor0_1Test, ItDoesAllThatItDid) {
  ASSERT_TRUE(plugins_);
  Task task = SomeTask("type", R"({"a":[1,2.5,null]})", 7);
  task.biz_key = "key";
  task.batch = "batch";
  task.progress = "so far";
  task.failures = 2;
  const Outcome outcome = Run("tour", {task}).at(0);
  EXPECT_EQ(
      outcome.text,
      R"(main/tasks/7 type key batch so far 125 {"a":[1,2.5,null]} t0ken tour! 12 part 2 some 3 added)");
  EXPECT_EQ(outcome.kind, OutcomeKind::Done);
  EXPECT_THAT(answering_.logged, ElementsAre("on tour", "careful", "well"));
  EXPECT_THAT(answering_.saved, ElementsAre(std::pair<std::size_t, std::string>(0, "half way")));
  EXPECT_THAT(answering_.bound.at(1), ElementsAre(SqlValue(std::int64_t{1}), SqlValue(2.5), SqlValue("three"),
                                                  SqlValue(std::monostate{})));
  ASSERT_EQ(answering_.submitted.size(), 1U);
  EXPECT_EQ(answering_.submitted[0].priority, 3U);
  EXPECT_EQ(answering_.submitted[0].batch, "b");
}

TEST_P(WrittenFor0_1Test, ItEndsAsItDid) {
  ASSERT_TRUE(plugins_);
  const auto end = [this](const std::string& how) {
    return Run("tour", {SomeTask("type", R"({"end":")" + how + "\"}")}).at(0);
  };
  EXPECT_EQ(end("retry").error_class, "asked");
  EXPECT_FALSE(end("retry").delay || end("retry").at) << "by the ladder";
  EXPECT_EQ(end("after").delay, std::chrono::seconds(3));
  EXPECT_EQ(end("at").at, WallTime(std::chrono::seconds(1'800'000'000)));
  EXPECT_EQ(end("fail").kind, OutcomeKind::Fail);
  EXPECT_EQ(end("snooze").delay, std::chrono::seconds(5));
  EXPECT_EQ(end("until").at, WallTime(std::chrono::seconds(1'800'000'000)));
  EXPECT_EQ(end("skip").kind, OutcomeKind::Skip);
  EXPECT_EQ(end("bad").error_class, "bad_params");
  EXPECT_EQ(end("throw").text, "it is odd");
  EXPECT_EQ(end("strange").error_class, "exception");
}

TEST_P(WrittenFor0_1Test, ItsBatchesAreWhatTheyWere) {
  ASSERT_TRUE(plugins_);
  const std::vector<Task> tasks = {SomeTask("type", "{}", 1), SomeTask("type", R"({"end":"skip"})", 2)};
  const auto outcomes = Run("together", tasks);
  EXPECT_EQ(outcomes.at(0).text, "done");
  EXPECT_EQ(outcomes.at(1).kind, OutcomeKind::Skip);
  const std::vector<Task> payments = {SomeTask("type", R"({"customer_id":1,"amount":2.99})", 1),
                                      SomeTask("type", R"({"amount":1})", 2)};
  const auto awarded = Run("award_points", payments);
  EXPECT_EQ(awarded.at(0).text, "2 points");
  EXPECT_EQ(awarded.at(1).error_class, "bad_params");
  EXPECT_THAT(answering_.executed.back(), HasSubstr("ON CONFLICT"));
}

TEST_P(WrittenFor0_1Test, ItBringsNothingInCode) {
  ASSERT_TRUE(plugins_);
  for (const HandlerInfo& info : plugins_->Handlers()) {
    EXPECT_EQ(DefaultsText(info.defaults), "{}") << info.name;
    EXPECT_FALSE(info.defaults.next_retry) << info.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ages, WrittenFor0_1Test, ::testing::Values("first", "today", "grown"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Ages, AbiTest, ::testing::Values("first", "today", "grown"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace millrace::engine

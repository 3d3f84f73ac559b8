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

INSTANTIATE_TEST_SUITE_P(Ages, AbiTest, ::testing::Values("first", "today", "grown"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace millrace::engine

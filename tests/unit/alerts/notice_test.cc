#include "coordinator/alerts/notice.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace millrace::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

AlertConfig TwoOfMailAndAHook() {
  AlertConfig alert;
  alert.mail = {"ops@example.com", "boss@example.com"};
  alert.webhook = "https://hooks.example.com/secret";
  return alert;
}

Notice Some() {
  Notice notice{.alert = "failed", .number = 7, .from = "the cluster default"};
  notice.fact = {true, 10'000, "10000 tasks have failed", {"noop: 10000"}};
  notice.examples = {"main/tasks/1 (noop): no such customer"};
  return notice;
}

TEST(NoticeTest, EachAddresseeHasATaskWithAKeyOfItsOwn) {
  const auto tasks = TasksOf(Some(), TwoOfMailAndAHook());
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0].handler, "millrace.webhook");
  EXPECT_EQ(tasks[0].biz_key, "alert/failed/0000000007/webhook");
  EXPECT_EQ(tasks[1].handler, "millrace.mail");
  EXPECT_EQ(tasks[1].biz_key, "alert/failed/0000000007/ops@example.com");
  for (const NewTask& task : tasks) {
    EXPECT_TRUE(Validate(task));
    EXPECT_EQ(NumberOfKey("failed", task.biz_key), 7u);
    EXPECT_TRUE(ParseNoticeParams(task.params)->firing);
  }
}

TEST(NoticeTest, AMessageSaysWhatTheAlertIsAbout) {
  AlertConfig alert = TwoOfMailAndAHook();
  alert.kind = AlertKind::OldestDue;
  alert.handler = "pay";
  for (const NewTask& task : TasksOf(Some(), alert)) {
    const auto params = ParseNoticeParams(task.params);
    ASSERT_TRUE(params);
    EXPECT_EQ(params->kind, "oldest_due");
    EXPECT_EQ(params->handler, "pay");
  }
  const auto older = ParseNoticeParams(R"({"kind":"oldest_due","state":"firing","count":1})");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->handler, "");
}

TEST(NoticeTest, AUrlStandsInNoTask) {
  for (const NewTask& task : TasksOf(Some(), TwoOfMailAndAHook())) {
    EXPECT_THAT(task.params, Not(HasSubstr("hooks.example.com")));
  }
}

TEST(NoticeTest, TheMessageHasTheCountAndExamples) {
  const auto tasks = TasksOf(Some(), TwoOfMailAndAHook());
  const auto mail = nlohmann::json::parse(tasks[1].params);
  EXPECT_EQ(mail["subject"], "[millrace] failed: 10000 tasks have failed");
  EXPECT_THAT(mail["body"].get<std::string>(), HasSubstr("noop: 10000"));
  EXPECT_THAT(mail["body"].get<std::string>(), HasSubstr("no such customer"));
  EXPECT_EQ(nlohmann::json::parse(tasks[0].params)["count"], 10'000);
  const auto params = ParseNoticeParams(tasks[0].params);
  ASSERT_TRUE(params);
  EXPECT_EQ(params->count, 10'000u);
}

TEST(NoticeTest, TheEndIsAMessageOfItsOwn) {
  Notice notice = Some();
  notice.firing = false;
  notice.fact = {false, 0, "0 tasks have failed"};
  const auto tasks = TasksOf(notice, TwoOfMailAndAHook());
  EXPECT_EQ(tasks[0].biz_key, "alert/failed/0000000007/webhook");
  EXPECT_EQ(nlohmann::json::parse(tasks[1].params)["subject"], "[millrace] failed is over");
  EXPECT_FALSE(ParseNoticeParams(tasks[0].params)->firing);
}

TEST(NoticeTest, ATestIsNoWordOfTheAlert) {
  Notice notice = Some();
  notice.test = true;
  for (const NewTask& task : TasksOf(notice, TwoOfMailAndAHook())) {
    EXPECT_FALSE(task.biz_key.starts_with(KeysOf("failed")));
    EXPECT_FALSE(NumberOfKey("failed", task.biz_key));
  }
}

TEST(NoticeTest, LineEndsOfNamesAndErrorsMakeNoLines) {
  Notice notice = Some();
  notice.fact.what = "x\r\nBcc: eve@example.com";
  notice.examples = {"a\r\n\r\nb\x1b[31m", std::string(100'000, 'y')};
  for (const NewTask& task : TasksOf(notice, TwoOfMailAndAHook())) {
    EXPECT_LT(task.params.size(), 10'000u);
    const auto params = nlohmann::json::parse(task.params);
    EXPECT_THAT(params["text"].get<std::string>(), Not(HasSubstr("\n")));
    EXPECT_THAT(params["examples"][0].get<std::string>(),
                Not(testing::AnyOf(HasSubstr("\r"), HasSubstr("\n"), HasSubstr("\x1b"))));
    if (task.handler != kMailType) continue;
    EXPECT_THAT(params["subject"].get<std::string>(), Not(testing::AnyOf(HasSubstr("\r"), HasSubstr("\n"))));
    EXPECT_THAT(params["body"].get<std::string>(), Not(HasSubstr("\r")));
    EXPECT_THAT(params["body"].get<std::string>(), Not(HasSubstr("\nBcc:")));
  }
}

TEST(NoticeTest, KeysOfTheLongestNamesAndAddressesFit) {
  Notice notice = Some();
  notice.alert = std::string(40, 'a');
  notice.test = true;
  AlertConfig alert;
  alert.mail = {std::string(88, 'm') + "@example.com"};
  EXPECT_TRUE(Validate(TasksOf(notice, alert).at(0)));
}

TEST(NoticeTest, OtherKeysAreNoWordsOfTheAlert) {
  for (const char* key : {"alert/failed", "alert/failed/", "alert/failed/x/a", "alert/failed/1",
                          "alert/failed/1/", "alert/other/0000000001/a", "", "alert/failed/0/a"}) {
    EXPECT_FALSE(NumberOfKey("failed", key)) << key;
  }
}

}  // namespace
}  // namespace millrace::engine

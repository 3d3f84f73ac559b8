#include "framework/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Each key of the parts that have any.
// All but `bands`, which go with no `scan`.
constexpr const char* kEveryKey = R"(
    "engine": {"lease": "20s", "poll": "50ms", "rewind": "5s", "batch": 100, "stop_timeout": "1m",
               "max_lost_threads": 2, "on_zookeeper_loss": "stop", "http": ":9470", "aging": "5m",
               "scanners": {"by": "table", "most": 8}, "queues": {"by": "shard", "take": "random", "most": 2},
               "brake": {"latency": "50ms"}},
    "handlers": {"mail.monthly": {"concurrency": 8, "queue": 16, "timeout": "30s",
        "scan": {"every": "5m", "max_rows": 1000, "scope": "key"},
        "retry": {"delays": ["1m", "5m", "1h30m"], "max_failures": 7, "jitter": 0.25,
                  "classes": {"timeout": {"delays": ["5s"]}, "http_4*": "fail"}}, "keep": "30d",
        "limit": {"rate": "30/m", "burst": 10, "concurrency": 1}, "when_full": "caller", "weight": 3,
        "breaker": {"failures": 0.25, "window": "1m", "minimum": 5, "probe_every": "5s", "probes": 2,
                    "classes": ["timeout", "http_5*"]}, "queue_bytes": 65536,
        "hours": {"from": "22:30", "to": "06:00", "zone": "Europe/Berlin"},
        "threads": {"min": 2, "keep_alive": "1m"},
        "expires_in": "2h", "held_for": "7d", "export": "/var/lib/millrace/export",
        "group": "mail", "on_exception": "fail", "uses": "send_mail", "options": {"smtp": "localhost:25"},
        "secrets": {"password": {"file": "/etc/p"}, "token": {"variable": "TOKEN"}}, "batch": 10}},
    "shards": {"main": {"url": "mysql://u@h/d", "password_file": "/etc/q", "tables": ["tasks"], "slices": 64, "max_transactions": 40,
    "doorbell": {"account": "bell", "password_file": "/etc/b"}}, "east": {"url": "mysql://u@h/e", "doorbell": {}}},
    "alerts": {"late": {"kind": "oldest_due", "mail": ["ops@example.com"], "webhook": "https://h/x", "every": "5m",
        "handler": "noop", "longer_than": "1h"}, "failed": {"kind": "failed", "webhook": "http://h/y", "more_than": 9,
        "every": "10m", "handler": "*"}},
    "schedules": {"nightly": {"cron": "0 2 * * *", "zone": "Europe/Berlin", "handler": "noop", "params": {"a": 1},
        "initial_delay": "1m", "catch_up": "all", "overlap": "skip", "paused": true, "shard": "east", "table": "tasks"},
        "bills": {"every": "1d", "handler": "noop", "from_query": "SELECT id FROM c", "key": "{id}-{month}",
        "zone": "Europe/Berlin", "initial_delay": "0s", "catch_up": "one", "overlap": "allow", "paused": false},
        "once": {"at": "2026-12-01T02:00:00Z", "handler": "noop", "params": {}, "catch_up": "none", "paused": false},
        "rest": {"after": "5m", "handler": "noop", "params": {}, "initial_delay": "1s", "paused": false}})";

constexpr std::string_view kScan = R"("scan": {"every": "5m", "max_rows": 1000, "scope": "key"})";
constexpr std::string_view kBands =
    R"("bands": [{"priority": "5-9", "failures": "1-5", "every": "30s", "most": 1000},
                 {"priority": "3", "failures": "0-9", "every": "1m"}])";

std::string Refusal(std::string_view text) {
  const auto config = ParseConfig(text, "m.json");
  if (config) return "accepted";
  EXPECT_EQ(config.error().code, ErrorCode::Invalid);
  return config.error().message;
}

TEST(ConfigTest, AnEmptyObjectGivesTheDefaults) {
  const auto config = ParseConfig("{}", "m.json");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine.lease, Micros(10s));
  EXPECT_EQ(config->HandlerFor("anything").concurrency, 4u);
  EXPECT_TRUE(config->shards.empty());
}

TEST(ConfigTest, ReadsEveryKey) {
  const auto config = ParseConfig("{" + std::string(kEveryKey) + "}", "m.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->engine.poll, Micros(50ms));
  EXPECT_EQ(config->engine.batch, 100u);
  EXPECT_EQ(config->engine.on_zookeeper_loss, OnZooKeeperLoss::Stop);
  EXPECT_EQ(config->engine.http, ":9470");
  const HandlerConfig& mail = config->HandlerFor("mail.monthly");
  EXPECT_THAT(mail.retry.delays, ElementsAre(Micros(1min), Micros(5min), Micros(90min)));
  EXPECT_EQ(mail.retry.max_failures, 7u);
  EXPECT_DOUBLE_EQ(mail.retry.jitter, 0.25);
  EXPECT_EQ(mail.keep, Micros(std::chrono::hours(24 * 30)));
  EXPECT_EQ(mail.queue, 16u);
  EXPECT_EQ(mail.scan, (ScanConfig{.every = 5min, .max_rows = 1000, .scope = ScanScope::Key}));
  EXPECT_EQ(mail.on_exception, OnException::Fail);
  EXPECT_EQ(mail.uses, "send_mail");
  EXPECT_EQ(mail.options, R"({"smtp":"localhost:25"})");
  EXPECT_EQ(mail.secrets.at("password").file, "/etc/p");
  EXPECT_EQ(mail.secrets.at("token").variable, "TOKEN");
  EXPECT_THAT(config->shards.at("main").tables, ElementsAre(TableName("tasks")));
  EXPECT_EQ(config->shards.at("main").slices, 64u);
  EXPECT_EQ(config->shards.at("main").max_transactions, 40u);
  EXPECT_EQ(config->shards.at("main").doorbell, (DoorbellConfig{"bell", "/etc/b"}));
  EXPECT_EQ(config->shards.at("east").doorbell, DoorbellConfig{});
  const AlertConfig& late = config->alerts.at("late");
  EXPECT_EQ(late.kind, AlertKind::OldestDue);
  EXPECT_THAT(late.mail, ElementsAre("ops@example.com"));
  EXPECT_EQ(late.webhook, "https://h/x");
  EXPECT_EQ(late.every, Micros(5min));
  EXPECT_EQ(late.handler, "noop");
  EXPECT_EQ(late.longer_than, Micros(1h));
  EXPECT_EQ(config->alerts.at("failed").more_than, 9u);
}

TEST(ConfigTest, WhatAHandlerBringsHoldsForTheKeysThatAreNotNamed) {
  const CodeDefaults code{
      .concurrency = 2, .timeout = Micros(5s), .delays = {Micros(1s), Micros(2s)}, .max_failures = 9};
  EXPECT_EQ(DefaultsText(code),
            R"({"concurrency":2,"timeout":"5s","retry":{"delays":["1s","2s"],"max_failures":9}})");
  EXPECT_EQ(DefaultsText({}), "{}");
  const auto config = ParseConfig(
      R"({"handlers":{"a":{"timeout":"1m","retry":{"max_failures":4}},"b":{"concurrency":4,"retry":{"delays":["1m"]}}}})",
      "m.json");
  const HandlerConfig a = Over(code, config->HandlerFor("a"));
  EXPECT_EQ(a.timeout, Micros(1min)) << "it is named, though it is as built in";
  EXPECT_EQ(a.retry.max_failures, 4u);
  EXPECT_THAT(a.retry.delays, ElementsAre(Micros(1s), Micros(2s)));
  EXPECT_EQ(a.concurrency, 2u);
  const HandlerConfig b = Over(code, config->HandlerFor("b"));
  EXPECT_EQ(b.timeout, Micros(5s));
  EXPECT_EQ(b.retry.max_failures, 9u);
  EXPECT_THAT(b.retry.delays, ElementsAre(Micros(1min)));
  EXPECT_EQ(b.concurrency, 4u);
  EXPECT_EQ(Over({}, config->HandlerFor("b")).timeout, HandlerConfig{}.timeout);
}

TEST(ConfigTest, WhatItListsReadsBackAsTheSame) {
  std::string text = "{" + std::string(kEveryKey) + "}";
  for (const bool bands : {false, true}) {
    if (bands) text.replace(text.find(kScan), kScan.size(), kBands);
    const auto config = ParseConfig(text, "m.json");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(nlohmann::json::parse(ConfigText(*config)), nlohmann::json::parse(text));
  }
}

TEST(ConfigTest, ListsTheDefaultsOfWhatIsNotSetAndNothingForWhatHasNone) {
  const auto listed =
      nlohmann::json::parse(ConfigText(*ParseConfig(R"({"handlers": {"noop": {}}})", "m.json")));
  EXPECT_EQ(listed["engine"]["lease"], "10s");
  const nlohmann::json& noop = listed["handlers"]["noop"];
  EXPECT_EQ(noop["concurrency"], 4);
  EXPECT_EQ(noop["retry"]["delays"], (std::vector<std::string>{"1m", "5m", "20m"}));
  EXPECT_EQ(noop["on_exception"], "retry");
  EXPECT_FALSE(noop.contains("queue"));  // about half a second of work
  EXPECT_THAT(HandlerKeyNames(), testing::IsSupersetOf({"queue", "retry", "secrets", "batch"}));
}

TEST(ConfigTest, CommentsAreAllowed) {
  EXPECT_TRUE(ParseConfig("// a word\n{ // here\n \"engine\": {} // there\n}\n// end", "m.json"));
}

TEST(ConfigTest, EveryProblemIsReportedAtOnceByItsLine) {
  const std::string refusal = Refusal(
      "{\n \"engine\": {\n  \"batch\": \"many\",\n  \"lease\": \"soon\"},\n"
      " \"handlers\": {\"noop\": {\"retry\": {\n    \"jitter\": 1.5}}}\n}");
  EXPECT_EQ(refusal,
            "m.json:3: engine.batch: this must be a whole number from 1 to 999, not \"many\"\n"
            "m.json:4: engine.lease: \"soon\" is not a duration; write it as \"200ms\", \"5m\", \"1h30m\" or "
            "\"7d\"\n"
            "m.json:6: handlers.noop.retry.jitter: 1.5 is out of range: write a number from 0.0 to 1.0");
}

TEST(ConfigTest, AnUnknownKeyIsNamedWithTheNearestKnownOne) {
  EXPECT_EQ(Refusal("{\"handlers\": {\n\"noop\": {\n\"concurency\": 8}}}"),
            "m.json:3: handlers.noop.concurency: unknown key (did you mean 'concurrency'?)");
  EXPECT_THAT(Refusal("{\"zzzzzzzzz\": 1}"),
              HasSubstr("unknown key; the keys here are engine, handlers, shards, schedules, alerts"));
}

TEST(ConfigTest, WrongTypesAndRangesSayWhatToWrite) {
  EXPECT_THAT(Refusal(R"({"engine": []})"), HasSubstr("engine: this must be an object"));
  EXPECT_THAT(Refusal(R"([])"), HasSubstr("m.json:1: this must be an object"));
  EXPECT_THAT(Refusal(R"({"engine": {"batch": 1000}})"), HasSubstr("1000 is out of range"));
  EXPECT_THAT(Refusal(R"({"engine": {"batch": -1}})"), HasSubstr("-1 is out of range"));
  EXPECT_THAT(Refusal(R"({"engine": {"batch": 1.5}})"), HasSubstr("not 1.5"));
  EXPECT_THAT(Refusal(R"({"engine": {"poll": 200}})"), HasSubstr("duration in quotes with its unit"));
  EXPECT_THAT(Refusal(R"({"engine": {"poll": "0s"}})"), HasSubstr("from 1ms to 1m"));
  EXPECT_THAT(Refusal(R"({"handlers": {"a": {"retry": {"delays": []}}}})"), HasSubstr("the list is empty"));
  EXPECT_THAT(Refusal(R"({"handlers": {"a": {"retry": {"delays": ["1m", 5]}}}})"),
              HasSubstr("handlers.a.retry.delays.1: "));
  EXPECT_THAT(Refusal(R"({"handlers": {"a": {"on_exception": "ignore"}}})"),
              HasSubstr("write \"retry\" or \"fail\" or \"hold\""));
  EXPECT_THAT(Refusal(R"({"handlers": {"A": {}}})"), HasSubstr("not a handler name"));
  EXPECT_THAT(Refusal(R"({"handlers": {"a": {"secrets": {"p": {}}}}})"),
              HasSubstr("either \"file\" or \"variable\""));
}

TEST(ConfigTest, AScanInRoundsHasOneRhythm) {
  const auto scan = [](const std::string& text) { return R"({"handlers": {"a": {"scan": )" + text + "}}}"; };
  const auto config = ParseConfig(scan(R"({"after": "5m"})"), "m.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->Scans(), (ScanRules{{"a", {.after = 5min}}}));
  EXPECT_TRUE(ParseConfig(R"({"handlers": {"a": {}}})", "m.json")->Scans().empty());
  EXPECT_THAT(Refusal(scan("{}")), HasSubstr("handlers.a.scan: no round ever begins: write \"every\""));
  EXPECT_THAT(Refusal(scan(R"({"every": "5m", "after": "5m"})")),
              HasSubstr("handlers.a.scan: it has \"every\" and \"after\": leave one"));
  EXPECT_THAT(Refusal(scan(R"({"every": "100ms"})")), HasSubstr("handlers.a.scan.every"));
  EXPECT_THAT(Refusal(scan(R"({"every": "1h", "max_rows": 0})")),
              HasSubstr("handlers.a.scan.max_rows: 0 is"));
  EXPECT_THAT(Refusal(scan(R"({"every": "1h", "scope": "all"})")), HasSubstr("\"created\" or \"key\""));
  EXPECT_THAT(Refusal(scan(R"({"every": "1h", "max": 5})")), HasSubstr("scan.max: unknown key"));
  EXPECT_THAT(Refusal(scan(R"("5m")")), HasSubstr("handlers.a.scan: this must be an object"));
}

TEST(ConfigTest, ShardsAreChecked) {
  EXPECT_THAT(Refusal(R"({"shards": {"main": {}}})"), HasSubstr("shards.main: the shard has no url"));
  EXPECT_THAT(Refusal(R"({"shards": {"main": {"url": "postgres://x"}}})"),
              HasSubstr("'postgres' is not a kind"));
  EXPECT_THAT(
      Refusal(R"({"shards": {"main": {"url": "mysql://u@h/d", "doorbell": {"password_file": "/f"}}}})"),
      HasSubstr("shards.main.doorbell: there is a password_file and no account"));
  EXPECT_THAT(Refusal(R"({"shards": {"main": {"url": "sqlite:a", "doorbell": {}}}})"),
              HasSubstr("shards.main.doorbell: a SQLite file is watched anyway"));
  EXPECT_THAT(Refusal(R"({"shards": {"main": {"url": "mysql://u@h/d", "doorbell": true}}})"),
              HasSubstr("shards.main.doorbell"));
  const std::string refusal = Refusal(R"({"shards": {"main": {"url": "mysql://u:hunter2@h/d"}}})");
  EXPECT_THAT(refusal, HasSubstr("a password does not belong into a store URL"));
  EXPECT_THAT(refusal, Not(HasSubstr("hunter2")));
  EXPECT_THAT(Refusal(R"({"shards": {"main": {"url": "sqlite:a", "tables": ["a;b"]}}})"),
              HasSubstr("shards.main.tables.0: this is not a table name"));
}

TEST(ConfigTest, SchedulesAreReadWithTheOtherParts) {
  const auto config =
      ParseConfig(R"({"schedules": {"nightly": {"cron": "0 2 * * *", "handler": "noop"}}})", "m.json");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->schedules.at("nightly").handler, "noop");
  EXPECT_THAT(Refusal(R"({"schedules": {"nightly": {}}})"), HasSubstr("m.json:1: schedules.nightly: "));
}

TEST(ConfigTest, AlertsHaveTheKeysOfTheirKind) {
  const auto config = ParseConfig(
      R"({"alerts": {"failed": {"kind": "failed", "handler": "noop", "more_than": 3, "mail": ["ops@example.com"],
          "webhook": "https://example.com/hook", "every": "5m"},
          "late": {"kind": "oldest_due", "longer_than": "2m", "mail": ["ops@example.com"]}}})",
      "m.json");
  ASSERT_TRUE(config) << config.error().message;
  const AlertConfig& failed = config->alerts.at("failed");
  EXPECT_EQ(failed.kind, AlertKind::Failed);
  EXPECT_EQ(failed.handler, "noop");
  EXPECT_EQ(failed.more_than, 3u);
  EXPECT_THAT(failed.mail, ElementsAre("ops@example.com"));
  EXPECT_EQ(failed.every, Micros(5min));
  EXPECT_EQ(config->alerts.at("late").longer_than, Micros(2min));
  const auto again = ParseConfig(ConfigText(*config), "again.json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->alerts, config->alerts);
}

TEST(ConfigTest, AnAlertAboutCrashesMayBeAboutOneType) {
  const auto config = ParseConfig(
      R"({"alerts": {"a": {"kind": "crashes", "handler": "mailer", "mail": ["ops@example.com"]}}})",
      "m.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->alerts.at("a").handler, "mailer");
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"kind": "worker_lost", "mail": ["o@e"], "handler": "x"}}})"),
              HasSubstr("alerts.a.handler: unknown key"));
}

TEST(ConfigTest, BadAlertsAreRefusedByTheirKeys) {
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"mail": ["o@e"]}}})"),
              HasSubstr("alerts.a: the alert has no kind"));
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"kind": "failed"}}})"), HasSubstr("nobody would hear of it"));
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"kind": "faild", "mail": ["o@e"]}}})"),
              HasSubstr("alerts.a.kind: \"faild\" is not known: write \"failed\" or"));
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"kind": "failed", "mail": ["o@e"], "more_then": 1}}})"),
              HasSubstr("alerts.a.more_then: unknown key (did you mean 'more_than'?)"));
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"kind": "unowned", "mail": ["o@e"], "more_than": 1}}})"),
              HasSubstr("alerts.a.more_than: unknown key"));
  for (const char* kind : {"refused", "crashes", "worker_lost"}) {
    EXPECT_THAT(Refusal(R"({"alerts": {"a": {"mail": ["o@e"], "more_than": 2001, "kind": ")" +
                        std::string(kind) + "\"}}}"),
                HasSubstr("alerts.a.more_than: 2001 is out of range: write a whole number from 0 to 2000"));
  }
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"kind": "failed", "mail": ["o@e\r\nBcc: x@y"]}}})"),
              HasSubstr("alerts.a.mail.0: this is not a mail address"));
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"kind": "failed", "mail": "o@e"}}})"),
              HasSubstr("a list of texts"));
  EXPECT_THAT(Refusal(R"({"alerts": {"a": {"kind": "failed", "webhook": "file:///etc/passwd"}}})"),
              HasSubstr("alerts.a.webhook: this is not an address of the web"));
  EXPECT_THAT(Refusal(R"({"alerts": {"A/b": {"kind": "failed", "mail": ["o@e"]}}})"),
              HasSubstr("an alert's name"));
  EXPECT_THAT(Refusal(R"({"handlers": {"millrace.mail": {}}})"), HasSubstr("are the program's own"));
}

TEST(ConfigTest, TheTypesThatCarryAlertsTakeTheirAddressesFromThemAndTheRestFromTheTypesOfPeople) {
  const auto config = ParseConfig(
      R"({"handlers": {"send_mail": {"options": {"server": "mx:25", "from": "m@e", "subject": "s", "body": "b"},
          "secrets": {"password": {"file": "/etc/p"}}},
          "http_call": {"options": {"url": "https://e/y", "ca_file": "/etc/ca", "headers": {"X": "y"}}}},
          "alerts": {"a": {"kind": "failed", "mail": ["o@e"], "webhook": "https://e/x"}}})",
      "m.json");
  ASSERT_TRUE(config) << config.error().message;
  const auto mail = nlohmann::json::parse(config->HandlerFor(kMailType).options);
  EXPECT_EQ(mail, nlohmann::json::parse(R"({"server": "mx:25", "from": "m@e", "to": {"a": ["o@e"]}})"));
  EXPECT_EQ(config->HandlerFor(kMailType).secrets.at("password").file, "/etc/p");
  EXPECT_EQ(nlohmann::json::parse(config->HandlerFor(kWebhookType).options),
            nlohmann::json::parse(R"({"urls": {"a": "https://e/x"}, "ca_file": "/etc/ca"})"));
  EXPECT_FALSE(ParseConfig("{}", "m.json")->handlers.contains(kMailType));
  EXPECT_THAT(ConfigText(*config), Not(HasSubstr("millrace.mail")));
}

TEST(ConfigTest, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(Refusal("{\n\n \"engine\": }"), HasSubstr("m.json:3: not valid JSON: "));
  EXPECT_THAT(Refusal(""), HasSubstr("m.json:1: not valid JSON"));
  EXPECT_THAT(Refusal(std::string(100'000, '[')), HasSubstr("nested more than 32 levels"));
}

TEST(ConfigTest, ASyntaxErrorQuotesNoMoreThanCanBeRead) {
  const auto config = ParseConfig("{\"" + std::string(200'000, '7') + "\"7}", "c.json");
  ASSERT_FALSE(config);
  EXPECT_LT(config.error().message.size(), 400U);
  EXPECT_THAT(config.error().message, HasSubstr("not valid JSON"));
}

TEST(ConfigTest, ADoubledKeyIsRefusedAndBothLinesAreNamed) {
  EXPECT_EQ(
      Refusal("{\"engine\": {\"batch\": 1,\n\"batch\": 2}}"),
      "m.json:2: engine.batch: this key stands here for the second time (first in line 1); keep one of them");
}

TEST(ConfigTest, AFileThatIsMissingSaysSo) {
  const auto config = LoadConfigFile("/nonexistent/millrace.json");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("No such file"));
}

TEST(AlertConfigTest, MailWithoutAServerForItIsToldWithItsKey) {
  const char* alerts = R"("alerts":{"failed":{"kind":"failed","mail":["ops@example.com"]}})";
  const auto without = ParseConfig("{" + std::string(alerts) + "}", "m.json");
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_THAT(AlertTroubles(*without), testing::ElementsAre(testing::HasSubstr("alerts.failed.mail: ")));
  const auto with = ParseConfig(
      R"({"handlers":{"send_mail":{"options":{"server":"mail:25"}}},)" + std::string(alerts) + "}", "m.json");
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_THAT(AlertTroubles(*with), testing::IsEmpty());
}

}  // namespace
}  // namespace millrace::engine

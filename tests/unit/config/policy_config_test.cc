#include "framework/config/policy_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/config/config.h"
#include "framework/config/policy_text.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Result<Config> Read(const std::string& text) { return ParseConfig(text, "m.json"); }

std::string Handler(const std::string& keys) { return R"({"handlers": {"mail": {)" + keys + "}}}"; }
std::string Engine(const std::string& keys) { return R"({"engine": {)" + keys + "}}"; }

HandlerConfig Mail(const std::string& keys) {
  const auto config = Read(Handler(keys));
  EXPECT_TRUE(config) << config.error().message;
  return config ? config->handlers.at("mail") : HandlerConfig{};
}

EngineConfig EngineOf(const std::string& keys) {
  const auto config = Read(Engine(keys));
  EXPECT_TRUE(config) << config.error().message;
  return config ? config->engine : EngineConfig{};
}

std::string Refusal(const std::string& text) {
  const auto config = Read(text);
  return config ? "accepted" : config.error().message;
}
std::string HandlerRefusal(const std::string& keys) { return Refusal(Handler(keys)); }

TEST(PolicyConfigTest, NothingIsLimitedUnlessItIsSaid) {
  const HandlerConfig mail = Mail("");
  EXPECT_FALSE(mail.limit || mail.breaker || mail.hours);
  EXPECT_TRUE(mail.bands.empty() && mail.retry.classes.empty());
  EXPECT_EQ(mail.weight, 1u);
  EXPECT_EQ(mail.when_full, WhenFull::Wait);
  const EngineConfig engine = EngineOf("");
  EXPECT_EQ(engine.scanners, ScannersConfig{});
  EXPECT_EQ(engine.queues, QueuesConfig{});
  EXPECT_EQ(engine.aging + engine.brake_latency, 0s);
}

TEST(PolicyConfigTest, ALimitIsOfStartsATimeOrAtOnce) {
  EXPECT_EQ(Mail(R"("limit": {"rate": "100/s", "burst": 10, "concurrency": 1})").limit,
            (LimitConfig{.rate = 100, .burst = 10, .concurrency = 1}));
  EXPECT_DOUBLE_EQ(Mail(R"("limit": {"rate": "30/m"})").limit->rate, 0.5);
  EXPECT_DOUBLE_EQ(Mail(R"("limit": {"rate": "1000/h"})").limit->rate, 1000.0 / 3600);
  EXPECT_DOUBLE_EQ(Mail(R"("limit": {"rate": "2.5/s"})").limit->rate, 2.5);
  EXPECT_EQ(Mail(R"("limit": {"concurrency": 7})").limit, (LimitConfig{.concurrency = 7}));
}

TEST(PolicyConfigTest, ALimitThatLimitsNothingOrEverythingIsRefused) {
  const auto rate = [](const std::string& text) {
    return HandlerRefusal(R"("limit": {"rate": )" + text + "}");
  };
  for (const char* text : {R"("0/s")", R"("-5/s")", R"("1e7/s")", R"("0.001/h")"})
    EXPECT_THAT(rate(text), StartsWith("m.json:1: handlers.mail.limit.rate: this is out of range")) << text;
  for (const char* text :
       {R"("100")", R"("/s")", R"("many/s")", R"("5/d")", R"("nan/s")", R"("1 /s")", R"("")"})
    EXPECT_THAT(rate(text), StartsWith("m.json:1: handlers.mail.limit.rate: this is no rate")) << text;
  EXPECT_THAT(rate("100"), HasSubstr("handlers.mail.limit.rate: this must be a text in quotes"));
  EXPECT_THAT(HandlerRefusal(R"("limit": {"concurrency": -1})"),
              HasSubstr("handlers.mail.limit.concurrency: -1 is out of range"));
  EXPECT_THAT(HandlerRefusal(R"("limit": {"concurrency": 0})"), HasSubstr("limit.concurrency: 0 is out"));
  EXPECT_THAT(HandlerRefusal(R"("limit": {})"), HasSubstr("handlers.mail.limit: it limits nothing"));
  EXPECT_THAT(HandlerRefusal(R"("limit": {"burst": 3})"),
              HasSubstr("handlers.mail.limit: it limits nothing"));
  EXPECT_THAT(HandlerRefusal(R"("limit": {"burst": 3, "concurrency": 1})"),
              HasSubstr("handlers.mail.limit.burst: this goes with a rate"));
  EXPECT_THAT(HandlerRefusal(R"("limit": 5)"), HasSubstr("handlers.mail.limit: this must be an object"));
}

TEST(PolicyConfigTest, ABreakerHasItsDefaultsByItself) {
  EXPECT_EQ(Mail(R"("breaker": {})").breaker, BreakerConfig{});
  EXPECT_EQ(Mail(R"("breaker": true)").breaker, BreakerConfig{});
  EXPECT_EQ(Mail(R"("breaker": {"failures": 0.2, "window": "1m", "minimum": 5, "probe_every": "10s",
                                "probes": 2, "classes": ["http_503", "refused*"]})")
                .breaker,
            (BreakerConfig{0.2, 1min, 5, 10s, 2, {"http_503", "refused*"}}));
  EXPECT_THAT(HandlerRefusal(R"("breaker": false)"), HasSubstr("handlers.mail.breaker: write true"));
  EXPECT_THAT(HandlerRefusal(R"("breaker": {"failures": 0})"), HasSubstr("mail.breaker.failures: 0 is out"));
  EXPECT_THAT(HandlerRefusal(R"("breaker": {"window": "1ms"})"), HasSubstr("breaker.window: \"1ms\" is out"));
  EXPECT_THAT(HandlerRefusal(R"("breaker": {"classes": ["a*b"]})"), HasSubstr("breaker.classes: this is no"));
  EXPECT_THAT(HandlerRefusal(R"("breaker": {"classes": ["bad_params"]})"), HasSubstr("task's own fault"));
  std::string many = "\"a\"";
  for (int i = 1; i < 100; ++i) many += ", \"http_" + std::to_string(i) + "\"";
  EXPECT_EQ(Mail(R"("breaker": {"classes": [)" + many + "]}").breaker->classes.size(), 100U);
  EXPECT_THAT(HandlerRefusal(R"("breaker": {"classes": [)" + many + R"(, "timeout"]})"),
              HasSubstr("handlers.mail.breaker.classes: these are more than 100"));
}

TEST(PolicyConfigTest, HoursHaveABeginningAnEndAndAZone) {
  EXPECT_EQ(Mail(R"("hours": {"from": "01:00", "to": "06:30", "zone": "Europe/Berlin"})").hours,
            (HoursConfig{60, 390, "Europe/Berlin"}));
  EXPECT_EQ(Mail(R"("hours": {"from": "22:00", "to": "24:00"})").hours, (HoursConfig{1320, 1440, "UTC"}));
  const auto hours = [](const std::string& keys) { return HandlerRefusal(R"("hours": {)" + keys + "}"); };
  EXPECT_THAT(hours(R"("from": "01:00", "to": "01:00")"),
              HasSubstr("handlers.mail.hours.to: it is the same as \"from\", so these hours never open"));
  EXPECT_THAT(hours(R"("from": "01:00")"), HasSubstr("handlers.mail.hours.to: this is missing"));
  EXPECT_THAT(hours(""), HasSubstr("handlers.mail.hours.from: this is missing"));
  for (const char* time : {"1:00", "25:00", "24:01", "12:60", "noon", "", "-1:00", "01.00", "+1:00"})
    EXPECT_THAT(hours(R"("from": "00:30", "to": ")" + std::string(time) + '"'),
                HasSubstr("handlers.mail.hours.to: this is no time of day"))
        << time;
  EXPECT_THAT(hours(R"("from": "24:00", "to": "06:00")"), HasSubstr("hours.from: this is no time of day"));
  EXPECT_THAT(hours(R"("from": 1, "to": "06:00")"), HasSubstr("hours.from: this must be a text in quotes"));
  EXPECT_THAT(
      hours(R"("from": "01:00", "to": "06:00", "zone": "Europe/Berln")"),
      HasSubstr("handlers.mail.hours.zone: 'Europe/Berln' is no time zone that this machine knows (did "
                "you mean 'Europe/Berlin'?)"));
}

TEST(PolicyConfigTest, AZoneThatAnotherMachineKnowsIsTakenWhereThatIsContained) {
  const std::string text = Handler(R"("hours": {"from": "01:00", "to": "06:00", "zone": "Mars/Olympus"})");
  const auto config = ParseConfig(text, "m.json", UnknownZones::Contained);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->handlers.at("mail").hours->zone, "Mars/Olympus");
}

TEST(PolicyConfigTest, ALaneSaysWhatItKeepsAndHolds) {
  const HandlerConfig mail = Mail(R"("concurrency": 8, "threads": {"min": 2, "keep_alive": "1m"},
                                     "queue_bytes": 1048576, "when_full": "give_back", "weight": 30)");
  EXPECT_EQ(mail.min_threads, 2u);
  EXPECT_EQ(mail.keep_alive, Micros(1min));
  EXPECT_EQ(mail.queue_bytes, 1'048'576u);
  EXPECT_EQ(mail.when_full, WhenFull::GiveBack);
  EXPECT_EQ(mail.weight, 30u);
  EXPECT_THAT(HandlerRefusal(R"("concurrency": 2, "threads": {"min": 3})"),
              HasSubstr("handlers.mail.threads.min: there are 2 threads at most"));
  EXPECT_THAT(HandlerRefusal(R"("queue_bytes": "8MiB")"),
              HasSubstr("queue_bytes: this must be a whole number"));
  EXPECT_THAT(HandlerRefusal(R"("when_full": "block")"),
              HasSubstr("write \"wait\" or \"caller\" or \"give_back\""));
  EXPECT_THAT(
      HandlerRefusal(R"("weight": 1000000)"),
      HasSubstr("handlers.mail.weight: 1000000 is out of range: write a whole number from 1 to 1000"));
}

TEST(PolicyConfigTest, ErrorClassesStandInTheOrderInWhichTheyAreTried) {
  const HandlerConfig mail = Mail(
      R"("retry": {"classes": {"*": {"delays": ["1h"]}, "http_4*": "fail", "http_429": {"delays": ["5s", "1m"]},
                               "http_*": {"delays": ["2s"]}, "timeout": {"delays": ["5s"]}}})");
  std::vector<std::string> order;
  for (const RetryClass& one : mail.retry.classes) order.push_back(one.pattern);
  EXPECT_THAT(order, ElementsAre("http_429", "timeout", "http_4*", "http_*", "*"));
  EXPECT_THAT(mail.retry.classes[0].delays, ElementsAre(Micros(5s), Micros(1min)));
  EXPECT_TRUE(mail.retry.classes[2].fail);
}

TEST(PolicyConfigTest, AClassHasALadderOrFails) {
  const auto classes = [](const std::string& keys) {
    return HandlerRefusal(R"("retry": {"classes": {)" + keys + "}}");
  };
  EXPECT_THAT(classes(R"("timeout": "retry")"),
              HasSubstr("handlers.mail.retry.classes.timeout: write \"fail\""));
  EXPECT_THAT(classes(R"("timeout": {})"), HasSubstr("retry.classes.timeout: write \"fail\""));
  EXPECT_THAT(classes(R"("timeout": {"delays": []})"),
              HasSubstr("classes.timeout.delays: the list is empty"));
  EXPECT_THAT(classes(R"("timeout": {"delays": ["5s"], "max": 1})"), HasSubstr("timeout.max: unknown key"));
  EXPECT_THAT(classes(R"("a*b": "fail")"), HasSubstr("classes.a*b: this is no error class"));
  EXPECT_THAT(classes(R"("": "fail")"), HasSubstr("this is no error class"));
}

TEST(PolicyConfigTest, ALadderHasAHundredStepsAtMost) {
  const auto ladder = [](std::size_t steps) {
    std::string text;
    for (std::size_t i = 0; i < steps; ++i) text += (text.empty() ? "" : ",") + std::string("\"1s\"");
    return "{\"delays\": [" + text + "]}";
  };
  EXPECT_EQ(Mail("\"retry\": " + ladder(100)).retry.delays.size(), 100u);
  EXPECT_THAT(HandlerRefusal("\"retry\": " + ladder(500)),
              HasSubstr("handlers.mail.retry.delays: the list has 500 durations: write at most 100"));
  EXPECT_THAT(HandlerRefusal(R"("retry": {"classes": {"timeout": )" + ladder(500) + "}}"),
              HasSubstr("handlers.mail.retry.classes.timeout.delays: the list has 500"));
}

TEST(PolicyConfigTest, BandsPartPrioritiesAndFailures) {
  const HandlerConfig mail =
      Mail(R"("bands": [{"priority": "5-9", "failures": "1-5", "every": "30s", "most": 1000},
                        {"priority": "3", "every": "1m"}, {"priority": "5-9", "failures": "6-9", "most": 5}])");
  EXPECT_THAT(mail.bands, ElementsAre(BandConfig{5, 9, 1, 5, 30s, 1000}, BandConfig{3, 3, 0, 9, 1min, 0},
                                      BandConfig{5, 9, 6, 9, Micros(0), 5}));
}

TEST(PolicyConfigTest, ATasksBandIsThatOfItsPriorityAndFailures) {
  HandlerConfig mail = Mail(R"("bands": [{"priority": "5-7", "failures": "0", "every": "30s"},
                                         {"priority": "5-7", "failures": "1-9", "most": 10},
                                         {"priority": "0", "every": "0s"}])");
  const auto band = [&](std::uint32_t priority, std::uint32_t failures) {
    return mail.BandOf(Urgency(priority, failures)).value_or(BandConfig{.most = 1});
  };
  EXPECT_EQ(band(5, 0), mail.bands[0]);
  EXPECT_EQ(band(7, 0), mail.bands[0]);
  EXPECT_EQ(band(7, 1), mail.bands[1]);
  EXPECT_EQ(band(6, 25), mail.bands[1]) << "nine stands for more";
  EXPECT_FALSE(mail.BandOf(Urgency(4, 0)));
  EXPECT_FALSE(mail.BandOf(Urgency(8, 1)));
  EXPECT_FALSE(mail.BandOf(Urgency(0, 0))) << "it holds nothing back";
  mail.scan = ScanConfig{.every = Micros(1s)};
  EXPECT_TRUE(mail.BandsInForce().empty()) << "its rows are scanned in rounds";
}

// A worker's file has its own part of a handler; the rest may be the cluster's, or in the handler's code.
TEST(PolicyConfigTest, ThreadsThatStayMayBeMoreThanADefaultThatNobodyNamed) {
  const auto config = Read(Handler(R"("threads": {"min": 8})"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->handlers.at("mail").min_threads, 8u);
  const auto again = Read(ConfigText(*config));
  ASSERT_TRUE(again) << "it is listed with the default: " << again.error().message;
  EXPECT_EQ(ConfigText(*again), ConfigText(*config));
  EXPECT_THAT(HandlerRefusal(R"("concurrency": "16", "threads": {"min": 8})"), Not(HasSubstr("threads.min")))
      << "what is named can't be read";
}

TEST(PolicyConfigTest, BandsThatOverlapAreRefusedWithBothNamed) {
  const auto bands = [](const std::string& list) { return HandlerRefusal(R"("bands": [)" + list + "]"); };
  EXPECT_THAT(HandlerRefusal(R"("scan": {"every": "5m"}, "bands": [{"every": "30s"}])"),
              HasSubstr("handlers.mail.bands: a handler with \"scan\" has no bands"));
  EXPECT_THAT(
      bands(R"({"priority": "5-9", "every": "30s"}, {"priority": "1-5", "failures": "9", "most": 1})"),
      HasSubstr("handlers.mail.bands.1: it overlaps with bands.0 (priority 5-9, failures 0-9)"));
  EXPECT_THAT(bands(R"({"most": 1}, {"most": 2})"), HasSubstr("bands.1: it overlaps with bands.0"));
  EXPECT_THAT(bands(R"({"priority": "9-5", "most": 1})"), HasSubstr("bands.0.priority: this is no range"));
  for (const char* range : {"0-10", "x", "", "-", "1-", "-3", "1-2-3"})
    EXPECT_THAT(bands(R"({"failures": ")" + std::string(range) + R"(", "most": 1})"),
                HasSubstr("bands.0.failures: this is no range"))
        << range;
  EXPECT_THAT(bands(R"({"priority": "1"})"), HasSubstr("bands.0: it says nothing of its tasks"));
  EXPECT_THAT(bands("5"), HasSubstr("bands.0: this must be an object"));
  EXPECT_THAT(bands(""), HasSubstr("handlers.mail.bands: this must be a list of 1 to 100 bands"));
}

TEST(PolicyConfigTest, ABandThatIsNotUnderstoodOverlapsWithNone) {
  const std::string refusal =
      HandlerRefusal(R"("bands": [{"priority": "9-5", "most": 1}, {"priority": "0-10", "every": "30s"}])");
  EXPECT_THAT(refusal, HasSubstr("bands.0.priority: this is no range"));
  EXPECT_THAT(refusal, HasSubstr("bands.1.priority: this is no range"));
  EXPECT_THAT(refusal, Not(HasSubstr("overlaps")));
}

TEST(PolicyConfigTest, EachKeyThatIsThereIsNamedOnce) {
  const std::string refusal = HandlerRefusal(R"("xyzzyq": 1)") + ",";
  for (const char* key : {"limit", "breaker", "hours", "scan", "bands"}) {
    const std::size_t first = refusal.find(" " + std::string(key) + ",");
    ASSERT_NE(first, std::string::npos) << key << ": " << refusal;
    EXPECT_EQ(refusal.find(" " + std::string(key) + ",", first + 1), std::string::npos) << refusal;
  }
}

// Parts of a rate are in its unit, and short.
TEST(PolicyConfigTest, RatesAreShownInTheUnitOfTheWhole) {
  EXPECT_EQ(RateText(13050.0 / 3600, 5), "3.63/s");
  EXPECT_EQ(RateText(4950.0 / 3600, 5), "1.38/s");
  EXPECT_EQ(RateText(0.6666000000000001, 2), "0.67/s");
  EXPECT_EQ(RateText(4.937, 4.937 + 225.0 / 3600), "4.94/s") << "what its parts sum up to is no rate";
  EXPECT_EQ(RateText(100.0 / 3, 100), "33.33/s");
  EXPECT_EQ(RateText(12.5 / 60, 30.0 / 60), "12.5/m");
  EXPECT_EQ(RateText(10.0 / 3600, 1000.0 / 3600), "10/h");
  EXPECT_EQ(RateText(0.01, 5), "0.6/m") << "in a second it is next to nothing";
  EXPECT_EQ(RateText(1e-9, 5), "under 0.01/h");
  EXPECT_EQ(RateText(0.1 + 0.2 + 0.7, 0.1 + 0.2 + 0.7), "1/s");
  EXPECT_EQ(LimitText({.rate = 0.6666000000000001}), "0.67/s");
  EXPECT_EQ(LimitText({.rate = 100, .concurrency = 3}), "100/s and 3 at once");
}

TEST(PolicyConfigTest, TheEnginesPoliciesAreRead) {
  const EngineConfig engine = EngineOf(R"("aging": "5m", "scanners": {"by": "table", "most": 8},
                  "queues": {"by": "priority", "take": "random", "most": 8}, "brake": {"latency": "50ms"})");
  EXPECT_EQ(engine.aging, Micros(5min));
  EXPECT_EQ(engine.scanners, (ScannersConfig{ScannersConfig::By::Table, 8}));
  EXPECT_EQ(engine.queues, (QueuesConfig{QueuesConfig::By::Priority, QueuesConfig::Take::Random, 8}));
  EXPECT_EQ(engine.brake_latency, Micros(50ms));
  EXPECT_THAT(Refusal(Engine(R"("aging": "0s")")), HasSubstr("engine.aging: \"0s\" is out of range"));
  EXPECT_THAT(Refusal(Engine(R"("scanners": {"by": "slice"})")), HasSubstr("engine.scanners.by"));
  EXPECT_THAT(Refusal(Engine(R"("scanners": {"most": 0})")), HasSubstr("engine.scanners.most: 0 is out"));
  EXPECT_THAT(Refusal(Engine(R"("queues": {"take": "first"})")), HasSubstr("\"turns\" or \"random\""));
  EXPECT_THAT(Refusal(Engine(R"("brake": {})")), HasSubstr("engine.brake: it brakes at nothing"));
  EXPECT_THAT(Refusal(Engine(R"("brake": {"latency": "1h"})")), HasSubstr("engine.brake.latency: \"1h\" is"));
}

// A rate is listed in the first unit in which it is whole, and reads back as what it was.
TEST(PolicyConfigTest, RatesAreListedAsTheyAreWritten) {
  for (const char* rate : {"100/s", "30/m", "1000/h", "1/h", "7/m", "0.3/s", "1000000/s", "0.01/h"}) {
    const auto config = Read(Handler(R"("limit": {"rate": ")" + std::string(rate) + "\"}"));
    ASSERT_TRUE(config) << rate;
    const auto again = Read(ConfigText(*config));
    ASSERT_TRUE(again) << rate << ": " << again.error().message;
    EXPECT_EQ(again->handlers.at("mail").limit, config->handlers.at("mail").limit) << rate;
  }
  const auto listed = ConfigText(*Read(Handler(R"("limit": {"rate": "1000/h"})")));
  EXPECT_THAT(listed, HasSubstr("\"rate\": \"1000/h\""));
}

}  // namespace
}  // namespace millrace::engine

#include "coordinator/app/status/status_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "coordinator/app/cli/text.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const WallTime kNow = ParseTime("2026-11-20T18:00:00Z").value();

// One worker that beats, and one type of which three wait and eight run.
StatusFacts Healthy() {
  StatusFacts facts;
  facts.now = kNow;
  ShardFacts& shard = facts.shards["main"];
  shard.address = "sqlite:points.db";
  shard.tables = {{"tasks", 64, {}}};
  shard.waiting.now = kNow;
  shard.waiting.handlers = {{.table = "tasks",
                             .handler = "noop",
                             .waiting = {3, false},
                             .running = {8, false},
                             .oldest_due = kNow - seconds(1)}};
  shard.totals = {{.table = "tasks", .handler = "noop", .batch = "", .succeeded = 16'049}};
  facts.workers = {{.name = "w1",
                    .place = "app1:4711",
                    .life = WorkerLife::Alive,
                    .last_sign = seconds(1),
                    .shards = {"main"}}};
  facts.window = seconds(1);
  facts.ended = {{"noop", 2410.4}};
  return facts;
}

HandlerOverview& Noop(StatusFacts& facts) { return facts.shards["main"].waiting.handlers[0]; }

std::vector<std::string> Findings(const StatusFacts& facts) {
  std::vector<std::string> texts;
  for (const Trouble& finding : FindingsOf(facts)) texts.push_back(finding.what + ": " + finding.remedy);
  return texts;
}

TEST(StatusReportTest, WhoHoldsAPermitIsShown) {
  StatusFacts facts = Healthy();
  EXPECT_THAT(StatusText(facts, 0), Not(HasSubstr("permit")));
  facts.shards["main"].permits = {{.handler = "ledger",
                                   .number = 1,
                                   .holder = "w2.b",
                                   .worker = "w2",
                                   .task = "main/tasks/17",
                                   .attempt = 3,
                                   .taken_at = kNow - seconds(2)}};
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("ledger     w2       main/tasks/17"));
  const auto json = StatusJson(facts)["shards"][0]["permits"][0];
  EXPECT_EQ(json["worker"], "w2");
  EXPECT_EQ(json["attempt"], 3);
}

TEST(StatusReportTest, ASchedulesTroublesAreFindings) {
  StatusFacts facts = Healthy();
  EXPECT_FALSE(HandlersOf(facts));
  facts.workers[0].handlers = {"noop"};
  facts.workers.push_back({.name = "w2", .life = WorkerLife::Gone, .handlers = {{"exec"}}});
  EXPECT_EQ(HandlersOf(facts), (std::set<std::string>{"noop"}));
  facts.workers.pop_back();
  ScheduleFacts nightly{.name = "nightly", .now = kNow};
  facts.schedules = {nightly};
  EXPECT_THAT(Findings(facts), IsEmpty());
  facts.schedules[0].troubles = {{"late", "it is 5 min late"}};
  EXPECT_THAT(Findings(facts),
              ElementsAre("schedule nightly: it is 5 min late: millrace schedule show nightly"));
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("it is 5 min late"));
}

BatchGlance::Seen Batch(const std::string& name, std::optional<BatchState> state, int hour) {
  return {name, state, state ? std::optional(kNow - hours(hour)) : std::nullopt};
}

std::string BatchNames(const StatusFacts& facts) {
  std::string names;
  for (const BatchGlance::Seen& one : facts.batches) names += one.name + " ";
  return names;
}

TEST(StatusReportTest, BatchesAreThoseThatHaveNotEndedAFewOfTheNewestAndThoseWithoutARow) {
  StatusFacts facts = Healthy();
  BatchGlance one;
  one.batches = {Batch("open", BatchState::Open, 5), Batch("closed", BatchState::Closed, 1)};
  for (int i = 0; i < 9; ++i)
    one.batches.push_back(Batch("e" + std::to_string(i), BatchState::Ended, 20 - i));
  one.batches.push_back(Batch("by_sql", std::nullopt, 0));
  one.all = 1'012;
  ChooseBatches({one}, facts);
  EXPECT_EQ(BatchNames(facts), "closed open e8 e7 e6 e5 e4 by_sql ");
  EXPECT_EQ(facts.other_batches, (Counted{1'004, false}));
  facts.shards["main"].totals.push_back(
      {.table = "tasks", .handler = "noop", .batch = "open", .succeeded = 7, .failed = 2});
  EXPECT_THAT(StatusText(facts, 0),
              AllOf(HasSubstr("open            7       2"), HasSubstr("by_sql"), HasSubstr("plain"),
                    HasSubstr("\n… and 1,004 more: millrace batch list\n\n")));
  const auto json = StatusJson(facts);
  ASSERT_EQ(json["batches"].size(), 8U);
  EXPECT_EQ(json["batches"][1].dump(),
            R"({"batch":"open","succeeded":7,"failed":2,"cancelled":0,"state":"open"})");
  EXPECT_EQ(json["other_batches"].dump(), R"({"count":1004,"more":false})");
  EXPECT_EQ(TypesOf(facts).at("noop").failed, 2U) << "what is of a batch is of its type";
}

TEST(StatusReportTest, HoweverManyBatchesThereAreAFewAreShown) {
  StatusFacts facts = Healthy();
  EXPECT_THAT(StatusText(facts, 0), Not(HasSubstr("batch")));
  BatchGlance one;
  for (int i = 0; i < 30; ++i) one.batches.push_back(Batch("b" + std::to_string(i), BatchState::Open, i));
  one.all = 10'000;
  one.more = true;
  ChooseBatches({one}, facts);
  EXPECT_EQ(facts.batches.size(), kShownBatches);
  EXPECT_EQ(facts.batches[0].name, "b0");
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("\n… and more: millrace batch list\n"));
}

TEST(StatusReportTest, ABatchOfSeveralShardsIsOne) {
  StatusFacts facts = Healthy();
  BatchGlance home;
  home.batches = {Batch("june", BatchState::Closed, 1)};
  home.all = 1;
  BatchGlance other;
  other.batches = {Batch("june", std::nullopt, 0), Batch("by_sql", std::nullopt, 0)};
  other.all = 2;
  for (const auto& both : {std::vector{home, other}, std::vector{other, home}}) {
    ChooseBatches(both, facts);
    EXPECT_EQ(BatchNames(facts), "june by_sql ");
    EXPECT_EQ(facts.batches[0].state, BatchState::Closed);
    EXPECT_EQ(facts.other_batches, Counted{});
  }
}

// Shards are asked for rows that others show without: the home has its own twice then, and counted it once.
TEST(StatusReportTest, ABatchThatItsHomeShowsTwiceIsOne) {
  StatusFacts facts = Healthy();
  BatchGlance home;
  home.batches = {Batch("june", BatchState::Closed, 1), Batch("june", BatchState::Closed, 1)};
  home.all = 1;
  BatchGlance other;
  other.batches = {Batch("june", std::nullopt, 0)};
  other.all = 1;
  EXPECT_TRUE(HasRowOf(home, "june")) << "it need not be asked for";
  EXPECT_FALSE(HasRowOf(other, "june"));
  EXPECT_THAT(PlainSomewhere({home, other}), ElementsAre("june"));
  for (const auto& both : {std::vector{home, other}, std::vector{other, home}}) {
    ChooseBatches(both, facts);
    EXPECT_EQ(BatchNames(facts), "june ");
    EXPECT_EQ(facts.other_batches, Counted{});
  }
  home.all = 0;  // it was made between two statements
  other.all = 0;
  ChooseBatches({home, other}, facts);
  EXPECT_EQ(facts.other_batches, Counted{});
}

std::size_t Widest(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    widest = std::max(widest, DisplayWidth(text.substr(from, end - from)));
    from = end + 1;
  }
  return widest;
}

TEST(StatusTest, WhereAllIsWellItSaysSo) {
  const StatusFacts facts = Healthy();
  EXPECT_THAT(Findings(facts), IsEmpty());
  EXPECT_TRUE(CanRun(facts));
  const std::string text = StatusText(facts, 80);
  EXPECT_THAT(
      text, AllOf(HasSubstr("sqlite:points.db, 1 table"), HasSubstr("w1"), HasSubstr("16,049"),
                  HasSubstr("2,410 tasks ended a second, over the last 1 s"), HasSubstr("nothing is wrong")));
  EXPECT_LE(Widest(text), 80U) << text;
}

TEST(StatusTest, WithoutAWorkerNothingThatWaitsCanRun) {
  StatusFacts facts = Healthy();
  facts.workers.clear();
  EXPECT_FALSE(CanRun(facts));
  EXPECT_THAT(Findings(facts),
              ElementsAre("no worker is alive, and 3 tasks wait: start one: millrace run, or "
                          "millrace worker"));
  facts.shards["main"].waiting.handlers.clear();
  EXPECT_TRUE(CanRun(facts)) << "there is nothing that could";
  EXPECT_THAT(Findings(facts), IsEmpty());
}

TEST(StatusTest, AHomeOfPermitsThatIsNoneOfTheShardsIsNamed) {
  StatusFacts facts = Healthy();
  facts.shards["main"].permit_home = "main";
  EXPECT_THAT(Findings(facts), IsEmpty());
  facts.shards["main"].permit_home = "elsewhere";
  EXPECT_THAT(Findings(facts),
              ElementsAre(testing::StartsWith("what needs a permit is held up: shard elsewhere is the "
                                              "home of permits and not among the shards")));
}

TEST(StatusTest, AWorkerThatIsGoneOrSilentIsNone) {
  for (const WorkerLife life : {WorkerLife::Gone, WorkerLife::Silent}) {
    StatusFacts facts = Healthy();
    facts.workers[0].life = life;
    EXPECT_FALSE(CanRun(facts));
    EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("no worker is alive"), HasSubstr("w1 (app1:4711)")));
  }
  StatusFacts facts = Healthy();
  facts.workers[0].life = WorkerLife::Unsure;
  EXPECT_TRUE(CanRun(facts)) << "nobody has watched it";
}

TEST(StatusTest, WhatIsOutsideItsHoursIsSaidAndIsNotStuck) {
  StatusFacts facts = Healthy();
  HandlerOverview& noop = Noop(facts);
  noop.oldest_due = kNow - minutes(90);
  noop.running = {};
  facts.ended.clear();
  ASSERT_THAT(Findings(facts), ElementsAre(HasSubstr("nothing claims")));
  facts.handlers["noop"].hours = HoursConfig{60, 360, "Europe/Berlin"};
  EXPECT_THAT(Findings(facts), IsEmpty());
  EXPECT_THAT(StatusText(facts, 0),
              AllOf(HasSubstr("1 h 30 min ago, held"),
                    HasSubstr("held: 3 tasks of noop: outside its hours until 01:00 Europe/Berlin")));
  EXPECT_TRUE(CanRun(facts)) << "in a while";
}

std::vector<std::string> HeldBy(const StatusFacts& facts) {
  std::vector<std::string> codes;
  for (const Hold& hold : HoldsOn(facts, "noop", TypesOf(facts)["noop"])) codes.push_back(hold.code);
  return codes;
}

TEST(StatusTest, WhatHoldsDueTasksBackOnPurposeIsSaidAndIsNoFault) {
  StatusFacts facts = Healthy();
  HandlerOverview& noop = Noop(facts);
  noop.running = {};
  facts.ended.clear();
  noop.oldest_due = kNow - minutes(5);
  ASSERT_THAT(Findings(facts), ElementsAre(HasSubstr("nothing claims")));
  ASSERT_THAT(HeldBy(facts), IsEmpty());

  facts.handlers["noop"].limit = LimitConfig{.rate = 1.0 / 60};
  EXPECT_THAT(HeldBy(facts), ElementsAre("limit"));
  EXPECT_THAT(Findings(facts), IsEmpty());
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("5 min 0 s ago, held"));
  EXPECT_EQ(StatusJson(facts)["handlers"][0]["held_by"][0]["code"], "limit");
  facts.handlers["noop"].limit->rate = 100;
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("nothing claims"))) << "some should have started";
  facts.handlers["noop"].limit->rate = 2.0 / 3600;
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("its limit is 2/h (`handlers.noop.limit`), one every 30m"));

  facts.handlers["noop"].limit = LimitConfig{.concurrency = 2};
  EXPECT_THAT(HeldBy(facts), IsEmpty()) << "none runs";
  noop.running = {2, false};
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("held: 3 tasks of noop: its limit is 2 at once"));
  facts.cluster.emplace().leader = "w1";
  EXPECT_THAT(HeldBy(facts), IsEmpty()) << "permits decide";
  facts.shards["main"].permits = {{.handler = "noop"}, {.handler = "noop"}, {.handler = "other"}};
  EXPECT_THAT(HeldBy(facts), ElementsAre("limit"));
  facts.shards["main"].permits.pop_back();
  facts.shards["main"].permits.pop_back();
  EXPECT_THAT(HeldBy(facts), IsEmpty()) << "one is free";
  facts.cluster.reset();
  facts.shards["main"].permits.clear();
  noop.running = {};

  facts.handlers["noop"].limit.reset();
  facts.handlers["noop"].bands = {{.priority_from = 5, .every = minutes(10)}};
  EXPECT_THAT(HeldBy(facts), ElementsAre("next_band"));
  EXPECT_THAT(Findings(facts), IsEmpty());
  EXPECT_THAT(StatusText(facts, 0),
              HasSubstr("held: 3 tasks of noop: those of priority 5-9 with 0-9 failures are looked for every "
                        "10m (`handlers.noop.bands`)"));
  noop.oldest_due = kNow - minutes(11);
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("nothing claims"))) << "the look has not come";
  facts.handlers["noop"].bands.front().most = 2;
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("nothing claims"))) << "nor did anything end";
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("slowed: 3 tasks of noop: those of priority 5-9"));
  noop.oldest_due = kNow - seconds(1);
  EXPECT_THAT(HeldBy(facts), IsEmpty()) << "a poll may be that long";
}

TEST(StatusTest, AFullQueueIsToldWhereDueTasksWaitForIt) {
  ClusterSnapshot snapshot;
  snapshot.statuses["w1"]["full"] = {"noop", 7};
  snapshot.statuses["w2"]["full"] = {"noop"};
  StatusFacts facts = Healthy();
  facts.cluster.emplace().holds = HoldsOf(snapshot);
  EXPECT_THAT(HeldBy(facts), IsEmpty()) << "a poll may be that long";
  Noop(facts).oldest_due = kNow - minutes(5);
  EXPECT_THAT(HeldBy(facts), ElementsAre("queue_full"));
  EXPECT_THAT(StatusText(facts, 0),
              HasSubstr("slowed: 3 tasks of noop: its queue is full on w1, w2 (`handlers.noop.queue`"));
}

TEST(StatusTest, AnOpenBreakerIsToldWithItsNextProbe) {
  StatusFacts facts = Healthy();
  facts.shards["main"].pauses = {
      {"breaker:noop:tripped:w1", "w1", kNow - minutes(5), "20 of 20 calls failed"}};
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("held: 3 tasks of noop: its breaker is open\n"));
  facts.handlers["noop"].breaker.emplace();
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("its breaker is open, probed every 2s\n"));
  facts.cluster.emplace().holds.probes["noop"] = kNow + seconds(3);
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("its breaker is open, probed next in 3 s\n"));
  facts.shards["main"].pauses = {{"breaker:noop:open", "ann", kNow - minutes(5)}};
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("noop: its breaker is open by hand, and not probed\n"));
  facts.shards["main"].pauses.push_back({"handler:noop", "ann", kNow});
  EXPECT_THAT(StatusText(facts, 0), HasSubstr("noop: paused; its breaker is open by hand"));
}

TEST(StatusTest, TheBrakeSlowsDownAndIsNoReasonThatNothingStarts) {
  StatusFacts facts = Healthy();
  Noop(facts).oldest_due = kNow - minutes(5);
  facts.brake = std::chrono::milliseconds(50);
  EXPECT_THAT(HeldBy(facts), ElementsAre("braked"));
  EXPECT_THAT(StatusText(facts, 0), AllOf(HasSubstr("slowed: 3 tasks of noop: "), HasSubstr("than 50ms"),
                                          Not(HasSubstr("ago, held")), HasSubstr("nothing is wrong")));
  Noop(facts).running = {};
  facts.ended.clear();
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("nothing claims")));
  facts.brake = Micros(0);
  facts.cluster.emplace().leader = "w1";
  EXPECT_THAT(HeldBy(facts), IsEmpty());
  facts.cluster->holds.speeds["main"] = 0.25;
  EXPECT_THAT(HeldBy(facts), ElementsAre("braked"));
}

TEST(StatusTest, WhatAClustersWorkersSayOfHoldsIsRead) {
  ClusterSnapshot snapshot;
  snapshot.statuses["w1"] = nlohmann::ordered_json::parse(
      R"({"shards":{"main":{"scan_speed":0.5,"bands":[{"handler":"noop","next":"2026-11-20T18:01:00Z"}]}}})");
  snapshot.statuses["w2"] = nlohmann::ordered_json::parse(
      R"({"shards":{"main":{"scan_speed":0.25,"bands":[{"handler":"noop","next":"2026-11-20T18:00:30Z"}]}},
          "limits":7})");
  snapshot.statuses["w1"]["breakers"]["noop"]["next_probe"] = "2026-11-20T18:00:09Z";
  snapshot.statuses["w2"]["breakers"]["noop"]["next_probe"] = "2026-11-20T18:00:08Z";
  snapshot.breakers["noop"].why = "20 of 20 calls failed";
  const ClusterHolds holds = HoldsOf(snapshot);
  EXPECT_EQ(holds.probes, (std::map<std::string, WallTime>{{"noop", kNow + seconds(8)}}));
  EXPECT_EQ(holds.speeds, (std::map<std::string, double>{{"main", 0.25}}));
  EXPECT_EQ(holds.bands, (std::map<std::string, WallTime>{{"noop", kNow + seconds(30)}}));
  StatusFacts facts = Healthy();
  Noop(facts).oldest_due = kNow - minutes(5);
  facts.cluster.emplace().holds = holds;
  facts.handlers["noop"].bands = {{.every = minutes(1)}};
  EXPECT_THAT(StatusText(facts, 0),
              AllOf(HasSubstr("(`handlers.noop.bands`), next in 30 s\n"), Not(HasSubstr("slowed"))))
      << "it waits for its band, however fast the scan is";
  facts.handlers.clear();
  EXPECT_THAT(StatusText(facts, 0),
              HasSubstr("slowed: 3 tasks of noop: scanning of its shard is slowed to 25"));
  facts.workers[0].handlers = {{"exec"}};
  EXPECT_THAT(StatusText(facts, 0), Not(HasSubstr("slowed"))) << "nobody would run it";
}

TEST(StatusTest, WhatIsPausedCannotRun) {
  for (const char* pause : {"cluster", "shard:main", "handler:noop"}) {
    StatusFacts facts = Healthy();
    facts.shards["main"].pauses = {{pause, "ops@app1", kNow - minutes(5)}};
    EXPECT_FALSE(CanRun(facts)) << pause;
    EXPECT_THAT(Findings(facts),
                ElementsAre("none of the tasks that wait can be run: they are paused: ",
                            "paused: " + std::string(pause) +
                                ", by ops@app1 5 min 0 s ago: millrace cluster resume " + pause));
  }
  StatusFacts facts = Healthy();
  facts.shards["main"].pauses = {{"slice:main:tasks:3", "", kNow}};
  EXPECT_TRUE(CanRun(facts)) << "one slice of many";
}

TEST(StatusTest, WhereEveryWorkerIsPausedNothingCanRun) {
  StatusFacts facts = Healthy();
  facts.shards["main"].pauses = {{"worker:w1", "ops@app1", kNow - minutes(5)}};
  EXPECT_FALSE(CanRun(facts));
  EXPECT_THAT(Findings(facts), Contains("none of the tasks that wait can be run: every worker is paused: "));
  EXPECT_THAT(Findings(facts), Contains(HasSubstr("millrace cluster resume worker:w1")));
  facts.workers.push_back({.name = "w2", .life = WorkerLife::Alive});
  EXPECT_TRUE(CanRun(facts));
  facts.workers.back().life = WorkerLife::Gone;
  EXPECT_FALSE(CanRun(facts));
}

TEST(StatusTest, WhatIsDueForLongAndNotClaimedIsSaid) {
  StatusFacts facts = Healthy();
  Noop(facts).oldest_due = kNow - hours(1);
  EXPECT_THAT(Findings(facts), IsEmpty()) << "it is worked on";
  Noop(facts).running = {};
  EXPECT_THAT(Findings(facts), IsEmpty()) << "tasks of it end";
  facts.ended.clear();
  EXPECT_THAT(Findings(facts),
              ElementsAre(AllOf(HasSubstr("nothing claims 3 tasks of noop, the oldest due for 1 h 0 min"),
                                HasSubstr("millrace task why"), Not(HasSubstr("plugin")))));
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("give it here too: --config FILE")));
  facts.has_config = true;
  EXPECT_THAT(Findings(facts), ElementsAre(Not(HasSubstr("--config"))));
  facts.plugin_handlers = {{"exec"}};
  EXPECT_THAT(Findings(facts), ElementsAre(Not(HasSubstr("plugin")))) << "somebody had its handler";
  facts.shards["main"].totals.clear();
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("no plugin at hand has its handler")));
  Noop(facts).oldest_due = kNow - seconds(5);
  EXPECT_THAT(Findings(facts), IsEmpty()) << "a poll may be that long";
}

TEST(StatusTest, AHandlerThatDoesNotOpenIsToldSoonAndWithItsOwnWords) {
  StatusFacts facts = Healthy();
  Noop(facts).running = {};
  facts.ended.clear();
  facts.shards["main"].totals.clear();
  EXPECT_THAT(IdleTypes(facts), IsEmpty()) << "a poll may be that long";
  Noop(facts).oldest_due = kNow - seconds(3);
  EXPECT_THAT(IdleTypes(facts), ElementsAre("noop"));
  EXPECT_THAT(Findings(facts), IsEmpty());
  facts.cannot_open = {{"noop", "'program' is missing"}};
  EXPECT_THAT(Findings(facts),
              ElementsAre("nothing claims 3 tasks of noop, the oldest due for 3 s: "
                          "'program' is missing: mend that in the configuration of the workers; where the "
                          "workers have a configuration of their own, give it here too: --config FILE"));
  facts.shards["main"].totals = {{.table = "tasks", .handler = "noop", .batch = "", .succeeded = 1}};
  EXPECT_THAT(Findings(facts), IsEmpty()) << "the workers have a configuration of their own";
  facts.has_config = true;
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("of the workers")));
  facts.ended = {{"noop", 1}};
  EXPECT_THAT(Findings(facts), IsEmpty()) << "some worker can";
  EXPECT_THAT(IdleTypes(facts), IsEmpty());
}

TEST(StatusTest, WhatWaitsForABreakerIsToldAsThat) {
  StatusFacts facts = Healthy();
  Noop(facts).oldest_due = kNow - hours(1);
  Noop(facts).running = {};
  facts.ended.clear();
  facts.shards["main"].pauses = {
      {"breaker:noop:tripped:w1", "w1", kNow - minutes(5), "20 of 20 calls failed within 10s"}};
  EXPECT_THAT(Findings(facts),
              ElementsAre(AllOf(
                  HasSubstr("the breaker of noop is open, and its tasks wait, by w1 5 min 0 s ago: 20 of "
                            "20 calls failed within 10s"),
                  HasSubstr("closed until millrace handler breaker noop auto"))));
  facts.shards["main"].pauses[0].what = "breaker:noop:tripped:gone";
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("nothing claims 3 tasks of noop")))
      << "nobody lives to close it";
}

TEST(StatusTest, ATypeThatNoLivingWorkerHasIsSaid) {
  StatusFacts facts = Healthy();
  Noop(facts).oldest_due = kNow - hours(1);
  facts.workers[0].handlers = {{"exec"}};
  const std::string none = "none of the tasks that wait can be run: ";
  EXPECT_THAT(Findings(facts), ElementsAre(none + "no living worker has their handlers: ",
                                           HasSubstr("no living worker has the handler noop for 3 tasks")));
  EXPECT_FALSE(CanRun(facts));
  StatusFacts both = facts;
  both.shards["main"].waiting.handlers.push_back(
      {.table = "tasks", .handler = "report", .waiting = {1, false}});
  both.shards["main"].pauses = {{"handler:report", "ops@app1", kNow}};
  EXPECT_THAT(Findings(both),
              Contains(none + "some are paused, and no living worker has the handlers of the others: "));
  facts.workers.push_back(facts.workers[0]);
  facts.workers[1].handlers = {{"noop"}};
  EXPECT_TRUE(CanRun(facts));
  Noop(facts).handler = "millrace.mail";
  EXPECT_THAT(Findings(facts), Not(Contains(HasSubstr("no living worker has")))) << "every worker has it";
}

TEST(StatusTest, NumbersThatNobodyServesAreSaid) {
  StatusFacts facts = Healthy();
  facts.workers[0].load_balance = "0-31";
  EXPECT_THAT(Findings(facts), ElementsAre(AllOf(HasSubstr("load-balance numbers 32-63 of shard main"),
                                                 HasSubstr("--load-balance 32-63"))));
  facts.workers.push_back(facts.workers[0]);
  facts.workers[1].load_balance = "20-63";
  EXPECT_THAT(Findings(facts), IsEmpty());
  facts.workers[1].life = WorkerLife::Gone;
  EXPECT_THAT(Findings(facts), Contains(HasSubstr("32-63")));
  facts.workers[0].load_balance = "of a later version";
  EXPECT_THAT(Findings(facts), Not(Contains(HasSubstr("load-balance numbers")))) << "it may serve them all";
}

TEST(StatusTest, QuarantinedTasksAreSaidByType) {
  StatusFacts facts = Healthy();
  facts.shards["main"].failed = {
      .classes = {{.table = "tasks", .handler = "noop", .error_class = "crash", .count = 2, .at = kNow},
                  {.table = "tasks", .handler = "noop", .error_class = "timeout", .count = 7, .at = kNow}},
      .looked_at = 9,
      .all = true};
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("2 tasks of noop are in quarantine")));
  EXPECT_THAT(StatusText(facts, 80), AllOf(HasSubstr("failures by class: "), HasSubstr("timeout")));
}

TEST(StatusTest, FailedTasksWaitForAPersonAndKeepNothingFromRunning) {
  StatusFacts facts = Healthy();
  facts.shards["main"].totals[0].failed = 1;
  EXPECT_THAT(Findings(facts), ElementsAre("1 task has failed and waits for a person: "
                                           "millrace task list --state failed"));
  facts.shards["main"].totals.push_back({.table = "tasks", .handler = "exec", .batch = "june", .failed = 3});
  EXPECT_THAT(StatusText(facts, 0), AllOf(HasSubstr("! 4 tasks have failed and wait for a person"),
                                          Not(HasSubstr("nothing is wrong"))));
  EXPECT_TRUE(CanRun(facts));
}

TEST(StatusTest, OfManyFailuresItSaysHowManyWereLookedAt) {
  StatusFacts facts = Healthy();
  facts.shards["main"].totals[0].failed = 12'000;
  facts.shards["main"].failed = {
      .classes = {{.table = "tasks", .handler = "noop", .count = 2'000, .at = kNow}}, .looked_at = 2'000};
  EXPECT_THAT(StatusText(facts, 80), HasSubstr("among the newest 2,000 of 12,000"));
}

TEST(StatusTest, AShardThatIsAwayIsNotTakenForEmpty) {
  StatusFacts facts = Healthy();
  facts.shards["east"].address = "mysql://db2:3306/work";
  facts.shards["east"].error = "the server does not answer";
  EXPECT_THAT(Findings(facts),
              ElementsAre(HasSubstr("shard east can't be read: the server does not answer")));
  EXPECT_THAT(StatusText(facts, 80), HasSubstr("east        ?        ?       ?  mysql://db2:3306/work"));
  EXPECT_EQ(StatusJson(facts)["shards"][0]["error"], "the server does not answer");
  StatusFacts nothing;
  nothing.shards["east"].error = "the server does not answer";
  EXPECT_THAT(StatusText(nothing, 80), Not(HasSubstr("there are no tasks")));
  EXPECT_THAT(StatusText(nothing, 80), Not(HasSubstr("no worker is registered")));
}

TEST(StatusTest, WhatTheTablesSayOfShardsAndWorkersIsInJsonToo) {
  StatusFacts facts = Healthy();
  facts.shards["main"].totals[0].failed = 2;
  facts.workers[0].load_balance = "0-31";
  facts.shards["west"].error = "the server does not answer";
  const auto json = StatusJson(facts);
  EXPECT_EQ(json["shards"][0]["waiting"].dump(), R"({"count":3,"more":false})");
  EXPECT_EQ(json["shards"][0]["failed"], 2);
  EXPECT_TRUE(json["shards"][1]["waiting"].is_null()) << "it is not known";
  EXPECT_TRUE(json["shards"][1]["failed"].is_null());
  EXPECT_EQ(json["workers"][0]["serves"], "0-31");
  facts.workers[0].load_balance = "";
  EXPECT_TRUE(StatusJson(facts)["workers"][0]["serves"].is_null());
}

TEST(StatusTest, AClusterThatStandsStillCannotRun) {
  StatusFacts facts = Healthy();
  facts.cluster = StatusCluster{.leader = "",
                                .standstill = {{"nobody leads", "start one"}},
                                .troubles = {{"nobody leads", "start one"}}};
  EXPECT_FALSE(CanRun(facts));
  EXPECT_THAT(StatusText(facts, 80), HasSubstr("! nobody leads\n  start one"));
}

TEST(StatusTest, APauseOfTheClusterIsSaidOnce) {
  StatusFacts facts = Healthy();
  facts.shards["main"].pauses = {{"cluster", "ops", kNow}};
  facts.cluster =
      StatusCluster{.leader = "w1", .troubles = {{"paused: cluster", "resume it"}}, .pauses = {"cluster"}};
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("none of the tasks"), "paused: cluster: resume it"));
  EXPECT_FALSE(CanRun(facts));
}

TEST(StatusTest, AlertsAreShownWhereTheyAreConfigured) {
  StatusFacts facts = Healthy();
  EXPECT_THAT(StatusText(facts, 80), Not(HasSubstr("alert")));
  EXPECT_FALSE(StatusJson(facts).contains("alerts"));
  facts.alerts = {{{.name = "late", .fires = false, .text = ""}}};
  EXPECT_THAT(StatusText(facts, 80), HasSubstr("1 alert configured, none fires"));
  facts.alerts->push_back({.name = "failed", .fires = true, .text = "3 tasks of noop failed"});
  EXPECT_THAT(Findings(facts), ElementsAre(HasSubstr("alert failed: 3 tasks of noop failed")));
  facts.alerts->front().fires.reset();
  EXPECT_THAT(StatusText(facts, 80), HasSubstr("2 alerts configured, 1 or more fire\n"));
  EXPECT_TRUE(StatusJson(facts)["alerts"][0]["fires"].is_null());
  facts.alerts->pop_back();
  EXPECT_THAT(StatusText(facts, 80), HasSubstr("1 alert configured, ? fire\n"));
  EXPECT_THAT(Findings(facts), IsEmpty());
}

TEST(StatusTest, ABoundIsShownAsOne) {
  StatusFacts facts = Healthy();
  Noop(facts).waiting = {kExactBacklog, true};
  EXPECT_THAT(StatusText(facts, 80), HasSubstr("10,000+"));
  Noop(facts).running = {0, true};
  EXPECT_THAT(StatusText(facts, 80), AllOf(HasSubstr("  ?  "), Not(HasSubstr(" 0+"))));
  const auto json = StatusJson(facts);
  EXPECT_EQ(json["handlers"][0]["waiting"]["count"], kExactBacklog);
  EXPECT_EQ(json["handlers"][0]["waiting"]["more"], true);
}

TEST(StatusTest, ItFitsEightyColumnsWhateverItTells) {
  StatusFacts facts = Healthy();
  ShardFacts& shard = facts.shards["main"];
  shard.waiting.handlers[0].handler = std::string(64, 'h');
  shard.waiting.handlers[0].waiting = {kExactBacklog, true};
  shard.waiting.handlers[0].held = {kExactBacklog, true};
  shard.waiting.handlers[0].oldest_due = kNow - hours(40);
  shard.totals = {{.table = "tasks",
                   .handler = std::string(64, 'h'),
                   .batch = std::string(64, 'b'),
                   .succeeded = 123'456'789,
                   .cancelled = 12'345,
                   .failed = 123'456}};
  shard.failed = {.classes = {{.table = "tasks",
                               .handler = std::string(64, 'h'),
                               .error_class = std::string(64, 'c'),
                               .count = 1,
                               .at = kNow - hours(3),
                               .error = std::string(200, 'e')}}};
  shard.pauses = {{"handler:" + std::string(64, 'h'), "somebody@a-host-with-a-long-name", kNow}};
  facts.workers[0].name = std::string(60, 'w');
  facts.workers[0].place = "a-host-with-a-long-name.example.com:1234567";
  facts.workers[0].running = 12'345;
  facts.workers[0].ended_per_second = 123'456;
  facts.workers[0].slices = 16'384;
  facts.ended = {{std::string(64, 'h'), 123'456}};
  const std::string text = StatusText(facts, 80);
  // A name that a command has to be typed with is not cut.
  std::size_t at = text.find("\n! ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LE(Widest(text.substr(0, at)), 80U) << text;
}

TEST(StatusTest, ARateThatWasNotMeasuredIsNotZero) {
  StatusFacts facts = Healthy();
  const auto row = [&] {
    const std::string text = StatusText(facts, 0);
    const std::size_t at = text.find("\nnoop ") + 1;
    return text.substr(at, text.find('\n', at) - at);
  };
  facts.ended.clear();
  facts.window = std::chrono::seconds(2);
  const std::string measured = row();
  facts.window.reset();
  EXPECT_NE(row(), measured);
  EXPECT_THAT(row(), HasSubstr(" - "));
}

TEST(StatusTest, APipeHasTheSameColumnsWhateverStandsInThem) {
  const auto titles = [](const StatusFacts& facts, const std::string& first) {
    const std::string text = StatusText(facts, 0);
    const std::size_t at = text.find("\n" + first + " ") + 1;
    std::vector<std::string> words;
    std::istringstream line(text.substr(at, text.find('\n', at) - at));
    for (std::string word; line >> word;) words.push_back(word);
    return words;
  };
  StatusFacts facts = Healthy();
  const auto of_types = titles(facts, "handler");
  const auto of_workers = titles(facts, "worker");
  EXPECT_THAT(of_types, ElementsAre("handler", "waiting", "running", "held", "failed", "cancelled",
                                    "succeeded", "ended/s", "oldest", "due"));
  EXPECT_THAT(of_workers, ElementsAre("worker", "state", "last", "sign", "running", "tasks/s", "slices",
                                      "serves", "host:pid"));
  Noop(facts).handler = std::string(64, 'h');
  Noop(facts).waiting = {kExactBacklog, true};
  Noop(facts).oldest_due = kNow - hours(40);
  facts.shards["main"].totals[0].cancelled = 123'456'789;
  facts.workers[0].place = std::string(64, 'p');
  EXPECT_EQ(titles(facts, "handler"), of_types);
  EXPECT_EQ(titles(facts, "worker"), of_workers);
}

TEST(StatusTest, OfManyTypesTheFullestAreShown) {
  StatusFacts facts = Healthy();
  for (std::uint64_t i = 0; i < 30; ++i) {
    facts.shards["main"].waiting.handlers.push_back(
        {.table = "tasks", .handler = "type" + std::to_string(i), .waiting = {i, false}});
  }
  const std::string text = StatusText(facts, 80);
  EXPECT_THAT(text, AllOf(HasSubstr("type29"), Not(HasSubstr("type0 ")), HasSubstr("… and 11 more")));
  EXPECT_EQ(StatusJson(facts)["handlers"].size(), 31U);
}

}  // namespace
}  // namespace millrace::engine

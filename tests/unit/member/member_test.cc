#include "coordinator/member/member.h"

#include <gmock/gmock.h>

#include "coordinator/coordination/fixed_nodes.h"
#include "tests/support/machine_room.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class MemberTest : public testing::Test {
 protected:
  std::unique_ptr<Member> Make(const std::string& life, std::string file = "") {
    MemberOptions options{"w1", WorkerDocument{.host = "h", .pid = 7, .incarnation = life}};
    return std::make_unique<Member>(
        options, ConfigLayers(std::move(file), "conf.json"),
        Member::Calls{[this](const MemberView& view) { published_ = view; },
                      [this] { return status_; },
                      nullptr,
                      {},
                      {},
                      {},
                      {},
                      [this](const EngineConfig& engine) { return Listens(engine); }});
  }
  // As a process that has tried this address last.
  std::optional<std::string> Listens(const EngineConfig& engine) {
    return engine.http == tried_ ? std::optional(no_address_) : std::nullopt;
  }
  void Join() {
    room_.Add(*member_);
    ASSERT_TRUE(room_.Settle());
  }
  void Assign(const std::string& slices, std::uint64_t generation = 1, const std::string& more = "") {
    room_.Put("/assign/w1", R"({"epoch":1,"generation":)" + std::to_string(generation) + R"(,"slices":[)" +
                                slices + "]" + more + "}");
    ASSERT_TRUE(room_.Settle());
  }

  MachineRoom room_;
  MemberView published_;
  std::string status_ = "{}";
  std::string tried_;
  std::string no_address_;
  std::unique_ptr<Member> member_ = Make("w1.a");
};

TEST_F(MemberTest, RegistersAndTellsItsStatus) {
  Join();
  EXPECT_TRUE(member_->Registered());
  EXPECT_EQ(ReadWorker(room_.Data("/workers/w1"))->incarnation, "w1.a");
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr(R"("generation":0)"));
  status_ = R"({"running":3})";
  ASSERT_TRUE(room_.Pass(seconds(2)));
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr(R"("running":3)"));
}

TEST_F(MemberTest, AStatusThatStaysTheSameIsWrittenAgainAsASignOfLife) {
  Join();
  const auto version = room_.Version("/status/w1");
  ASSERT_TRUE(room_.Pass(seconds(55)));
  EXPECT_EQ(room_.Version("/status/w1"), version) << "nothing is new";
  ASSERT_TRUE(room_.Pass(seconds(8)));
  EXPECT_EQ(room_.Version("/status/w1"), version + 1);
}

TEST_F(MemberTest, AStatusThatWouldNotFitIntoANodeIsCutToItsNumbers) {
  status_ = R"({"running":3,"paused":[")" + std::string(300'000, 'x') + R"("]})";
  for (int i = 0; i < 100; ++i) room_.Put("/control/pause/nonsense" + std::to_string(i), "");
  Join();
  const std::string& told = room_.Data("/status/w1");
  EXPECT_LE(told.size(), 80u * 1024);
  EXPECT_THAT(told, HasSubstr(R"("running":3)"));
  EXPECT_THAT(told, HasSubstr("control/pause/nonsense0"));
  EXPECT_THAT(told, HasSubstr("and 80 more"));
}

// Shares are given, and taken back, by it.
TEST_F(MemberTest, AStatusThatIsCutTellsWhatTheLeaderGoesBy) {
  status_ =
      R"({"running":3,"limits":{"mail":{"running":5,"wants_rate":true}},"shards":{"main":{"unrunnable":[")" +
      std::string(300'000, 'x') +
      R"("],"incarnation":"w1.db"}},"breakers":{"mail":{"open":true,"why":"x"}}})";
  Join();
  const std::string& told = room_.Data("/status/w1");
  EXPECT_LE(told.size(), 80u * 1024);
  const auto status = ReadStatus(told);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(status->lives, ElementsAre("w1.db"));
  EXPECT_EQ(status->limits.at("mail").running, 5u);
  EXPECT_TRUE(status->limits.at("mail").wants_rate);
  EXPECT_THAT(status->breakers, ElementsAre("mail"));
}

TEST_F(MemberTest, AStatusThatIsRefusedIsNotTriedAgainAtOnce) {
  room_.Put("/status/w1", "");
  room_.Put("/status/w1/notes", "by hand");
  Join();  // it comes to rest
  EXPECT_TRUE(member_->Registered());
  room_.Write({{TreeWrite::Kind::Remove, "/status/w1/notes"}});
  ASSERT_TRUE(room_.Pass(seconds(2)));
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr("w1.a"));
}

TEST_F(MemberTest, FollowsItsAssignment) {
  Join();
  EXPECT_TRUE(published_.contact);
  Assign(R"("main/tasks/3","main/tasks/1","east/t/0")");
  ASSERT_EQ(published_.slices->at("main").size(), 1u);
  EXPECT_THAT(published_.slices->at("main")[0].slices, ElementsAre(1u, 3u));
  EXPECT_FALSE(published_.slices->at("main")[0].handlers);
  EXPECT_EQ(published_.generation, 1u);
  Assign("", 2);
  EXPECT_THAT(*published_.slices, IsEmpty());
}

TEST_F(MemberTest, SlicesOfGroupsAreLimitedToTheirTypes) {
  Join();
  Assign(R"("main/tasks/1@a","main/tasks/1@b")", 1, R"(,"groups":{"a":["a","c"],"b":["*"]})");
  ASSERT_EQ(published_.slices->at("main").size(), 2u);
  EXPECT_EQ(published_.slices->at("main")[0].handlers, (std::vector<std::string>{"a", "c"}));
  EXPECT_FALSE(published_.slices->at("main")[1].handlers);  // every other type
}

TEST_F(MemberTest, RubbishInItsAssignmentChangesNothingAndIsReported) {
  Join();
  Assign(R"("main/tasks/3")");
  room_.Put("/assign/w1", "rubbish");
  ASSERT_TRUE(room_.Settle());
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("assign/w1")));
  EXPECT_EQ(published_.slices->size(), 1u);
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr("assign/w1"));
  Assign(R"("main/tasks/x")", 2);
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("'main/tasks/x' is not a slice")));
  Assign(R"("main/tasks; DROP TABLE tasks/1")", 3);
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("names no task table")));
  Assign(R"("main/tasks/4")", 4);
  EXPECT_THAT(published_.refusals, IsEmpty());
}

TEST_F(MemberTest, AnAssignmentHasPages) {
  Join();
  Assign(R"("main/tasks/3")");
  room_.Put("/assign/w1/1", R"({"epoch":1,"generation":5,"slices":["main/tasks/9"]})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_THAT(published_.slices->at("main")[0].slices, ElementsAre(3u, 9u));
  EXPECT_EQ(published_.generation, 5u);
}

// A page may be read before another of the same generation: what it names is not in force by that.
TEST_F(MemberTest, SharesAreConfirmedByTheirOwnPage) {
  Join();
  Assign(R"("main/tasks/3")", 3, R"(,"shares":{"mail":{"permits":2}},"shares_of":"w1.a")");
  room_.Put("/assign/w1/1", R"({"epoch":1,"generation":5,"slices":["main/tasks/9"],"shares_of":"w1.a"})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(published_.shares->at("mail").permits, 2u);
  auto status = ReadStatus(room_.Data("/status/w1"));
  EXPECT_EQ(status->generation, 5u);
  EXPECT_EQ(status->shares_generation, 3u);
  Assign(R"("main/tasks/3")", 5, R"(,"shares":{},"shares_of":"w1.a")");
  status = ReadStatus(room_.Data("/status/w1"));
  EXPECT_EQ(status->shares_generation, 5u) << "told at once, though the generation is no news";
}

TEST_F(MemberTest, WhatIsNoPageIsLeftAlone) {
  Join();
  Assign(R"("main/tasks/3")");
  for (const char* name : {"notes", "0", "01", "1x"}) room_.Put("/assign/w1/" + std::string(name), "by hand");
  Assign(R"("main/tasks/4")", 2);
  EXPECT_THAT(published_.refusals, IsEmpty());
  EXPECT_THAT(published_.slices->at("main")[0].slices, ElementsAre(4u));
}

TEST_F(MemberTest, EachPageHasGroupsOfItsOwn) {
  Join();
  room_.Put("/assign/w1/1", R"({"epoch":1,"generation":1,"slices":[],"groups":{"a":["a"],"b":["b"]}})");
  Assign(R"("main/tasks/3")", 2);  // there is one group again, and the page that is empty does not know
  EXPECT_THAT(published_.refusals, IsEmpty());
  ASSERT_EQ(published_.slices->at("main").size(), 1u);
  EXPECT_FALSE(published_.slices->at("main")[0].handlers);
}

TEST_F(MemberTest, ConfigurationIsLiveUnderTheFile) {
  member_ = Make("w1.a", R"({"engine":{"poll":"50ms"}})");
  Join();
  room_.Put("/config/engine", R"({"poll":"1s","batch":10})");
  room_.Put("/config/handlers", R"({"noop":{"concurrency":9}})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(published_.config->engine.poll, milliseconds(50));
  EXPECT_EQ(published_.config->engine.batch, 10u);
  EXPECT_EQ(published_.config->HandlerFor("noop").concurrency, 9u);
}

TEST_F(MemberTest, ABadDocumentIsRefusedWholeAndTheLastGoodOneStays) {
  Join();
  room_.Put("/config/handlers", R"({"noop":{"concurrency":9}})");
  room_.Settle();
  room_.Put("/config/handlers", "{\"noop\":{\"timeout\":\"1m\"},\n\"b\":{\"concurrencyy\":1}}");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(published_.config->HandlerFor("noop").concurrency, 9u);
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("config/handlers:2: handlers.b.concurrencyy")));
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr("concurrencyy"));
  room_.Put("/config/handlers", "{}");
  ASSERT_TRUE(room_.Settle());
  EXPECT_THAT(published_.refusals, IsEmpty());
}

// Whoever sets a part asks each worker what it has made of it.
TEST_F(MemberTest, ItTellsAtOnceWhichVersionOfAPartItHasReadAndWhyThatIsNotInForce) {
  Join();
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr(R"("handlers":{"version":0,"made":)"));
  room_.Put("/config/handlers", "{ }");  // another version, and nothing new
  ASSERT_TRUE(room_.Settle());
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr(R"("handlers":{"version":1,"made":)"));
  room_.Put("/config/handlers", R"({"b":{"concurrencyy":1}})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_THAT(room_.Data("/status/w1"),
              AllOf(HasSubstr(R"("handlers":{"version":2,"made":)"),
                    HasSubstr(R"(,"refused":"config/handlers:1: )"), HasSubstr(R"("engine":{"version":0,)")));
}

TEST_F(MemberTest, AnAddressThatCannotBeListenedOnIsARefusalOnceItWasTried) {
  Join();
  room_.Put("/config/engine", R"({"http":"127.0.0.1:9090"})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(published_.config->engine.http, "127.0.0.1:9090");
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr(R"("engine":{"version":0,)")) << "it was not tried yet";
  tried_ = "127.0.0.1:9090";
  no_address_ = "engine.http: another has it";
  ASSERT_TRUE(room_.Pass(milliseconds(100)));
  EXPECT_THAT(room_.Data("/status/w1"), AllOf(HasSubstr(R"("engine":{"version":1,)"),
                                              HasSubstr(R"("refused":"engine.http: another has it")")));
  EXPECT_THAT(published_.refusals, ElementsAre("config/engine: engine.http: another has it"));
  no_address_.clear();
  ASSERT_TRUE(room_.Pass(seconds(2)));
  EXPECT_THAT(published_.refusals, IsEmpty());
  EXPECT_THAT(room_.Data("/status/w1"), Not(HasSubstr("another has it")));
}

TEST_F(MemberTest, TheNumberOfTheSchedulesIsThatOfTheDocumentInForce) {
  Join();
  const char* good = R"({"a":{"every":"1m","handler":"noop"}})";
  room_.Put("/config/schedules", good);
  ASSERT_TRUE(room_.Settle());
  const std::int64_t first = published_.schedules_number;
  EXPECT_GT(first, 0);
  room_.Put("/config/schedules", R"({"a":{"every":"1m"}})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(published_.schedules_number, first);
  room_.Put("/config/schedules", good);
  ASSERT_TRUE(room_.Settle());
  const std::int64_t third = published_.schedules_number;
  EXPECT_EQ(third, first + 2);
  // A node made anew counts its versions from 0.
  room_.Write({{TreeWrite::Kind::Remove, "/config/schedules"},
               {TreeWrite::Kind::Create, "/config/schedules", R"({"b":{"every":"1m","handler":"noop"}})"}});
  ASSERT_TRUE(room_.Settle());
  EXPECT_GT(published_.schedules_number, third);
}

TEST_F(MemberTest, BytesThatAreNoTextAreRefusedAndToldAsFarAsTheyCanBe) {
  Join();
  room_.Put("/config/handlers", "{\"\xff\":{\"concurrency\":1}}");
  ASSERT_TRUE(room_.Settle());
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("config/handlers")));
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr("ill-formed UTF-8"));
}

TEST_F(MemberTest, AConfigurationThatWasDeletedStaysInForceAndIsMadeAgain) {
  Join();
  room_.Put("/config/handlers", R"({"noop":{"concurrency":9}})");
  room_.Settle();
  room_.Delete("/config");
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_EQ(published_.config->HandlerFor("noop").concurrency, 9u);
  EXPECT_EQ(room_.Data("/config/handlers"), R"({"noop":{"concurrency":9}})");
  EXPECT_EQ(room_.Data("/config/engine"), "{}");
}

TEST_F(MemberTest, APartAsLargeAsOneMayBeIsMadeAgainToo) {
  Join();
  const std::string said = R"({"noop":{"concurrency":9}})" + std::string(290'000, ' ');
  room_.Put("/config/handlers", said);
  room_.Settle();
  room_.Delete("/config");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(room_.Pass(seconds(11)));
  ASSERT_TRUE(room_.Has("/config/alerts")) << "nor does it hold up the others";
  EXPECT_EQ(room_.Data("/config/handlers"), said);
  EXPECT_EQ(room_.Data("/config/engine"), "{}");
}

TEST_F(MemberTest, AConfigurationThatANewProcessMakesEmptyAfterADeleteIsGivenBackItsWord) {
  const char* said = R"({"noop":{"concurrency":9}})";
  Join();
  room_.Put("/config/handlers", said);
  room_.Settle();
  room_.Write(
      {{TreeWrite::Kind::Remove, "/config/handlers"}, {TreeWrite::Kind::Create, "/config/handlers", "{}"}});
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(published_.config->HandlerFor("noop").concurrency, 9u);
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_EQ(room_.Data("/config/handlers"), said);
  const auto notes = ReadMadeAgain(room_.Data("/"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0].nodes, ElementsAre("/config/handlers"));
  room_.Put("/config/handlers", "{}");
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_EQ(room_.Data("/config/handlers"), "{}");
  EXPECT_NE(published_.config->HandlerFor("noop").concurrency, 9u);
}

TEST_F(MemberTest, AWordThatAPersonSaysInANodeOfItsOwnAfterADeleteIsTaken) {
  Join();
  room_.Put("/config/handlers", R"({"noop":{"concurrency":9}})");
  room_.Settle();
  room_.Write({{TreeWrite::Kind::Remove, "/config/handlers"},
               {TreeWrite::Kind::Create, "/config/handlers", R"({"noop":{"concurrency":7}})"}});
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_EQ(published_.config->HandlerFor("noop").concurrency, 7u);
}

// Said after the mirror was read, in the node that was empty there.
TEST_F(MemberTest, WhatIsMadeAgainOverwritesNoNewerWord) {
  TreeMirror mirror;
  TrackFixedNodes(mirror);
  while (const auto request = mirror.NextRead()) mirror.Replied(*request, room_.Read(*request));
  const TreeRequest again = MakeAgain(mirror, {"/config/handlers"}, "", "w1", [](const std::string&) {
    return std::string(R"({"noop":{"concurrency":9}})");
  });
  room_.Put("/config/handlers", R"({"noop":{"concurrency":7}})");
  EXPECT_EQ(room_.Write(again.writes), TreeStatus::Conflict);
  EXPECT_EQ(room_.Data("/config/handlers"), R"({"noop":{"concurrency":7}})");
}

TEST_F(MemberTest, WhatItMakesAgainIsNotedForPeople) {
  Join();
  room_.Delete("/control");
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(room_.Has("/control/pause"));
  room_.Delete("/history");
  ASSERT_TRUE(room_.Pass(seconds(1)));
  const auto notes = ReadMadeAgain(room_.Data("/"));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes[0].nodes, testing::Contains("/control/drain"));
  EXPECT_THAT(notes[1].nodes, ElementsAre("/history"));
  EXPECT_EQ(notes[1].by, "w1");
}

TEST_F(MemberTest, AnEpochThatItMakesAgainIsNotBelowTheTermOfItsPages) {
  Join();
  room_.Put("/assign/w1", R"({"epoch":7,"generation":1,"slices":["main/tasks/0"]})");
  ASSERT_TRUE(room_.Settle());
  room_.Delete("/");
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_EQ(ReadEpoch(room_.Data("/epoch"))->epoch, 7u);
}

TEST_F(MemberTest, WithoutTheFolderOfWorkersItIsNotRegisteredBeforeThatIsMade) {
  Join();
  room_.RefuseNext();
  room_.Delete("/workers");
  const int before = room_.writes();
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(room_.Pass(seconds(9)));
  EXPECT_EQ(room_.writes(), before);
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_TRUE(member_->Registered());
  EXPECT_TRUE(room_.Has("/workers/w1"));
}

TEST_F(MemberTest, WhatItMayNotMakeIsNotTriedAllTheTime) {
  Join();
  room_.RefuseNext();
  room_.Delete("/history");
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(room_.Pass(seconds(9)));
  EXPECT_FALSE(room_.Has("/history"));
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_TRUE(room_.Has("/history"));
}

TEST_F(MemberTest, ANodeThatItMayNotReadHoldsUpNothingAndIsNamed) {
  for (const std::string path : {"/", "/control", "/config", "/config/engine", "/config/handlers",
                                 "/control/pause", "/control/limits/w1", "/assign/w1", "/status/w1"}) {
    SCOPED_TRACE(path);
    if (!room_.Has(path)) room_.Put(path, "{}");
    room_.Deny(path);
    member_ = Make("w1.a" + path);
    Join();
    EXPECT_TRUE(member_->Registered());
    const std::string name = path == "/" ? path : path.substr(1);
    EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr(name + ": ZooKeeper does not let")));
    room_.Allow(path);
    ASSERT_TRUE(room_.Pass(seconds(11)));
    EXPECT_THAT(published_.refusals, IsEmpty());
    room_.Kill(*member_);
  }
}

TEST_F(MemberTest, WhatItMayReadNoMoreIsAsItWasReadLast) {
  room_.Put("/config/engine", R"({"batch":9})");
  Join();
  Assign(R"("main/tasks/3")");
  for (const char* path : {"/config/engine", "/assign/w1"}) room_.Deny(path);
  room_.Put("/config/engine", R"({"batch":10})");
  Assign("", 2);
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("assign/w1"), HasSubstr("config/engine")));
  EXPECT_EQ(published_.config->engine.batch, 9u);
  EXPECT_EQ(published_.slice_count, 1u);
  room_.Reconnect(*member_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(published_.slice_count, 1u);
  for (const char* path : {"/config/engine", "/assign/w1"}) room_.Allow(path);
  ASSERT_TRUE(room_.Pass(seconds(11)));
  EXPECT_EQ(published_.config->engine.batch, 10u);
  EXPECT_EQ(published_.slice_count, 0u);
}

// It may name shards, or say for how long tasks are kept.
TEST_F(MemberTest, APartThatItMayNotReadIsRefusedNotEmpty) {
  for (const char* path : {"/config/shards", "/config/handlers"}) room_.Deny(path);
  Join();
  EXPECT_TRUE(published_.shards_refused);
  EXPECT_THAT(published_.config_read["shards"].refused, HasSubstr("does not let"));
  EXPECT_THAT(published_.config_read["handlers"].refused, HasSubstr("does not let"));
}

TEST_F(MemberTest, WhereItsOwnNodeMayNotBeReadItDoesNotRegisterAndSaysSo) {
  room_.Put("/workers/w1", "somebody's");
  room_.Deny("/workers/w1");
  Join();
  EXPECT_FALSE(member_->Registered());
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("workers/w1: ZooKeeper does not let")));
  room_.Write({{TreeWrite::Kind::Remove, "/workers/w1"}});
  room_.Allow("/workers/w1");
  ASSERT_TRUE(room_.Pass(seconds(11)));
  EXPECT_TRUE(member_->Registered());
}

TEST_F(MemberTest, PausesAreFollowedAndBadNamesReported) {
  Join();
  room_.Put("/control/pause/handler:noop", "");
  room_.Put("/control/pause/nonsense", "");
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(published_.pauses->Covers("main", "tasks", 1, "noop"));
  EXPECT_FALSE(published_.pauses->Covers("main", "tasks", 1, "other"));
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("control/pause/nonsense")));
}

TEST_F(MemberTest, LimitsNarrowWhatItAcceptsLive) {
  Join();
  Assign(R"("main/tasks/3")");
  room_.Put("/control/limits/w1", R"({"handlers":["b","a"],"load_balance":"0-3"})");
  ASSERT_TRUE(room_.Settle());
  const auto document = ReadWorker(room_.Data("/workers/w1"));
  EXPECT_EQ(document->limits.handlers, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(document->limits.load_balance, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(member_->View().slices->at("main")[0].handlers, (std::vector<std::string>{"a", "b"}));
  room_.Write({{TreeWrite::Kind::Remove, "/control/limits/w1"}});
  ASSERT_TRUE(room_.Settle());
  EXPECT_FALSE(ReadWorker(room_.Data("/workers/w1"))->limits.handlers);
}

TEST_F(MemberTest, RowsOfARoundCanBeLimitedForThisWorkerAlone) {
  Join();
  const auto rows = [this] { return member_->View().config->HandlerFor("report").scan->max_rows; };
  room_.Put("/control/limits/w1", R"({"max_rows":{"report":50,"other":7}})");
  room_.Put("/config/handlers", R"({"report":{"scan":{"every":"5m","max_rows":1000}}})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(rows(), 50u);
  EXPECT_FALSE(member_->View().config->HandlerFor("other").scan);
  room_.Put("/config/handlers", R"({"report":{"scan":{"every":"5m","max_rows":2000}}})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(rows(), 50u) << "a new configuration changes nothing of it";
  room_.Put("/control/limits/w1", R"({"max_rows":{"report":0}})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(rows(), 50u);
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("'max_rows' of 'report' must be 1")));
  room_.Write({{TreeWrite::Kind::Remove, "/control/limits/w1"}});
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(rows(), 2000u);
}

TEST_F(MemberTest, KeepsToItsNumbersBeforeThePlanHasHeardOfThem) {
  Join();
  Assign(R"("main/tasks/3","main/tasks/9")");
  room_.Put("/control/limits/w1", R"({"load_balance":"0-3"})");
  ASSERT_TRUE(room_.Settle());
  ASSERT_EQ(published_.slices->at("main").size(), 1u);
  EXPECT_THAT(published_.slices->at("main")[0].slices, ElementsAre(3u));
  room_.Put("/control/limits/w1", R"({"load_balance":"20"})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_THAT(published_.slices->at("main"), IsEmpty());
}

TEST_F(MemberTest, KeepsToItsOwnLimitsThoughThoseOfTheOperatorsCanNotBeRead) {
  MemberOptions options{"w1", WorkerDocument{.host = "h", .incarnation = "w1.a"}};
  options.document.limits.load_balance = {{0, 1, 2, 3}};
  options.document.limits.shards = {{"main"}};
  options.handlers = {{"a"}};
  member_ = std::make_unique<Member>(
      options, ConfigLayers(),
      Member::Calls{[this](const MemberView& view) { published_ = view; }, nullptr, nullptr});
  room_.Put("/control/limits/w1", "rubbish");
  Join();
  Assign(R"("main/tasks/3","main/tasks/9","east/tasks/1")");
  EXPECT_THAT(published_.refusals, ElementsAre(HasSubstr("control/limits/w1")));
  ASSERT_EQ(published_.slices->at("main").size(), 1u);
  EXPECT_THAT(published_.slices->at("main")[0].slices, ElementsAre(3u));
  EXPECT_EQ(published_.slices->at("main")[0].handlers, std::vector<std::string>{"a"});
  EXPECT_THAT(published_.slices->at("east"), IsEmpty());
}

TEST_F(MemberTest, ItsLeaveIsWrittenInTheMomentInWhichItsNodeGoes) {
  Join();
  const int writes = room_.writes();
  room_.Leave(*member_);
  EXPECT_EQ(room_.writes(), writes + 1);
  EXPECT_FALSE(room_.Has("/workers/w1"));
  EXPECT_EQ(room_.Data("/leave/w1.a"), "w1");
}

// It was told to stop in the moment in which it had written its node: that has not been read back.
TEST_F(MemberTest, ItLeavesInGoodOrderThoughItHasJustWrittenItsNode) {
  for (const TreeStatus told : {TreeStatus::Ok, TreeStatus::Lost}) {
    member_ = Make(told == TreeStatus::Ok ? "w1.a" : "w1.b");
    Join();
    room_.Put("/control/limits/w1",
              told == TreeStatus::Ok ? R"({"shards":["east"]})" : R"({"shards":["west"]})");
    auto request = member_->Next(room_.now());
    while (request && request->kind != TreeRequest::Kind::Write) {
      member_->Replied(*request, room_.Read(*request), room_.now());
      request = member_->Next(room_.now());
    }
    ASSERT_TRUE(request);
    ASSERT_EQ(request->writes.front().path, "/workers/w1");
    ASSERT_EQ(room_.Write(request->writes), TreeStatus::Ok);
    member_->Replied(*request, {.status = told}, room_.now());
    room_.Leave(*member_);
    EXPECT_FALSE(room_.Has("/workers/w1"));
    EXPECT_TRUE(room_.Has(told == TreeStatus::Ok ? "/leave/w1.a" : "/leave/w1.b"));
  }
}

TEST_F(MemberTest, WithoutTheFolderOfLeavesItMakesThatAndLeavesItsWord) {
  Join();
  room_.RefuseNext();
  room_.Delete("/leave");
  ASSERT_TRUE(room_.Settle());
  ASSERT_FALSE(room_.Has("/leave"));
  room_.Leave(*member_);
  EXPECT_FALSE(room_.Has("/workers/w1"));
  EXPECT_EQ(room_.Data("/leave/w1.a"), "w1");
}

TEST_F(MemberTest, WhoWaitsForAnIdThatIsInUseLeavesWithoutAWord) {
  Join();
  auto other = Make("w1.b");
  room_.Add(*other);
  ASSERT_TRUE(room_.Settle());
  room_.Leave(*other);
  EXPECT_TRUE(room_.Has("/workers/w1"));
  EXPECT_FALSE(room_.Has("/leave/w1.b"));
}

TEST_F(MemberTest, SaysWhichShardsItServesAndWhatItWasStartedWithAndDoesNotFollow) {
  MemberOptions options{"w1", WorkerDocument{.host = "h", .incarnation = "w1.a"}};
  options.document.limits.shards = {{"east", "other"}};
  member_ = std::make_unique<Member>(
      options, ConfigLayers("", "", {"mysql://u@own:3306/d", "--store"}),
      Member::Calls{[this](const MemberView& view) { published_ = view; }, nullptr, nullptr,
                    [](const Config& config) {
                      std::vector<std::string> served;
                      for (const auto& [name, shard] : config.shards) served.push_back(name);
                      return served;
                    }});
  room_.Put("/config/shards", R"({"east":{"url":"mysql://u@e:3306/d"},"main":{"url":"mysql://u@m:3306/d"}})");
  Join();
  EXPECT_EQ(ReadWorker(room_.Data("/workers/w1"))->limits.shards, (std::vector<std::string>{"east"}));
  EXPECT_THAT(published_.ignored, HasSubstr("--store"));
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr("--store mysql://u@own:3306/d is ignored"));
  room_.Put("/config/shards",
            R"({"other":{"url":"mysql://u@o:3306/d"},"main":{"url":"mysql://u@m:3306/d"}})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(ReadWorker(room_.Data("/workers/w1"))->limits.shards, (std::vector<std::string>{"other"}));
  EXPECT_FALSE(published_.shards_refused);
  room_.Put("/config/shards", "rubbish");
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(published_.shards_refused);
  EXPECT_EQ(ReadWorker(room_.Data("/workers/w1"))->limits.shards, (std::vector<std::string>{"other"}));
}

TEST_F(MemberTest, TellsAVersionOfTheHandlersOnceTheyWereAskedWithWhatTheyRefuse) {
  std::shared_ptr<const Config> asked;  // as a process that opens handlers on a thread of its own
  std::map<std::string, std::string> refused;
  Member::Calls calls{[this](const MemberView& view) { published_ = view; }, nullptr, nullptr};
  calls.handlers = [&](const std::shared_ptr<const Config>& config) {
    return config == asked ? std::optional(refused) : std::nullopt;
  };
  member_ = std::make_unique<Member>(MemberOptions{"w1", WorkerDocument{.host = "h", .incarnation = "w1.a"}},
                                     ConfigLayers(), calls);
  room_.Put("/config/handlers", R"({"b":{"options":{"program":"/bin/true"}}})");
  Join();
  EXPECT_FALSE(published_.config_read.contains("handlers"));
  asked = published_.config;
  ASSERT_TRUE(room_.Pass(seconds(1)));
  ASSERT_TRUE(published_.config_read.contains("handlers"));
  EXPECT_THAT(published_.config_read.at("handlers").types, IsEmpty());
  const std::int32_t first = published_.config_read.at("handlers").version;

  room_.Put("/config/handlers", R"({"b":{"options":{"program":"/nowhere"}}})");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(published_.config_read.at("handlers").version, first) << "it is not known yet";
  asked = published_.config;
  refused["b"] = "there is no /nowhere";
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_GT(published_.config_read.at("handlers").version, first);
  EXPECT_THAT(room_.Data("/status/w1"), HasSubstr(R"("types":{"b":"there is no /nowhere"})"));
}

TEST_F(MemberTest, TellsWhichDatabasesItHasFound) {
  std::map<std::string, std::string> found;
  Member::Calls calls{[this](const MemberView& view) { published_ = view; }, nullptr, nullptr};
  calls.databases = [&found] { return found; };
  member_ = std::make_unique<Member>(MemberOptions{"w1", WorkerDocument{.host = "h", .incarnation = "w1.a"}},
                                     ConfigLayers(), calls);
  Join();
  EXPECT_THAT(ReadWorker(room_.Data("/workers/w1"))->databases, IsEmpty());
  found["main"] = "yesterday";
  ASSERT_TRUE(room_.Pass(seconds(2)));
  EXPECT_EQ(ReadWorker(room_.Data("/workers/w1"))->databases, found);
}

TEST_F(MemberTest, AnIdInUseIsWaitedForOneSessionAndThenGivenUp) {
  Join();
  auto other = Make("w1.b");
  room_.Add(*other);
  ASSERT_TRUE(room_.Settle());
  EXPECT_FALSE(other->Registered());
  ASSERT_TRUE(room_.Pass(seconds(9)));
  EXPECT_FALSE(other->View().id_in_use);
  ASSERT_TRUE(room_.Pass(seconds(4)));
  EXPECT_TRUE(other->View().id_in_use);
  EXPECT_EQ(ReadWorker(room_.Data("/workers/w1"))->incarnation, "w1.a");
}

// Then a predecessor's session lives as long.
TEST_F(MemberTest, AnIdInUseIsWaitedForAsLongAsTheServersLetSessionsLive) {
  Join();
  auto other = Make("w1.b");
  room_.Grant(seconds(40));
  room_.Add(*other);
  ASSERT_TRUE(room_.Settle());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(room_.Pass(seconds(9)));
  EXPECT_FALSE(other->View().id_in_use);
  ASSERT_TRUE(room_.Pass(seconds(6)));
  EXPECT_TRUE(other->View().id_in_use);
}

TEST_F(MemberTest, AnOutageOfTheServersIsNotCountedAgainstAPredecessor) {
  Join();
  auto other = Make("w1.b");
  room_.Add(*other);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(room_.Pass(seconds(9)));
  room_.Reconnect(*other);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(room_.Pass(seconds(9)));
  EXPECT_FALSE(other->View().id_in_use);
  ASSERT_TRUE(room_.Pass(seconds(4)));
  EXPECT_TRUE(other->View().id_in_use);
}

TEST_F(MemberTest, APredecessorsNodeIsWaitedOut) {
  Join();
  auto next = Make("w1.b");
  room_.Add(*next);
  room_.Settle();
  room_.Kill(*member_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(next->Registered());
}

TEST_F(MemberTest, AfterItsSessionExpiredItRegistersAnewAndKeepsItsSlices) {
  Join();
  Assign(R"("main/tasks/3")");
  room_.Expire(*member_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(member_->Registered());
  EXPECT_TRUE(room_.Has("/workers/w1"));
  EXPECT_TRUE(room_.Has("/status/w1"));
  EXPECT_EQ(published_.slices->size(), 1u);
}

}  // namespace
}  // namespace millrace::engine

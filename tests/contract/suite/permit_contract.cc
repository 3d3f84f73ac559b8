#include <gmock/gmock.h>

#include <chrono>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using PermitTo = PermitChange::To;

const std::vector<std::string> kMail = {"mail"};

Permit One(PermitStore& permits, std::size_t place = 0) {
  const auto all = permits.Permits(kMail);
  EXPECT_TRUE(all) << all.error().message;
  EXPECT_GT(all->size(), place);
  return all && all->size() > place ? all->at(place) : Permit{};
}

bool Change(PermitStore& permits, const std::string& who, const PermitChange& change) {
  const auto hit = permits.Change(who, std::span(&change, 1));
  EXPECT_TRUE(hit) << hit.error().message;
  return hit && *hit == std::vector{PermitAnswer::Done};
}

PermitChange Take(std::uint64_t turn, const std::string& task = "main/tasks/1", std::uint32_t attempt = 1) {
  return {
      .handler = "mail", .number = 1, .turn = turn, .to = PermitTo::Held, .task = task, .attempt = attempt};
}

TEST_P(SqlStoreContract, PermitsAreMadeOnceAndAreFree) {
  const auto permits = store().OpenPermits();
  ASSERT_TRUE(permits->Make("mail", 2));
  ASSERT_TRUE(Change(*permits, "w.1", Take(0)));
  ASSERT_TRUE(permits->Make("mail", 3)) << "what is held stays";
  ASSERT_TRUE(permits->Make("other", 1));
  const auto all = permits->Permits(kMail);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ(all->at(0).holder, "w.1");
  EXPECT_EQ(all->at(1).holder, "");
  EXPECT_EQ(all->at(2).number, 3U);
  EXPECT_TRUE(permits->Permits({})->empty());
}

TEST_P(SqlStoreContract, APermitNamesItsHolderAndItsTask) {
  const auto permits = store().OpenPermits();
  ASSERT_TRUE(permits->Make("mail", 1));
  ASSERT_TRUE(Change(*permits, "w.1", Take(0, "main/tasks/17", 4)));
  const Permit permit = One(*permits);
  EXPECT_EQ(permit.turn, 1U);
  EXPECT_EQ(permit.holder, "w.1");
  EXPECT_FALSE(permit.lapsed);
  EXPECT_EQ(permit.task, "main/tasks/17");
  EXPECT_EQ(permit.attempt, 4U);
  EXPECT_TRUE(permit.taken_at);
  const auto holders = permits->Holders();
  ASSERT_TRUE(holders) << holders.error().message;
  ASSERT_EQ(holders->size(), 1U);
  EXPECT_EQ(holders->front().handler, "mail");
}

TEST_P(SqlStoreContract, OfTwoWhoSeeOneFreePermitOneGetsIt) {
  const auto mine = store().OpenPermits();
  const auto theirs = store().OpenPermits();
  Register("w.2");
  ASSERT_TRUE(mine->Make("mail", 1));
  EXPECT_TRUE(Change(*mine, "w.1", Take(0)));
  EXPECT_FALSE(Change(*theirs, "w.2", Take(0)));
  EXPECT_FALSE(Change(*theirs, "w.2", Take(1))) << "its holder lives";
  EXPECT_EQ(One(*mine).holder, "w.1");
}

TEST_P(SqlStoreContract, TheDeadTakeNoPermit) {
  const auto permits = store().OpenPermits();
  Register("w.2");
  ASSERT_TRUE(permits->Make("mail", 1));
  ASSERT_TRUE(*incarnations().Retire("w.2"));
  EXPECT_FALSE(Change(*permits, "w.2", Take(0)));
  EXPECT_FALSE(Change(*permits, "nobody", Take(0)));
  ASSERT_TRUE(Change(*permits, "w.1", Take(0)));
  ASSERT_TRUE(*incarnations().Retire("w.1"));
  EXPECT_FALSE(Change(*permits, "w.1", Take(1, "main/tasks/2"))) << "it binds none to a further task either";
}

TEST_P(SqlStoreContract, APermitIsTakenOverFromTheDeadAlone) {
  const auto permits = store().OpenPermits();
  Register("w.2");
  ASSERT_TRUE(permits->Make("mail", 1));
  ASSERT_TRUE(Change(*permits, "w.1", Take(0)));
  EXPECT_FALSE(Change(*permits, "w.2", Take(1, "main/tasks/2")));
  ASSERT_TRUE(*incarnations().MarkDead("w.1", 0));
  EXPECT_TRUE(One(*permits).lapsed);
  EXPECT_TRUE(Change(*permits, "w.2", Take(1, "main/tasks/2")));
  EXPECT_EQ(One(*permits).holder, "w.2");
  EXPECT_FALSE(One(*permits).lapsed);
}

TEST_P(SqlStoreContract, ThePermitOfALifeThatIsGoneIsTakenOver) {
  const auto permits = store().OpenPermits();
  ASSERT_TRUE(permits->Make("mail", 1));
  ASSERT_TRUE(Change(*permits, "w.1", Take(0)));
  const auto client = sql().NewClient();
  ASSERT_TRUE(client->Run("UPDATE millrace_permits SET incarnation=4711 WHERE handler='mail'"));
  EXPECT_EQ(One(*permits).holder, "#4711");
  EXPECT_TRUE(One(*permits).lapsed);
  EXPECT_TRUE(Change(*permits, "w.1", Take(1)));
}

TEST_P(SqlStoreContract, AHolderBindsItsPermitToItsNextTaskAndFreesIt) {
  const auto permits = store().OpenPermits();
  Register("w.2");
  ASSERT_TRUE(permits->Make("mail", 1));
  ASSERT_TRUE(Change(*permits, "w.1", Take(0)));
  ASSERT_TRUE(Change(*permits, "w.1", Take(1, "main/tasks/2", 3)));
  EXPECT_EQ(One(*permits).task, "main/tasks/2");
  const PermitChange free{.handler = "mail", .number = 1, .turn = 2, .to = PermitTo::Free};
  EXPECT_FALSE(Change(*permits, "w.2", free)) << "it is another's";
  EXPECT_TRUE(Change(*permits, "w.1", free));
  EXPECT_EQ(One(*permits).holder, "");
  EXPECT_EQ(One(*permits).task, "");
  EXPECT_TRUE(permits->Holders()->empty());
}

// A reply was lost, and nobody knows whether the statement is still under way.
TEST_P(SqlStoreContract, WhatIsVoidedCannotLandAfterwards) {
  const auto permits = store().OpenPermits();
  ASSERT_TRUE(permits->Make("mail", 1));
  const PermitChange lost = Take(0);
  EXPECT_TRUE(Change(*permits, "w.1", {.handler = "mail", .number = 1, .turn = 0, .to = PermitTo::Voided}));
  EXPECT_FALSE(Change(*permits, "w.1", lost));
  EXPECT_EQ(One(*permits).holder, "");
  // One that has landed is seen.
  EXPECT_TRUE(Change(*permits, "w.1", Take(1)));
  EXPECT_FALSE(Change(*permits, "w.1", {.handler = "mail", .number = 1, .turn = 1, .to = PermitTo::Voided}));
  EXPECT_EQ(One(*permits).holder, "w.1");
  EXPECT_EQ(One(*permits).turn, 2U);
}

TEST_P(SqlStoreContract, SeveralChangesTellWhichHadAnEffect) {
  const auto permits = store().OpenPermits();
  ASSERT_TRUE(permits->Make("mail", 2));
  const PermitChange both[] = {Take(5), {.handler = "mail", .number = 2, .task = "main/tasks/9"}};
  const auto hit = permits->Change("w.1", both);
  ASSERT_TRUE(hit) << hit.error().message;
  EXPECT_THAT(*hit, ElementsAre(PermitAnswer::Refused, PermitAnswer::Done));
  EXPECT_EQ(One(*permits, 1).holder, "w.1");
}

// Such as an operator's, or a worker's that vanished in its own transaction.
TEST_P(SqlStoreContract, ALockedPermitIsNotWaitedForAndHoldsUpNoOther) {
  if (!fixture().late_commits()) return;  // one writer at a time: nobody has a row locked beside it
  const auto permits = store().OpenPermits();
  ASSERT_TRUE(permits->Make("mail", 3));
  ASSERT_TRUE(Change(*permits, "w.1", Take(0)));
  const auto client = sql().NewClient();
  ASSERT_TRUE(client->Run("BEGIN"));
  ASSERT_TRUE(client->Run("SELECT * FROM millrace_permits WHERE handler='mail' AND number=1 FOR UPDATE"));
  const PermitChange changes[] = {{.handler = "mail", .number = 2},
                                  Take(1, "main/tasks/2"),
                                  {.handler = "mail", .number = 3, .turn = 7},
                                  {.handler = "gone", .number = 1}};
  const auto began = std::chrono::steady_clock::now();
  const auto several = permits->Change("w.1", changes);
  const auto one = permits->Change("w.1", std::span(&changes[1], 1));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(500));
  ASSERT_TRUE(several) << several.error().message;
  EXPECT_THAT(*several, ElementsAre(PermitAnswer::Done, PermitAnswer::Locked, PermitAnswer::Refused,
                                    PermitAnswer::Refused));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_THAT(*one, ElementsAre(PermitAnswer::Locked));
  EXPECT_EQ(One(*permits, 1).holder, "w.1");
  ASSERT_TRUE(client->Run("ROLLBACK"));
  EXPECT_TRUE(Change(*permits, "w.1", changes[1]));
}

TEST_P(SqlStoreContract, TheHomeIsNamedOnce) {
  const auto permits = store().OpenPermits();
  EXPECT_EQ(*permits->Home(), "");
  ASSERT_TRUE(permits->NameHome("main"));
  ASSERT_TRUE(permits->NameHome("other"));
  EXPECT_EQ(*permits->Home(), "main");
  EXPECT_TRUE(permits->Holders()->empty());
}

}  // namespace
}  // namespace millrace::engine

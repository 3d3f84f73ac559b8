#include "coordinator/leader/plan_writer.h"

#include <gmock/gmock.h>

#include <optional>

#include "coordinator/member/assignment.h"

namespace millrace::engine {
namespace {

using testing::SizeIs;

class PlanWriterTest : public testing::Test {
 protected:
  // A worker whose only page is about this long.
  void Own(const std::string& id, std::size_t bytes) {
    AssignDocument document{1, 1};
    for (std::size_t i = 0; i < bytes / 20; ++i)
      document.slices.push_back("main/" + id + "_table/" + std::to_string(10000 + i));
    decision_.wanted[id] = document.slices;
    Store(id, "/assign/" + id, std::move(document));
  }
  void Store(const std::string& id, const std::string& path, AssignDocument document) {
    stored_[id].push_back({path, std::make_shared<const AssignDocument>(std::move(document))});
  }
  void Move(const std::string& from, const std::string& to) {
    const std::string slice = decision_.wanted[from].back();
    decision_.wanted[from].pop_back();
    decision_.wanted[to].push_back(slice);
    decision_.moves.push_back({slice, from, to, true});
  }
  // The first.
  std::vector<TreeWrite> Next(const PageBounds& bounds = {}) {
    return PlanWriter(1, bounds, std::make_shared<const PlanDecision>(decision_), stored_).Next(moved_);
  }
  std::size_t Bytes(const std::vector<TreeWrite>& writes) {
    std::size_t bytes = 0;
    for (const TreeWrite& write : writes) bytes += write.data.size();
    return bytes;
  }

  PlanDecision decision_;
  StoredAssignments stored_;
  std::vector<SliceMove> moved_;
};

TEST_F(PlanWriterTest, MovesThatDoNotFitIntoOneMultiWaitForTheNext) {
  for (const char* id : {"w1", "w2", "w3", "w4"}) Own(id, 70 * 1024);
  Move("w1", "w2");
  Move("w3", "w4");
  const auto writes = Next();
  EXPECT_THAT(moved_, SizeIs(1));
  EXPECT_THAT(writes, SizeIs(2));
  EXPECT_LE(Bytes(writes), 256u * 1024);
}

TEST_F(PlanWriterTest, MovesWithinPagesThatAreWrittenAnywayAreAllCarriedOut) {
  Own("w1", 95 * 1024);
  Own("w2", 70 * 1024);
  for (int i = 0; i < 100; ++i) Move("w1", "w2");
  const auto writes = Next();
  EXPECT_THAT(moved_, SizeIs(100));
  EXPECT_THAT(writes, SizeIs(2));
}

// Of many limits the shares are more than the slices, and every page has all of them.
TEST_F(PlanWriterTest, TheSharesOfLimitsCountIntoTheMulti) {
  constexpr int kWorkers = 40;
  LimitShares shares;
  for (int i = 0; i < 150; ++i)
    shares["a_type_with_a_name_" + std::to_string(100 + i)] = {.rate = 0.666667, .concurrency = 2};
  const auto own = [&](const std::string& id) {
    AssignDocument document{1, 1};
    for (int i = 0; i < kWorkers; ++i)
      document.slices.push_back("main/" + id + "_table/" + std::to_string(100 + i));
    document.shares = document.shares_before = shares;
    decision_.wanted[id] = document.slices;
    Store(id, "/assign/" + id, std::move(document));
  };
  for (int i = 0; i <= kWorkers; ++i) own("w" + std::to_string(i));
  for (int i = 1; i <= kWorkers; ++i) Move("w0", "w" + std::to_string(i));
  const auto writes = Next();
  EXPECT_THAT(moved_, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(writes, SizeIs(moved_.size() + 1));
  EXPECT_LE(BytesOf(writes), kMostBytes);
  EXPECT_GT(BytesOf(writes), kMostBytes / 3) << "they are not reckoned much larger than they are";
}

// As where a task type comes, or goes: all slices are named anew, and none is without an owner meanwhile.
TEST_F(PlanWriterTest, APageIsNamedAnewAsAWholeOrNotYet) {
  decision_.groups = {{"a", {"a", "b"}}, {"c", {"c"}}};
  for (const bool many : {true, false}) {
    stored_.clear();
    decision_.wanted.clear();
    for (int i = 100; i < (many ? 250 : 101); ++i) {
      const std::string id = "w" + std::to_string(i);
      Own(id, many ? 200 : 98 * 1024);
      for (std::string& slice : decision_.wanted[id]) slice += "@a";
    }
    const auto writes = Next();
    std::map<std::string, std::size_t> slices;
    for (const TreeWrite& write : writes) {
      const auto page = ReadAssign(write.data);
      ASSERT_TRUE(page);
      slices[write.path.substr(8, write.path.find('/', 8) - 8)] += page->slices.size();
    }
    EXPECT_GT(slices.size(), many ? 90u : 0u);
    for (const auto& [id, count] : slices) EXPECT_EQ(count, decision_.wanted[id].size()) << id;
    EXPECT_LE(BytesOf(writes), kMostBytes);
  }
}

// Whatever it is taken for: else nothing would ever be written.
TEST_F(PlanWriterTest, TheFirstMoveIsAlwaysCarriedOut) {
  Own("w1", 100);
  Own("w2", 100);
  Move("w1", "w2");
  const auto writes = Next({.longest_multi = 50});
  EXPECT_THAT(moved_, SizeIs(1));
  EXPECT_THAT(writes, SizeIs(2));
}

TEST_F(PlanWriterTest, ASliceThatAWorkerHasTwiceIsLeftOnce) {
  Own("w1", 100);
  const std::vector<std::string> own = decision_.wanted["w1"];
  Store("w1", "/assign/w1/1", AssignDocument{1, 1, {own.front(), "main/tasks/7"}});
  decision_.wanted["w1"].push_back("main/tasks/7");
  const auto writes = Next();
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].path, "/assign/w1/1");
  EXPECT_THAT(ReadAssign(writes[0].data)->slices, testing::ElementsAre("main/tasks/7"));
}

TEST_F(PlanWriterTest, ANewPageTakesANumberThatIsFree) {
  Own("w1", 100 * 1024);
  for (const char* page : {"1", "3"}) {
    AssignDocument document = *stored_["w1"].front().document;
    for (std::string& slice : document.slices)
      slice.replace(0, 4, page == std::string("1") ? "east" : "west");
    decision_.wanted["w1"].insert(decision_.wanted["w1"].end(), document.slices.begin(),
                                  document.slices.end());
    Store("w1", std::string("/assign/w1/") + page, std::move(document));
  }
  Own("w2", 1024);
  Move("w2", "w1");
  const auto writes = Next();
  EXPECT_THAT(moved_, SizeIs(1));
  ASSERT_THAT(writes, SizeIs(2));
  EXPECT_EQ(writes[0].kind, TreeWrite::Kind::Create);
  EXPECT_EQ(writes[0].path, "/assign/w1/2");
}

// As where a large cluster begins: one decision, written to its end.
TEST_F(PlanWriterTest, WhatIsDecidedOnceIsWrittenInManyMultisEachOnceAndNoMore) {
  constexpr int kWorkers = 297;
  for (int i = 0; i < kWorkers; ++i) {
    std::vector<std::string>& slices = decision_.wanted["w" + std::to_string(i)];
    for (int number = 0; number < 20; ++number) {
      slices.push_back("main/t" + std::to_string(i) + "/" + std::to_string(number));
      decision_.moves.push_back({slices.back(), "", "w" + std::to_string(i)});
    }
  }
  PlanWriter writer(3, {}, std::make_shared<const PlanDecision>(decision_), {});
  std::map<std::string, AssignDocument> pages;
  std::size_t multis = 0;
  for (auto writes = writer.Next(moved_); !writes.empty(); writes = writer.Next(moved_), ++multis) {
    EXPECT_LE(writes.size(), 100u);
    for (const TreeWrite& write : writes) {
      EXPECT_EQ(write.kind, TreeWrite::Kind::Create);
      EXPECT_TRUE(pages.emplace(write.path, ReadAssign(write.data).value()).second) << write.path;
    }
  }
  EXPECT_EQ(multis, 3u);
  EXPECT_THAT(moved_, SizeIs(decision_.moves.size()));
  for (const auto& [id, slices] : decision_.wanted)
    EXPECT_THAT(pages["/assign/" + id].slices, testing::UnorderedElementsAreArray(slices)) << id;
}

// Pages that somebody spoilt, each within the bounds of one multi like all others.
TEST_F(PlanWriterTest, VeryManyPagesThatCanNotBeReadAreMendedInSeveralMultis) {
  for (int i = 0; i < 250; ++i) {
    const std::string id = "w" + std::to_string(i);
    Own(id, 100);
    if (i % 2 == 0) stored_[id].front().document = nullptr;
    if (i % 2 == 1) Store(id, "/assign/" + id + "/1", *stored_[id].front().document);
  }
  PlanWriter writer(2, {}, std::make_shared<const PlanDecision>(decision_), stored_);
  std::map<std::string, AssignDocument> pages;
  std::size_t multis = 0;
  for (auto writes = writer.Next(moved_); !writes.empty(); writes = writer.Next(moved_), ++multis) {
    EXPECT_LE(writes.size(), 100u);
    for (const TreeWrite& write : writes)
      EXPECT_TRUE(pages.emplace(write.path, ReadAssign(write.data).value()).second) << write.path;
  }
  EXPECT_EQ(multis, 3u);
  EXPECT_THAT(pages, SizeIs(250));
  EXPECT_THAT(pages["/assign/w0"].slices, testing::UnorderedElementsAreArray(decision_.wanted["w0"]));
  EXPECT_THAT(pages["/assign/w1/1"].slices, testing::IsEmpty());
}

// Each page has a generation of its own, above all that its worker has seen.
TEST_F(PlanWriterTest, APageThatIsTouchedAgainIsSetAndHasTheNextGeneration) {
  Own("w1", 100);
  const std::string slice = decision_.wanted["w1"].front();
  const std::string other = decision_.wanted["w1"].back();
  decision_.wanted = {{"w1", {}}, {"w2", {slice, other}}};
  for (const std::string& each : {slice, other}) decision_.moves.push_back({each, "w1", "w2"});
  stored_["w1"].front().document =
      std::make_shared<const AssignDocument>(AssignDocument{1, 7, {slice, other}});
  PlanWriter writer(2, {.longest_multi = 50}, std::make_shared<const PlanDecision>(decision_), stored_);
  const std::vector<TreeWrite> first = writer.Next(moved_);
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_THAT(moved_, SizeIs(1));
  const std::vector<TreeWrite> second = writer.Next(moved_);
  ASSERT_THAT(second, SizeIs(2));
  EXPECT_EQ(first[1].kind, TreeWrite::Kind::Create);
  EXPECT_EQ(second[1].kind, TreeWrite::Kind::Set);
  EXPECT_EQ(ReadAssign(second[0].data)->generation, 9u);
  EXPECT_EQ(ReadAssign(second[1].data)->generation, ReadAssign(first[1].data)->generation + 1);
  EXPECT_THAT(ReadAssign(second[1].data)->slices, testing::UnorderedElementsAre(slice, other));
  EXPECT_THAT(writer.Next(moved_), testing::IsEmpty());
}

// A cluster whose plan is written in multis that are much smaller than what changes: decided anew after each,
// or once, and then whether nothing is left.
enum class Decides { AfterEachMulti, Once };

class PagesNamedAnewTest : public testing::TestWithParam<Decides> {
 protected:
  PagesNamedAnewTest() {
    state_.catalog.tables = {{"main", "mails", 64}, {"main", "parcels", 64}, {"main", "tasks", 64}};
    for (const char* id : {"w1", "w2", "w3", "w4"}) Come(id, {"mail"});
  }
  void Come(const std::string& id, std::vector<std::string> types) {
    state_.workers[id].incarnation = id;
    state_.workers[id].limits.handlers = std::move(types);
    state_.roles[id] = MemberRole::Active;
  }
  // Until nothing is left to write; every page is read after each multi. How many slices moved that need not.
  std::size_t Write(bool quiet = false) {
    std::size_t moves = 0;
    std::optional<PlanWriter> writer;
    for (int multis = 0; multis < 1000; ++multis) {
      const bool anew = !writer || GetParam() == Decides::AfterEachMulti;
      if (anew) Decide(writer, quiet);
      std::vector<SliceMove> moved;
      const auto writes = writer->Next(moved);
      if (writes.empty() && anew) return moves;
      if (writes.empty()) writer.reset();
      EXPECT_LE(BytesOf(writes), bounds_.longest_multi);
      for (const SliceMove& move : moved) moves += move.from.empty() || MayKeep(move) ? 1 : 0;
      for (const TreeWrite& write : writes) Apply(write);
      for (const auto& [id, worker] : state_.workers) {
        std::set<std::string> rows = RowsOf(id, "mail");
        if (id == "w2" || id == "w3" || id == "w4") owned_[id].push_back(std::move(rows));
      }
    }
    ADD_FAILURE() << "it does not come to an end";
    return moves;
  }
  void Decide(std::optional<PlanWriter>& writer, bool quiet) {
    state_.assigned.clear();
    for (const auto& [id, pages] : stored_) state_.assigned[id] = *Together(pages);
    writer.emplace(1, bounds_, std::make_shared<const PlanDecision>(DecidePlan(state_, quiet)), stored_);
  }
  bool MayKeep(const SliceMove& move) {
    const std::string group = ParseSliceName(move.slice)->group;
    return Allows(state_.workers[move.from].limits.handlers, group == kDefaultGroup ? "mail" : group);
  }
  void Apply(const TreeWrite& write) {
    const std::string id = write.path.substr(8, write.path.find('/', 8) - 8);
    auto& pages = stored_[id];
    auto page =
        std::find_if(pages.begin(), pages.end(), [&](const auto& one) { return one.path == write.path; });
    EXPECT_EQ(page == pages.end(), write.kind == TreeWrite::Kind::Create);
    if (page == pages.end()) page = pages.insert(page, {write.path, nullptr});
    page->document = std::make_shared<const AssignDocument>(ReadAssign(write.data).value());
  }
  // What the worker scans for tasks of the type.
  std::set<std::string> RowsOf(const std::string& id, const std::string& type) {
    std::vector<std::string> texts;
    for (const StoredPage& page : stored_[id]) texts.push_back(ToText(*page.document));
    const auto assignment = ReadPages(texts);
    EXPECT_TRUE(assignment) << id << ": " << assignment.error().message;
    std::set<std::string> rows;
    if (!assignment) return rows;
    for (const auto& [shard, tables] : assignment->slices) {
      for (const TableSlices& table : tables) {
        if (!Allows(table.handlers, type)) continue;
        for (const std::uint32_t number : table.slices)
          rows.insert(table.table + "/" + std::to_string(number));
      }
    }
    return rows;
  }
  // What each of the others had at first, and after each multi.
  void ExpectThatTheOthersKeptTheirs() {
    for (const auto& [id, rows] : owned_) {
      EXPECT_THAT(rows, testing::Each(rows.front())) << id;
      EXPECT_THAT(rows.front(), SizeIs(48)) << id;
    }
  }

  PlanState state_;
  StoredAssignments stored_;
  const PageBounds bounds_{.longest_page = 1500, .longest_multi = 3500};
  std::map<std::string, std::vector<std::set<std::string>>> owned_;
};

TEST_P(PagesNamedAnewTest, AGroupThatSplitsMovesNothingBetweenTheOthers) {
  Write();
  owned_.clear();
  for (const char* id : {"w2", "w3", "w4"}) owned_[id].push_back(RowsOf(id, "mail"));
  Come("w1", {"mail", "zip"});
  EXPECT_EQ(Write(), 0u);
  ExpectThatTheOthersKeptTheirs();
  EXPECT_THAT(RowsOf("w1", "zip"), SizeIs(192));
  EXPECT_THAT(stored_["w2"].front().document->groups, SizeIs(2));
  Come("w1", {"mail"});  // and they merge
  EXPECT_EQ(Write(), 0u);
  ExpectThatTheOthersKeptTheirs();
  for (const auto& [id, pages] : stored_) {
    for (const StoredPage& page : pages)
      EXPECT_TRUE(page.document->groups.empty() || page.document->slices.empty());
  }
}

// So that its name stays, and means less.
TEST_P(PagesNamedAnewTest, AGroupThatLosesATypeMovesOnlyWhatItsOwnerMayNotKeep) {
  for (const char* id : {"w1", "w2", "w3", "w4"}) Come(id, {"fax", "mail", "zip"});
  Come("w5", {"bill"});
  Write();
  owned_.clear();
  const std::set<std::string> rows = RowsOf("w3", "mail");
  Come("w1", {"fax", "zip"});
  Come("w2", {"fax", "mail"});
  EXPECT_EQ(Write(), 0u);
  for (const auto& after : owned_["w3"]) EXPECT_TRUE(std::ranges::includes(after, rows));
}

// It counts as its row's owner's: with the row it would go along, and be moved back with it.
TEST_P(PagesNamedAnewTest, NothingMovesForBalanceUntilAllGoByTheirOwnNames) {
  state_.catalog.tables = {{"main", "mails", 121}};
  for (const char* id : {"w1", "w2", "w3"}) Come(id, {"mail", "sms"});
  Come("w4", {"bill"});
  Write(true);
  state_.configured = {{"sms", "texts"}};
  Write(true);
  std::size_t slices = 0;
  for (const char* id : {"w1", "w2", "w3"}) slices += Together(stored_[id])->slices.size();
  EXPECT_EQ(slices, 242u);
}

// The name of each row stays, and another comes; they go on with the next page, which is half full.
TEST_P(PagesNamedAnewTest, AMultiIsWithinItsBoundWhereNamesGoOnWithAFurtherPage) {
  state_.catalog.tables = {{"main", "tasks", 320}};
  for (const char* id : {"w3", "w4"}) state_.workers.erase(id), state_.roles.erase(id);
  for (const char* id : {"w1", "w2"}) Come(id, {"mail", "zip"});
  Write(true);
  state_.configured = {{"zip", "zip"}};
  Write(true);
  for (const char* id : {"w1", "w2"}) EXPECT_THAT(Together(stored_[id])->slices, SizeIs(320)) << id;
}

TEST_P(PagesNamedAnewTest, ItComesToAnEndWhereMuchMovesForBalance) {
  Write(true);
  Come("w1", {"mail", "zip"});
  Write(true);
  EXPECT_THAT(RowsOf("w1", "zip"), SizeIs(192));
  EXPECT_THAT(RowsOf("w1", "mail"), testing::IsEmpty());
  Come("w5", {"mail", "zip"});
  Write(true);
  Come("w1", {"mail"});
  Come("w5", {"mail"});
  Write(true);
  for (const auto& [id, pages] : stored_) EXPECT_NEAR(Together(pages)->slices.size(), 38.4, 0.7) << id;
}

INSTANTIATE_TEST_SUITE_P(ADecision, PagesNamedAnewTest,
                         testing::Values(Decides::AfterEachMulti, Decides::Once), [](const auto& how) {
                           return how.param == Decides::Once ? "IsMadeOnce" : "FollowsEachMulti";
                         });

}  // namespace
}  // namespace millrace::engine

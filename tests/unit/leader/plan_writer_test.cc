#include "coordinator/leader/plan_writer.h"

#include <gmock/gmock.h>

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
  const auto writes = PlanWriter{1}.Next(decision_, stored_, moved_);
  EXPECT_THAT(moved_, SizeIs(1));
  EXPECT_THAT(writes, SizeIs(2));
  EXPECT_LE(Bytes(writes), 256u * 1024);
}

TEST_F(PlanWriterTest, MovesWithinPagesThatAreWrittenAnywayAreAllCarriedOut) {
  Own("w1", 95 * 1024);
  Own("w2", 70 * 1024);
  for (int i = 0; i < 100; ++i) Move("w1", "w2");
  const auto writes = PlanWriter{1}.Next(decision_, stored_, moved_);
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
  const auto writes = PlanWriter{1}.Next(decision_, stored_, moved_);
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
    const auto writes = PlanWriter{1}.Next(decision_, stored_, moved_);
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
  const auto writes = PlanWriter{.epoch = 1, .longest_multi = 50}.Next(decision_, stored_, moved_);
  EXPECT_THAT(moved_, SizeIs(1));
  EXPECT_THAT(writes, SizeIs(2));
}

TEST_F(PlanWriterTest, ASliceThatAWorkerHasTwiceIsLeftOnce) {
  Own("w1", 100);
  const std::vector<std::string> own = decision_.wanted["w1"];
  Store("w1", "/assign/w1/1", AssignDocument{1, 1, {own.front(), "main/tasks/7"}});
  decision_.wanted["w1"].push_back("main/tasks/7");
  const auto writes = PlanWriter{1}.Next(decision_, stored_, moved_);
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
  const auto writes = PlanWriter{1}.Next(decision_, stored_, moved_);
  EXPECT_THAT(moved_, SizeIs(1));
  ASSERT_THAT(writes, SizeIs(2));
  EXPECT_EQ(writes[0].kind, TreeWrite::Kind::Create);
  EXPECT_EQ(writes[0].path, "/assign/w1/2");
}

}  // namespace
}  // namespace millrace::engine

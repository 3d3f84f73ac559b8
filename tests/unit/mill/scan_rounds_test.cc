#include "framework/mill/scan_rounds.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/unit/mill/start_time.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kType[] = "report";
constexpr WallTime kWall{seconds(5000)};
const std::vector<TableSlices> kAll{{"tasks", true, {}}};

DueGroup Group(std::uint32_t slice) { return {"tasks", slice, kType, 50, kWall - seconds(10)}; }
ScanRow Row(std::uint64_t id, WallTime created) {
  ScanRow row;
  row.id = id;
  row.created_at = created;
  return row;
}

class ScanRoundsTest : public ::testing::Test {
 protected:
  void Follow(const ScanConfig& rule) {
    rounds_.Follow(std::make_shared<const ScanRules>(ScanRules{{kType, rule}}));
  }
  // A look at what the test has set.
  void Look(BootTime now, std::vector<DueGroup> groups, const std::vector<TableSlices>& slices = kAll) {
    const DueMap map{std::move(groups), kWall + (now - kStart)};
    ScanRounds::Greatest greatest;
    for (const TableName& table : rounds_.Wanted(now, slices)) greatest[table] = greatest_;
    rounds_.Look(now, {map, slices, greatest, [this](const auto&) { return runs_; },
                       [this](const DueGroup& group) { return paused_.contains(group.slice); },
                       [this](const auto&) { return waits_; }, [this](const auto&) { return in_hand_; }});
  }

  ScanRounds rounds_;
  bool runs_ = true;
  bool waits_ = false;
  bool in_hand_ = false;
  std::set<std::uint32_t> paused_;
  std::uint64_t greatest_ = 100;
};

TEST_F(ScanRoundsTest, AHandlerWithoutARuleIsTakenWithoutAPause) {
  rounds_.Follow(std::make_shared<const ScanRules>());
  EXPECT_FALSE(rounds_.Any());
  EXPECT_TRUE(rounds_.Takes(Group(1)));
  EXPECT_TRUE(rounds_.IsWithin(Group(1), Row(1, kWall + hours(1))));
  EXPECT_EQ(rounds_.RewindingOf(Group(1)), Rewinding::AsNeeded);
  EXPECT_FALSE(rounds_.ByCreation(kType));
  EXPECT_EQ(rounds_.Next(), BootTime::max());
}

TEST_F(ScanRoundsTest, TheFirstRoundBeginsWithTheFirstLookThatHasSlices) {
  Follow({.every = seconds(60)});
  Look(kStart, {}, {});
  EXPECT_EQ(rounds_.Next(), BootTime::max()) << "nothing to look for";
  EXPECT_FALSE(rounds_.Takes(Group(1)));
  Look(kStart + seconds(5), {Group(1)});
  EXPECT_TRUE(rounds_.Takes(Group(1)));
  EXPECT_EQ(rounds_.RewindingOf(Group(1)), Rewinding::Now);
  Look(kStart + seconds(6), {Group(1)});
  EXPECT_EQ(rounds_.RewindingOf(Group(1)), Rewinding::Never);
}

TEST_F(ScanRoundsTest, ATypeThatCantBeRunHereBeginsNone) {
  Follow({.every = seconds(60)});
  runs_ = false;
  Look(kStart, {Group(1)});
  EXPECT_EQ(rounds_.Next(), BootTime::max());
  runs_ = true;
  Look(kStart + seconds(1), {Group(1)});
  EXPECT_TRUE(rounds_.Takes(Group(1)));
}

TEST_F(ScanRoundsTest, ARoundHasTheRowsThatWereCreatedByItsBeginning) {
  Follow({.every = seconds(60)});
  Look(kStart, {Group(1)});
  Look(kStart + seconds(5), {Group(1)});
  EXPECT_TRUE(rounds_.ByCreation(kType));
  EXPECT_TRUE(rounds_.IsWithin(Group(1), Row(500, kWall)));
  EXPECT_FALSE(rounds_.IsWithin(Group(1), Row(1, kWall + Micros(1))));
}

TEST_F(ScanRoundsTest, OrThoseUpToTheGreatestIdOfTheirTableThen) {
  Follow({.every = seconds(60), .scope = ScanScope::Key});
  EXPECT_THAT(rounds_.Wanted(kStart, kAll), ElementsAre(TableName("tasks")));
  Look(kStart, {Group(1)});
  EXPECT_FALSE(rounds_.ByCreation(kType));
  EXPECT_THAT(rounds_.Wanted(kStart + seconds(1), kAll), IsEmpty());
  EXPECT_TRUE(rounds_.IsWithin(Group(1), Row(100, kWall + hours(1))));
  EXPECT_FALSE(rounds_.IsWithin(Group(1), Row(101, kWall)));
  const DueGroup other{"other", 1, kType, 50, kWall};
  EXPECT_FALSE(rounds_.IsWithin(other, Row(1, kWall))) << "a table that came later is the next round's";
}

TEST_F(ScanRoundsTest, ANewScopeIsTheNextRounds) {
  Follow({.every = seconds(60), .scope = ScanScope::Key});
  Look(kStart, {Group(1)});
  Follow({.every = seconds(60), .scope = ScanScope::Created});
  EXPECT_FALSE(rounds_.IsWithin(Group(1), Row(101, kWall)));
}

TEST_F(ScanRoundsTest, EachGroupIsGoneThroughOnce) {
  Follow({.every = seconds(60)});
  Look(kStart, {Group(1), Group(2)});
  rounds_.Read(Group(1), kWall, true, false);
  EXPECT_FALSE(rounds_.Takes(Group(1)));
  EXPECT_TRUE(rounds_.Takes(Group(2)));
  EXPECT_EQ(rounds_.Next(), BootTime::max()) << "it is under way";
  rounds_.Read(Group(2), kWall, true, true);
  EXPECT_TRUE(rounds_.Takes(Group(2))) << "there is more";
  rounds_.Read(Group(2), kWall + Micros(1), false, true);
  EXPECT_FALSE(rounds_.Takes(Group(2))) << "all that is left came later";
  Look(kStart + seconds(1), {Group(1), Group(2), Group(3)});
  EXPECT_TRUE(rounds_.Takes(Group(3))) << "it came while the round was open";
  rounds_.Read(Group(3), kWall, true, false);
  Look(kStart + seconds(2), {Group(1), Group(2), Group(3)});
  Look(kStart + seconds(3), {Group(4)});
  EXPECT_FALSE(rounds_.Takes(Group(4))) << "the round is over";
  EXPECT_EQ(rounds_.Next(), kStart + seconds(60));
}

TEST_F(ScanRoundsTest, AGroupThatIsNotDueKeepsNoRoundOpen) {
  Follow({.every = seconds(60)});
  DueGroup later = Group(1);
  later.first_run_at = kWall + seconds(3);
  Look(kStart, {later});
  EXPECT_EQ(rounds_.Next(), kStart + seconds(60));
}

TEST_F(ScanRoundsTest, ARoundIsOverWithItsLastRow) {
  Follow({.after = seconds(60), .max_rows = 10});
  Look(kStart, {Group(1)});
  EXPECT_EQ(rounds_.Left(kType), 10U);
  rounds_.Claimed(kType, 7);
  EXPECT_EQ(rounds_.Left(kType), 3U);
  rounds_.Claimed(kType, 3);
  EXPECT_EQ(rounds_.Left(kType), 0U);
  EXPECT_FALSE(rounds_.Takes(Group(1)));
}

TEST_F(ScanRoundsTest, ADelayCountsFromTheEndOfWhatWasClaimed) {
  Follow({.after = seconds(60), .max_rows = 10});
  Look(kStart, {Group(1)});
  rounds_.Claimed(kType, 10);
  in_hand_ = true;
  Look(kStart + seconds(5), {Group(1)});
  EXPECT_EQ(rounds_.Next(), BootTime::max());
  EXPECT_EQ(rounds_.Views()[0].next, std::nullopt);
  rounds_.NoteEnded(kStart + seconds(7), [](const auto&) { return false; });
  EXPECT_EQ(rounds_.Next(), kStart + seconds(67));
  rounds_.NoteEnded(kStart + seconds(8), [](const auto&) { return false; });
  EXPECT_EQ(rounds_.Next(), kStart + seconds(67));
}

TEST_F(ScanRoundsTest, AnEmptyRoundCountsToo) {
  Follow({.after = seconds(60)});
  Look(kStart, {});
  EXPECT_EQ(rounds_.Next(), kStart + seconds(60));
  Look(kStart + seconds(30), {Group(1)});
  EXPECT_FALSE(rounds_.Takes(Group(1)));
}

TEST_F(ScanRoundsTest, WhatIsPausedIsLeftUntilTheNextRoundBegins) {
  Follow({.every = seconds(60)});
  paused_ = {1};
  Look(kStart, {Group(1)});
  EXPECT_EQ(rounds_.Next(), kStart + seconds(60));
  EXPECT_TRUE(rounds_.Takes(Group(1)));
  paused_.clear();
  Look(kStart + seconds(59), {Group(1)});
  EXPECT_EQ(rounds_.Next(), BootTime::max()) << "it goes on";
  EXPECT_EQ(rounds_.RewindingOf(Group(1)), Rewinding::Never);
  paused_ = {1};
  Look(kStart + seconds(61), {Group(1)});
  EXPECT_EQ(rounds_.RewindingOf(Group(1)), Rewinding::Now) << "the next has begun";
}

TEST_F(ScanRoundsTest, OneThatWaitsToRunAloneKeepsItsRoundOpen) {
  Follow({.every = seconds(60)});
  Look(kStart, {Group(1)});
  rounds_.Read(Group(1), kWall, true, false);
  waits_ = true;
  Look(kStart + seconds(1), {Group(1)});
  EXPECT_GT(rounds_.Left(kType), 0U);
  waits_ = false;
  Look(kStart + seconds(2), {Group(1)});
  EXPECT_EQ(rounds_.Left(kType), 0U);
}

TEST_F(ScanRoundsTest, AfterATroubleTheGroupsAreGoneThroughAgainWithWhatIsLeft) {
  Follow({.every = seconds(60), .max_rows = 10});
  Look(kStart, {Group(1)});
  rounds_.Read(Group(1), kWall, true, false);
  rounds_.Claimed(kType, 4);
  rounds_.Again();
  Look(kStart + seconds(1), {Group(1)});
  EXPECT_EQ(rounds_.RewindingOf(Group(1)), Rewinding::Now);
  EXPECT_TRUE(rounds_.Takes(Group(1)));
  EXPECT_EQ(rounds_.Left(kType), 6U);
}

TEST_F(ScanRoundsTest, ANewRhythmCountsFromTheLastBeginning) {
  Follow({.every = seconds(60)});
  Look(kStart, {});
  Look(kStart + seconds(60), {});
  Follow({.every = seconds(45)});
  EXPECT_EQ(rounds_.Next(), kStart + seconds(105));
  Follow({.after = seconds(30)});
  EXPECT_EQ(rounds_.Next(), kStart + seconds(90));
  rounds_.Follow(std::make_shared<const ScanRules>());
  EXPECT_TRUE(rounds_.Takes(Group(1)));
}

// A table of one handler, read as the scan does it, with rows and slices that come and go, pauses, troubles,
// claims that get fewer rows than they asked for, and rules that change.
class Table {
 public:
  explicit Table(std::uint64_t seed) : random_(seed) {}

  void Run() {
    for (int step = 0; step < 400 && !::testing::Test::HasFailure(); ++step) {
      now_ += milliseconds(Draw(1, 2000));
      Disturb();
      Turn();
    }
    // Without a pause and with a rule that lets it, everything is taken in the end.
    paused_.clear();
    locks_ = false;
    Set({.every = seconds(1), .max_rows = 0, .scope = rule_.scope});
    for (int i = 0; i < 20; ++i, now_ += seconds(5)) Turn();
    EXPECT_THAT(rows_, IsEmpty());
  }

 private:
  struct OneRow {
    std::uint64_t id;
    std::uint32_t slice;
    WallTime created, run_at;
  };
  static constexpr std::size_t kPage = 5;

  std::int64_t Draw(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  WallTime Wall() const { return kWall + (now_ - kStart); }
  void Set(ScanConfig rule) {
    rule_ = rule;
    rounds_.Follow(std::make_shared<const ScanRules>(ScanRules{{kType, rule}}));
  }
  void Insert() {
    const WallTime due = Wall() + (Draw(0, 3) == 0 ? seconds(Draw(0, 20)) : seconds(0));
    rows_.push_back({++last_id_, static_cast<std::uint32_t>(Draw(0, 3)), Wall(), due});
  }
  void Disturb() {
    if (Draw(0, 2) == 0) {
      for (auto count = Draw(1, 12); count > 0; --count) Insert();
    }
    if (in_hand_ > 0 && Draw(0, 1) == 0) in_hand_ = 0;
    if (Draw(0, 15) == 0) paused_ = {static_cast<std::uint32_t>(Draw(0, 3))};
    if (Draw(0, 7) == 0) paused_.clear();
    if (Draw(0, 20) == 0) rounds_.Again();
    if (Draw(0, 40) != 0) return;
    ScanConfig rule{.max_rows = static_cast<std::uint32_t>(Draw(1, 30)),
                    .scope = Draw(0, 1) == 0 ? ScanScope::Created : ScanScope::Key};
    (Draw(0, 1) == 0 ? rule.every : rule.after) = seconds(Draw(1, 20));
    Set(rule);
  }
  void Turn() {
    if (!rounds_.Any()) Set(rule_);
    const std::optional<BootTime> next = rounds_.Views()[0].next;
    DueMap map{{}, Wall()};
    std::map<std::uint32_t, WallTime> heads;
    for (const OneRow& row : rows_) {
      const auto head = heads.try_emplace(row.slice, row.run_at).first;
      head->second = std::min(head->second, row.run_at);
    }
    for (const auto& [slice, head] : heads) map.groups.push_back({"tasks", slice, kType, 50, head});
    ScanRounds::Greatest greatest;
    for (const TableName& table : rounds_.Wanted(now_, kAll)) greatest[table] = last_id_;
    const auto in_hand = [this](const auto&) { return in_hand_ > 0; };
    rounds_.Look(now_, {map, kAll, greatest, [](const auto&) { return true; },
                        [this](const DueGroup& group) { return paused_.contains(group.slice); },
                        [](const auto&) { return false; }, in_hand});
    if (const auto began = rounds_.Views()[0].began; began != began_) {
      EXPECT_TRUE(!began_ || (next && *next <= now_)) << "before its time";
      began_ = began;
      scope_ = rule_.scope;
      wall_ = Wall();
      greatest_ = last_id_;
      claimed_ = 0;
    }
    for (const DueGroup& group : map.groups) ReadGroup(group);
    rounds_.NoteEnded(now_, in_hand);
  }
  void ReadGroup(const DueGroup& group) {
    const auto rewinding = rounds_.RewindingOf(group);
    if (rewinding == Rewinding::Now) cursors_.erase(group.slice);
    auto& after = cursors_[group.slice];
    while (rounds_.Takes(group) && !paused_.contains(group.slice)) {
      std::vector<OneRow> page;
      for (const OneRow& row : rows_) {
        if (row.slice == group.slice && row.run_at <= Wall() && std::pair(row.run_at, row.id) > after)
          page.push_back(row);
      }
      std::sort(page.begin(), page.end(), [](const OneRow& a, const OneRow& b) {
        return std::pair(a.run_at, a.id) < std::pair(b.run_at, b.id);
      });
      bool more = page.size() > kPage;
      if (more) page.resize(kPage);
      std::vector<std::uint64_t> claims;
      bool any = false;
      for (const OneRow& row : page) {
        ScanRow seen;
        seen.id = row.id;
        seen.created_at = row.created;
        if (rounds_.IsWithin(group, seen)) {
          any = true;
          more = more || claims.size() == rounds_.Left(kType);
          if (claims.size() == rounds_.Left(kType)) break;
          claims.push_back(row.id);
        }
        after = {row.run_at, row.id};
      }
      rounds_.Read(group, after.first, any, more);
      if (locks_ && Draw(0, 9) == 0 && !claims.empty()) claims.pop_back();
      Claim(claims);
    }
  }
  void Claim(const std::vector<std::uint64_t>& ids) {
    for (const std::uint64_t id : ids) {
      const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const OneRow& r) { return r.id == id; });
      EXPECT_TRUE(scope_ == ScanScope::Created ? row->created <= wall_ : row->id <= greatest_)
          << "created after its round began";
      rows_.erase(row);
    }
    rounds_.Claimed(kType, ids.size());
    EXPECT_TRUE(ids.empty() || rule_.max_rows == 0 || claimed_ + ids.size() <= rule_.max_rows);
    claimed_ += ids.size();
    in_hand_ += ids.size();
  }

  std::mt19937_64 random_;
  ScanRounds rounds_;
  ScanConfig rule_{.after = seconds(5), .max_rows = 10};
  BootTime now_ = kStart;
  std::vector<OneRow> rows_;
  std::uint64_t last_id_ = 0;
  std::size_t in_hand_ = 0;
  std::set<std::uint32_t> paused_;
  bool locks_ = true;  // somebody locks a row now and then
  std::map<std::uint32_t, std::pair<WallTime, std::uint64_t>> cursors_;
  std::optional<BootTime> began_;
  ScanScope scope_ = ScanScope::Created;
  WallTime wall_;
  std::uint64_t greatest_ = 0;
  std::size_t claimed_ = 0;
};

TEST(ScanRoundsPropertyTest, WhateverHappensARoundTakesNoMoreThanItsOwnAndEverythingIsTakenInTheEnd) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Table(seed).Run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace::engine

// Rows that change while they are scanned: none is skipped, none is run twice. Random interleavings of
// producers with a loop of page, claim and settle that starts a group anew when it has run empty.
#include <algorithm>
#include <map>

#include "framework/base/random.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace {
namespace {

class Interleaving {
 public:
  Interleaving(StoreTest& test, std::uint64_t seed) : test_(test), random_(seed), start_(test.Now()) {}

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
    while (!late_.empty()) CommitLate();
    for (const auto& [id, runs] : runs_) Expect(test_.fixture().Change("tasks", id, {.state = 0}));
    // To the end of the group, and anew, until a round from its beginning finds nothing.
    cursor_ = {};
    while (WorkOnePage()) {
      while (WorkOnePage()) {
      }
    }
    for (const auto& [id, runs] : runs_) EXPECT_EQ(runs, 1) << "task " << id;
    EXPECT_TRUE(test_.Due().groups.empty());
  }

 private:
  template <class T>
  static void Expect(const Result<T>& result) {
    EXPECT_TRUE(result) << result.error().message;
  }

  // Few distinct times, so that ties are common, ahead of the cursor and behind it.
  WallTime SomeTime() { return start_ - std::chrono::minutes(1 + random_.Below(6)); }
  PlainRow SomeRow() { return {.slice = 1, .run_at = SomeTime()}; }
  std::uint64_t SomeId() {
    auto place = runs_.begin();
    std::advance(place, static_cast<long>(random_.Below(runs_.size())));
    return place->first;
  }

  void Step() {
    switch (random_.Below(8)) {
      case 0:
      case 1:
        runs_[test_.Add(SomeRow())];
        break;
      case 2:
        if (!runs_.empty()) Expect(test_.fixture().Change("tasks", SomeId(), {.state = 3}));
        break;
      case 3:
        if (!runs_.empty()) Expect(test_.fixture().Change("tasks", SomeId(), {.state = 0}));
        break;
      case 4:
        if (!runs_.empty()) Expect(test_.fixture().Change("tasks", SomeId(), {.run_at = SomeTime()}));
        break;
      case 5:
        ChangeLate();
        break;
      default:
        WorkOnePage();
    }
  }

  void ChangeLate() {
    if (!test_.fixture().late_commits()) return;
    if (late_.size() > 2) {
      CommitLate();
      return;
    }
    auto row = test_.fixture().InsertLate("tasks", SomeRow());
    ASSERT_NE(row, nullptr);
    late_.push_back(std::move(row));
  }

  // From now on others may change it too; before, they would wait for its lock.
  void CommitLate() {
    Expect(late_.front()->Commit());
    runs_[late_.front()->id()];
    late_.erase(late_.begin());
  }

  // False: the group was at its end, and the cursor is back at its beginning.
  bool WorkOnePage() {
    auto page = test_.tasks().Scan({.group = {"tasks", 1, "noop", 50, {}}, .after = cursor_, .limit = 3});
    Expect(page);
    if (!page || page->empty()) {
      cursor_ = {};
      return false;
    }
    cursor_ = {page->back().run_at, page->back().id};
    std::vector<std::uint64_t> ids;
    for (const ScanRow& row : *page) ids.push_back(row.id);
    // What happens between the scan and the claim: a row of the page is held.
    if (random_.Below(4) == 0) Expect(test_.fixture().Change("tasks", ids[0], {.state = 3}));
    std::vector<Settlement> ends;
    for (const Task& task : test_.Claim(ids)) {
      ++runs_[task.key.id];
      ends.push_back(End(task, Settlement::To::Succeeded));
    }
    for (const SettleVerdict verdict : test_.Settle(ends).verdicts)
      EXPECT_EQ(verdict, SettleVerdict::Settled);
    if (!ids.empty() && ends.size() < ids.size())
      Expect(test_.fixture().Change("tasks", ids[0], {.state = 0}));
    return true;
  }

  StoreTest& test_;
  Random random_;
  const WallTime start_;
  ScanPosition cursor_;
  std::map<std::uint64_t, int> runs_;
  std::vector<std::unique_ptr<StoreFixture::LateRow>> late_;
};

TEST_P(StoreContract, RowsThatChangeWhileTheyAreScannedRunExactlyOnce) {
  const std::uint64_t first = Random::FromSystem().Below(1'000'000);
  for (std::uint64_t seed = first; seed < first + 15 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Interleaving(*this, seed).Run(60);
  }
}

}  // namespace
}  // namespace millrace

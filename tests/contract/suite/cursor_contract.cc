// Rows that change while they are scanned: none is skipped, none is run twice. Random interleavings of
// producers with a loop of page, claim and settle that starts a group anew when it has run empty.
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "framework/base/random.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace {
namespace {

// One step of an interleaving. `pick` chooses among the rows there are, so that it stays a step of the same
// sort while RapidCheck makes the interleaving shorter.
struct Step {
  enum class Kind { Work, Insert, Hold, Release, Move, Late };
  Kind kind = Kind::Work;
  int pick = 0;
  int minutes = 1;      // how long the row is due: few times, so that ties are common
  bool meddle = false;  // while working: a row of the page is held between the scan and the claim
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  static constexpr const char* kKinds[] = {"work", "insert", "hold", "release", "move", "late"};
  out << kKinds[static_cast<int>(step.kind)] << "(pick " << step.pick << ", " << step.minutes << " min";
  return out << (step.meddle ? ", meddle)" : ")");
}

rc::Gen<Step> AnyStep() {
  using Kind = Step::Kind;
  const auto kind = rc::gen::weightedElement<Kind>({{3, Kind::Work},
                                                    {3, Kind::Insert},
                                                    {1, Kind::Hold},
                                                    {1, Kind::Release},
                                                    {1, Kind::Move},
                                                    {1, Kind::Late}});
  return rc::gen::build<Step>(
      rc::gen::set(&Step::kind, kind), rc::gen::set(&Step::pick, rc::gen::inRange(0, 20)),
      rc::gen::set(&Step::minutes, rc::gen::inRange(1, 7)),
      rc::gen::set(&Step::meddle, rc::gen::weightedElement<bool>({{3, false}, {1, true}})));
}

// A handler of its own for each run: what a failed run leaves behind is not in the way of the next.
class Interleaving {
 public:
  Interleaving(StoreTest& test, std::string handler)
      : test_(test), handler_(std::move(handler)), start_(test.Now()) {}

  void Run(const std::vector<Step>& steps) {
    for (const Step& step : steps) Take(step);
    while (!late_.empty()) CommitLate();
    for (const auto& [id, runs] : runs_) Change(id, {.state = 0});
    // Empty twice: at the end of the group, and from its beginning, to which the first has brought the
    // cursor.
    while (WorkOnePage(false) || WorkOnePage(false)) {
    }
    for (const auto& [id, runs] : runs_) {
      RC_LOG() << "task " << id << " was run " << runs << " times\n";
      RC_ASSERT(runs == 1);
    }
  }

 private:
  template <class T>
  static void Expect(const Result<T>& result) {
    if (!result) RC_FAIL(result.error().message);
  }
  void Change(std::uint64_t id, const RowChange& change) {
    Expect(test_.fixture().Change("tasks", id, change));
  }

  WallTime TimeOf(const Step& step) const { return start_ - std::chrono::minutes(step.minutes); }
  PlainRow RowOf(const Step& step) const { return {.handler = handler_, .slice = 1, .run_at = TimeOf(step)}; }
  std::uint64_t IdOf(const Step& step) const {
    return std::next(runs_.begin(), step.pick % static_cast<long>(runs_.size()))->first;
  }

  void Take(const Step& step) {
    switch (step.kind) {
      case Step::Kind::Work:
        WorkOnePage(step.meddle);
        return;
      case Step::Kind::Insert:
        runs_[test_.Add(RowOf(step))];
        return;
      case Step::Kind::Late:
        ChangeLate(step);
        return;
      default:
        if (!runs_.empty()) ChangeRow(step);
    }
  }

  void ChangeRow(const Step& step) {
    if (step.kind == Step::Kind::Hold) Change(IdOf(step), {.state = 3});
    if (step.kind == Step::Kind::Release) Change(IdOf(step), {.state = 0});
    if (step.kind == Step::Kind::Move) Change(IdOf(step), {.run_at = TimeOf(step)});
  }

  void ChangeLate(const Step& step) {
    if (!test_.fixture().late_commits()) return;
    if (late_.size() > 2) {
      CommitLate();
      return;
    }
    auto row = test_.fixture().InsertLate("tasks", RowOf(step));
    RC_ASSERT(row != nullptr);
    late_.push_back(std::move(row));
  }

  // From now on others may change it too; before, they would wait for its lock.
  void CommitLate() {
    Expect(late_.front()->Commit());
    runs_[late_.front()->id()];
    late_.erase(late_.begin());
  }

  // False: the group was at its end, and the cursor is back at its beginning.
  bool WorkOnePage(bool meddle) {
    auto page = test_.tasks().Scan({.group = {"tasks", 1, handler_, 50, {}}, .after = cursor_, .limit = 3});
    Expect(page);
    if (page->empty()) {
      cursor_ = {};
      return false;
    }
    cursor_ = {page->back().run_at, page->back().id};
    std::vector<std::uint64_t> ids;
    for (const ScanRow& row : *page) ids.push_back(row.id);
    if (meddle) Change(ids[0], {.state = 3});
    Work(ids);
    if (meddle) Change(ids[0], {.state = 0});
    return true;
  }

  void Work(const std::vector<std::uint64_t>& ids) {
    std::vector<Settlement> ends;
    for (const Task& task : test_.Claim(ids)) {
      ++runs_[task.key.id];
      ends.push_back(End(task, Settlement::To::Succeeded));
    }
    for (const SettleVerdict verdict : test_.Settle(ends).verdicts)
      RC_ASSERT(verdict == SettleVerdict::Settled);
  }

  StoreTest& test_;
  const std::string handler_;
  const WallTime start_;
  ScanPosition cursor_;
  std::map<std::uint64_t, int> runs_;
  std::vector<std::unique_ptr<StoreFixture::LateRow>> late_;
};

TEST_P(StoreContract, RowsThatChangeWhileTheyAreScannedRunExactlyOnce) {
  int run = 0;
  const auto property = [&] {
    const auto steps = *rc::gen::container<std::vector<Step>>(AnyStep());
    Interleaving(*this, "noop" + std::to_string(++run)).Run(steps);
  };
  // The sizes grow over the runs, up to 60 steps: as many as a database under load takes in a few seconds.
  rc::detail::TestParams params;
  params.seed = Random::FromSystem().Next();
  params.maxSuccess = 25;
  params.maxSize = 60;
  const auto result = rc::detail::checkTestable(property, rc::detail::TestMetadata(), params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << message.str() << "\nseed " << params.seed;
}

}  // namespace
}  // namespace millrace

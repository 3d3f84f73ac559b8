// What mills send of their own accord: lives, looks, claims, settles, rescues.
#include "framework/store/rehearsal_walk.h"

namespace millrace::engine {

Status RehearsalWalk::Lives() {
  IncarnationStore& lives = stage_.incarnations;
  for (const char* life : {".me", ".dead", ".gone", ".left"}) {
    BOOST_OUTCOME_TRYV(lives.Register({.id = stage_.name + life, .worker = stage_.name, .lease = Micros(1)}));
  }
  BOOST_OUTCOME_TRYV(Sent(lives.Register({.id = me_, .worker = stage_.name})));
  BOOST_OUTCOME_TRYV(lives.Renew(me_));
  BOOST_OUTCOME_TRYV(lives.Peers());
  BOOST_OUTCOME_TRYV(lives.MarkDead(stage_.name + ".dead", 0));
  BOOST_OUTCOME_TRYV(lives.MarkDead(stage_.name + ".gone", std::nullopt));
  BOOST_OUTCOME_TRYV(lives.Retire(stage_.name + ".left"));
  return {};
}

Status RehearsalWalk::Looks() {
  const TableSlices some{.table = table_, .all = false, .slices = {0, 2, 3}, .handlers = {{"a", "b"}}};
  const TableSlices all{.table = table_};
  const TableSlices types{.table = table_, .handlers = {{"a"}}};
  const WallTime ago = WallTime(std::chrono::days(365 * 40));
  DueGroup earlier = Group();
  earlier.first_run_at = ago;
  BOOST_OUTCOME_TRYV(stage_.tasks.Due(std::span(&all, 1)));
  BOOST_OUTCOME_TRYV(stage_.tasks.Due(std::span(&some, 1)));
  BOOST_OUTCOME_TRYV(stage_.tasks.Due(std::span(&types, 1)));
  const TableSlices own{.table = table_, .all = false, .slices = {0, 2, 3}};
  for (const TableSlices& slices : {all, own, some, types}) {
    BOOST_OUTCOME_TRYV(stage_.tasks.Due(std::span(&slices, 1), {.begins_parts = true}));
    BOOST_OUTCOME_TRYV(
        stage_.tasks.Due(std::span(&slices, 1), {.begins_parts = true, .newer = {{table_, 1}}}));
  }
  for (const TableSlices& slices : {all, own}) {
    BOOST_OUTCOME_TRYV(stage_.tasks.Due(std::span(&slices, 1), {.rows = {{table_, {1, 2, 4}}}}));
  }
  BOOST_OUTCOME_TRYV(stage_.tasks.Due(std::span(&all, 1), {.newer = {{table_, 1}}, .after = {earlier}}));
  BOOST_OUTCOME_TRYV(stage_.tasks.GreatestIds(std::span(&table_, 1)));
  for (const ScanPosition& after : {ScanPosition{}, ScanPosition{ago, 0}, ScanPosition{ago, 1}}) {
    for (const bool bytes : {false, true}) {
      BOOST_OUTCOME_TRYV(
          stage_.tasks.Scan({.group = Group(), .after = after, .limit = 100, .with_bytes = bytes}));
    }
    for (const bool bytes : {false, true}) {
      for (const bool contents : {false, true}) {
        const ScanRequest one{
            .group = Group(), .after = after, .limit = 10, .with_bytes = bytes, .with_contents = contents};
        std::vector<ScanRequest> two(2, one);
        BOOST_OUTCOME_TRYV(stage_.tasks.ScanEach(two));
        for (ScanRequest& request : two) request.joined = 10;
        ++two[1].group.slice;
        BOOST_OUTCOME_TRYV(stage_.tasks.ScanEach(two));
      }
    }
    BOOST_OUTCOME_TRYV(
        stage_.tasks.Scan({.group = Group(), .after = after, .limit = 10, .with_created = true}));
    const ScanRequest swept{.group = Group(), .after = after, .limit = 10, .running_only = true};
    BOOST_OUTCOME_TRYV(stage_.tasks.Scan(swept));
    BOOST_OUTCOME_TRYV(stage_.tasks.ScanEach(std::vector<ScanRequest>(2, swept)));
  }
  return {};
}

Status RehearsalWalk::Claims() {
  TaskStore& tasks = stage_.tasks;
  Ids ids;
  for (std::uint64_t id = 1; id <= 60; ++id) ids.push_back(id);
  BOOST_OUTCOME_TRYV(tasks.Claim(Request(ids)));
  // As they were read, but for one that was edited since.
  BOOST_OUTCOME_TRY(rows, tasks.Scan({.group = Group(), .with_contents = true}));
  ClaimRequest known = Request({});
  for (ScanRow& row : rows) {
    if (row.id < 350 || row.id > 360 || !row.contents) continue;
    known.ids.push_back(row.id);
    known.contents.push_back(std::move(*row.contents));
  }
  BOOST_OUTCOME_TRYV(stage_.run("UPDATE " + Text() + " SET updated_at='2001-01-01' WHERE id=352"));
  BOOST_OUTCOME_TRYV(tasks.Claim(known));
  ClaimRequest dead = Request({70});
  dead.incarnation = stage_.name + ".dead";
  BOOST_OUTCOME_TRYV(Sent(tasks.Claim(dead)));
  stage_.refuse(1);
  BOOST_OUTCOME_TRYV(tasks.Claim(Request({71, 72})));
  // One whose reply was lost: rows that it reached and rows that it did not; then the resolving is cut short.
  BOOST_OUTCOME_TRYV(tasks.Resolve(Request({51, 73})));
  stage_.refuse(2);
  (void)tasks.Resolve(Request({52, 74}));
  BOOST_OUTCOME_TRYV(tasks.Resolve(Request({52, 74})));
  BOOST_OUTCOME_TRYV(tasks.Adopt(Request({53, 54}, 1)));
  BOOST_OUTCOME_TRYV(stage_.run("UPDATE " + Text() + " SET biz_key='" + KeyOf(80) + "' WHERE id=80"));
  BOOST_OUTCOME_TRYV(tasks.FailUnclaimed(Request({80, 81}), "rehearsed"));
  const TaskKey running[] = {Key(1), Key(2)};
  BOOST_OUTCOME_TRYV(tasks.Cancelled(me_, running));
  const TaskProgress progress[] = {{Key(1), 1, "half"}, {Key(2), 1, "most"}};
  BOOST_OUTCOME_TRYV(tasks.SaveProgress(me_, progress));
  stage_.refuse(1);
  BOOST_OUTCOME_TRYV(tasks.SaveProgress(me_, progress));
  const Crash crash{Key(55), 1};
  BOOST_OUTCOME_TRYV(stage_.incarnations.ChargeCrashes(me_, std::span(&crash, 1)));
  return {};
}

Status RehearsalWalk::Keys() {
  const auto tasks = [this](Ids ids) {
    std::vector<Task> list;
    for (const std::uint64_t id : ids) list.push_back(Claimed(id));
    return list;
  };
  BOOST_OUTCOME_TRYV(stage_.run("UPDATE " + Text() + " SET biz_key=CONCAT('" + stage_.name +
                                "',id) WHERE id BETWEEN 1 AND 12 OR id IN (200,300)"));
  BOOST_OUTCOME_TRYV(stage_.tasks.ConfirmKeys(me_, tasks({1, 2, 3, 4, 5, 6, 7, 8})));
  BOOST_OUTCOME_TRYV(stage_.tasks.ConfirmKeys(me_, tasks({1, 2})));
  // An entry whose task is in no pool is void, and so is one of a table that is not there.
  BOOST_OUTCOME_TRYV(stage_.run("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id) VALUES ('b','" +
                                KeyOf(9) + "','" + Text() + "',999999),('b','" + KeyOf(11) + "','" + Text() +
                                "_gone',1)"));
  BOOST_OUTCOME_TRYV(stage_.tasks.ConfirmKeys(me_, tasks({9, 11})));
  return {};
}

Status RehearsalWalk::Settles() {
  using To = Settlement::To;
  std::vector<Settlement> batch;
  for (const bool keyed : {true, false}) {
    const std::uint64_t first = keyed ? 1 : 21;
    batch.push_back(End(first, To::Succeeded, keyed));
    batch.push_back(End(first + 1, To::Failed, keyed));
    batch.push_back(End(first + 2, To::Waiting, keyed));
    batch.push_back(End(first + 3, To::Cancelled, keyed));
    batch.push_back(End(first + 4, To::Cancelled, keyed));
    batch.back().started = false;
    batch.push_back(End(first + 5, To::Waiting, keyed));
  }
  for (Settlement& one : batch) {
    one.text = "rehearsed";
    one.failed_attempt = one.to == To::Failed || (one.to == To::Waiting && one.key.id % 2 == 0);
    if (one.failed_attempt) one.error_class = "rehearsed";
    if (one.to == To::Waiting) one.delay = std::chrono::minutes(1);
  }
  batch.back().delay.reset();
  batch.back().run_at = WallTime(std::chrono::days(365 * 60));
  BOOST_OUTCOME_TRYV(stage_.tasks.Settle(me_, batch));
  // What its handler saved last goes with the end of the one, and the other's stays.
  std::vector<Settlement> saved;
  std::uint64_t next = 41;
  for (const To to : {To::Succeeded, To::Failed, To::Waiting}) {
    saved.push_back(End(next++, to, false));
    saved.back().progress = "half";
    saved.push_back(End(next++, to, false));
  }
  BOOST_OUTCOME_TRYV(stage_.tasks.Settle(me_, saved));
  // Somebody else's attempt among ours, and a lock.
  Settlement foreign = End(31, To::Succeeded, false);
  foreign.attempt = 9;
  const Settlement refused[] = {foreign, End(32, To::Succeeded, false)};
  BOOST_OUTCOME_TRYV(stage_.tasks.Settle(me_, refused));
  const Settlement locked[] = {End(33, To::Succeeded, false), End(34, To::Succeeded, false)};
  stage_.refuse(1);
  BOOST_OUTCOME_TRYV(Sent(stage_.tasks.Settle(me_, locked)));
  BOOST_OUTCOME_TRYV(stage_.tasks.StillRunning(me_, locked));
  return {};
}

Status RehearsalWalk::Rescues() {
  BOOST_OUTCOME_TRYV(
      stage_.run("UPDATE " + Text() +
                 " SET state=2,attempt=1,claimed_by=12345,claimed_at=run_at WHERE id IN (200,201)"));
  BOOST_OUTCOME_TRYV(stage_.tasks.Scan({.group = Group(), .after = {}, .limit = kMaxBatchRows}));
  BOOST_OUTCOME_TRYV(
      stage_.tasks.Rescue({.table = table_, .claimed_by = "#12345", .attempt = 1, .ids = {200, 201}}));
  BOOST_OUTCOME_TRYV(stage_.tasks.Rescue(
      {.table = table_, .claimed_by = stage_.name + ".none", .attempt = 1, .ids = {202}}));
  return {};
}

}  // namespace millrace::engine

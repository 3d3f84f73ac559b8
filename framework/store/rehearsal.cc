// What people and the coordinator have a store do.
#include "framework/store/rehearsal.h"

#include "framework/store/rehearsal_walk.h"

namespace millrace::engine {

Status RehearsalWalk::Submits() {
  std::vector<NewTask> tasks(3);
  for (NewTask& task : tasks) task.handler = "a";
  tasks[0].biz_key = KeyOf(1002);
  tasks[1].delay = std::chrono::minutes(1);
  tasks[2].run_at = WallTime(std::chrono::days(365 * 60));
  tasks[2].held = true;
  // New ones; then they are there already; then that is looked for first.
  for (int time = 0; time < 3; ++time) {
    BOOST_OUTCOME_TRYV(stage_.operations.Submit(table_, tasks));
  }
  // What stands under its key is other than this.
  tasks[0].params = R"({"other":1})";
  BOOST_OUTCOME_TRYV(stage_.operations.Submit(table_, std::span(tasks.data(), 1)));
  NewTask placed{.handler = "a"};
  placed.expires_in = std::chrono::hours(1);
  BOOST_OUTCOME_TRYV(stage_.operations.Submit(table_, std::span(&placed, 1)));
  placed.slice = 0;
  BOOST_OUTCOME_TRYV(stage_.operations.Submit(table_, std::span(&placed, 1)));
  placed.expires_in.reset();
  BOOST_OUTCOME_TRYV(stage_.operations.Submit(table_, std::span(&placed, 1)));
  return {};
}

Status RehearsalWalk::Edits() {
  TaskOperations& people = stage_.operations;
  const WallTime ago = WallTime(std::chrono::days(365 * 40));
  // Each choice of priority, due time and params; of a task that waits and one that has failed.
  for (std::uint32_t choice = 1; choice < 8; ++choice) {
    TaskEdit edit;
    if (choice & 1U) edit.priority = choice;
    if (choice & 2U) edit.delay = std::chrono::hours(1);
    if (choice & 4U) edit.params = R"({"edited":1})";
    BOOST_OUTCOME_TRYV(people.Edit(edit, table_, Ids{305, 2}, stage_.name));
  }
  BOOST_OUTCOME_TRYV(people.Edit({.run_at = ago}, table_, Ids{305}, stage_.name));
  BOOST_OUTCOME_TRYV(people.Edit({.expires_in = std::chrono::hours(2)}, table_, Ids{305}, stage_.name));
  BOOST_OUTCOME_TRYV(people.Edit({.delay = std::chrono::hours(1), .expires_in = std::chrono::hours(2)},
                                 table_, Ids{305}, stage_.name));
  BOOST_OUTCOME_TRYV(people.LastAct(TaskAction::Hold, Key(305)));
  Task due;
  due.key = Key(307);
  due.handler = "a";
  due.run_at = ago;
  BOOST_OUTCOME_TRYV(people.Ahead(due));
  return {};
}

Status RehearsalWalk::Readers() {
  TaskOperations& people = stage_.operations;
  for (const std::uint64_t id : {300, 1, 2, 999'999}) {  // waits, succeeded, failed, is nowhere
    BOOST_OUTCOME_TRYV(Sent(people.Get(Key(id))));
  }
  const Ids ids = {1, 2, 300};
  BOOST_OUTCOME_TRYV(people.Outcomes(table_, ids));
  BOOST_OUTCOME_TRYV(people.Rescues(table_, ids));
  BOOST_OUTCOME_TRYV(Sent(people.Find(table_, "a", KeyOf(1002))));
  BOOST_OUTCOME_TRYV(Sent(people.Find(table_, "", KeyOf(1002))));
  BOOST_OUTCOME_TRYV(Sent(people.Find(table_, "a", KeyOf(4711))));
  BOOST_OUTCOME_TRYV(Sent(people.Find(table_, "", KeyOf(4711))));
  for (const TaskState state : {TaskState::Waiting, TaskState::Failed, TaskState::Succeeded}) {
    TaskFilter filter{.state = state};
    BOOST_OUTCOME_TRYV(people.List(table_, filter, "", 10));
    filter.handler = "a";
    filter.batch = "none";
    filter.key = "none";
    filter.slice = 0;
    if (state == TaskState::Failed) filter.error_class = "none";
    BOOST_OUTCOME_TRYV(people.List(table_, filter, "", 10));
  }
  BOOST_OUTCOME_TRYV(people.List(table_, {}, "", 100'000));
  const WallTime ago = WallTime(std::chrono::days(365 * 40));
  for (const TaskState state : {TaskState::Waiting, TaskState::Failed, TaskState::Succeeded}) {
    TaskFilter newest{.state = state, .newest_first = true};
    BOOST_OUTCOME_TRY(page, people.List(table_, newest, "", 1));
    BOOST_OUTCOME_TRYV(people.List(table_, newest, page.next, 10));
    newest.since = ago;
    BOOST_OUTCOME_TRYV(people.List(table_, newest, "", 10));
    newest.newest_first = false;
    BOOST_OUTCOME_TRYV(people.List(table_, newest, "", 10));
    TaskFilter early = newest;
    early.until = early.due_before = ago;
    early.priority = 5;
    BOOST_OUTCOME_TRYV(people.List(table_, early, "", 10));
  }
  const TaskFilter bounded{.priority = 5, .until = ago, .due_before = ago};
  for (const TaskPool pool : {TaskPool::Hot, TaskPool::Failed, TaskPool::Done}) {
    BOOST_OUTCOME_TRYV(people.Count(table_, pool, {}, 10, BootTime::max()));
    BOOST_OUTCOME_TRYV(people.Count(table_, pool, bounded, 10, BootTime::max()));
    BOOST_OUTCOME_TRYV(people.Count(table_, pool, {.since = ago}, 10, BootTime::max()));
  }
  return {};
}

Status RehearsalWalk::People() {
  TaskOperations& people = stage_.operations;
  BOOST_OUTCOME_TRYV(Readers());
  BOOST_OUTCOME_TRYV(Edits());
  const std::pair<TaskAction, Ids> actions[] = {{TaskAction::Hold, {301}},
                                                {TaskAction::Release, {301}},
                                                {TaskAction::Retry, {302, 2, 22}},
                                                {TaskAction::Cancel, {300, 11, 303, 80}}};
  for (const auto& [action, some] : actions) {
    BOOST_OUTCOME_TRYV(people.Apply(action, table_, some, stage_.name));
  }
  BOOST_OUTCOME_TRYV(people.Apply(TaskAction::Hold, table_, Ids{305, 306}, {stage_.name, "all that match"}));
  BOOST_OUTCOME_TRYV(people.LastAct(TaskAction::Hold, Key(301)));
  BOOST_OUTCOME_TRYV(people.SetPause(stage_.name, stage_.name, true));
  BOOST_OUTCOME_TRYV(people.Pauses());
  BOOST_OUTCOME_TRYV(people.SetPause(stage_.name, stage_.name, false));
  BOOST_OUTCOME_TRYV(people.Totals());
  BOOST_OUTCOME_TRYV(people.TypeTotals());
  BOOST_OUTCOME_TRYV(people.TypeTotals(std::span(&stage_.name, 1)));
  BOOST_OUTCOME_TRYV(people.GlanceAtBatches(10));
  return {};
}

Status RehearsalWalk::Overview() {
  BOOST_OUTCOME_TRYV(stage_.operations.Apply(TaskAction::Hold, table_, Ids{304}, stage_.name));
  BOOST_OUTCOME_TRYV(stage_.overview.Waiting(std::span(&table_, 1)));
  const TaskTotals failed{.table = Text(), .failed = 1};
  BOOST_OUTCOME_TRYV(stage_.overview.Failed(std::span(&table_, 1), std::span(&failed, 1)));
  return {};
}

Status RehearsalWalk::Alerts() {
  AlertStore& alerts = stage_.alerts;
  BOOST_OUTCOME_TRYV(alerts.Keyed(Text(), stage_.name, 10));
  BOOST_OUTCOME_TRYV(alerts.Events(0));
  BOOST_OUTCOME_TRYV(alerts.Note(kSettleRefused, me_, ToString(Key(1)), "a"));
  BOOST_OUTCOME_TRYV(alerts.Failed());
  return {};
}

Status RehearsalWalk::Schedules() {
  ScheduleStore& schedules = stage_.schedules;
  const std::string name = "~" + Text();  // nobody else's
  const WallTime once(std::chrono::days(365 * 40));
  ScheduleRow row{.name = name, .state = {.rhythm = "at", .anchor = once, .next = once}};
  BOOST_OUTCOME_TRYV(schedules.Rows());
  BOOST_OUTCOME_TRYV(schedules.Make(row));
  const ScheduledFiring firing{once, table_, NewTask{.handler = "a", .biz_key = "schedule/" + name}};
  ScheduleStep step{.to = row.state, .firing = firing, .lapsed = 1, .told = {{1, "rehearsed"}}};
  step.to.next.reset();
  step.to.last = once;
  BOOST_OUTCOME_TRY(stepped, schedules.Step(row, step));
  row.state = step.to;
  row.task = stepped.task;
  BOOST_OUTCOME_TRYV(schedules.Last(row));
  row.task = Key(999'999);
  BOOST_OUTCOME_TRYV(schedules.Last(row));
  BOOST_OUTCOME_TRYV(schedules.RunNow(name, {once, table_, NewTask{.handler = "a"}}, stage_.name));
  for (int time = 0; time < 2; ++time) {  // as it was seen, and no longer
    BOOST_OUTCOME_TRYV(schedules.Move(row, "elsewhere", 0));
  }
  row.moved_to = "elsewhere";
  BOOST_OUTCOME_TRYV(schedules.Remove(row));
  return {};
}

Status RehearsalWalk::FanOuts() {
  FanOut fan_out{.schedule = "~" + Text() + "~",
                 .firing = WallTime(std::chrono::days(365 * 40)),
                 .handler = "a",
                 .table = table_,
                 .query = "SELECT 1 AS id",
                 .key = "{id}",
                 .zone = "UTC"};
  BOOST_OUTCOME_TRYV(
      stage_.schedules.RunNow(fan_out.schedule, {fan_out.firing, table_, fan_out}, stage_.name));
  BOOST_OUTCOME_TRYV(stage_.fan_outs.UnderWay());
  FanOutPage page{.tasks = {NewTask{.handler = "a", .biz_key = KeyOf(2001)}}, .place = R"([["exact","1"]])"};
  BOOST_OUTCOME_TRYV(stage_.fan_outs.Step(fan_out, page));
  fan_out.place = page.place;
  BOOST_OUTCOME_TRYV(stage_.fan_outs.Step(fan_out, {.last = true}));
  BOOST_OUTCOME_TRYV(stage_.fan_outs.Ended());
  BOOST_OUTCOME_TRYV(
      stage_.schedules.RunNow(fan_out.schedule, {fan_out.firing, table_, fan_out}, stage_.name));
  BOOST_OUTCOME_TRYV(stage_.fan_outs.Stop(fan_out.schedule, stage_.name));
  return {};
}

Status RehearsalWalk::Batches() {
  BatchStore& batches = stage_.batches;
  const std::string name = stage_.name;
  const BatchPart home{"rehearsal", table_};
  const Ids ids = {350, 351};
  for (int time = 0; time < 2; ++time) {  // made; taken away, and made anew
    BOOST_OUTCOME_TRYV(batches.Make({.name = name, .home = home, .made_by = name}));
    if (time > 0) break;
    BOOST_OUTCOME_TRYV(batches.Unmake(name));
  }
  BOOST_OUTCOME_TRYV(batches.Announce(name, home, 2));
  BOOST_OUTCOME_TRYV(batches.Announce(name, {"rehearsal", "tasks_001"}, -1));
  BOOST_OUTCOME_TRYV(batches.Close(name, name));
  BOOST_OUTCOME_TRYV(batches.Close(name, name));  // it is closed already
  BOOST_OUTCOME_TRYV(batches.Announce(name, home, 1));
  BOOST_OUTCOME_TRYV(batches.Find(name));
  BOOST_OUTCOME_TRYV(batches.List(BatchStore::Which::All, "", 10));
  BOOST_OUTCOME_TRYV(batches.List(BatchStore::Which::Closed, "", 10));
  BOOST_OUTCOME_TRYV(batches.Sums(std::span(&table_, 1), std::span(&name, 1)));
  BOOST_OUTCOME_TRYV(batches.Walk(table_, 0, kMaxBatchRows));
  BOOST_OUTCOME_TRYV(batches.Still(table_, name, ids));
  const std::vector<NewTask> callback{{.handler = "a"}};
  for (int time = 0; time < 2; ++time) {  // the second finds it ended
    BOOST_OUTCOME_TRYV(batches.End({name, table_, {}, callback, callback}));
  }
  return {};
}

Status RehearsalWalk::Permits() {
  PermitStore& permits = stage_.permits;
  const std::string type = "~" + Text();  // nobody else's
  BOOST_OUTCOME_TRYV(permits.Make(type, 2));
  BOOST_OUTCOME_TRYV(permits.Permits(std::span(&type, 1)));
  using To = PermitChange::To;
  for (const auto& [to, turn] : {std::pair(To::Held, 0), {To::Voided, 1}, {To::Free, 2}}) {
    const PermitChange change{type, 1, static_cast<std::uint64_t>(turn), to, "rehearsal/tasks/1", 1};
    BOOST_OUTCOME_TRYV(permits.Change(me_, std::span(&change, 1)));
  }
  const PermitChange several[] = {{.handler = type, .number = 1, .turn = 3},
                                  {.handler = type, .number = 2},
                                  {.handler = type, .number = 3}};  // that one is not there
  BOOST_OUTCOME_TRYV(permits.Change(me_, several));
  BOOST_OUTCOME_TRYV(permits.Holders());
  BOOST_OUTCOME_TRYV(permits.NameHome(stage_.name));
  BOOST_OUTCOME_TRYV(permits.Home());
  return {};
}

Status RehearsalWalk::Prunes() {
  PruneStore& pruning = stage_.pruning;
  const auto refuse = [](const std::string&, std::span<const TaskRecord>) { return false; };
  BOOST_OUTCOME_TRYV(pruning.PruneEnded({table_, {}, Micros(0), {"a"}, refuse}, "", kMaxBatchRows));
  BOOST_OUTCOME_TRYV(pruning.PruneEnded({table_, {}, Micros(0)}, "", kMaxBatchRows));
  const HoldRule held{table_, {{"a", Micros(0)}, {"b", Micros(0)}}};
  std::string walked;
  do {
    BOOST_OUTCOME_TRY(step, pruning.EndHeld(held, walked, kMaxBatchRows));
    walked = step.next;
  } while (!walked.empty());
  // Behind all handlers that there can be, so that nobody else's entries are touched.
  const std::string last(kMaxHandlerName, 'z');
  BOOST_OUTCOME_TRYV(
      stage_.run("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,keep_until) VALUES ('" + last +
                 "','" + KeyOf(1) + "','" + Text() + "',1,'2000-01-01')"));
  BOOST_OUTCOME_TRYV(pruning.PruneKeys(last + ":" + stage_.name, 10));
  const std::string dead = "'" + stage_.name + ".dead'";
  BOOST_OUTCOME_TRYV(stage_.run("UPDATE millrace_incarnations SET started_at='1990-01-01' WHERE id=" + dead));
  BOOST_OUTCOME_TRYV(
      stage_.run("INSERT INTO millrace_counters (task_table,handler,incarnation,succeeded) VALUES ('" +
                 Text() + "','a'," + dead + ",1)"));
  // First its counters, then its row.
  for (int step = 0; step < 2; ++step) {
    BOOST_OUTCOME_TRYV(pruning.PruneIncarnations(std::chrono::days(365 * 20), 10));
  }
  return {};
}

Status RehearsalWalk::Schema() {
  BOOST_OUTCOME_TRYV(
      stage_.run("INSERT INTO millrace_schema (task_table,slices,version,readable_by) VALUES ('" + Text() +
                 "',1," + std::to_string(kSchemaVersion) + "," + std::to_string(kReadableBy) + ")"));
  BOOST_OUTCOME_TRY(tables, stage_.schema.Tables());
  BOOST_OUTCOME_TRYV(stage_.schema.ReadBeyond(tables));
  BOOST_OUTCOME_TRYV(stage_.schema.Identity());
  BOOST_OUTCOME_TRYV(stage_.schema.RenumberStep(table_, 10));
  // Tables of a later version that this program may work on.
  BOOST_OUTCOME_TRYV(stage_.run("UPDATE millrace_schema SET version=" + std::to_string(kSchemaVersion + 1) +
                                " WHERE task_table=''"));
  BOOST_OUTCOME_TRYV(stage_.schema.Tables());
  return {};
}

Status Rehearse(RehearsalStage& stage) { return RehearsalWalk(stage).Run(); }

}  // namespace millrace::engine

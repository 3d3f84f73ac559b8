#include "coordinator/upkeep/schedules.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "framework/base/log.h"
#include "framework/base/time_text.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

using Act = PlaceStep::Act;
using Role = ScheduleDuty::Role;

// A schedule that somebody adds, a task that has ended, a row that another shard has sent: found within this.
constexpr Micros kLookAgain = std::chrono::seconds(1);
constexpr Micros kAtOnce = std::chrono::milliseconds(10);
// Where no document names a schedule, rows of those that it named before are looked for.
constexpr Micros kLookForRows = std::chrono::seconds(10);
constexpr int kStepsInALook = 100;
constexpr const char* kInWork = "the last firing's task was in work";
// A leader reads a new document within seconds. One that is newer for longer is of an ensemble that was set
// up anew since, and begins to count again.
constexpr Micros kNewerIsStale = std::chrono::minutes(1);
// And its rows go so much later, where its document does not have them: somebody may be about to bring the
// former document back, and a row knows what was missed meanwhile.
constexpr Micros kNewerIsForgotten = std::chrono::hours(24);

// By no number a process takes up its file within three seconds, so that for a moment its rule and another's
// are of two versions of one file.
constexpr Micros kFilesDiffer = std::chrono::seconds(10);
// Whoever serves a row moves it on when it is due.
constexpr Micros kUnserved = kPunctual;
// Who is alone in the shard waits no longer. Whoever wrote the row has registered by then, and lives are read
// as seldom as that: so they are always read later than the row was written.
constexpr Micros kLeftAlone = std::chrono::seconds(10);

const char* WhyLapsed(const ScheduleRow& row, const ScheduleState& to, const LastTask& last) {
  if (row.state.paused) return "the schedule was paused";
  if (row.state.rhythm != to.rhythm) return "its rule was changed";
  return last.in_work ? kInWork : "nobody was there in time";
}

}  // namespace

Micros ShardSchedules::Look(const ScheduleDuty& duty, BootTime now) {
  now_ = now;
  firings_.Follow(duty.config);
  found_.clear();
  look_at_.reset();
  raised_ = 0;
  again_ = false;
  const auto& schedules = duty.config->schedules;
  auto rows = store_->Rows();
  if (!rows) {
    board_.Forget(shard_);
    known_.clear();
    for (auto& [name, row] : unnumbered_) row.since = now;  // nobody could serve it
    const bool meant = rows.error().code != ErrorCode::NotFound || !schedules.empty();
    if (meant) Say("schedules of shard " + shard_ + " can't fire: " + rows.error().message);
    Tell();
    return meant ? kLookAgain : kLookForRows;
  }
  rows_ = std::move(*rows);
  Follow(duty, now);
  const ScheduleReadings readings = duty.shards.size() > 1 ? board_.Readings() : ScheduleReadings();
  for (const auto& [name, schedule] : schedules) See(name, schedule, duty, readings);
  Remove(duty);
  Tell();
  if (again_) return kAtOnce;
  Micros wait = schedules.empty() ? kLookForRows : kLookAgain;
  if (look_at_) wait = std::min(wait, *look_at_ - rows_.now - (BootClock::now() - now));
  return std::max(wait, Micros(0));
}

// What was read, for this shard and for the others.
void ShardSchedules::Follow(const ScheduleDuty& duty, BootTime now) {
  reading_ = {now, {}};
  bool newer = false;
  for (const ScheduleRow& row : rows_.rows) {
    reading_.rows[row.name] = row;
    newer = newer || (duty.number != 0 && row.config > duty.number);
  }
  if (!newer) newer_since_.reset();
  if (newer && !newer_since_) newer_since_ = now;
  std::map<std::string, Known> known;
  const auto note = [&](const std::string& name) {
    const auto row = reading_.rows.find(name);
    const auto number = row == reading_.rows.end() ? std::nullopt : std::optional(row->second.config);
    const auto before = known_.find(name);
    const bool same = before != known_.end() && before->second.row == number;
    known[name] = same ? before->second : Known{number, BootClock::now()};
  };
  std::map<std::string, Unnumbered> unnumbered;
  for (const auto& [name, schedule] : duty.config->schedules) {
    note(name);
    const auto row = reading_.rows.find(name);
    if (duty.number != 0 || row == reading_.rows.end()) continue;
    Unnumbered& stands = unnumbered[name] = unnumbered_[name];
    if (stands.state == row->second.state) continue;
    stands.state = row->second.state;
    stands.since = now;
  }
  known_ = std::move(known);
  std::erase_if(skips_, [&](const auto& skips) { return !known_.contains(skips.first); });
  unnumbered_ = std::move(unnumbered);
  board_.Keep(shard_, reading_);
}

std::string ShardSchedules::HomeOf(const ScheduleConfig& schedule, const ScheduleDuty& duty) {
  if (!schedule.shard.empty()) return schedule.shard;
  return duty.shards.empty() ? shard_ : duty.shards.front();
}

void ShardSchedules::See(const std::string& name, const ScheduleConfig& schedule, const ScheduleDuty& duty,
                         const ScheduleReadings& readings) {
  const std::string home = HomeOf(schedule, duty);
  if (!schedule.fault.empty()) {
    if (home == shard_) Say("schedule " + name + " does not fire by this process: " + schedule.fault);
    return;
  }
  if (std::find(duty.shards.begin(), duty.shards.end(), home) == duty.shards.end()) {
    if (!duty.shards.empty() && duty.shards.front() == shard_)
      Say("schedule " + name + " does not fire: there is no shard " + home);
    return;
  }
  const auto row = reading_.rows.find(name);
  Known& known = known_.at(name);
  const PlacedSchedule placed{name, home, row == reading_.rows.end() ? nullptr : &row->second, known.since,
                              known.confirmed || duty.shards.size() == 1};
  const PlaceStep step = Place(placed, shard_, duty.shards, readings);
  if (step.act == Act::Confirm) known = {std::nullopt, BootClock::now(), true};
  if (placed.own != nullptr && !MayChange(*placed.own, duty, kNewerIsStale)) return;
  if (duty.role == Role::StandsIn && step.act != Act::Fire) return;
  const bool is_here = home == shard_ || placed.own != nullptr;
  if (step.act == Act::Wait && is_here && !readings.contains(step.shard)) {
    Say("schedule " + name + " does not fire yet: shard " + step.shard +
        ", where it may stand, can't be read");
  }
  if (step.act == Act::Fire && IsAnothers(*placed.own, schedule, duty)) return;
  const Status done = Carry(step, name, schedule, duty);
  if (!done) Say("schedule " + name + " can't fire: " + done.error().message);
}

Status ShardSchedules::Carry(const PlaceStep& step, const std::string& name, const ScheduleConfig& schedule,
                             const ScheduleDuty& duty) {
  const auto own = reading_.rows.find(name);
  switch (step.act) {
    case Act::Fire:
      return Fire(own->second, schedule, duty);
    case Act::Make:
      return Make(name, schedule, duty);
    case Act::Take:
      return Take(*step.row, duty);
    case Act::Send:
      return Send(own->second, schedule, step.shard, duty);
    case Act::Keep:
    case Act::Drop: {
      BOOST_OUTCOME_TRYV(step.act == Act::Drop ? store_->Remove(own->second)
                                               : store_->Move(own->second, "", duty.number));
      again_ = true;
      return {};
    }
    case Act::Confirm:
    case Act::Wait:
    case Act::Leave:
      break;
  }
  return {};
}

Status ShardSchedules::Make(const std::string& name, const ScheduleConfig& schedule,
                            const ScheduleDuty& duty) {
  const FiringStep begun = Decide(schedule.rule, std::nullopt, {}, rows_.now);
  BOOST_OUTCOME_TRY(made, store_->Make({.name = name, .state = *begun.moved, .config = duty.number}));
  again_ = true;
  if (made && duty.number == 0) unnumbered_[name].served = Mark{begun.moved->rhythm, begun.moved->paused};
  if (made) LogInfo("a schedule begins", {{"schedule", name}, {"shard", shard_}});
  return {};
}

// Its last task stands in the other shard, where nobody asks for it any more.
Status ShardSchedules::Take(const ScheduleRow& from, const ScheduleDuty& duty) {
  ScheduleRow row = from;
  row.moved_to.clear();
  row.task.reset();
  row.config = std::max(row.config, duty.number);
  BOOST_OUTCOME_TRY(made, store_->Make(row));
  again_ = true;
  if (made) LogInfo("a schedule came from another shard", {{"schedule", row.name}, {"shard", shard_}});
  return {};
}

// What its rhythm wants to know of its last task is found out here, where that stands.
Status ShardSchedules::Send(const ScheduleRow& row, const ScheduleConfig& schedule, const std::string& to,
                            const ScheduleDuty& duty) {
  BOOST_OUTCOME_TRY(last, LastOf(row, schedule.rule));
  if (last.in_work) return {};
  ScheduleRow seen = row;
  if (schedule.rule.timing.Is<FixedDelay>() && !row.state.next) {
    ScheduleRule held = schedule.rule;
    held.paused = true;  // only when it is due; it fires in its new shard
    seen.state = *Decide(held, row.state, last, rows_.now).moved;
    seen.config = duty.number;
    BOOST_OUTCOME_TRY(stepped, store_->Step(row, {.to = seen.state, .config = duty.number}));
    again_ = true;
    if (!stepped.moved) return {};
  }
  BOOST_OUTCOME_TRYV(store_->Move(seen, to, duty.number));
  again_ = true;
  return {};
}

bool ShardSchedules::MayChange(const ScheduleRow& row, const ScheduleDuty& duty, Micros patience) const {
  if (duty.number == 0 || row.config <= duty.number) return true;
  return duty.role == Role::Keeps && newer_since_ && now_ - *newer_since_ > patience;
}

// Two processes with two files would else count it anew in turn, and what comes due meanwhile would be
// nobody's. So whoever came last, or whose rule was changed last, has it, as long as it serves it.
bool ShardSchedules::IsAnothers(const ScheduleRow& row, const ScheduleConfig& schedule,
                                const ScheduleDuty& duty) {
  if (duty.number != 0) return false;
  Unnumbered& stands = unnumbered_.at(row.name);
  const auto others_since = std::exchange(stands.others_since, std::nullopt);
  const Mark own{RhythmText(schedule.rule.timing), schedule.rule.paused};
  if (own == Mark{row.state.rhythm, row.state.paused}) {
    stands.served = own;
    return false;
  }
  if (stands.served != own) return false;
  const Micros stood = now_ - stands.since;
  // One with a number is of a cluster, whose leader need not be registered in the shard.
  if (stood > kLeftAlone && row.config == 0 && IsAlone()) return false;
  const bool due = !row.state.next || rows_.now - *row.state.next > kUnserved;
  if (due && stood > kUnserved && Decide(schedule.rule, row.state, {}, rows_.now).look_at) {
    if (!WaitsForItsTask(row)) return false;
    stands.since = now_;  // when the task ends, whoever serves the row has a minute again
  }
  stands.others_since = others_since.value_or(now_);
  if (now_ - *stands.others_since > kFilesDiffer)
    Say("schedule " + row.name +
        ": another process has another rule for it: give all processes the same file");
  return true;
}

// Each process without a cluster registers in every shard whose schedules it sees to, and marks those dead
// there whose beats stand still. So a single life that is this process's says that nobody else is there;
// where it is missing, or two have the name of one host and one pid as containers may, nothing is known.
bool ShardSchedules::IsAlone() {
  if (lives_read_ && now_ - *lives_read_ < kLeftAlone) return alone_;
  lives_read_ = now_;
  const auto lives = lives_->Peers();
  alone_ = lives && lives->size() == 1 && lives->front().incarnation.pid == getpid() &&
           lives->front().incarnation.host == HostName();
  return alone_;
}

bool ShardSchedules::WaitsForItsTask(const ScheduleRow& row) {
  if (row.state.next || !IsFixedDelay(row.state.rhythm)) return false;
  const auto last = store_->Last(row);
  return !last || last->in_work;
}

Result<LastTask> ShardSchedules::LastOf(const ScheduleRow& row, const ScheduleRule& rule) {
  if (!rule.timing.Is<FixedDelay>() && rule.overlap == Overlap::Allow) return LastTask();
  BOOST_OUTCOME_TRY(last, store_->Last(row));
  known_.at(row.name).ended = last.in_work ? std::nullopt : row.task;
  return last;
}

// Decide asks for the last task where a firing is due; and for a fixed delay's also before, since one that
// was run by hand is its last then, and its end counts. Not with each look: that would be statements by the
// thousand.
Result<LastTask> ShardSchedules::LastThatCounts(const ScheduleRow& row, const ScheduleRule& rule) {
  const bool waits = row.state.next && *row.state.next > rows_.now;
  const bool known = row.task && known_.at(row.name).ended == row.task;
  const bool counts = rule.timing.Is<FixedDelay>()
                          ? !waits || !known || row.state.rhythm != RhythmText(rule.timing)
                          : row.state.next && !waits;
  return counts ? LastOf(row, rule) : LastTask();
}

// Each is a statement: a part of them in one look.
bool ShardSchedules::RaisesNumber(const ScheduleRow& row, const ScheduleDuty& duty) {
  if (duty.role != Role::Keeps || row.config >= duty.number) return false;
  if (++raised_ > kStepsInALook) again_ = true;
  return raised_ <= kStepsInALook;
}

// What the step is to tell the audit; returns what overlap has left out and is told of later.
ShardSchedules::Skips ShardSchedules::Explain(const ScheduleRow& row, const LastTask& last,
                                              ScheduleStep& step) const {
  const auto found = skips_.find(row.name);
  Skips skips = found == skips_.end() ? Skips() : found->second;
  const std::string why = step.lapsed > 0 ? WhyLapsed(row, step.to, last) : kInWork;
  if (why == kInWork) {
    skips.untold += step.lapsed;
  } else {
    step.told.push_back({step.lapsed, why});
  }
  const bool waits = skips.told && now_ - *skips.told < kBetweenSkipsTold;
  if (waits || skips.untold == 0) return skips;
  step.told.push_back({skips.untold, kInWork});
  return {.told = now_};
}

void ShardSchedules::NoteLapsed(const std::string& name, const ScheduleStep& step, const Skips& skips) {
  skips_[name] = skips;
  for (const Lapse& lapse : step.told)
    LogWarning("firings of a schedule lapsed",
               {{"schedule", name}, {"firings", lapse.firings}, {"why", lapse.why}});
}

// That the row stands still is no reason to tell it later.
Status ShardSchedules::TellSkips(const ScheduleRow& row) {
  ScheduleStep step;
  const Skips skips = Explain(row, {}, step);
  if (step.told.empty()) return {};
  BOOST_OUTCOME_TRYV(store_->NoteLapsed(row.name, step.told));
  NoteLapsed(row.name, step, skips);
  return {};
}

Status ShardSchedules::Fire(ScheduleRow row, const ScheduleConfig& schedule, const ScheduleDuty& duty) {
  for (int steps = 0; steps < kStepsInALook; ++steps) {
    BOOST_OUTCOME_TRY(last, LastThatCounts(row, schedule.rule));
    const FiringStep decided = Decide(schedule.rule, row.state, last, rows_.now);
    if (!decided.fire && decided.look_at) LookAt(*decided.look_at);
    if (!decided.moved && !RaisesNumber(row, duty)) return TellSkips(row);
    ScheduleStep step{
        .to = decided.moved.value_or(row.state), .lapsed = decided.lapsed, .config = duty.number};
    if (decided.fire) {
      BOOST_OUTCOME_TRY(firing, firings_.Of(row.name, schedule, *decided.fire));
      step.firing = std::move(firing);
    }
    const Skips skips = Explain(row, last, step);
    const auto stepped = store_->Step(row, step);
    const bool overtaken = stepped ? !stepped->moved : stepped.error().code == ErrorCode::Conflict;
    again_ = again_ || overtaken;
    if (overtaken) return {};
    if (!stepped) return Fail(stepped.error());
    NoteLapsed(row.name, step, skips);
    if (duty.number == 0) unnumbered_[row.name].served = Mark{step.to.rhythm, step.to.paused};
    row.state = step.to;
    row.config = duty.number;
    if (!decided.fire) return {};
    row.task = stepped->task;
  }
  again_ = true;
  return {};
}

void ShardSchedules::Remove(const ScheduleDuty& duty) {
  if (!duty.removes || duty.role != Role::Keeps) return;
  for (const auto& [name, row] : reading_.rows) {
    if (duty.config->schedules.contains(name) || !MayChange(row, duty, kNewerIsForgotten)) continue;
    const auto removed = store_->Remove(row);
    if (removed && *removed) LogInfo("a schedule is over", {{"schedule", name}, {"shard", shard_}});
  }
}

void ShardSchedules::LookAt(WallTime time) { look_at_ = std::min(look_at_.value_or(time), time); }

void ShardSchedules::Say(const std::string& what) { found_.push_back(what); }

void ShardSchedules::Tell() {
  troubles_ = found_;
  std::set<std::string> now(found_.begin(), found_.end());
  for (const std::string& trouble : now) {
    if (!told_.contains(trouble)) LogWarning("a schedule has trouble", {{"what", trouble}});
  }
  told_ = std::move(now);
}

Status SchedulesThread::Start() {
  stopped_.store(false);
  Status started = thread_.Start("fire " + shard_, [this] {
    Run();
    stopped_.store(true);
  });
  if (!started) stopped_.store(true);
  return started;
}

void SchedulesThread::Stop() {
  (void)AskToStop();
  thread_.Join();
}

bool SchedulesThread::AskToStop() {
  stopping_.store(true);
  wake_.Notify();
  return stopped_.load();
}

std::vector<std::string> SchedulesThread::Troubles() const {
  MutexLock lock(mutex_);
  return troubles_;
}

void SchedulesThread::Keep(std::vector<std::string> troubles) {
  MutexLock lock(mutex_);
  troubles_ = std::move(troubles);
}

void SchedulesThread::Run() {
  std::optional<ShardSchedules> schedules;
  std::shared_ptr<const Config> seen;
  BootTime look_at{};
  while (!stopping_.load()) {
    const ScheduleDuty duty = duty_();
    const BootTime now = BootClock::now();
    if (duty.role == Role::None || duty.config == nullptr) {
      schedules.reset();
      seen = nullptr;
      board_.Forget(shard_);
      Keep({});
      look_at = now + kLookAgain;
    } else if (now >= look_at || duty.config != seen) {
      if (!schedules) {
        schedules.emplace(shard_, store_->OpenSchema(), store_->OpenSchedules(), store_->OpenIncarnations(),
                          board_);
      }
      seen = duty.config;
      const Micros wait = schedules->Look(duty, now);
      look_at = BootClock::now() + wait;
      Keep(schedules->troubles());
    }
    const Micros wait = std::min(look_at - BootClock::now(), kLookAgain);  // a new document is seen within it
    if (wait > Micros(0)) wake_.WaitFor(wait);
  }
  board_.Forget(shard_);
}

}  // namespace millrace::engine

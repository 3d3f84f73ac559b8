#include "framework/mill/permits.h"

#include <algorithm>
#include <utility>

#include "framework/base/log.h"
#include "framework/policy/permit_home.h"

namespace millrace::engine {
namespace {

constexpr Micros kWithoutLife = std::chrono::milliseconds(100);
constexpr Micros kWithoutHome = std::chrono::seconds(1);
constexpr Micros kHomeAge = std::chrono::seconds(5);  // then the home is asked whether it still is
constexpr int kHomeLooks = 3;  // the others are named, the home itself, and what came of it is read
constexpr Micros kSoonest = std::chrono::milliseconds(1);  // what it has to do at once it has done
constexpr Micros kShortestTakePause = std::chrono::milliseconds(20);
constexpr Micros kLongestTakePause = std::chrono::seconds(1);

}  // namespace

PermitRules PermitRulesOf(const Config& config) {
  PermitRules rules;
  for (const auto& [type, handler] : config.handlers) {
    if (!handler.limit || handler.limit->concurrency == 0) continue;
    rules[type] = {handler.limit->concurrency, handler.concurrency};
  }
  return rules;
}

// Whoever holds a permit may start: a task gets its own before it comes to the lane.
class Permits::Policy final : public StartPolicy {
 public:
  Policy(Permits& permits, std::string type) : permits_(permits), type_(std::move(type)) {}

  const char* Name() const override { return "permits"; }
  bool NeedsPermit() override { return permits_.Holds(type_); }
  std::size_t ClaimRoom(BootTime now, std::size_t) override { return permits_.Room(type_, now); }
  void Unwanted() override { permits_.Unwanted(type_); }
  std::size_t Take(std::size_t most, BootTime) override { return most; }
  void GiveBack(std::size_t) override {}
  BootTime Next(BootTime now) override { return permits_.HasRoom(type_, now) ? now : BootTime::max(); }
  BootTime NextStart(BootTime now) override { return now; }
  bool StartsNow(BootTime) override { return true; }  // there is room where a permit is at hand, or soon is
  void Ended(const StartEnd&, BootTime) override {}

 private:
  Permits& permits_;
  const std::string type_;
};

std::shared_ptr<StartPolicy> Permits::PolicyOf(const std::string& type) {
  return std::make_shared<Policy>(*this, type);
}

void Permits::Follow(const PermitRules& rules) {
  {
    MutexLock lock(mutex_);
    book_.Follow(rules);
  }
  port_.Wake();
}

bool Permits::Holds(const std::string& type) const {
  MutexLock lock(mutex_);
  return book_.Holds(type);
}

bool Permits::Any() const {
  MutexLock lock(mutex_);
  return book_.Any();
}

bool Permits::HeldUnder(const Lease& life) const {
  MutexLock lock(mutex_);
  return book_.HeldUnder(life);
}

Permits::View Permits::Look() const {
  MutexLock lock(mutex_);
  return {home_, trouble_, locked_, book_.View()};
}

std::size_t Permits::Room(const std::string& type, BootTime now) {
  std::size_t room = 0;
  bool wanted = false;
  {
    MutexLock lock(mutex_);
    room = book_.Room(type, now);
    wanted = book_.AnyToRead(now);
  }
  if (wanted) port_.Wake();
  return room;
}

bool Permits::HasRoom(const std::string& type, BootTime now) const {
  MutexLock lock(mutex_);
  return book_.HasRoom(type, now);
}

void Permits::Unwanted(const std::string& type) {
  bool idle = false;
  {
    MutexLock lock(mutex_);
    idle = book_.Unwanted(type, parts_.clock.Now());
  }
  if (idle) port_.Wake();
}

bool Permits::Take(const std::string& type, std::vector<AttemptPtr>& attempts) {
  std::vector<AttemptPtr> back;
  {
    MutexLock lock(mutex_);
    if (attempts.empty() || !book_.Holds(type) || attempts.front()->home) return false;
    const BootTime now = parts_.clock.Now();
    for (AttemptPtr& attempt : attempts) {
      if (starts_) {
        book_.Wait(std::move(attempt), now);
      } else {
        back.push_back(std::move(attempt));
      }
    }
  }
  for (const AttemptPtr& attempt : back) GiveBack(attempt);
  port_.Wake();
  return true;
}

void Permits::Ended(const Attempt& attempt) {
  if (!attempt.home) return;
  if (attempt.given_up.load()) CountOverrun(attempt);
  bool room = false;
  {
    MutexLock lock(mutex_);
    room = book_.Ended(attempt, parts_.clock.Now());
    std::erase_if(overrunning_, [&](const AttemptPtr& one) { return one.get() == &attempt; });
  }
  port_.Wake();
  if (room) parts_.room_again();
}

// Another may have the permit by now, or soon, and this one's handler may still run.
void Permits::CountOverrun(const Attempt& attempt) {
  parts_.metrics.GetCounter("millrace_permits_overrun_total", {{"handler", attempt.task.handler}}).Add();
}

// Of those that wait. Asked without the lock: the admission, which knows, tells what is held under a lock of
// its own.
std::set<AttemptPtr> Permits::Withdrawn() const {
  std::vector<AttemptPtr> waiting;
  {
    MutexLock lock(mutex_);
    waiting = book_.AllWaiting();
  }
  std::set<AttemptPtr> withdrawn;
  for (AttemptPtr& attempt : waiting) {
    if (attempt->host->DecisionBeforePermit(*attempt) != StartDecision::Start)
      withdrawn.insert(std::move(attempt));
  }
  return withdrawn;
}

void Permits::Watch(BootTime now) {
  const std::set<AttemptPtr> withdrawn = Withdrawn();
  std::vector<AttemptPtr> doubtful;
  std::vector<AttemptPtr> unwanted;
  {
    MutexLock lock(mutex_);
    doubtful = book_.Doubtful(now);
    unwanted = book_.TakeUnwanted(withdrawn, now);
    overrunning_.insert(overrunning_.end(), doubtful.begin(), doubtful.end());
    std::erase_if(overrunning_, [&](const AttemptPtr& attempt) {
      if (!attempt->home->MayBeOthers(now)) return false;
      CountOverrun(*attempt);
      return true;
    });
  }
  for (const AttemptPtr& attempt : doubtful) {
    attempt->stop_by.store((now + attempt->home->PermitGrace()).time_since_epoch().count());
    parts_.metrics.GetCounter("millrace_permits_withdrawn_total", {{"handler", attempt->task.handler}}).Add();
    LogWarning("a task is stopped: the beat that holds its permit is late or over",
               {{"task", ToString(TaskName{attempt->shard, attempt->task.key})},
                {"handler", attempt->task.handler}});
  }
  for (const AttemptPtr& attempt : unwanted) GiveBack(attempt);
}

void Permits::StopStarting() {
  std::vector<AttemptPtr> waiting;
  {
    MutexLock lock(mutex_);
    starts_ = false;
    waiting = book_.TakeWaiting();
  }
  for (const AttemptPtr& attempt : waiting) GiveBack(attempt);
}

void Permits::Stop() {
  stopping_.store(true);
  port_.Wake();
}

Step<> Permits::Run() {
  while (!stopping_.load()) {
    const Micros wait = co_await Round();
    if (!stopping_.load()) co_await port_.Rest(wait);
  }
}

// What these shards say is the home.
Step<Permits::Said> Permits::AskHomes(const std::vector<std::string>& shards) {
  Said said;
  for (const std::string& shard : shards) {
    const auto named = co_await port_.Home(shard);
    said[shard] = named ? std::optional(*named) : std::nullopt;
  }
  co_return said;
}

// True where the home is known. Where nothing speaks against the one that was found before it is kept, so
// that a shard that does not answer for a moment stops nobody who holds a permit. Only the home itself is
// asked now and then whether it still is: a dead shard would hold up all permits.
Step<bool> Permits::FindHome() {
  const std::vector<std::string> shards = port_.Shards();
  std::string former;
  {
    MutexLock lock(mutex_);
    former = home_;
  }
  if (shards == shards_ && !former.empty()) {
    if (parts_.clock.Now() < ask_home_) co_return true;
    ask_home_ = parts_.clock.Now() + kHomeAge;
    const Said said = co_await AskHomes(std::vector<std::string>(1, former));
    if (MayStayHome(former, said)) co_return true;
  }
  HomeChoice choice;
  bool stays = false;
  for (int look = 0; look < kHomeLooks; ++look) {
    const Said said = co_await AskHomes(shards);
    choice = ChooseHome(said);
    stays = MayStayHome(former, said);
    if (choice.unnamed.empty()) break;
    for (const std::string& shard : choice.unnamed) {
      const Status named = co_await port_.NameHome(shard, choice.name);
      if (!named) break;
    }
  }
  if (choice.home.empty() && stays) {
    choice.home = former;
  } else {
    shards_ = shards;  // otherwise they are asked again
  }
  ask_home_ = parts_.clock.Now() + kHomeAge;
  MutexLock lock(mutex_);
  if (choice.trouble != trouble_ && !choice.trouble.empty()) {
    LogWarning(
        choice.home.empty() ? "nothing that needs a permit is started" : "the home of permits is unsure",
        {{"why", choice.trouble}});
  }
  home_ = choice.home;
  trouble_ = choice.trouble;
  co_return !choice.home.empty();
}

Step<Micros> Permits::Round() {
  const bool found = co_await FindHome();
  std::string home;
  {
    MutexLock lock(mutex_);
    home = home_;
  }
  const std::shared_ptr<Lease> life = found ? port_.Life(home) : nullptr;
  const bool others = found && port_.OthersLive(home);
  const std::string address = found ? port_.AddressOf(home) : "";
  {
    MutexLock lock(mutex_);
    book_.Live(life, others, address);
  }
  if (!found) co_return kWithoutHome;
  if (!life || !life->Alive()) co_return kWithoutLife;
  bool well = co_await Void(*life);
  if (well) well = co_await Read();
  if (well) well = co_await Change(*life);
  if (well) well = co_await FreeLeft();
  if (!well) {
    pause_ = std::clamp(2 * pause_, kShortestTakePause, kLongestTakePause);
    co_return pause_;
  }
  if (pause_ > kShortestTakePause) LogInfo("permits can be had again", {{"shard", home}});
  pause_ = Micros(0);
  const BootTime now = parts_.clock.Now();
  MutexLock lock(mutex_);
  trouble_.clear();
  NoteLocked();
  co_return std::max(book_.Next(now) - now, kSoonest);
}

bool Permits::Failed(const Error& error) {
  if (error.code == ErrorCode::Conflict) return false;
  MutexLock lock(mutex_);
  if (trouble_.empty()) {
    LogWarning("permits are held up; they go on as soon as their home answers",
               {{"shard", home_}, {"error", error.message}});
  }
  trouble_ = error.message;
  return false;
}

void Permits::NoteLocked() {
  std::set<std::string> locked = book_.LockedTypes();
  for (const std::string& type : locked) {
    if (locked_.contains(type)) continue;
    LogWarning("permits are held up; they go on as soon as nobody locks their rows",
               {{"shard", home_}, {"handler", type}});
  }
  for (const std::string& type : locked_) {
    if (!locked.contains(type)) LogInfo("permits can be had again", {{"shard", home_}, {"handler", type}});
  }
  locked_.swap(locked);
}

Step<bool> Permits::Void(const Lease& life) {
  const auto [home, changes] = AtHome(&PermitBook::ToVoid);
  if (changes.empty()) co_return true;
  const auto voided = co_await port_.Change(home, life.incarnation(), changes);
  if (!voided) co_return Failed(voided.error());
  MutexLock lock(mutex_);
  book_.Voided(changes, *voided, parts_.clock.Now());
  co_return true;
}

Step<bool> Permits::Read() {
  const auto [home, types] = AtHome(&PermitBook::ToRead);
  if (types.empty()) co_return true;
  const auto rows = co_await port_.Permits(home, types);
  if (!rows) co_return Failed(rows.error());
  std::vector<std::pair<std::string, std::uint32_t>> missing;
  {
    MutexLock lock(mutex_);
    book_.Read(types, *rows, parts_.clock.Now());
    missing = book_.ToMake();
  }
  for (const auto& [type, count] : missing) {
    const Status made = co_await port_.Make(home, type, count);
    if (!made) co_return Failed(made.error());
  }
  co_return true;
}

Step<bool> Permits::Change(const Lease& life) {
  const auto [home, changes] = AtHome(&PermitBook::ToChange);
  if (changes.empty()) co_return true;
  const auto changed = co_await port_.Change(home, life.incarnation(), changes);
  std::vector<AttemptPtr> started;
  bool room = false;
  {
    MutexLock lock(mutex_);
    if (changed) {
      started = book_.Changed(changes, *changed, parts_.clock.Now());
    } else if (changed.error().code == ErrorCode::Unknown) {
      book_.Unknown(changes);
    } else {
      book_.Failed(changes);
    }
    room = book_.TakeRoomAgain();
  }
  Begin(started);
  if (room) parts_.room_again();
  if (!changed) co_return Failed(changed.error());
  co_return true;
}

// Of former lives in the home that are not over.
Step<bool> Permits::FreeLeft() {
  const auto [home, left] = AtHome(&PermitBook::ToFree);
  for (const auto& [incarnation, changes] : left) {
    const auto freed = co_await port_.Change(home, incarnation, changes);
    if (!freed) co_return Failed(freed.error());
    MutexLock lock(mutex_);
    book_.Freed(incarnation, changes, *freed, parts_.clock.Now());
  }
  co_return true;
}

void Permits::Begin(const std::vector<AttemptPtr>& attempts) {
  for (const AttemptPtr& attempt : attempts) {
    std::vector<AttemptPtr> one{attempt};
    if (!parts_.runner.Take(attempt->task.handler, one)) GiveBack(attempt);
  }
}

}  // namespace millrace::engine

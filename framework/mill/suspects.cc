#include "framework/mill/suspects.h"

#include <algorithm>

#include "framework/base/log.h"
#include "framework/mill/attempt.h"

namespace millrace::engine {
namespace {

constexpr Micros kPatience = std::chrono::seconds(60);  // for those inside to leave
// Beside what takes longer than that. Whoever asks no more for so long as patience lasts is gone.
constexpr Micros kLongestRefusal = std::chrono::minutes(15);
constexpr Micros kLongestStretch = std::chrono::seconds(10);    // of suspects in succession
constexpr Micros kFirstEntry = std::chrono::milliseconds(500);  // scanners look, and find that they may enter
// A wish is renewed many times a second, unless its strand waits for others' locks, up to a second each time.
constexpr Micros kRenewed = std::chrono::seconds(3);

constexpr std::uint32_t kSuspectCrashes = 2;
constexpr std::size_t kSuspectRescues = 5;
constexpr std::size_t kMostRecords = 10'000;
constexpr std::size_t kMostWaiting = 2'000;

bool HasCrashed(std::uint32_t crashes) { return crashes >= kSuspectCrashes && crashes < kQuarantineCrashes; }

}  // namespace

bool SoloGate::Enter(std::size_t count) {
  MutexLock lock(mutex_);
  DropForgotten();
  if (!suspect_.empty()) return false;
  inside_ += count;
  stretch_.reset();
  return true;
}

bool SoloGate::EnterClaimed() {
  MutexLock lock(mutex_);
  ++inside_;
  DropForgotten();
  return suspect_.empty();
}

void SoloGate::Leave(std::size_t count) { inside_ -= count; }

// Whoever asked may wait in a shard that does not answer: nobody is to wait for that one, too.
bool SoloGate::Forgotten() const { return !alone_ && clock_.Now() - renewed_ > kRenewed; }

void SoloGate::DropForgotten() {
  if (!suspect_.empty() && Forgotten()) suspect_.clear();
}

bool SoloGate::IsOthersTurn(BootTime now) const {
  return now < others_until_ && (inside_ > 0 || now < others_from_ + kFirstEntry);
}

void SoloGate::EndStretch(BootTime now) {
  others_from_ = now;
  others_until_ = now + (now - stretch_.value_or(now));
  stretch_.reset();
}

// Of work that follows work some is always long. A wish that counts for as long as it was refused leaves the
// others half of the time at least, and comes to its end however long they take.
Micros SoloGate::PatienceOf(BootTime now, Micros others_take) {
  const Micros refused = now - refused_;
  if (others_take <= kPatience) return kPatience;
  return refused >= kLongestRefusal ? refused : Micros(0);
}

bool SoloGate::EnterAlone(const std::string& suspect, Micros others_take) {
  bool insists = false;
  bool alone = false;
  {
    MutexLock lock(mutex_);
    alone = Ask(suspect, others_take, clock_.Now(), insists);
  }
  if (insists) {
    LogWarning(
        "nothing is claimed until what runs has ended: a task whose runs have killed its process has "
        "waited long enough to run alone",
        {{"task", suspect}});
  }
  return alone;
}

bool SoloGate::Ask(const std::string& suspect, Micros others_take, BootTime now, bool& insists) {
  if (alone_) return false;
  if (now - asked_last_ > kPatience) refused_ = now;
  asked_last_ = now;
  if (suspect_ != suspect) DropForgotten();
  if (suspect_.empty()) {
    const Micros patience = PatienceOf(now, others_take);
    if (patience == Micros(0) || IsOthersTurn(now)) return false;
    suspect_ = suspect;
    asked_ = now;
    patience_ = patience;
    insists = patience > kPatience;
    // Meanwhile others could have entered, though nobody did; or it was a wish that was forgotten.
    if (!stretch_ || now - renewed_ > kFirstEntry) stretch_ = now;
  }
  if (suspect_ != suspect) return false;
  renewed_ = now;
  if (inside_ == 0) {
    alone_ = true;
    return true;
  }
  if (now - asked_ > patience_) {
    suspect_.clear();
    EndStretch(now);
  }
  return false;
}

void SoloGate::LeaveAlone() {
  const BootTime now = clock_.Now();
  MutexLock lock(mutex_);
  suspect_.clear();
  alone_ = false;
  renewed_ = refused_ = asked_last_ = now;
  if (stretch_ && now - *stretch_ >= kLongestStretch) EndStretch(now);
}

void SoloGate::Withdraw(const std::string& suspect) {
  MutexLock lock(mutex_);
  if (!alone_ && suspect_ == suspect) suspect_.clear();
}

void SoloGate::WithdrawAll(const std::string& shard) {
  MutexLock lock(mutex_);
  if (!alone_ && suspect_.starts_with(shard + "/")) suspect_.clear();
}

bool SoloGate::Wanted() const {
  MutexLock lock(mutex_);
  return !suspect_.empty() && !Forgotten();
}

std::string Suspects::NameOf(const Place& place) const {
  return ToString(TaskName{shard_, {place.first, place.second}});
}

bool Suspects::IsSuspect(const DueGroup& group, const ScanRow& row) {
  const bool crashed = HasCrashed(row.crashes);
  if (records_.empty() && !crashed) return false;
  const Place place{group.table, row.id};
  const auto record = records_.find(place);
  const bool often_rescued = record != records_.end() && record->second.rescues >= kSuspectRescues;
  if (!often_rescued && !crashed) return false;
  if (waiting_.size() < kMostWaiting && places_.insert(place).second) {
    waiting_.push_back({group, place, row.attempt});
  }
  return true;
}

bool Suspects::Waits(const std::string& handler) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& one) { return one.group.handler == handler; });
}

std::deque<Suspects::Waiting>::iterator Suspects::Erase(std::deque<Waiting>::iterator one) {
  places_.erase(one->place);
  return waiting_.erase(one);
}

std::optional<ClaimRequest> Suspects::Turn(const std::string& incarnation, const MayClaim& may_claim,
                                           Micros others_take) {
  asks_ = false;
  const bool full = waiting_.size() >= kMostWaiting;  // others are to find a place too
  std::set<std::string> later;                        // types
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    const bool known = later.contains(one->group.handler);
    const Take take = known ? Take::Later : may_claim(one->group);
    if (take == Take::Now) {
      asks_ = true;
      if (!gate_.EnterAlone(NameOf(one->place), others_take)) return std::nullopt;
      const Waiting turn = *one;
      Erase(one);
      records_.erase(turn.place);  // if it comes back it is looked into again
      return ClaimRequest{turn.place.first, incarnation, turn.attempt, {turn.place.second}};
    }
    gate_.Withdraw(NameOf(one->place));
    if (take == Take::Later) later.insert(one->group.handler);
    one = take == Take::Never || full ? Erase(one) : std::next(one);
  }
  return std::nullopt;
}

void Suspects::Forget() {
  for (const Waiting& one : waiting_) gate_.Withdraw(NameOf(one.place));
  waiting_.clear();
  places_.clear();
}

// Each rescue cost the task an attempt that is no failure. So many claims without as many failures are looked
// into.
bool Suspects::MayObject(const Task& task) const {
  return HasCrashed(task.crashes) || task.attempt > task.failures + kSuspectRescues;
}

const Suspects::Record* Suspects::RecordOf(const Task& task) const {
  const auto known = records_.find({task.key.table, task.key.id});
  return known == records_.end() ? nullptr : &known->second;
}

// A task that snoozes often is looked into again only once it may have been rescued often enough.
bool Suspects::WantsRecord(const Task& task) const {
  if (HasCrashed(task.crashes)) return false;
  const Record* known = RecordOf(task);
  return known == nullptr || known->rescues + (task.attempt - known->attempt) >= kSuspectRescues;
}

void Suspects::Note(const Task& task, std::size_t rescues) {
  if (records_.size() >= kMostRecords) records_.clear();
  records_[{task.key.table, task.key.id}] = {task.attempt, rescues};
}

std::optional<Outcome> Suspects::Objection(const Task& task) {
  // Charged between its scan and its claim, or claimed by a statement whose reply was lost.
  if (HasCrashed(task.crashes)) return GivenBack();
  const Record* known = RecordOf(task);
  const std::size_t rescues = known == nullptr ? 0 : known->rescues;
  if (rescues < kSuspectRescues) return std::nullopt;
  if (rescues == kSuspectRescues) return GivenBack();
  records_.erase({task.key.table, task.key.id});
  return FailedForGood("quarantined: " + std::to_string(rescues) + " workers died while they had it",
                       "crash");
}

}  // namespace millrace::engine

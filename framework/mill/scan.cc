#include "framework/mill/scan.h"

#include <algorithm>
#include <unordered_set>

#include "framework/base/log.h"
#include "framework/policy/group_order.h"

namespace millrace::engine {
namespace {

constexpr Micros kFirstPause = std::chrono::milliseconds(100);
constexpr Micros kLongestPause = std::chrono::seconds(2);
constexpr Micros kSuspectPause = std::chrono::milliseconds(20);
constexpr std::size_t kMostRung = 4;  // rings whose rows a look asks for; more come faster by pages

// Of some of these rows, which stand beside theirs.
std::vector<const DueGroup*> GroupsOf(const std::vector<std::uint64_t>& some,
                                      const std::vector<std::uint64_t>& ids,
                                      const std::vector<const DueGroup*>& groups) {
  const std::unordered_set<std::uint64_t> wanted(some.begin(), some.end());
  std::vector<const DueGroup*> found;
  for (std::size_t i = 0; i < ids.size() && found.size() < wanted.size(); ++i) {
    if (wanted.contains(ids[i])) found.push_back(groups[i]);
  }
  return found;
}

}  // namespace

Scanner::Scanner(Parts parts, const ScanPart& part, ScanShared& shared, ScanPort& port)
    : parts_(parts),
      part_(part),
      shared_(shared),
      port_(port),
      suspects_(parts_.shard, parts_.gate),
      claimer_({parts_.clock, parts_.shard, parts_.attempts, parts_.gate, parts_.engine, parts_.counters,
                parts_.beat},
               port_, suspects_) {}

void Scanner::LookAgain() {
  look_again_.store(true);
  port_.Wake();
}

void Scanner::Redealt() {
  MutexLock lock(mutex_);
  idleness_.reset();
  idle_.store(false);
}

void Scanner::Rung(const Ring& ring) {
  if (ring.table && !ring.rows.empty()) {
    MutexLock lock(mutex_);
    if (rings_with_rows_.size() < kMostRung) rings_with_rows_.push_back(ring);
  }
  rung_.store(true);
  port_.Wake();
}

void Scanner::SetAttended(bool attended) {
  if (attended_.exchange(attended) != attended) LookAgain();
}

bool Scanner::RingDue() {
  if (trouble_pause_ != Micros(0)) return false;
  if (rung_.exchange(false)) rings_.Rung(parts_.clock.Now());
  return parts_.clock.Now() >= rings_.Next();
}

Micros Scanner::UntilNext() {
  if (rung_.load()) return Micros(0);
  const BootTime until = std::min({look_.until, rounds_.Next(), held_until_, rings_.Next()});
  return std::min(until, claimer_.ResolvesAgain()) - parts_.clock.Now();
}

void Scanner::StopClaiming() {
  claiming_.store(false);
  parts_.gate.WithdrawAll(parts_.shard);
  port_.Wake();
}

void Scanner::Stop() {
  stopping_.store(true);
  StopClaiming();
}

ScanView Scanner::View() const {
  MutexLock lock(mutex_);
  return view_;
}

Scanner::Seen Scanner::LatestMap() const {
  MutexLock lock(mutex_);
  const bool current =
      latest_whole_ && latest_part_ == part_.Version() && latest_gains_ == parts_.scope.Gains();
  return {latest_, latest_ && current};
}

Step<> Scanner::Run() {
  while (!stopping_.load()) {
    const Micros wait = co_await Round();
    if (!stopping_.load()) co_await port_.Rest(wait);
  }
  suspects_.Forget();  // the gate is other shards' too
  quiet_.store(true);  // a round that hung until now has not said so
}

bool Scanner::Note(const Status& status) {
  if (status) return true;
  if (trouble_pause_ == Micros(0)) {
    LogWarning("scanning is held up; it goes on as soon as it can",
               {{"shard", parts_.shard}, {"error", status.error().message}});
  }
  failed_ = true;
  MutexLock lock(mutex_);
  view_.error = status.error().message;
  return false;
}

Step<Micros> Scanner::Round() {
  const EngineConfig engine = parts_.engine.Get();
  failed_ = false;
  idle_.store(false);
  const bool unknown = claimer_.HasUnknown();
  co_await claimer_.Resolve(!claiming_.load());
  if (unknown && !claimer_.HasUnknown()) schedule_.Forget();  // what was not claimed is nobody's to look for
  const std::shared_ptr<Lease> life = parts_.lives.Own();
  if (!claiming_.load() || !life || !life->MayStart(parts_.clock.Now())) {
    suspects_.Forget();
    look_ = {};
    schedule_.Forget();
    known_.Forget();
    quiet_.store(!claiming_.load());
    co_return engine.poll;
  }
  const Status claimed = co_await ClaimSuspect(life);
  Note(claimed);
  if (rounds_.Any()) rounds_.NoteEnded(parts_.clock.Now(), [this](const auto& type) { return InHand(type); });
  brake_limit_ = engine.brake_latency;
  if (const Micros rest = rests_until_ - parts_.clock.Now(); rest > Micros(0) && !failed_)
    co_return suspects_.Asks() ? std::min(rest, kSuspectPause) : rest;

  const bool was_empty = parts_.attempts.in_flight().Empty();
  const bool rung = RingDue();
  look_.until = NextLookAt(parts_.clock.Now());
  const BootTime until = std::min(look_.until, rounds_.Next());
  const bool looks = look_again_.exchange(false) || rung || parts_.clock.Now() >= until;
  if (looks) co_await TakeLook(engine);
  full_ = false;
  held_until_ = BootTime::max();
  if (look_.map) co_await WorkOff(engine, life);
  rings_.SetBusy(full_);
  if (parts_.watch_idle && looks && look_.full && !failed_) {
    const bool nothing_left = co_await NothingLeft(look_.map, was_empty);
    NoteIdle(nothing_left);
  }
  if (failed_) co_return AfterTrouble();
  if (trouble_pause_ != Micros(0)) LogInfo("scanning goes on", {{"shard", parts_.shard}});
  trouble_pause_ = Micros(0);
  if (suspects_.Asks()) co_return kSuspectPause;
  if (const Micros rest = rests_until_ - parts_.clock.Now(); rest > Micros(0)) co_return rest;
  co_return std::max(UntilNext(), Micros(0));
}

Step<Status> Scanner::ClaimSuspect(std::shared_ptr<Lease> life) {
  std::string type;  // of the last that was asked for: whose turn it is
  TableName table = kDefaultTable;
  std::optional<DueGroup> asked;
  Suspects::MayClaim may_claim = [&](const DueGroup& group) {
    type = group.handler;
    table = group.table;
    asked = group;
    if (!MayClaim(group) || rounds_.Left(type) == 0) return Suspects::Take::Never;
    return parts_.admission.StartsNow(type) ? Suspects::Take::Now : Suspects::Take::Later;
  };
  const Micros busy = suspects_.Waits() ? parts_.runner.BusyFor() : Micros(0);
  const Status claimed = co_await claimer_.ClaimSuspect(life, std::move(may_claim), busy);
  const ClaimWork work = claimer_.TakeWork();
  rounds_.Claimed(type, work.claimed);
  if (asked && work.claimed == 0) LookForAgain(*asked, asked->first_run_at);
  if (!work.refused) co_return claimed;
  Rest(shared_.unwritable, table, work.took, claimed.error().message);
  co_return Status{};
}

Micros Scanner::AfterTrouble() {
  look_ = {};
  schedule_.Forget();
  known_.Forget();
  rounds_.Again();
  shared_.bands.Again();
  brake_.Failed(parts_.clock.Now());
  trouble_pause_ = std::clamp(trouble_pause_ * 2, kFirstPause, kLongestPause);
  return trouble_pause_;
}

bool Scanner::GoesOn() const { return !failed_ && claiming_.load() && parts_.clock.Now() >= rests_until_; }

// What was asked before the rows were looked for is asked again: the claim that was on its way meanwhile may
// have failed, slowed the shard down, or taken long.
Step<bool> Scanner::Fill(Place& place, std::size_t end, std::size_t share, std::shared_ptr<Lease> life) {
  Candidates found;
  found.wanted = std::min(place.most, share);
  found.room = std::min(parts_.attempts.in_flight().Room(), place.free.bytes);
  if (found.wanted == 0 || parts_.gate.Wanted()) co_return false;
  worked_ = worked_ || found.room > 0;
  const std::span<const std::size_t> order(place.order);
  const bool gathered = co_await Gather(*place.work, order.subspan(place.next, end - place.next), found);
  co_await Land();
  if (gathered && GoesOn() && StillOpen(found)) {
    KeepWithin(place, found);
  } else {
    KeepFirst(found, 0);
  }
  if (found.count == 0) co_return false;
  const bool ahead = GoesAhead(place, found);
  sent_.emplace(ClaimFound(place.work->type, std::move(found), std::move(life), ahead));
  if (!ahead) co_await Land();
  co_return true;
}

bool Scanner::StillOpen(const Candidates& found) const {
  const DueGroup* asked = nullptr;
  for (const FoundRows& rows : found.claims) {
    for (const DueGroup* group : rows.groups) {
      if (group != asked && !MayClaim(*group)) return false;
      asked = group;
    }
  }
  return true;
}

// Where there is more to claim, and room for as much again. Few rows are claimed sooner by the strand itself.
bool Scanner::GoesAhead(const Place& place, const Candidates& found) const {
  return place.unbound && brake_.Speed() >= 1 && !place.room.gives_back && found.claims.size() == 1 &&
         found.count == place.most && place.free.tasks / 2 >= found.count &&
         place.free.bytes / 2 >= found.bytes;
}

Step<> Scanner::Land() {
  if (!sent_) co_return;
  Reply<bool> landed = port_.Landed();
  co_await landed;
  Step<> claim = std::move(*sent_);
  sent_.reset();
  co_await claim;
}

void Scanner::RestByBrake() {
  rests_until_ = parts_.clock.Now() + brake_.RestAfter(std::exchange(work_to_rest_of_, Micros(0)));
}

void Scanner::KeepWithin(Place& place, Candidates& found) {
  const std::size_t granted =
      shared_.claims.Grant(place.work->type, {found.count, found.bytes}, place.room, place.landed);
  if (granted == found.count) return;
  full_ = true;
  KeepFirst(found, granted);
}

void Scanner::KeepFirst(Candidates& found, std::size_t rows) {
  found.count = rows;
  for (auto& [request, groups] : found.claims) {
    const std::size_t kept = std::min(rows, groups.size());
    GiveUp(std::span(groups).subspan(kept));
    groups.resize(kept);
    request.ids.resize(kept);
    if (!request.contents.empty()) request.contents.resize(kept);
    rows -= kept;
  }
  std::erase_if(found.claims, [](const FoundRows& claim) { return claim.groups.empty(); });
}

void Scanner::GiveUp(std::span<const DueGroup* const> rows) {
  if (rows.empty()) return;
  rounds_.Again();
  for (auto row = rows.begin(); row != rows.end();) {
    const DueGroup& group = **row;
    const auto next = std::find_if(row, rows.end(), [&](const DueGroup* other) { return other != &group; });
    cursors_.Rewind(group);
    shared_.bands.GiveBack(group, static_cast<std::size_t>(next - row));
    row = next;
  }
}

Step<> Scanner::ClaimFound(std::string type, Candidates found, std::shared_ptr<Lease> life, bool ahead) {
  InFlight& in_flight = parts_.attempts.in_flight();
  in_flight.Expect(found.bytes);
  bool goes_on = true;
  for (auto& [request, groups] : found.claims) {
    if (!goes_on || Rests(request.table)) {
      GiveUp(groups);
      continue;
    }
    const std::vector<std::uint64_t> ids = request.ids;
    const TableName table = request.table;
    request.incarnation = life->incarnation();
    const Status claimed = co_await claimer_.Claim(std::move(request), life, ahead);
    const ClaimWork work = claimer_.TakeWork();
    rounds_.Claimed(type, work.claimed);
    if (work.refused) {
      Rest(shared_.unwritable, table, work.took, claimed.error().message);
    } else {
      goes_on = Note(claimed);
    }
    work_to_rest_of_ += work.took;
    if (goes_on && !work.refused && work.slowest > Micros(0))
      brake_.Answered(parts_.clock.Now(), work.slowest, brake_limit_);
    GiveUp(GroupsOf(work.left, ids, groups));
    for (const DueGroup* group : GroupsOf(work.missed, ids, groups))
      LookForAgain(*group, group->first_run_at);
  }
  if (in_flight.Arrived(found.bytes)) parts_.attempts.RoomAgain();
  shared_.claims.Land(type, {found.count, found.bytes});
  RestByBrake();
}

}  // namespace millrace::engine

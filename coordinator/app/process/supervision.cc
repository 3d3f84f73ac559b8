#include "coordinator/app/process/supervision.h"

#include <systemd/sd-daemon.h>

#include <cstdint>
#include <utility>

#include "coordinator/app/cli/text.h"
#include "framework/base/escape.h"
#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenTexts = std::chrono::seconds(10);
// Of an address that could not be listened on: whoever had its port may have gone, or it may be there now.
// But not where a try takes long, for want of a name server say: this thread does nothing else meanwhile.
constexpr Micros kListenAgain = std::chrono::seconds(5);
constexpr Micros kLongestTry = std::chrono::seconds(1);
// Of the watchdog's time: it is fed four times in it at most, and a thread may be overdue for half of it, so
// that one that stands still is killed for it after one and a half at the latest.
constexpr int kFeedsInIt = 4;
constexpr int kPatienceOfIt = 2;

void Notify(const std::string& state) { (void)sd_notify(0, state.c_str()); }

}  // namespace

ServiceManager::ServiceManager() {
  std::uint64_t usec = 0;
  if (sd_watchdog_enabled(0, &usec) > 0) watchdog_ = Micros(static_cast<Micros::rep>(usec));
}

void ServiceManager::TellReady() { Notify("READY=1"); }
void ServiceManager::TellStopping() { Notify("STOPPING=1"); }
void ServiceManager::TellStatus(const std::string& what) {
  Notify("STATUS=" + Escape(what, Backslash::Kept));
}
void ServiceManager::FeedWatchdog() { Notify("WATCHDOG=1"); }

Result<std::unique_ptr<Supervision>> Supervision::Begin(const HttpFlags& flags, const EngineConfig& engine) {
  std::unique_ptr<Supervision> supervision(new Supervision(flags));
  BOOST_OUTCOME_TRY(web, WebServer::Make(flags, supervision->view_));
  supervision->web_ = std::move(web);
  {
    MutexLock lock(supervision->mutex_);
    supervision->address_ = engine.http;
  }
  auto listens = supervision->web_->Listen(flags.http.empty() ? engine.http : flags.http);
  if (!listens) {
    return Fail(listens.error().code,
                (flags.http.empty() ? "engine.http: " : "--http: ") + listens.error().message);
  }
  supervision->manager_.TellStatus("starting");
  return supervision;
}

std::unique_ptr<ProcessView::Shown> Supervision::Show(ProcessView::Facts facts,
                                                      ProcessView::Metrics metrics) {
  view_.Show(std::move(facts), std::move(metrics));
  return std::make_unique<ProcessView::Shown>(view_);
}

void Supervision::Update(const EngineConfig& engine, BootTime now) {
  if (!fixed_address_) Follow(engine.http, now);
  Feed(now);
  if (ready_ && told_ && now - *told_ < kBetweenTexts) return;
  const ProcessFacts facts = view_.Ask(kHealthyPatience);
  if (!ready_ && facts.missing.empty()) {
    ready_ = true;
    manager_.TellReady();
    told_.reset();  // how it is, now
  }
  if (!told_ || now - *told_ >= kBetweenTexts) TellStatus(facts, now);
}

// Whoever is served where it was asked for before is not cut off for another try.
void Supervision::Follow(const std::string& address, BootTime now) {
  std::string before;
  {
    MutexLock lock(mutex_);
    const bool again = may_come_ && !stopping_ && !web_->Serves() && now >= listen_again_;
    if (address == address_ && !again) return;
    if (address == address_) before = refused_;
  }
  const BootTime begun = BootClock::now();
  const Status listens = web_->Listen(address);
  const Micros took = BootClock::now() - begun;
  const std::string refused = listens ? "" : "engine.http: " + listens.error().message;
  if (!listens && refused != before) {
    LogError("engine.http is not in force here; the last address that could be is kept",
             {{"error", listens.error().message}});
  }
  listen_again_ = now + kListenAgain;
  may_come_ = !listens && !IsForPeople(listens.error().code) && took < kLongestTry;
  MutexLock lock(mutex_);
  address_ = address;
  refused_ = refused;
}

std::optional<std::string> Supervision::Listens(const EngineConfig& engine) const {
  if (fixed_address_) return "";
  MutexLock lock(mutex_);
  return engine.http == address_ ? std::optional(refused_) : std::nullopt;
}

void Supervision::Feed(BootTime now) {
  const Micros watchdog = manager_.watchdog();
  if (watchdog == Micros(0) || (fed_ && now - *fed_ < watchdog / kFeedsInIt)) return;
  const std::string still = view_.Ask(watchdog / kPatienceOfIt).stands_still;
  if (still.empty()) {
    manager_.FeedWatchdog();
    fed_ = now;
  } else if (still != starved_by_) {
    manager_.TellStatus("the thread " + still + " stands still: the watchdog is not fed");
  }
  starved_by_ = still;
}

void Supervision::TellStatus(const ProcessFacts& facts, BootTime now) {
  if (!starved_by_.empty() || stopping_) return;
  if (!facts.missing.empty()) {
    manager_.TellStatus("not ready: " + Joined(facts.missing, "; "));
  } else if (facts.totals) {
    manager_.TellStatus(
        LoadText(told_ ? told_totals_ : *facts.totals, *facts.totals, told_ ? now - *told_ : Micros(1)));
  } else {
    manager_.TellStatus("following the cluster");
  }
  if (facts.totals) told_totals_ = *facts.totals;
  told_ = now;
}

void Supervision::Stopping() {
  if (std::exchange(stopping_, true)) return;
  view_.Ending();
  manager_.TellStopping();
  manager_.TellStatus("stopping: what runs is finished or given back");
}

}  // namespace millrace::engine
